import Crypto
import Foundation
import Persistence

/// What sealing and opening cost: as this version does it, and as version 0 did (one key, a random 96-bit nonce).
@main
struct BenchSealing {
    static func main() throws {
        let keyring = try Keyring(parsing: Keyring.generateLine())
        let realm = UUIDValue.random()
        let aad = Array("access token".utf8) + realm.bytes
        let plaintext = randomBytes(160)
        let former = SymmetricKey(size: .bits256)
        let sealed = try keyring.seal(plaintext, for: .accessToken, realm: realm, aad: aad)
        let sealedFormerly = try version0Seal(plaintext, former, aad)
        let wrapped = try keyring.makeDataKey(.totpSeed, realm: realm)
        for round in 1...3 {
            print("round \(round), ns of processor time each, of 160 bytes")
            try measure("  seal, version 0") { _ = try version0Seal(plaintext, former, aad) }
            try measure("  seal") { _ = try keyring.seal(plaintext, for: .accessToken, realm: realm, aad: aad) }
            try measure("  open, version 0") {
                _ = try AES.GCM.open(AES.GCM.SealedBox(combined: sealedFormerly), using: former, authenticating: aad)
            }
            try measure("  open") { _ = try keyring.open(sealed, for: .accessToken, realm: realm, aad: aad) }
            try measure("  open a data key") { _ = try keyring.open(wrapped, realm: realm) }
        }
    }

    private static func version0Seal(_ plaintext: [UInt8], _ key: SymmetricKey, _ aad: [UInt8]) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            plaintext, using: key, nonce: AES.GCM.Nonce(data: randomBytes(12)), authenticating: aad)
        var sealed: [UInt8] = []
        sealed.reserveCapacity(4 + 12 + plaintext.count + 16)
        sealed += [1, 2, 3, 4]
        box.nonce.withUnsafeBytes { sealed.append(contentsOf: $0) }
        box.ciphertext.withUnsafeBytes { sealed.append(contentsOf: $0) }
        box.tag.withUnsafeBytes { sealed.append(contentsOf: $0) }
        return Array(sealed[4...])
    }

    private static func measure(_ name: String, _ body: () throws -> Void) rethrows {
        let count = CommandLine.arguments.dropFirst().first.flatMap(Int.init) ?? 100_000
        let began = processorTime()
        for _ in 0..<count { try body() }
        print("\(name): \(Int((processorTime() - began) / Double(count)))")
    }

    /// Of this thread, in nanoseconds: what else the machine does counts little.
    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }
}
