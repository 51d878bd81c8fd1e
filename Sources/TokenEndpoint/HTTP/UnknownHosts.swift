import Logging
import Synchronization

/// Requests for a host that no realm has: each is counted, and once a minute one is told, because strangers choose how
/// many there are. Mostly a realm's domain is missing or misspelled, or a proxy does not pass the host on.
final class UnknownHosts: Sendable {
    private let transport: TransportMetrics
    private let logger: Logger
    private let next = Mutex<ContinuousClock.Instant?>(nil)

    private static let interval = Duration.seconds(60)
    private static let longest = 64

    init(transport: TransportMetrics, logger: Logger) {
        self.transport = transport
        self.logger = logger
    }

    /// - Parameters:
    ///   - host: as the caller or its proxy sent it.
    ///   - now: when.
    func note(_ host: String, at now: ContinuousClock.Instant = .now) {
        transport.countUnknownHost()
        let isDue = next.withLock { next in
            if let next, now < next { return false }
            next = now + Self.interval
            return true
        }
        if isDue { logger.warning("no realm has the host \"\(Self.shown(host))\"") }
    }

    /// The first printable ASCII characters; what is none, and what would end the quotation, is a question mark.
    private static func shown(_ host: String) -> String {
        let bytes = host.utf8.prefix(longest).map { byte in
            (0x21...0x7E).contains(byte) && !"\"\\".utf8.contains(byte) ? byte : UInt8(ascii: "?")
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
