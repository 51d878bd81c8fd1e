import Foundation
import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes the client.
///
/// - `base`: requests go to this address in place of the origin, whose name is in `Host`.
/// - `directory`: of a ``FileStore``; without it, a ``MemoryStore``.
/// - `clock`: seconds that the device's clock is ahead.
/// - `agent`, `scopes`, `key`, `redirect`: of the configuration.
func open(_ arguments: JSONValue, _ output: Output) throws -> PosternClient {
    guard let origin = arguments["origin"]?.string.flatMap(URL.init(string:)), let id = arguments["client"]?.string
    else {
        throw PosternError.misuse("open needs origin and client")
    }
    var configuration = PosternConfiguration(origin: origin, clientID: id)
    if let scopes = arguments["scopes"]?.strings { configuration.scopes = scopes }
    if let base = arguments["base"]?.string.flatMap(URL.init(string:)) {
        configuration.transport = Redirected(from: origin, to: base)
    }
    configuration.store =
        arguments["directory"]?.string.map {
            FileStore(directory: URL(fileURLWithPath: $0), name: arguments["name"]?.string)
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
    let ahead = arguments["clock"]?.number ?? 0
    surroundings.now = { Date().addingTimeInterval(ahead) }
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
    private let transport = URLSessionTransport()

    init(from origin: URL, to base: URL) { (self.origin, self.base) = (origin, base) }

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
        return try await transport.send(request)
    }
}
