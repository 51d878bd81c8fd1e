import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A server, a device, and what happened.
struct World: Sendable {
    let time = VirtualTime()
    let server: FakeServer
    let events = Events()

    init() { server = FakeServer(time) }

    func client(
        _ store: any SessionStore = MemoryStore(), key: KeyPolicy = .software,
        scopes: [String] = ["openid", "offline_access", "orders.read"], keys: (any Keys)? = nil,
        clientID: String = "app",
        origin: String = FakeServer.origin
    ) throws -> PosternClient {
        let url = try #require(URL(string: origin))
        var configuration = PosternConfiguration(origin: url, clientID: clientID)
        configuration.store = store
        configuration.key = key
        configuration.scopes = scopes
        configuration.transport = server
        configuration.log = { [events] in events.add($0) }
        var surroundings = time.surroundings
        if let keys { surroundings.keys = keys }
        return try PosternClient(configuration, surroundings)
    }

    /// A client that is signed in as a user, by a family of this name.
    func signedIn(
        _ store: any SessionStore = MemoryStore(), family: String = "R", user: String = "mike",
        key: KeyPolicy = .software,
        scopes: [String] = ["openid", "offline_access", "orders.read"], keys: (any Keys)? = nil
    ) async throws -> PosternClient {
        let client = try client(store, key: key, scopes: scopes, keys: keys)
        try await signIn(client, family: family, user: user, scopes: scopes, key: key)
        return client
    }

    func signIn(
        _ client: PosternClient, family: String, user: String,
        scopes: [String] = ["openid", "offline_access", "orders.read"], key: KeyPolicy = .software
    ) async throws {
        await server.add(family, FakeServer.Family(user: user, isBearer: key == .none))
        let json = await server.tokens(
            family, scope: scopes.joined(separator: " "), refresh: scopes.contains("offline_access"))
        let answer = try #require(TokenAnswer(json, at: time.now))
        _ = try await client.establish(answer)
    }
}

/// What the library logged.
final class Events: @unchecked Sendable {
    private let lock = NSLock()
    private var list: [LogEvent] = []

    func add(_ event: LogEvent) { lock.withLock { list.append(event) } }
    var all: [LogEvent] { lock.withLock { list } }
    func count(_ kind: String) -> Int { all.filter { $0.kind == kind }.count }
}

/// A store that fails as a test says.
actor FaultyStore: SessionStore {
    enum Fault: Sendable { case locked, full }

    private(set) var data: Data?
    private var readFault: Fault?
    private var writeFault: Fault?
    private nonisolated let turnstile = Turnstile()

    init(_ data: Data? = nil) { self.data = data }

    func fail(reads: Fault? = nil, writes: Fault? = nil) { (readFault, writeFault) = (reads, writes) }

    func read() async throws -> Data? {
        try check(readFault)
        return data
    }

    func write(_ data: Data?) async throws {
        try check(writeFault)
        self.data = data
    }

    nonisolated func exclusively<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
        try await turnstile.pass(body)
    }

    private func check(_ fault: Fault?) throws {
        switch fault {
        case .locked?: throw StoreLocked()
        case .full?: throw POSIXError(.ENOSPC)
        case nil: return
        }
    }
}

/// Expects that a call throws this error.
func expect<T>(_ error: PosternError, _ body: () async throws -> T, _ location: SourceLocation = #_sourceLocation) async
{
    do {
        _ = try await body()
        Issue.record("threw nothing in place of \(error)", sourceLocation: location)
    } catch let thrown {
        #expect(thrown as? PosternError == error, sourceLocation: location)
    }
}

extension SessionState {
    var isSignedIn: Bool { if case .signedIn = self { true } else { false } }
}
