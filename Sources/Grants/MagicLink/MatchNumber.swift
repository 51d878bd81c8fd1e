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
}
