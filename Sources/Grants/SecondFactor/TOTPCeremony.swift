import Encoding
import Persistence

/// A TOTP enrolment between begin and proof: a sealed blob held by the app; nothing is stored in the database
/// (docs/decisions/0000, F10).
///
/// Text: `ptc_` + base64url of the sealed fields. Bound to realm, client and session. Completed once: its id is
/// inserted with the enrolment. A mistyped code does not spend it, so the user need not scan the secret again.
struct TOTPCeremony: Sendable, Equatable {
    static let prefix = "ptc_"
    private static let version: UInt8 = 1
    private static let count = 1 + 16 + 16 + 16 + 8 + TOTPSeed.count

    /// 16 random bytes.
    let id: [UInt8]
    /// The client's row key.
    let client: UUIDValue
    /// The session that enrols.
    let session: UUIDValue
    /// Seconds since the epoch.
    let expiresAt: Int
    let seed: TOTPSeed

    init(client: UUIDValue, session: UUIDValue, expiresAt: Int) {
        id = randomBytes(16)
        self.client = client
        self.session = session
        self.expiresAt = expiresAt
        seed = .random()
    }

    /// Opens a presented ceremony; `nil` when this server did not make it for the realm.
    init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= 1024, presented.hasPrefix(Self.prefix),
            let sealed = Base64.urlDecode(presented.dropFirst(Self.prefix.count)),
            let fields = try? keyring.open(sealed, for: .totpCeremony, realm: realm, aad: Self.aad(realm)),
            fields.count == Self.count,
            fields[0] == Self.version, let client = UUIDValue(bytes: fields[17..<33]),
            let session = UUIDValue(bytes: fields[33..<49]),
            let expiresAt = fields[49..<57].bigEndianInteger(as: UInt64.self)
        else { return nil }
        id = Array(fields[1..<17])
        self.client = client
        self.session = session
        self.expiresAt = Int(truncatingIfNeeded: expiresAt)
        seed = TOTPSeed(bytes: Array(fields[57...]))
    }

    func text(realm: UUIDValue, keyring: Keyring) throws(TokenError) -> String {
        var fields = [Self.version] + id + client.bytes + session.bytes
        fields += bigEndianBytes(Int64(expiresAt)) + seed.bytes
        guard let sealed = try? keyring.seal(fields, for: .totpCeremony, realm: realm, aad: Self.aad(realm)) else {
            throw .unavailable("seal")
        }
        return Self.prefix + Base64.urlEncode(sealed)
    }

    private static func aad(_ realm: UUIDValue) -> [UInt8] {
        Array("totp ceremony".utf8) + realm.bytes
    }
}
