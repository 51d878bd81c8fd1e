import Crypto
import FoundationEssentials

/// The server's keys, newest first. They are not in the database, so that a copy of the database alone grants no
/// sign-in.
///
/// The key file has one base64 line of 32 bytes per key; empty lines and lines beginning with `#` are skipped. A new
/// key is added, then moved to the top. An old key stays until nothing depends on it; `postern keys reseal` reports
/// that.
public struct Keyring: Sendable, Redacted {
    /// Newest first; never empty.
    public let keys: [ServerKey]
    /// The key for everything made now.
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

    /// The first byte of what is sealed.
    private static let format: UInt8 = 1
    private static let headerCount = 1 + 4

    /// Encrypts and authenticates under the newest key: `01 ‖ key id (4) ‖ nonce (24) ‖ ciphertext ‖ tag (16)`.
    /// - Parameter aad: what the data belongs to, for example a row's id; needed again to open it.
    public func seal(
        _ plaintext: [UInt8], for purpose: SealPurpose, realm: UUIDValue, aad: [UInt8]
    ) throws(KeyringError) -> [UInt8] {
        try newest.sealingKey(purpose, realm: realm).seal(plaintext, header: [Self.format] + newest.id, aad: aad)
    }

    /// Opens what ``seal(_:for:realm:aad:)`` made under any key of the ring, for the same purpose and realm.
    public func open(
        _ sealed: [UInt8], for purpose: SealPurpose, realm: UUIDValue, aad: [UInt8]
    ) throws(KeyringError) -> [UInt8] {
        guard sealed.first == Self.format, sealed.count >= Self.headerCount + SealingKey.overhead else {
            throw .cannotOpen
        }
        guard let key = key(id: sealed[1..<Self.headerCount]) else { throw .unknownKey }
        return try key.sealingKey(purpose, realm: realm).open(sealed, headerCount: Self.headerCount, aad: aad)
    }
}
