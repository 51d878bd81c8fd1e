import Crypto
import Persistence

/// The two digits that tie the device that asked to the mailbox where the link is opened.
enum MatchNumber {
    static let all = 10...99

    /// The number of a handle's id, the same as `postern.match_number` computes. Only the server sees an id.
    static func of(handle: [UInt8]) -> Int {
        let hash = Array(SHA256.hash(data: Array("match number".utf8) + handle))
        return all.lowerBound + (Int(hash[0]) * 256 + Int(hash[1])) % all.count
    }

    /// The three numbers a link's page offers, ascending: always the same ones, so that looking again tells nothing.
    ///
    /// - Parameter right: the number that confirms; `nil` for a link nobody was sent, whose page then looks like any other.
    static func offered(for link: MagicLink, right: Int?, under key: ServerKey) -> [Int] {
        // Keyed: whoever has the link can compute everything else from it.
        var stream = key.hmac(.matchDecoys, [link.user.bytes, link.tokenHash])
        var offered = right.map { [$0] } ?? []
        while offered.count < 3 {
            for byte in stream where offered.count < 3 && Int(byte) < 2 * all.count {
                let number = all.lowerBound + Int(byte) % all.count
                if !offered.contains(number) { offered.append(number) }
            }
            stream = Array(SHA256.hash(data: stream))
        }
        return offered.sorted()
    }
}
