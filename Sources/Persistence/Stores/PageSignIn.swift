import Foundation

/// What a sign-in on a page opens in place of the session of a client: the session of a browser, and an authorization
/// code when nothing else is due (`postern.open_browser_session`).
public struct PageSignIn: Sendable {
    /// What was proven on the page.
    public enum Proof: String, Sendable, Encodable {
        /// An e-mail address, by a code or a link.
        case email
        /// A phone number, by a code or a link.
        case phone
        case passkey
    }

    /// SHA-256 of the cookie that the browser gets, 32 bytes.
    public let cookieHash: [UInt8]
    /// SHA-256 of the session cookie that the browser showed.
    public let formerCookieHash: [UInt8]?
    /// The host of the page; a browser session is good on that host alone.
    public let host: String
    /// The language tag of the page: that of its user's notices, where the account has none yet.
    public let locale: String
    /// What was proven.
    public let proves: Proof
    /// The handle of the code, where a new user is asked for names before the account is made.
    public let profileHandle: [UInt8]?
    /// The handle of the code of a phone number; one that its account has not used for long is held under it.
    public let numberHandle: [UInt8]?
    /// The handle under which a number is held that was proven before; this proof may complete it.
    public let heldHandle: [UInt8]?
    /// Whether the person accepted the terms on the way here.
    public let acceptsTerms: Bool
    /// `nil`: no client asked for a code.
    public let request: AuthorizationCodeRequest?
    /// The address as the person typed it, and how it was proven; `nil` for a passkey.
    public let proven: Address?

    /// An address, and how it was proven.
    public struct Address: Sendable, Encodable {
        let value: String
        let method: String

        /// - Parameter byLink: by a link and not by a code.
        public init(_ value: String, byLink: Bool) {
            self.value = value
            method = byLink ? "MAGIC_LINK" : "OTP"
        }
    }

    public init(
        cookieHash: [UInt8], formerCookieHash: [UInt8]?, host: String, locale: String, proves: Proof,
        proven: Address? = nil,
        profileHandle: [UInt8]? = nil, numberHandle: [UInt8]? = nil, heldHandle: [UInt8]? = nil,
        acceptsTerms: Bool = false, request: AuthorizationCodeRequest?
    ) {
        self.numberHandle = numberHandle
        self.heldHandle = heldHandle
        self.acceptsTerms = acceptsTerms
        self.proven = proven
        self.cookieHash = cookieHash
        self.formerCookieHash = formerCookieHash
        self.host = host
        self.locale = locale
        self.proves = proves
        self.profileHandle = profileHandle
        self.request = request
    }

    private struct Record: Encodable {
        let cookie: String
        let former: String?
        let host: String
        let locale: String
        let proves: Proof
        let profileHandle: String?
        let numberHandle: String?
        let heldHandle: String?
        let acceptsTerms: Bool
        let proofs: [String: Address]?
        let request: AuthorizationCodeRequest?
    }

    /// As SQL reads it.
    var json: String {
        AuthorizationCodeRequest.text(
            Record(
                cookie: hex(cookieHash), former: formerCookieHash.map(hex), host: host, locale: locale,
                proves: proves,
                profileHandle: profileHandle.map(hex), numberHandle: numberHandle.map(hex),
                heldHandle: heldHandle.map(hex), acceptsTerms: acceptsTerms,
                proofs: proven.map { [proves.rawValue: $0] }, request: request))
    }
}

/// An authorization request as SQL judges it, and the code to store for it (`postern.answer_request`).
public struct AuthorizationCodeRequest: Sendable, Encodable {
    /// The client's row key.
    public let client: UUIDValue
    /// As the request named it, byte for byte.
    public let redirectURI: String
    /// `S256` of the verifier, base64url; `nil` without PKCE.
    public let codeChallenge: String?
    /// Scope names.
    public let scope: [String]
    /// `aud` of the tokens.
    public let resources: [String]
    /// Comes back in the ID token.
    public let nonce: String?
    /// Values that this server knows; one of them must be met. Empty: any.
    public let acrValues: [String]
    /// The oldest sign-in that will do, in seconds.
    public let maximumAge: Int?
    /// The user that the request is for (`id_token_hint`).
    public let user: UUIDValue?
    /// `prompt=consent`.
    public let asksConsent: Bool
    /// SHA-256 of the `request_uri` that the request came by.
    public let pushedRequest: [UInt8]?
    /// The kind of address that the code is to name: `email` or `phone`.
    public let proof: String?

