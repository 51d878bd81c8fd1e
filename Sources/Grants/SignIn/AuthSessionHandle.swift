import Encoding

package import Persistence

/// The `auth_session` handle that the answer to a request for a code or a link holds.
///
/// Text: `pas_` + base64url of the sealed id and address, so that redemption by handle alone needs no lookup of the
/// address.
public struct AuthSessionHandle: Sendable, Equatable {
    static let prefix = "pas_"
    /// 16 random bytes: `sign_in_request.id`.
    package let id: [UInt8]
    package let addressKey: String
    /// What carried the message to a phone; `nil`: mail.
    package let channel: Channel?

    package init(addressKey: String, channel: Channel? = nil) {
        self.init(id: randomBytes(16), addressKey: addressKey, channel: channel)
    }

    private init(id: [UInt8], addressKey: String, channel: Channel?) {
        self.id = id
        self.addressKey = addressKey
        self.channel = channel
    }

    /// The same address under the id the database answered with.
    func with(id: [UInt8]) -> AuthSessionHandle {
        AuthSessionHandle(id: id, addressKey: addressKey, channel: channel)
    }

    /// Opens a presented handle; `nil` when this server did not make it for the realm.
    package init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= 1024, presented.hasPrefix(Self.prefix),
            let sealed = Base64.urlDecode(presented.dropFirst(Self.prefix.count)),
            let opened = try? keyring.open(sealed, for: .authSession, realm: realm, aad: Self.aad(realm)),
            opened.count > 16,
            let text = String(validating: opened[16...], as: UTF8.self)
        else { return nil }
        id = Array(opened[..<16])
        // A handle of a request by mail has the address alone.
        let fields = text.split(separator: "|", maxSplits: 1)
        let channel = fields.count == 2 && text.first == "+" ? Channel(rawValue: String(fields[1])) : nil
        self.channel = channel
        addressKey = channel == nil ? text : String(fields[0])
    }

    package func text(realm: UUIDValue, keyring: Keyring) throws(TokenError) -> String {
        let fields = id + Array((channel.map { "\(addressKey)|\($0.rawValue)" } ?? addressKey).utf8)
        guard let sealed = try? keyring.seal(fields, for: .authSession, realm: realm, aad: Self.aad(realm)) else {
            throw .unavailable("seal")
        }
        return Self.prefix + Base64.urlEncode(sealed)
    }

    private static func aad(_ realm: UUIDValue) -> [UInt8] {
        Array("auth_session".utf8) + realm.bytes
    }
}
