import Crypto
import Encoding
import Persistence

/// The key of a new device on its way to a trusted one: a sealed blob in a QR code; nothing is stored in the database.
///
/// Text: `pdo_` + base64url of the thumbprint + `.` + base64url of the sealed fields. The trusted device signs for the
/// thumbprint that it scanned; it must not have to take the server's word for it. Single use comes from inserting
/// ``id`` when it is adopted.
struct DeviceOffer: Sendable, Equatable {
    static let prefix = "pdo_"
    /// In seconds.
    static let lifetime = 300
    private static let version: UInt8 = 1
    /// Version, id, client, creation, digits, thumbprint, key, length of the source.
    private static let fixedCount = 1 + 16 + 16 + 8 + 2 + 32 + 64 + 1
    /// Far above what the longest name and source need.
    private static let maximumCharacters = 1024

    /// 16 random bytes.
    let id: [UInt8]
    /// The row key of the client that the device is added through.
    let client: UUIDValue
    /// Seconds since the epoch.
    let createdAt: Int
    /// 0 to 9999: what the person reads on the new device and types into the trusted one.
    let digits: UInt16
    let thumbprint: [UInt8]
    /// Coordinates, 32 bytes each.
    let publicKey: [UInt8]
    /// Where it was asked for.
    let source: String
    let displayName: String?

    init(client: UUIDValue, proof: DeviceProof, source: String, displayName: String?, at now: Double) {
        id = randomBytes(16)
        self.client = client
        createdAt = Int(now)
        digits = UInt16.random(in: 0...9999)
        thumbprint = proof.thumbprint
        publicKey = proof.publicKey
        self.source = String(decoding: source.utf8.prefix(100), as: UTF8.self)
        self.displayName = displayName
    }

    /// Opens a presented offer; `nil` when this server did not make it for the realm.
    init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        let parts = presented.dropFirst(Self.prefix.count).split(separator: ".", omittingEmptySubsequences: false)
        guard presented.utf8.count <= Self.maximumCharacters, presented.hasPrefix(Self.prefix), parts.count == 2,
            let sealed = Base64.urlDecode(parts[1]),
            let fields = try? keyring.open(sealed, for: .deviceOffer, realm: realm, aad: Self.aad(realm)),
            fields.count >= Self.fixedCount, fields[0] == Self.version,
            let client = UUIDValue(bytes: fields[17..<33]),
            let createdAt = fields[33..<41].bigEndianInteger(as: UInt64.self),
            let digits = fields[41..<43].bigEndianInteger(as: UInt16.self),
            fields.count >= Self.fixedCount + Int(fields[139]),
            let source = String(validating: fields[140..<(140 + Int(fields[139]))], as: UTF8.self),
            parts[0] == Base64.urlEncode(Array(fields[43..<75])),
            let name = String(validating: fields[(140 + Int(fields[139]))...], as: UTF8.self)
        else { return nil }
        id = Array(fields[1..<17])
        self.client = client
        self.createdAt = Int(truncatingIfNeeded: createdAt)
        self.digits = digits
        thumbprint = Array(fields[43..<75])
        publicKey = Array(fields[75..<139])
        self.source = source
        displayName = name.isEmpty ? nil : name
    }

    func text(realm: UUIDValue, keyring: Keyring) throws(TokenError) -> String {
        var fields = [Self.version] + id + client.bytes + bigEndianBytes(Int64(createdAt)) + bigEndianBytes(digits)
        fields += thumbprint + publicKey + [UInt8(source.utf8.count)] + Array(source.utf8)
        fields += Array((displayName ?? "").utf8)
        guard let sealed = try? keyring.seal(fields, for: .deviceOffer, realm: realm, aad: Self.aad(realm)) else {
            throw .unavailable("seal")
        }
        return Self.prefix + Base64.urlEncode(thumbprint) + "." + Base64.urlEncode(sealed)
    }

    /// Four digits.
    var checkCode: String {
        let text = String(digits)
        return String(repeating: "0", count: 4 - text.utf8.count) + text
    }

    /// Whether a text may be the four digits of an offer.
    static func isCheckCode(_ text: String?) -> Bool {
        text.map { $0.utf8.count == 4 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } } ?? false
    }

    /// When it ends, in seconds since the epoch.
    var expiresAt: Int { createdAt + Self.lifetime }

    /// What an approval names it by.
    static func hash(of text: String) -> String { Base64.urlEncode(Array(SHA256.hash(data: Array(text.utf8)))) }

    private static func aad(_ realm: UUIDValue) -> [UInt8] { Array("device offer".utf8) + realm.bytes }
}
