import Foundation
import FoundationNetworking
import PosternClient

/// A native app without a screen: a client of the library that apps use, which prints what it and the server say.
struct HeadlessApp {
    let client: PosternClient
    let outbox: DevOutboxReader
    private let origin: URL
    private let paths: AsyncStream<String>

    /// - Parameters:
    ///   - server: and client.
    ///   - scope: of the sign-in.
    ///   - key: whether the tokens are bound to a key, which is made for this run.
    ///   - redirect: of the pages.
    ///   - transport: what sends the requests.
    /// - Throws: ``CommandFailure`` when the options name no origin.
    init(
        _ server: ServerOptions, scope: String = "openid", dpop: Bool = false, redirect: URL? = nil,
        over transport: any Transport = PrintingTransport()
    ) throws {
        origin = try server.origin
        outbox = DevOutboxReader(origin)
        var configuration = PosternConfiguration(origin: origin, clientID: server.client)
        configuration.scopes = scope.split(separator: " ").map(String.init)
        configuration.redirectURI = redirect
        configuration.store = MemoryStore()
        configuration.key = dpop ? .software : .none
        configuration.transport = transport
        configuration.userAgent = "postern try"
        let (paths, teller) = AsyncStream.makeStream(of: String.self)
        configuration.log = { event in
            if event.kind == "request", let path = event.detail["path"] { teller.yield(path) }
        }
        self.paths = paths
        client = try PosternClient(configuration)
    }

    /// The same for the flows of a user.
    init(_ options: TryOptions, over transport: any Transport = PrintingTransport()) throws {
        try self.init(options.server, scope: options.scope, dpop: options.dpop, over: transport)
    }

    /// Waits until a request for this path was answered; one that was before counts too, but only once.
    func answered(_ path: String) async {
        for await other in paths where other == path { return }
    }

    /// Asks for a code and redeems it.
    func signInByCode(_ options: TryOptions) async throws {
        let before = try await outbox.newest(.code, to: options.email)
        let request = try await client.requestCode(to: .email(options.email))
        let code = try await outbox.code(given: options.code, sentTo: options.email, since: before)
        _ = try await client.signIn(code: code, for: request, secondFactor: options.secondFactor)
    }

    /// Reads userinfo.
    func userInfo(for audience: Audience = .default) async throws {
        let request = URLRequest(url: origin.appending(path: "connect/userinfo"))
        let (_, response) = try await client.send(request, for: audience)
        guard response.statusCode == 200 else { throw CommandFailure("the server answered \(response.statusCode)") }
    }
}
