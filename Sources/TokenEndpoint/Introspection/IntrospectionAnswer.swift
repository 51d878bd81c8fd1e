import Encoding
import Grants
import Persistence

/// What introspection says about a live token of any kind (RFC 7662 §2.2).
struct IntrospectionAnswer {
    /// `client_id`: whom it was made for.
    let clientID: String
    let subject: UUIDValue
    let scope: [String]
    /// `aud`, as far as the asking client may see it.
    let audience: [String]
    let expiresAt: Int
    /// What only access tokens have; `nil` for a refresh token.
    var access: AccessToken?
    /// How and when the user signed in; `nil` when a client acts for itself.
    var signIn: SignIn?
    /// `sid`.
    var session: UUIDValue?
    /// The key that a refresh token is bound to.
    var refreshThumbprint: [UInt8]?

    struct SignIn {
        let amr: [String]
        let acr: String
        let authTime: Int
    }

    func json(for realm: Realm) -> [UInt8] {
        var object = JSONWriter()
        object.member("active", true)
        object.member("scope", scope.joined(separator: " "))
        object.member("client_id", clientID)
        object.member("sub", subject.description)
        object.audience(audience)
        object.member("iss", realm.issuer)
        object.member("exp", expiresAt)
        if let access {
            object.member("iat", access.issuedAt)
            object.member("jti", Base64.urlEncode(access.jti))
            object.member("token_type", access.thumbprint == nil ? "Bearer" : "DPoP")
        } else {
            object.member("token_type", "refresh_token")
        }
        object.confirmation(access?.thumbprint ?? refreshThumbprint)
        if let signIn {
            object.member("auth_time", signIn.authTime)
            object.member("amr", signIn.amr)
            object.member("acr", signIn.acr)
        }
        object.member("sid", session?.description)
        object.member("realm", realm.slug)
        object.testIdentity(subject)
        return object.finish()
    }
}

extension IntrospectionAnswer {
    init(_ verified: VerifiedAccessToken, audience: [String]) {
        let (token, session) = (verified.token, verified.session)
        self.init(
            clientID: session.clientID, subject: session.user, scope: token.scope, audience: audience,
            expiresAt: token.expiresAt, access: token, signIn: SignIn(session, acr: token.acr), session: token.owner)
    }

    init(_ refresh: RefreshToken, _ session: LiveSession, audience: [String]) {
        self.init(
            clientID: session.clientID, subject: session.user, scope: session.scope, audience: audience,
            expiresAt: Int(session.refreshExpiresAt ?? session.expiresAt), signIn: SignIn(session, acr: nil),
            session: refresh.session, refreshThumbprint: session.thumbprint)
    }

    /// Without a sign-in there is no `auth_time`, `amr`, `acr` or `sid`.
    init(_ verified: VerifiedServiceToken, audience: [String]) {
        self.init(
            clientID: verified.account.clientID, subject: verified.token.owner, scope: verified.token.scope,
            audience: audience, expiresAt: verified.token.expiresAt, access: verified.token)
    }

    /// The token of a proven address belongs to no account and to no session.
    init(_ verified: VerifiedAddressToken, audience: [String]) {
        self.init(
            clientID: verified.client.clientID, subject: verified.address.subject, scope: verified.token.scope,
            audience: audience, expiresAt: verified.token.expiresAt, access: verified.token,
            signIn: SignIn(amr: verified.amr, acr: verified.acr, authTime: verified.authTime))
    }
}

extension IntrospectionAnswer.SignIn {
    /// - Parameter acr: the token's own; `nil`: the session's.
    init(_ session: LiveSession, acr: String?) {
        self.init(
            amr: session.amr, acr: acr ?? session.acr ?? AuthenticationContext(amr: session.amr).rawValue,
            authTime: Int(session.authTime))
    }
}
