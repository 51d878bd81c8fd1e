/// What a sign-in on a page opens in place of the session of a client: the session of a browser, and an authorization
/// code when nothing else is due (`postern.open_browser_session`).
public struct PageSignIn: Sendable {
    /// What was proven on the page.
    public enum Proof: String, Sendable {
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
    public struct Address: Sendable {
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

    /// `postern.page_sign_in`.
    static let argument = Argument.row(
        "page", as: "page_sign_in",
        [
            .value("cookie", from: "page_cookie"), .value("former", from: "page_former"),
            .value("host", from: "page_host"), .value("locale", from: "page_locale"), "proves",
            .value("value", from: "proven_value"), .value("method", from: "proven_method"), "profile_handle",
            "number_handle", "held_handle", "accepts_terms", AuthorizationCodeRequest.argument,
        ])

    var arguments: Arguments {
        let page: Arguments = [
            "page_cookie": cookieHash, "page_former": formerCookieHash, "page_host": host, "page_locale": locale,
            "proves": proves.rawValue, "proven_value": proven?.value, "proven_method": proven?.method,
            "profile_handle": profileHandle, "number_handle": numberHandle, "held_handle": heldHandle,
            "accepts_terms": acceptsTerms,
        ]
        return page + request.arguments
    }
}

/// An authorization request as SQL judges it, and the code to store for it (`postern.answer_request`).
public struct AuthorizationCodeRequest: Sendable {
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

    /// `postern.code_request`.
    static let argument = Argument.row(
        "request", as: "code_request",
        [
            .value("client", from: "for_client"), "redirect_uri", .value("scope", from: "for_scope"),
            .value("resource", from: "for_resource"), "acr_values", "nonce", "challenge",
            .value("max_age", from: "maximum_age"), .value("user_id", from: "for_user"),
            .value("proof", from: "wanted_proof"), "login", "proved", "asks_consent", "consents", "offer_passkey",
            "pushed", .value("code", from: "new_code"), .value("jkt", from: "code_key"),
        ])
}

extension AuthorizationCodeRequest? {
    /// For ``AuthorizationCodeRequest/argument``.
    var arguments: Arguments {
        let what: Arguments = [
            "for_client": self?.client, "redirect_uri": self?.redirectURI, "for_scope": self?.scope,
            "for_resource": self?.resources, "acr_values": self?.acrValues, "nonce": self?.nonce,
            "challenge": self?.codeChallenge, "maximum_age": self?.maximumAge.map { Int32(clamping: $0) },
            "for_user": self?.user, "wanted_proof": self?.proof,
        ]
        let how: Arguments = [
            "login": self?.wantsLogin, "proved": self?.isProved, "asks_consent": self?.asksConsent,
            "consents": self?.consents, "offer_passkey": self?.offersPasskey, "pushed": self?.pushedRequest,
            "new_code": self?.codeHash, "code_key": self?.thumbprint,
        ]
        return what + how
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
