import Crypto
import Foundation
public import Persistence

/// A live access token with what the database knows about its session and user.
public struct VerifiedAccessToken: Sendable {
    /// The token's own content.
    public let token: AccessToken
    /// The session and user behind it.
    public let session: LiveSession
}

/// Checks presented access tokens: the form without the database, then life in one statement.
public struct AccessTokenVerifier: Sendable {
    let keyring: Keyring
    let signingKeys: SigningKeys
    let sessions: SessionStore

    /// Creates a verifier.
    public init(keyring: Keyring, signingKeys: SigningKeys, sessions: SessionStore) {
        self.keyring = keyring
        self.signingKeys = signingKeys
        self.sessions = sessions
    }

    /// - Returns: `nil` for a token that is not ours, expired, revoked, or whose session, user or client is gone.
    public func verify(_ presented: String, realm: Realm, now: Double) async throws(StoreError) -> VerifiedAccessToken?
    {
        if presented.hasPrefix(SealedReference.prefix) {
            guard let reference = SealedReference(presented, realm: realm.id, keyring: keyring),
                let session = try await sessions.live(realm: realm.id, session: reference.session, jti: reference.jti),
                let token = reference.token(authTime: Int(session.authTime), salt: session.tokenSalt)
            else { return nil }
            return Self.alive(token, session, realm: realm)
        }
        guard let token = jwt(presented, realm: realm, now: now),
            let session = try await sessions.live(realm: realm.id, session: token.session, jti: token.jti)
        else { return nil }
        return Self.alive(token, session, realm: realm)
    }

    /// Life beyond what the statement checked: the token's own end by the database clock, and the client, which the statement
    /// leaves to the snapshot, never older than a second.
    static func alive(_ token: AccessToken, _ session: LiveSession, realm: Realm) -> VerifiedAccessToken? {
        guard session.now < Double(token.expiresAt), let client = realm.clients[session.clientID], client.enabled,
            client.key == session.client
        else { return nil }
        return VerifiedAccessToken(token: token, session: session)
    }

    /// RFC 9068 §4. The header must be, character for character, one this realm writes: no `alg`, `jwk`, `crit` or `typ` of the
    /// token's own choosing is ever read.
    private func jwt(_ presented: String, realm: Realm, now: Double) -> AccessToken? {
        guard presented.utf8.count <= 8192 else { return nil }
        let parts = presented.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3,
            let key = signingKeys.verifier(header: parts[0], typ: "at+jwt", realm: realm, now: now),
            let signature = Base64.urlDecode(parts[2]),
            let ecdsa = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
            key.privateKey.publicKey.isValidSignature(ecdsa, for: Array("\(parts[0]).\(parts[1])".utf8)),
            let payload = Base64.urlDecode(parts[1]),
            let claims = try? JSONDecoder().decode(JWTClaims.self, from: Data(payload)),
            claims.iss == realm.issuer, let session = UUIDValue(claims.sid), let jti = Base64.urlDecode(claims.jti)
        else { return nil }
        return AccessToken(
            session: session, jti: jti, issuedAt: claims.iat, expiresAt: claims.exp,
            scope: claims.scope.split(separator: " ").map(String.init), audience: claims.aud.values)
    }
}

/// The claims of our own access tokens, read only after the signature held.
private struct JWTClaims: Decodable {
    let iss: String
    let sid: String
    let jti: String
    let iat: Int
    let exp: Int
    let scope: String
    let aud: Audience

    struct Audience: Decodable {
        let values: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let one = try? container.decode(String.self) {
                values = [one]
            } else {
                values = try container.decode([String].self)
            }
        }
    }
}
