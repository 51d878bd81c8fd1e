import Encoding
import Crypto
public import Persistence

/// What an access token says, whichever form it travels in.
public struct AccessToken: Sendable, Equatable {
    /// What ends the token: a session (`sid`), the service account a client acts as, or the proof of an address.
    public let owner: UUIDValue
    /// `jti`, 16 random bytes.
    public let jti: [UInt8]
    /// `iat`, seconds since the epoch by the database clock.
    public let issuedAt: Int
    /// `exp`, seconds since the epoch by the database clock.
    public let expiresAt: Int
    /// Granted scope names.
    public let scope: [String]
    /// `aud`: resources of the granted scopes, or the `client_id`.
    public let audience: [String]
    /// `acr`, where the request asked for one that is not the session's; `nil`: the session's.
    public internal(set) var acr: String?
    /// Thumbprint (RFC 7638) of the key that must be proven with the token, 32 bytes; `nil`: a bearer token.
    public internal(set) var thumbprint: [UInt8]?

    /// A token of `lifetime` seconds that never outlives its session.
    public init(
        owner: UUIDValue, issuedAt: Int, lifetime: Int, sessionExpiresAt: Int, scope: [String], audience: [String]
    ) {
        self.owner = owner
        self.jti = randomBytes(16)
        self.issuedAt = issuedAt
        self.expiresAt = min(issuedAt + lifetime, sessionExpiresAt)
        self.scope = scope
        self.audience = audience
    }

    init(owner: UUIDValue, jti: [UInt8], issuedAt: Int, expiresAt: Int, scope: [String], audience: [String]) {
        self.owner = owner
        self.jti = jti
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.scope = scope
        self.audience = audience
    }
}

/// The opaque form: `pat_` (`psa_` for a service account, `pva_` for a proven address) + base64url of a sealed
/// reference to the row it depends on.
///
/// Nothing is stored per token, so a dump of the database holds none, and revoking the session ends all of its tokens
/// at once. It is sealed under the server's key, and `proof` is keyed with the row's salt, so the key file alone cannot
/// make a token either.
package struct SealedReference {
    /// The kind of row it refers to.
    package enum Kind: Sendable {
        case session, serviceAccount, addressVerification

        var prefix: String {
            switch self {
            case .session: "pat_"
            case .serviceAccount: "psa_"
            case .addressVerification: "pva_"
            }
        }

        fileprivate var purpose: SealPurpose {
            switch self {
            case .session: .accessToken
            case .serviceAccount: .serviceAccountToken
            case .addressVerification: .addressToken
            }
        }

        fileprivate func aad(_ realm: UUIDValue) -> [UInt8] {
            switch self {
            case .session: Array("access token".utf8) + realm.bytes
            case .serviceAccount: Array("service account token".utf8) + realm.bytes
            case .addressVerification: Array("address token".utf8) + realm.bytes
            }
        }
    }

    /// Of the form: fixed fields, then a line each of scope, audience, `acr` and thumbprint, empty where there is none.
    private static let version: UInt8 = 1
    private static let fixedCount = 1 + 16 + 16 + 8 + 8

    /// The row that it refers to.
    let owner: UUIDValue
    let jti: [UInt8]
    /// Seconds after the epoch of the token, which only the row knows: `auth_time`, or when the account was made.
    private let issuedAfter: Int
    private let expiresAfter: Int
    private let scope: [String]
    private let audience: [String]
    private let acr: String?
    /// Thumbprint of the key that must be proven with the token; `nil`: a bearer token.
    let thumbprint: [UInt8]?
    private let body: [UInt8]
    private let proof: [UInt8]

    /// - Parameter epoch: the session's `auth_time`, or when the account was made: seconds since the epoch.
    package static func text(
        _ token: AccessToken, of kind: Kind = .session, epoch: Int, realm: UUIDValue, salt: [UInt8], keyring: Keyring
    ) throws(TokenError) -> String {
        var body: [UInt8] = []
        body.reserveCapacity(512)
        body.append(version)
        body += token.owner.bytes
        body += token.jti
        body += bigEndianBytes(Int64(token.issuedAt - epoch))
        body += bigEndianBytes(Int64(token.expiresAt - epoch))
        body += token.scope.joined(separator: " ").utf8
        body.append(UInt8(ascii: "\n"))
        body += token.audience.joined(separator: " ").utf8
        body += "\n\(token.acr ?? "")\n\(token.thumbprint.map(Base64.urlEncode) ?? "")".utf8
        let plaintext = proof(body, salt) + body
        guard let sealed = try? keyring.seal(plaintext, for: kind.purpose, realm: realm, aad: kind.aad(realm)) else {
            throw .unavailable("seal")
        }
        return kind.prefix + Base64.urlEncode(sealed)
    }

    /// Opens a presented token; whether it is alive only the row can tell.
    init?(_ presented: String, of kind: Kind = .session, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= 8192, presented.hasPrefix(kind.prefix),
            let sealed = Base64.urlDecode(presented.dropFirst(kind.prefix.utf8.count)),
            let opened = try? keyring.open(sealed, for: kind.purpose, realm: realm, aad: kind.aad(realm)),
            opened.count >= 16 + Self.fixedCount
        else { return nil }
        proof = Array(opened[..<16])
        body = Array(opened[16...])
        guard body[0] == Self.version, let owner = UUIDValue(bytes: body[1..<17]),
            let issuedAfter = body[33..<41].bigEndianInteger(as: UInt64.self),
            let expiresAfter = body[41..<49].bigEndianInteger(as: UInt64.self)
        else { return nil }
        let lists = String(decoding: body[49...], as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        guard lists.count == 4 else { return nil }
        self.owner = owner
        jti = Array(body[17..<33])
        self.issuedAfter = Int(truncatingIfNeeded: issuedAfter)
        self.expiresAfter = Int(truncatingIfNeeded: expiresAfter)
        scope = lists[0].split(separator: " ").map(String.init)
        audience = lists[1].split(separator: " ").map(String.init)
        acr = !lists[2].isEmpty ? String(lists[2]) : nil
        thumbprint = !lists[3].isEmpty ? Base64.urlDecode(lists[3]) ?? [] : nil
    }

    /// The token's content, read with the values of its row; `nil` when it was not made for a row with this salt.
    /// - Parameter epoch: as for ``text(_:of:epoch:realm:salt:keyring:)``.
    func token(epoch: Int, salt: [UInt8]) -> AccessToken? {
        guard constantTimeEqual(proof, Self.proof(body, salt)) else { return nil }
        var token = AccessToken(
            owner: owner, jti: jti, issuedAt: epoch + issuedAfter, expiresAt: epoch + expiresAfter, scope: scope,
            audience: audience)
        token.acr = acr
        token.thumbprint = thumbprint
        return token
    }

    private static func proof(_ body: [UInt8], _ salt: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: body, using: SymmetricKey(data: salt)).prefix(16))
    }
}
