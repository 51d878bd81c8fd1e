public import Persistence

/// Tells whether a refresh token is the live one of its family, without using it (RFC 7662).
public struct RefreshTokenVerifier: Sendable {
    let keyring: Keyring
    let sessions: SessionStore

    /// Creates a verifier.
    public init(keyring: Keyring, sessions: SessionStore) {
        self.keyring = keyring
        self.sessions = sessions
    }

    /// - Returns: `nil` unless the token is its family's current generation and the session is alive.
    public func verify(
        _ presented: String, realm: Realm
    ) async throws(StoreError) -> (token: RefreshToken, session: LiveSession)? {
        guard let token = RefreshToken(presented, realm: realm.id, keyring: keyring),
            let session = try await sessions.live(realm: realm.id, session: token.session, jti: []),
            realm.clients[session.clientID]?.enabled == true,
            let hash = session.refreshHash, constantTimeEqual(hash, token.hash),
            let expiresAt = session.refreshExpiresAt, session.now < expiresAt
        else { return nil }
        return (token, session)
    }
}
