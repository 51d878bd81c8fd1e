public import Persistence

/// Ends a token that a client presents (RFC 7009). What is not a live token of the client is left as it is (§2.2).
public struct TokenRevoker: Sendable {
    private let verifier: AccessTokenVerifier
    private let sessions: SessionStore
    private let accounts: ServiceAccountStore
    private let addresses: AddressTokenStore
    private let keyring: Keyring

    /// Creates a revoker.
    public init(
        verifier: AccessTokenVerifier, sessions: SessionStore, accounts: ServiceAccountStore,
        addresses: AddressTokenStore, keyring: Keyring
    ) {
        self.verifier = verifier
        self.sessions = sessions
        self.accounts = accounts
        self.addresses = addresses
        self.keyring = keyring
    }

    /// A refresh token ends its whole family, an access token only itself.
    /// - Parameter now: seconds since the epoch.
    /// - Throws: when the revocation may not have happened.
    public func revoke(_ presented: String, by client: Client, realm: Realm, now: Double) async throws(StoreError) {
        if let refreshToken = RefreshToken(presented, realm: realm.id, keyring: keyring) {
            try await sessions.revoke(
                realm: realm.id, client: client.key, session: refreshToken.session, reason: "token_revoked")
            return
        }
        switch try await verifier.identify(presented, as: .mention, realm: realm, now: now) {
        case .user(let verified):
            let token = verified.token
            try await sessions.revokeAccessToken(
                realm: realm.id, client: client.key, session: token.owner, jti: token.jti,
                expiresAt: Double(token.expiresAt))
        case .service(let verified):
            let token = verified.token
            try await accounts.revoke(
                realm: realm.id, client: client.key, account: verified.token.owner, jti: token.jti,
                expiresAt: Double(token.expiresAt))
        case .address(let verified):
            try await addresses.revoke(realm: realm.id, client: client.key, session: verified.token.owner)
        case nil: break
        }
    }
}
