import Foundation
import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes the client.
///
/// - `base`: requests go to this address in place of the origin, whose name is in `Host`.
/// - `directory`: of a ``FileStore``; without it, a ``MemoryStore``.
/// - `clock`: seconds that the device's clock is ahead; `setClock` changes it.
/// - `life`: seconds that access tokens are made to live, so that each use refreshes.
/// - `haste`: how many times shorter the pauses between attempts are.
/// - `failing`: every so-manieth write of the store fails.
/// - `agent`, `scopes`, `key`, `redirect`: of the configuration.
func open(_ arguments: JSONValue, _ output: Output) throws -> PosternClient {
    guard let origin = arguments["origin"]?.string.flatMap(URL.init(string:)), let id = arguments["client"]?.string
    else {
        throw PosternError.misuse("open needs origin and client")
    }
    var configuration = PosternConfiguration(origin: origin, clientID: id)
    if let scopes = arguments["scopes"]?.strings { configuration.scopes = scopes }
    if let base = arguments["base"]?.string.flatMap(URL.init(string:)) {
        configuration.transport = Redirected(from: origin, to: base, life: arguments["life"]?.number)
    }
    configuration.store =
        arguments["directory"]?.string.map {
            WatchedStore(store: FileStore(directory: URL(fileURLWithPath: $0), name: arguments["name"]?.string))
        } ?? MemoryStore()
    configuration.userAgent = arguments["agent"]?.string
    configuration.redirectURI = arguments["redirect"]?.string.flatMap(URL.init(string:))
    switch arguments["key"]?.string {
    case "none": configuration.key = .none
    case "software": configuration.key = .software
    default: configuration.key = .automatic
    }
    configuration.log = { event in
        output.print([
            "event": "log", "kind": .string(event.kind), "detail": .object(event.detail.mapValues(JSONValue.string)),
        ])
    }
    var surroundings = Surroundings()
    DeviceClock.shared.set(ahead: arguments["clock"]?.number ?? 0)
    surroundings.now = { DeviceClock.shared.now }
    if let haste = arguments["haste"]?.number {
        surroundings.sleep = { try await Task.sleep(for: .seconds($0 / haste)) }
    }
    StoreWatch.shared.fail(every: arguments["failing"]?.integer)
    let client = try PosternClient(configuration, surroundings)
    Task {
        for await state in client.states { output.print(["event": "state", "state": describe(state)]) }
    }
    return client
}

/// Sends the requests for one origin to another address, whose server believes it is that origin's.
struct Redirected: Transport {
    private let origin: URL
    private let base: URL
    private let life: TimeInterval?
    private let transport = URLSessionTransport()

    init(from origin: URL, to base: URL, life: TimeInterval? = nil) {
        (self.origin, self.base, self.life) = (origin, base, life)
    }

    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        var request = request
        guard let url = request.url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw URLError(.badURL)
        }
        guard parts.host == origin.host else { return try await transport.send(request) }
        let host = (parts.host ?? "") + (parts.port.map { ":\($0)" } ?? "")
        (parts.scheme, parts.host, parts.port) = (base.scheme, base.host, base.port)
        request.url = parts.url
        request.setValue(host, forHTTPHeaderField: "Host")
        Freezer.shared.pass()
        let (data, response) = try await transport.send(request)
        return (shortened(data), response)
    }

    private func shortened(_ data: Data) -> Data {
        guard let life, case .object(var members)? = JSONValue(data), members["expires_in"] != nil else { return data }
        members["expires_in"] = .number(life)
        return JSONValue.object(members).data
    }
}

/// The clock of the device, as somebody may set it.
final class DeviceClock: @unchecked Sendable {
    static let shared = DeviceClock()
    private let lock = NSLock()
    private var ahead: TimeInterval = 0

    var now: Date { lock.withLock { Date().addingTimeInterval(ahead) } }
    func set(ahead seconds: TimeInterval) { lock.withLock { ahead = seconds } }
}

/// Stops the process right before it sends a request, as a phone suspends an app.
final class Freezer: @unchecked Sendable {
    static let shared = Freezer()
    private let lock = NSLock()
    private var isArmed = false

    func arm() { lock.withLock { isArmed = true } }

    func pass() {
        let isDue = lock.withLock {
            defer { isArmed = false }
            return isArmed
        }
        if isDue { kill(getpid(), SIGSTOP) }
    }
}