    /// Thumbprint of the key that must be proven with the code (`dpop_jkt`); 32 bytes.
    let thumbprint: [UInt8]?

    /// `prompt=login`: a sign-in from before the request does not do.
    public var wantsLogin = false
    /// The user proved a factor for this request, so that the sign-in is new, however long its pages are read.
    public var isProved = false
    /// The user allows what the client wants, now.
    public var consents = false
    /// The page could offer to create a passkey.
    public var offersPasskey = false
    /// SHA-256 of the code to store when nothing is due; `nil`: only look.
    public var codeHash: [UInt8]?

    public init(
        client: UUIDValue, redirectURI: String, codeChallenge: String?, scope: [String], resources: [String],
        nonce: String?, acrValues: [String], maximumAge: Int?, user: UUIDValue?, asksConsent: Bool,
        pushedRequest: [UInt8]?, proof: String? = nil, thumbprint: [UInt8]? = nil
    ) {
        self.proof = proof
        self.thumbprint = thumbprint
        self.client = client
        self.redirectURI = redirectURI
        self.codeChallenge = codeChallenge
        self.scope = scope
        self.resources = resources
        self.nonce = nonce
        self.acrValues = acrValues
        self.maximumAge = maximumAge
        self.user = user
        self.asksConsent = asksConsent
        self.pushedRequest = pushedRequest
    }

    private enum Key: String, CodingKey {
        case client, challenge, scope, resource, nonce, user, consents, pushed, code, proof, jkt
        case wantsLogin = "login"
        case isProved = "proved"
        case redirectURI = "redirect_uri"
        case acrValues = "acr_values"
        case maximumAge = "max_age"
        case asksConsent = "asks_consent"
        case offersPasskey = "offer_passkey"
    }

    /// The members that `postern.answer_request` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(client.description, forKey: .client)
        try container.encode(redirectURI, forKey: .redirectURI)
        try container.encodeIfPresent(codeChallenge, forKey: .challenge)
        try container.encode(scope, forKey: .scope)
        try container.encode(resources, forKey: .resource)
        try container.encodeIfPresent(nonce, forKey: .nonce)
        try container.encode(acrValues, forKey: .acrValues)
        try container.encodeIfPresent(maximumAge, forKey: .maximumAge)
        try container.encodeIfPresent(user?.description, forKey: .user)
        try container.encode(asksConsent, forKey: .asksConsent)
        try container.encode(wantsLogin, forKey: .wantsLogin)
        try container.encode(isProved, forKey: .isProved)
        try container.encode(consents, forKey: .consents)
        try container.encode(offersPasskey, forKey: .offersPasskey)
        try container.encodeIfPresent(pushedRequest.map(hex), forKey: .pushed)
        try container.encodeIfPresent(codeHash.map(hex), forKey: .code)
        try container.encodeIfPresent(proof, forKey: .proof)
        try container.encodeIfPresent(thumbprint.map(hex), forKey: .jkt)
    }

    /// As SQL reads it.
    var json: String { Self.text(self) }

    /// Strings, numbers and lists always have a JSON form.
    fileprivate static func text(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}

/// What a signed-in browser gets for its authorization request (`postern.answer_request`).
public enum PageOutcome: String, Sendable, CaseIterable {
    /// The authorization code is stored.
    case issued
    /// There is no live session, or the sign-in is older than `max_age`.
    case login
    /// The request is for another user.
    case account
    /// None of the wanted `acr_values` is met.
    case acr
    /// A passkey may be offered.
    case offerPasskey = "offer-passkey"
    /// The user has to allow it.
    case consent
    /// Nothing is due, and no code was asked for.
    case `continue`
    /// The code was right; the account is made when the user has given names.
    case profile
    /// The code was right; its number signs in with one more proof of the account.
    case secondProof = "second-proof"
    /// The code was right; its address has no account, and none is made any more.
    case registrationClosed = "registration-closed"
    /// Client, permission or pages were closed meanwhile.
    case closed
    /// The pushed request was answered before.
    case used
}

extension PageOutcome: ColumnValue {}
