public import Encoding
public import Persistence

/// The claims of the tokens that a realm signs.
enum Claims {
    /// An access token's (RFC 9068 §2.2), with `sid`, `amr` and `realm` beside them.
    static func accessToken(
        _ token: AccessToken, _ authentication: Authentication, _ realm: Realm, _ client: Client
    ) -> [UInt8] {
        var claims = accessToken(token, subject: authentication.user, realm, client)
        claims.member("auth_time", authentication.authTime)
        claims.member("amr", authentication.amr)
        claims.member("acr", authentication.context)
        claims.member("sid", token.owner.description)
        claims.member("realm", realm.slug)
        claims.testIdentity(authentication.user)
        claims.proven(authentication)
        if let proven = authentication.proven {
            claims.member("authentication_method", proven.method)
            claims.member("type", "client_access_token")
        }
        return claims.finish()
    }

    /// An access token's that a client gets for itself: `sub` names its account, and nothing says how a user signed in.
    static func serviceToken(_ token: AccessToken, _ realm: Realm, _ client: Client) -> [UInt8] {
        var claims = accessToken(token, subject: token.owner, realm, client)
        claims.member("realm", realm.slug)
        return claims.finish()
    }

    private static func accessToken(
        _ token: AccessToken, subject: UUIDValue, _ realm: Realm, _ client: Client
    ) -> JSONWriter {
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("sub", subject.description)
        claims.audience(token.audience)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("jti", Base64.urlEncode(token.jti))
        claims.member("client_id", client.clientID)
        claims.member("scope", token.scope.joined(separator: " "))
        claims.confirmation(token.thumbprint)
        return claims
    }

    /// An ID token's (OpenID Connect Core §2 and §3.1.3.6, `at_hash`).
    static func idToken(
        _ token: AccessToken, _ authentication: Authentication, _ realm: Realm, _ client: Client,
        accessTokenHash: String
    ) -> [UInt8] {
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("sub", authentication.user.description)
        claims.member("aud", client.clientID)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("auth_time", authentication.authTime)
        claims.member("amr", authentication.amr)
        claims.member("acr", authentication.context)
        claims.member("nonce", authentication.nonce)
        claims.member("sid", token.owner.description)
        claims.member("realm", realm.slug)
        claims.testIdentity(authentication.user)
        claims.proven(authentication)
        // Optional in this flow (OpenID Connect Core §3.1.3.6), and Cotter's clients check an ID token by itself.
        if authentication.proven == nil { claims.member("at_hash", accessTokenHash) }
        return claims.finish()
    }
}

extension JSONWriter {
    /// `cnf` (RFC 7800 §3.1) of what is bound to a key (RFC 9449 §6.1).
    public mutating func confirmation(_ thumbprint: [UInt8]?) {
        guard let thumbprint else { return }
        var confirmation = JSONWriter(reserving: 64)
        confirmation.member("jkt", Base64.urlEncode(thumbprint))
        member("cnf", json: confirmation.finish())
    }

    /// The address of Cotter's wire, and the user under the name that its clients know.
    fileprivate mutating func proven(_ authentication: Authentication) {
        guard let proven = authentication.proven else { return }
        member("client_user_id", authentication.user.description)
        member("identifier", proven.value)
    }

    /// `test_identity`: only there, and true, when the user is one that an administrator made for app-store review.
    public mutating func testIdentity(_ user: UUIDValue) {
        if user.isTestIdentity { member("test_identity", true) }
    }
}
