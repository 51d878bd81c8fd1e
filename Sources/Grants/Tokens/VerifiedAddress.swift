public import Encoding
public import Persistence

/// An address that a person proved to a client without an account.
public struct VerifiedAddress: Sendable, Equatable {
    /// As it was typed; a number in E.164 form.
    public let text: String
    /// Whether it is a phone number.
    public let isPhone: Bool
    /// `sub` of the tokens: always the same for one client and one address. No account has it.
    public let subject: UUIDValue

    /// What the database keeps of an address: only this server can read it, for this client.
    static func sealed(
        _ text: String, realm: UUIDValue, client: UUIDValue, keyring: Keyring
    ) throws(TokenError) -> [UInt8] {
        guard
            let sealed = try? keyring.seal(
                Array(text.utf8), for: .addressVerification, realm: realm, aad: aad(realm, client))
        else { throw .unavailable("seal") }
        return sealed
    }

    /// - Returns: `nil` when the key file lacks the line that seals the address.
    init?(_ proof: AddressTokenStore.Proof, realm: UUIDValue, client: UUIDValue, keyring: Keyring) {
        guard
            let opened = try? keyring.open(
                proof.sealedAddress, for: .addressVerification, realm: realm, aad: Self.aad(realm, client)),
            let text = String(validating: opened, as: UTF8.self)
        else { return nil }
        self.text = text
        isPhone = proof.kind == "phone"
        subject = proof.subject
    }

    private static func aad(_ realm: UUIDValue, _ client: UUIDValue) -> [UInt8] {
        Array("address proof".utf8) + realm.bytes + client.bytes
    }
}

/// A live access token of a proven address. It opens the claims about the address, and nothing else.
public struct VerifiedAddressToken: Sendable {
    /// The token's own content.
    public let token: AccessToken
    /// What was proven.
    public let address: VerifiedAddress
    /// The client it was made for.
    public let client: Client
    /// Authentication methods (RFC 8176).
    public let amr: [String]
    /// Authentication context class.
    public let acr: String
    /// When the address was proven, seconds since the epoch.
    public let authTime: Int
}

extension JSONWriter {
    /// `sub` and the claims about a proven address (OpenID Connect Core §5.1).
    public mutating func claims(of address: VerifiedAddress) {
        member("sub", address.subject.description)
        member(address.isPhone ? "phone_number" : "email", address.text)
        member(address.isPhone ? "phone_number_verified" : "email_verified", true)
    }
}

extension TokenIssuer {
    /// Mints the tokens of a proven address: an ID token and an opaque access token of the same life.
    /// - Parameter session: what the access token refers to.
    func issue(
        _ redeemed: AddressTokenStore.Redeemed, session: UUIDValue, tokenSalt: [UInt8], realm: Realm, client: Client,
        thumbprint: [UInt8]?, signingKey: SigningKey
    ) throws(TokenError) -> TokenResponse {
        let proof = redeemed.proof
        try requireTrueClock(Int(proof.now))
        guard let address = VerifiedAddress(proof, realm: realm.id, client: client.key, keyring: keyring) else {
            throw .unavailable("the key file lacks the line of an address")
        }
        var token = AccessToken(
            owner: session, issuedAt: Int(proof.now), lifetime: Int(redeemed.expiresAt) - Int(proof.now),
            sessionExpiresAt: Int(redeemed.expiresAt), scope: redeemed.scope, audience: redeemed.resources)
        token.thumbprint = thumbprint
        let accessToken = try SealedReference.text(
            token, of: .addressVerification, epoch: Int(proof.authTime), realm: realm.id, salt: tokenSalt,
            keyring: keyring)
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.claims(of: address)
        claims.member("aud", client.clientID)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("jti", Base64.urlEncode(token.jti))
        claims.member("auth_time", Int(proof.authTime))
        claims.member("amr", proof.amr)
        claims.member("acr", proof.acr)
        claims.member("nonce", redeemed.nonce)
        claims.member("at_hash", signingKey.accessTokenHash(accessToken))
        return TokenResponse(
            accessToken: accessToken, expiresIn: token.expiresAt - token.issuedAt, scope: redeemed.scope,
            refreshToken: nil, idToken: try signingKey.sign(claims.finish(), typ: "JWT"), isBound: thumbprint != nil)
    }
}
