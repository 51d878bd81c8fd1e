import ArgumentParser
import Foundation
import FoundationNetworking
import PosternClient
import Synchronization

/// `postern try refresh`.
struct TryRefreshCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh", abstract: "Sign in by code, refresh, lose the answer, and refresh again.")

    @OptionGroup var options: TryOptions

    func run() async throws {
        guard options.scope.split(separator: " ").contains("offline_access") else {
            throw CommandFailure("no refresh_token: ask for scope offline_access with --scope")
        }
        try await explaining {
            let network = LossyTransport()
            let app = try HeadlessApp(options, over: network)
            try await app.signInByCode(options)
            // The app has a token for what it signed in for. One of fewer scopes takes a refresh.
            let audience = Audience.api(scopes: ["openid"])
            _ = try await app.client.accessToken(for: audience)
            let successors = network.successors
            guard successors.count == 2, successors[0] == successors[1] else {
                throw CommandFailure("the repeated refresh gave another successor")
            }
            say("The repeated refresh gave the same successor: a lost answer does not sign the user out.\n")
            try await app.userInfo(for: audience)
        }
    }
}

/// A network that loses the first answer to a refresh.
private final class LossyTransport: Transport {
    private let transport = PrintingTransport()
    private let seen = Mutex<[String]>([])

    /// The refresh tokens that the server gave out for others.
    var successors: [String] { seen.withLock { $0 } }

    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        struct Tokens: Decodable { let refresh_token: String }
        let (body, response) = try await transport.send(request)
        let form = request.httpBody.map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard form.contains("grant_type=refresh_token"),
            let tokens = try? JSONDecoder().decode(Tokens.self, from: body)
        else { return (body, response) }
        let isFirst = seen.withLock { seen in
            seen.append(tokens.refresh_token)
            return seen.count == 1
        }
        guard isFirst else { return (body, response) }
        say("  this answer is lost on its way, so the app asks again\n")
        throw URLError(.networkConnectionLost)
    }
}
