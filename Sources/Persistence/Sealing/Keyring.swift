import Crypto
import FoundationEssentials

/// The server's keys, newest first: what keeps a copy of the database worthless.
///
/// The key file has one base64 line of 32 bytes per key; empty lines and lines beginning with `#` are skipped. A new key is
/// added on top; an old one stays until nothing made with it is alive.
public struct Keyring: Sendable {
    /// Newest first; never empty.
    public let keys: [ServerKey]
    /// The key for whatever is made now.
    public let newest: ServerKey

    /// Reads the text of a key file.
    public init(parsing text: String) throws(KeyringError) {
        var keys: [ServerKey] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.filter { !$0.isWhitespace }
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let bytes = Data(base64Encoded: line), bytes.count == 32 else { throw .malformedLine(index + 1) }
            let key = ServerKey(Array(bytes))
            guard !keys.contains(where: { $0.id == key.id }) else { throw .duplicateKey(line: index + 1) }
            keys.append(key)
        }
        guard let newest = keys.first else { throw .noKey }
        self.keys = keys
        self.newest = newest
    }

    /// A line for a key file: 32 random bytes in base64.
    public static func generateLine() -> String {
        SymmetricKey(size: .bits256).withUnsafeBytes { Data($0).base64EncodedString() }
    }

    /// The key with that 4-byte id.
    public func key(id: ArraySlice<UInt8>) -> ServerKey? {
        keys.first { $0.id[...] == id }
    }

    /// Encrypts and authenticates (AES-256-GCM): `key id (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)`.
    /// - Parameter aad: what the data belongs to, for example realm and row id; needed again to open it.
    public func seal(_ plaintext: [UInt8], aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        do {
            let nonce = try AES.GCM.Nonce(data: randomBytes(12))
            let box = try AES.GCM.seal(plaintext, using: newest.sealingKey, nonce: nonce, authenticating: aad)
            var sealed: [UInt8] = []
            sealed.reserveCapacity(4 + 12 + plaintext.count + 16)
            sealed += newest.id
            box.nonce.withUnsafeBytes { sealed.append(contentsOf: $0) }
            box.ciphertext.withUnsafeBytes { sealed.append(contentsOf: $0) }
            box.tag.withUnsafeBytes { sealed.append(contentsOf: $0) }
            return sealed
        } catch {
            throw .cannotSeal
        }
    }

    /// Opens what ``seal(_:aad:)`` made under any key of the ring.
    public func open(_ sealed: [UInt8], aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        guard sealed.count >= 4 + 12 + 16 else { throw .cannotOpen }
        guard let key = key(id: sealed[..<4]) else { throw .unknownKey }
        do {
            let box = try AES.GCM.SealedBox(combined: sealed[4...])
            return Array(try AES.GCM.open(box, using: key.sealingKey, authenticating: aad))
        } catch {
            throw .cannotOpen
        }
    }
}
