import Foundation

/// The last nonce of each server (RFC 9449 §8), in memory.
struct Nonces {
    /// Servers give out nonces for a minute and more.
    private static let life: TimeInterval = 60
    private var byOrigin: [String: (nonce: String, came: TimeInterval)] = [:]

    /// - Parameter uptime: seconds of a clock that cannot be set.
    func nonce(of origin: String, at uptime: TimeInterval) -> String? {
        byOrigin[origin].flatMap { uptime - $0.came < Self.life ? $0.nonce : nil }
    }

    mutating func came(_ nonce: String, from origin: String, at uptime: TimeInterval) {
        byOrigin = byOrigin.filter { uptime - $0.value.came < Self.life }
        byOrigin[origin] = (nonce, uptime)
    }

    mutating func drop(of origin: String) { byOrigin[origin] = nil }
}
