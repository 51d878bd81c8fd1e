import Foundation
import Grants
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import Persistence
import Synchronization
import TestSupport
@testable import TokenEndpoint

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

extension Request {
    /// A request as the codec would hand it over. - Parameter host: every `Host` field.
    static func fixture(
        _ method: HTTPMethod = .GET, _ target: String = "/", host: [String] = ["r.example"],
        _ headers: [(String, String)] = [], body: String = "", isBodyTooLarge: Bool = false
    ) -> Request {
        let fields = HTTPHeaders(host.map { ("Host", $0) } + headers)
        return Request(
            HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields),
            body: ByteBuffer(string: body), isBodyTooLarge: isBodyTooLarge)
    }

    /// A POST of a form.
    static func form(
        _ target: String, _ body: String, host: String = "r.example", _ headers: [(String, String)] = []
    ) -> Request {
        .fixture(
            .POST, target, host: [host], [("Content-Type", "application/x-www-form-urlencoded")] + headers, body: body)
    }
}

extension Keyring {
    /// One fixed line.
    static func fixture() -> Keyring {
        do {
            return try Keyring(parsing: Data(repeating: 1, count: 32).base64EncodedString())
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension Answer {
    var text: String { String(decoding: body, as: UTF8.self) }

    /// A header by its name on the wire.
    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// The members of a JSON object.
    func member<Value>(_ name: String, as: Value.Type = Value.self) -> Value? {
        let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        return object?[name] as? Value
    }
}

/// A clock that does not run: a sleeper that wants to wake later moves it.
final class StillClock: Sendable {
    private struct State {
        var now = ContinuousClock.now
        var wakeUps: [ContinuousClock.Instant] = []
    }

    private let state = Mutex(State())

    /// When sleepers wanted to wake.
    var wakeUps: [ContinuousClock.Instant] { state.withLock { $0.wakeUps } }

    func set(_ instant: ContinuousClock.Instant) { state.withLock { $0.now = instant } }

    func deadline(_ duration: Duration) -> UniformDeadline {
        UniformDeadline(duration, now: { self.state.withLock { $0.now } }) { instant in
            self.state.withLock { state in
                state.wakeUps.append(instant)
                state.now = max(state.now, instant)
            }
        }
    }
}

/// A responder without a database: its realms are given, and so are its routes.
struct ResponderFixture: Sendable {
    static let stranger = "203.0.113.9"
    static let proxy = "10.0.0.1"

    let configuration: StaticConfiguration
    let realms: RealmDirectory
    let responder: Responder
    let metrics = Metrics()
    let transport: TransportMetrics
    /// Its time stands still: what it remembers, it remembers.
    let limiter: RateLimiter
    let clock = StillClock()
    let log = LogCapture()

    init(
        _ routes: [Route], realms: [String: RealmDocument] = ["r.example": RealmDocument()],
        deadline: Duration = .milliseconds(100), trustsForwardedHost: Bool = true
    ) {
        configuration = StaticConfiguration(realms)
        transport = TransportMetrics(metrics.registry)
        let instant = ContinuousClock.now
        limiter = RateLimiter(permits: nil, clock: { instant })
        self.realms = RealmDirectory(source: configuration)
        responder = Responder(
            routes: routes, realms: self.realms, deadline: clock.deadline(deadline),
            refusals: RefusalLimit(limiter: limiter), trustedProxies: [CIDR("10.0.0.0/8")].compactMap(\.self),
            trustsForwardedHost: trustsForwardedHost, metrics: metrics, transport: transport, logger: log.logger)
    }

    func answer(_ request: Request, from address: String = Self.stranger) async -> Answer {
        await responder.respond(to: request, from: IPAddress(address))
    }
}
