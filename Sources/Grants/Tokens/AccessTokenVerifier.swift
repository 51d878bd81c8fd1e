import Encoding
public import Persistence

/// A live access token with what the database knows about its session and user.
public struct VerifiedAccessToken: Sendable {
    /// The token's own content.
    public let token: AccessToken
    /// The session and user behind it.
    public let session: LiveSession
    /// The client it was made for.
    public let client: Client

    /// Whether the token was made for its client alone and not for an API: its `aud` is the client and no resource.
    public var isForClientAlone: Bool { token.audience == [session.clientID] }
}

/// A live access token with the service account behind it.
public struct VerifiedServiceToken: Sendable {
    /// The token's own content.
    public let token: AccessToken
    /// The account the client acts as.
    public let account: LiveServiceAccount

    /// Whether the token was made for its client alone and not for an API.
    public var isForClientAlone: Bool { token.audience == [account.clientID] }
}

/// Checks presented access tokens: the form without the database, then life in one statement.
public struct AccessTokenVerifier: Sendable {
    let keyring: Keyring
    let signingKeys: SigningKeys
    let sessions: SessionStore
    let accounts: ServiceAccountStore
    let addresses: AddressTokenStore

    /// Creates a verifier.
    public init(
        keyring: Keyring, signingKeys: SigningKeys, sessions: SessionStore, accounts: ServiceAccountStore,
        addresses: AddressTokenStore
    ) {
        self.keyring = keyring
        self.signingKeys = signingKeys
        self.sessions = sessions
        self.accounts = accounts
        self.addresses = addresses
    }

    /// The owner of a token.
    public enum Holder: Sendable {
        /// A user who signed in.
        case user(VerifiedAccessToken)
        /// A client that acts for itself.
        case service(VerifiedServiceToken)
        /// A person who proved an address and has no account here.
        case address(VerifiedAddressToken)
    }

    /// How a token is presented.
    public enum Presentation: Sendable {
        /// It is not used: a client asks about it, or ends it.
        case mention
        /// By itself: a token that is bound to a key is worth nothing then.
        case bearer
        /// With a proof of the key that it must be bound to. The proof is used up if it is.
        case proven(ProofUse)

        fileprivate func fits(_ thumbprint: [UInt8]?) -> Bool {
            switch self {
            case .mention: true
            case .bearer: thumbprint == nil
            case .proven(let proof): thumbprint == proof.thumbprint
            }
        }

        fileprivate var proof: ProofUse? {
            if case .proven(let proof) = self { proof } else { nil }
        }
    }

    /// Opens a token and looks up what it depends on. A token that does not fit its presentation is refused before the
    /// database is asked.
    /// - Returns: `nil` for a token that another server made, is expired or revoked, has lost its session, account,
    ///   user or client, or does not fit.
    /// - Throws: what the database threw, also ``StoreError/proofUsed``.
    public func identify(
        _ presented: String, as presentation: Presentation, realm: Realm, now: Double
    ) async throws(StoreError) -> Holder? {
        if presented.hasPrefix(SealedReference.Kind.session.prefix) {
            guard let reference = SealedReference(presented, realm: realm.id, keyring: keyring),
                presentation.fits(reference.thumbprint),
                let session = try await live(reference.owner, reference.jti, presentation, realm),
                let token = reference.token(epoch: Int(session.authTime), salt: session.tokenSalt)
            else { return nil }
            return Self.alive(token, session, realm: realm).map(Holder.user)
        }
        if presented.hasPrefix(SealedReference.Kind.serviceAccount.prefix) {
            guard let reference = SealedReference(presented, of: .serviceAccount, realm: realm.id, keyring: keyring),
                presentation.fits(reference.thumbprint),
                let account = try await accounts.live(
                    realm: realm.id, account: reference.owner, jti: reference.jti, proof: presentation.proof),
                let token = reference.token(epoch: Int(account.createdAt), salt: account.tokenSalt)
            else { return nil }
            return Self.alive(token, account, realm: realm).map(Holder.service)
        }
        if presented.hasPrefix(SealedReference.Kind.addressVerification.prefix) {
            guard
                let reference = SealedReference(presented, of: .addressVerification, realm: realm.id, keyring: keyring),
                presentation.fits(reference.thumbprint),
                let live = try await addresses.live(
                    realm: realm.id, session: reference.owner, proof: presentation.proof),
                let token = reference.token(epoch: Int(live.proof.authTime), salt: live.tokenSalt)
            else { return nil }
            return alive(token, live, realm: realm).map(Holder.address)
        }
        guard let jwt = jwt(presented, realm: realm, now: now), presentation.fits(jwt.token.thumbprint) else {
            return nil
        }
        guard jwt.isSession else {
            guard
                let account = try await accounts.live(
                    realm: realm.id, account: jwt.token.owner, jti: jwt.token.jti, proof: presentation.proof),
                account.clientID == jwt.clientID
            else { return nil }
            return Self.alive(jwt.token, account, realm: realm).map(Holder.service)
        }
        guard let session = try await live(jwt.token.owner, jwt.token.jti, presentation, realm) else { return nil }
        return Self.alive(jwt.token, session, realm: realm).map(Holder.user)
    }

