import Encoding

package import Persistence

/// A WebAuthn ceremony between begin and redemption: a sealed blob held by the app, or part of the sealed state of a
/// page; nothing is stored in the database (docs/decisions/0000, F10).
///
/// Text: `pcm_` + base64url of the sealed fields. Bound to realm, kind, client and RP-ID, an enrolment also to its
/// session. Single use comes from inserting ``id`` when it is presented.
package struct PasskeyCeremony: Sendable, Equatable {
    enum Kind: UInt8 {
        case login = 1
        case enrolment = 2
        /// A sign-in on a page, which is an origin of its own.
        case page = 3
        case pageEnrolment = 4
    }

    static let prefix = "pcm_"
    private static let version: UInt8 = 1
    /// Up to the length of the thumbprint, 0 or 32; the thumbprint and the RP-ID follow.
    private static let fixedCount = 1 + 1 + 16 + 16 + 16 + 8 + 32 + 1

    let kind: Kind
    /// 16 random bytes.
    let id: [UInt8]
    /// The client's row key.
    let client: UUIDValue
    /// The session that enrols; the ceremony's own id for a login.
    let session: UUIDValue
    /// Seconds since the epoch.
    let expiresAt: Int
    /// 32 random bytes.
    package let challenge: [UInt8]
    let rpID: String
    /// Thumbprint of the key that must be proven with it, 32 bytes; `nil`: none.
    let thumbprint: [UInt8]?

    private init(
        kind: Kind, id: [UInt8], client: UUIDValue, session: UUIDValue, expiresAt: Int, challenge: [UInt8],
        rpID: String, thumbprint: [UInt8]? = nil
    ) {
        self.thumbprint = thumbprint
        self.kind = kind
        self.id = id
        self.client = client
        self.session = session
        self.expiresAt = expiresAt
        self.challenge = challenge
        self.rpID = rpID
    }

    /// A login ceremony.
    package static func login(
        client: UUIDValue, rpID: String, expiresAt: Int, onPage: Bool = false, thumbprint: [UInt8]? = nil
    ) -> PasskeyCeremony {
        PasskeyCeremony(
            kind: onPage ? .page : .login, id: randomBytes(16), client: client, session: .random(),
            expiresAt: expiresAt,
            challenge: randomBytes(32), rpID: rpID, thumbprint: thumbprint)
    }

    /// An enrolment ceremony of a session.
    static func enrolment(
        client: UUIDValue, session: UUIDValue, rpID: String, expiresAt: Int, onPage: Bool = false
    ) -> PasskeyCeremony {
        PasskeyCeremony(
            kind: onPage ? .pageEnrolment : .enrolment, id: randomBytes(16), client: client, session: session,
            expiresAt: expiresAt,
            challenge: randomBytes(32), rpID: rpID)
    }

    /// Opens a presented ceremony; `nil` when this server did not make it for the realm.
    init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= 1024, presented.hasPrefix(Self.prefix),
            let sealed = Base64.urlDecode(presented.dropFirst(Self.prefix.count)),
            let fields = try? keyring.open(sealed, for: .passkeyCeremony, realm: realm, aad: Self.aad(realm))
        else { return nil }
        self.init(encoded: fields)
    }

    /// Reads ``encoded``; `nil` for anything else.
    package init?(encoded fields: [UInt8]) {
        guard fields.count > Self.fixedCount, fields[0] == Self.version, [0, 32].contains(fields[90]),
            fields.count > Self.fixedCount + Int(fields[90]), let kind = Kind(rawValue: fields[1]),
            let client = UUIDValue(bytes: fields[18..<34]), let session = UUIDValue(bytes: fields[34..<50]),
            let expiresAt = fields[50..<58].bigEndianInteger(as: UInt64.self),
            let rpID = String(validating: fields[(Self.fixedCount + Int(fields[90]))...], as: UTF8.self)
        else { return nil }
        let thumbprint = fields[Self.fixedCount...].prefix(Int(fields[90]))
        self.init(
            kind: kind, id: Array(fields[2..<18]), client: client, session: session,
            expiresAt: Int(truncatingIfNeeded: expiresAt), challenge: Array(fields[58..<90]), rpID: rpID,
            thumbprint: thumbprint.isEmpty ? nil : Array(thumbprint))
    }

    /// The ceremony in bytes, for a state that is sealed as a whole.
    package var encoded: [UInt8] {
        var fields: [UInt8] = []
        fields.reserveCapacity(256)
        fields.append(Self.version)
        fields.append(kind.rawValue)
        for part in [id, client.bytes, session.bytes, bigEndianBytes(Int64(expiresAt)), challenge] { fields += part }
        fields.append(UInt8(clamping: thumbprint?.count ?? 0))
        fields += thumbprint ?? []
        fields += rpID.utf8
        return fields
    }

    package func text(realm: UUIDValue, keyring: Keyring) throws(TokenError) -> String {
        guard let sealed = try? keyring.seal(encoded, for: .passkeyCeremony, realm: realm, aad: Self.aad(realm)) else {
            throw .unavailable("seal")
        }
        return Self.prefix + Base64.urlEncode(sealed)
    }

    private static func aad(_ realm: UUIDValue) -> [UInt8] {
        Array("ceremony".utf8) + realm.bytes
    }
}