    private func live(
        _ session: UUIDValue, _ jti: [UInt8], _ presentation: Presentation, _ realm: Realm
    ) async throws(StoreError) -> LiveSession? {
        guard let proof = presentation.proof else {
            return try await sessions.live(realm: realm.id, session: session, jti: jti)
        }
        return try await sessions.live(realm: realm.id, session: session, jti: jti, spending: proof)
    }

    /// Whether a token is ours and bound to a key, alive or not: a refusal names the scheme that it wants.
    public func isBound(_ presented: String, realm: Realm, now: Double) -> Bool {
        for kind in [SealedReference.Kind.session, .serviceAccount, .addressVerification]
        where presented.hasPrefix(kind.prefix) {
            return SealedReference(presented, of: kind, realm: realm.id, keyring: keyring)?.thumbprint != nil
        }
        return jwt(presented, realm: realm, now: now)?.token.thumbprint != nil
    }

    private static func alive(
        _ token: AccessToken, _ account: LiveServiceAccount, realm: Realm
    ) -> VerifiedServiceToken? {
        // A JWT holds no salt, so a JWT from before the account's present salt is recognised by its `iat`.
        guard account.now < Double(token.expiresAt), Double(token.issuedAt) >= account.since,
            let client = realm.clients[account.clientID], client.enabled,
            client.key == account.client
        else { return nil }
        return VerifiedServiceToken(token: token, account: account)
    }

    private func alive(
        _ token: AccessToken, _ live: AddressTokenStore.Live, realm: Realm
    ) -> VerifiedAddressToken? {
        guard live.proof.now < Double(token.expiresAt), let client = realm.clients[live.clientID], client.enabled,
            client.key == live.client,
            let address = VerifiedAddress(live.proof, realm: realm.id, client: client.key, keyring: keyring)
        else { return nil }
        return VerifiedAddressToken(
            token: token, address: address, client: client, amr: live.proof.amr, acr: live.proof.acr,
            authTime: Int(live.proof.authTime))
    }

    /// Life beyond what the statement checked: the token's own end by the database clock, and the client, which the
    /// statement leaves to the snapshot, never older than a second.
    static func alive(_ token: AccessToken, _ session: LiveSession, realm: Realm) -> VerifiedAccessToken? {
        guard session.now < Double(token.expiresAt), let client = realm.clients[session.clientID], client.enabled,
            client.key == session.client
        else { return nil }
        return VerifiedAccessToken(token: token, session: session, client: client)
    }

    /// RFC 9068 §4.
    private func jwt(
        _ presented: String, realm: Realm, now: Double
    ) -> (token: AccessToken, isSession: Bool, clientID: String)? {
        guard let claims = signingKeys.claims(of: presented, typ: "at+jwt", realm: realm, now: now),
            claims.text("iss") == realm.issuer, let subject = claims.text("sub"),
            // Absent when a client acts for itself.
            claims.isAbsentOrText("sid"), let owner = UUIDValue(claims.text("sid") ?? subject),
            let jti = claims.text("jti").flatMap({ Base64.urlDecode($0) }), let issuedAt = claims.date("iat"),
            let expiresAt = claims.date("exp"), let scope = claims.text("scope"), let audience = claims.texts("aud"),
            // Absent in tokens of service accounts.
            claims.isAbsentOrText("acr"), let clientID = claims.text("client_id")
        else { return nil }
        var token = AccessToken(
            owner: owner, jti: jti, issuedAt: Int(issuedAt), expiresAt: Int(expiresAt),
            scope: scope.split(separator: " ").map(String.init), audience: audience)
        token.acr = claims.text("acr")
        // Absent in bearer tokens. What cannot be a thumbprint binds the token to no key that there is.
        if claims.has("cnf") {
            token.thumbprint = claims.object("cnf")?.text("jkt").flatMap { Base64.urlDecode($0) } ?? []
        }
        return (token, claims.has("sid"), clientID)
    }
}
