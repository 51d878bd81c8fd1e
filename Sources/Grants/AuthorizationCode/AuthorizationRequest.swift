import Encoding
public import Persistence

/// An authorization request (RFC 6749 §4.1.1, OpenID Connect Core §3.1.2.1) that passed every check which depends on no
/// account.
///
/// The order of checks is the source order of ``init(_:realm:client:from:)``.
public struct AuthorizationRequest: Sendable {
    /// The client.
    public let client: Client
    /// As the request named it, byte for byte: one of the client's redirect URIs.
    public let redirectURI: String
    /// How the response travels.
    public let responseMode: AuthorizationResponse.Mode
    /// Granted scope names; empty without `scope`.
    public let scope: [String]
    /// `aud` of the tokens: resources of the scopes, narrowed by `resource`, or the `client_id`.
    public let audience: [String]
    /// Comes back in the response, byte for byte.
    public let state: String?
    /// Comes back in the ID token, byte for byte.
    public let nonce: String?
    /// `S256` of the verifier, 43 characters of base64url; `nil` without PKCE.
    public let codeChallenge: String?
    /// Thumbprint of the key that must be proven with the code (`dpop_jkt`, RFC 9449 §10), 32 bytes; `nil`: none.
    public let thumbprint: [UInt8]?
    /// `prompt` values.
    public let prompts: Set<Prompt>
    /// The oldest sign-in that will do, in seconds.
    public let maximumAge: Int?
    /// The values of `acr_values` that this server knows, in the client's order.
    public let acrValues: [String]
    /// To be filled into the address field; not checked.
    public let loginHint: String?
    /// The user that `id_token_hint` names, and the session that it was made for.
    public let hintedDevice: (user: UUIDValue, session: UUIDValue)?
    /// The user that `id_token_hint` names.
    public var hintedUser: UUIDValue? { hintedDevice?.user }
    /// `ui_locales`, in the client's order.
    public let uiLocales: [String]
    /// SHA-256 of the `request_uri` that it came by.
    public let pushedID: [UInt8]?
    /// Where it came from.
    let origin: Origin
    let parameters: Parameters

    /// A value of `prompt`.
    public enum Prompt: String, Sendable {
        case none, login, consent, create
        case selectAccount = "select_account"
    }

    /// Where the parameters of a request come from.
    enum Origin: Sendable, Equatable {
        /// The query of the authorization endpoint.
        case query
        /// Pushed by the client, which authenticated (RFC 9126).
        case pushed(id: [UInt8])
        /// Stored by the authorization endpoint because it was long.
        case stored(id: [UInt8])

        var isAuthenticated: Bool { if case .pushed = self { true } else { false } }
        var id: [UInt8]? {
            switch self {
            case .query: nil
            case .pushed(let id), .stored(let id): id
            }
        }
    }

    /// Whether the redirect URI belongs to an app rather than to a web site: any app could have begun the request, so
    /// that the user has to confirm it (RFC 8252 §8.6).
    public var hasNativeRedirect: Bool {
        !client.isConfidential && !(redirectURI.hasPrefix("https:"))
    }

    /// Whether it asks for the proof of an address instead of an account.
    public var provesAddressOnly: Bool { scope.contains { $0.hasPrefix("verify:") } }

    /// The address that a client pushed for its proof, which the person cannot change.
    public var fixedAddress: String? { provesAddressOnly && origin.isAuthenticated ? loginHint : nil }

    /// Longest `state`, in bytes.
    static let maximumState = 2048
    static let maximumScope = 1024
    static let maximumNonce = 512
    static let maximumLoginHint = 320
    /// The values of `acr_values` that this server knows; the others are ignored. What a realm can reach of them says
    /// ``Realm/reachableContexts``.
    static let knownContexts =
        AuthenticationContext.allCases.map(\.rawValue) + ["urn:postern:acr:email", "urn:postern:acr:phone"]

    /// Checks steps 5 to 13; the client was found before.
    /// - Throws: a page for a redirect URI that is not the client's, else a response to it.
    init(
        _ parameters: Parameters, realm: Realm, client: Client, from origin: Origin
    ) throws(AuthorizationRefusal) {
        guard let redirectURI = parameters["redirect_uri"], client.mayRedirect(to: redirectURI) else {
            throw .page(.invalidRedirectURI)
        }
        let presentedState = parameters["state"]
        let isStateTooLong = (presentedState?.utf8.count ?? 0) > Self.maximumState
        let target = AuthorizationResponse.Target(
            redirectURI: redirectURI, mode: parameters["response_mode"] == "form_post" ? .formPost : .query,
            state: isStateTooLong ? nil : presentedState, issuer: realm.issuer, pushedID: origin.id,
            challengeID: parameters.proof?.challengeID)
        func refused(_ code: AuthorizationError, _ description: String) -> AuthorizationRefusal {
            .response(.failure(code, description, to: target))
        }
        guard let responseType = parameters["response_type"] else {
            throw refused(.invalidRequest, "The parameter response_type is missing.")
        }
        guard responseType == "code" else {
            throw refused(.unsupportedResponseType, "The response type must be code.")
        }
        switch parameters["response_mode"] {
        case nil, "query": break
        case "form_post" where redirectURI.hasPrefix("https:") || redirectURI.hasPrefix("http:"): break
        default:
            let byQuery = AuthorizationResponse.Target(
                redirectURI: redirectURI, mode: .query, state: target.state, issuer: realm.issuer, pushedID: origin.id)
            throw .response(.failure(.invalidRequest, "The response mode is not supported.", to: byQuery))
        }
        guard client.mayUse(.authorizationCode) else {
            throw refused(.unauthorizedClient, "The client may not use this grant type.")
        }
        guard !client.requiresPAR || origin.isAuthenticated else {
            throw refused(.invalidRequest, "The client must push its authorization requests.")
        }
        for (name, code) in AuthorizationError.unsupportedParameters where parameters[name] != nil {
            throw refused(code, "The parameter \(name) is not supported.")
        }
        codeChallenge = try Self.challenge(parameters, client, refused)
        thumbprint = try Self.thumbprint(parameters, refused)
        let access = try Self.access(parameters, realm, client, refused)
        (scope, audience) = access
        guard !isStateTooLong else { throw refused(.invalidRequest, "The parameter state is too long.") }
        nonce = parameters["nonce"]
        guard (nonce?.utf8.count ?? 0) <= Self.maximumNonce else {
            throw refused(.invalidRequest, "The parameter nonce is too long.")
        }
        guard let prompts = Self.prompts(parameters["prompt"], realm: realm, client: client) else {
            throw refused(.invalidRequest, "The parameter prompt is not valid.")
        }
        guard let age = Self.age(parameters["max_age"]) else {
            throw refused(.invalidRequest, "The parameter max_age is not valid.")
        }
        self.prompts = age == .some(0) && !prompts.contains(.none) ? prompts.union([.login]) : prompts
        maximumAge = age
        acrValues = (parameters["acr_values"] ?? "").blankSeparated
            .filter(Self.knownContexts.contains)
        loginHint = parameters["login_hint"]
        guard (loginHint?.utf8.count ?? 0) <= Self.maximumLoginHint else {
            throw refused(.invalidRequest, "The parameter login_hint is too long.")
        }
        if let hint = loginHint, !Self.mayProve(hint, scope, realm, from: origin) {
            throw refused(.invalidRequest, "The parameter login_hint is not an address that can be proven.")
        }
        if let hint = parameters["id_token_hint"] {
            guard let token = IDTokenHint(hint, realm: realm, client: client) else {
                throw refused(.invalidRequest, "The parameter id_token_hint is not valid.")
            }
            hintedDevice = (token.user, token.session)
        } else {
            hintedDevice = parameters.device
        }
        uiLocales =
            (parameters["ui_locales"] ?? "").utf8.count <= 256
            ? (parameters["ui_locales"] ?? "").blankSeparated : []
        self.client = client
        self.redirectURI = redirectURI
        responseMode = target.mode
        state = target.state
        self.origin = origin
        pushedID = origin.id
        self.parameters = parameters.keeping(hintedDevice)
    }

    /// Where the response goes.
    var target: AuthorizationResponse.Target {
        AuthorizationResponse.Target(
            redirectURI: redirectURI, mode: responseMode, state: state, issuer: parameters.issuer, pushedID: pushedID,
            challengeID: wantedProof?.challengeID)
    }
}

extension AuthorizationRequest {
    private typealias Refused = (AuthorizationError, String) -> AuthorizationRefusal

    /// RFC 7636 §4.3: `S256` only.
    private static func challenge(
        _ parameters: Parameters, _ client: Client, _ refused: Refused
    ) throws(AuthorizationRefusal) -> String? {
        guard let challenge = parameters["code_challenge"] else {
            guard !client.requiresPKCE, parameters["code_challenge_method"] == nil else {
                throw refused(.invalidRequest, "The parameter code_challenge is missing.")
            }
            return nil
        }
        guard parameters["code_challenge_method"] == "S256" else {
            throw refused(.invalidRequest, "The parameter code_challenge_method must be S256.")
        }
        guard challenge.utf8.count == 43, Base64.urlDecode(challenge)?.count == 32 else {
            throw refused(.invalidRequest, "The parameter code_challenge is not valid.")
        }
        return challenge
    }

    private static func thumbprint(
        _ parameters: Parameters, _ refused: Refused
    ) throws(AuthorizationRefusal) -> [UInt8]? {
        guard let text = parameters["dpop_jkt"] else { return nil }
        guard let thumbprint = Base64.urlDecode(text), thumbprint.count == 32,
            parameters.key == nil || parameters.key == thumbprint
        else { throw refused(.invalidRequest, "The parameter dpop_jkt is not valid.") }
        return thumbprint
    }

    /// Every fault of the scope is `invalid_scope` here, where the token endpoint names some of them `invalid_request`.
    private static func access(
        _ parameters: Parameters, _ realm: Realm, _ client: Client, _ refused: Refused
    ) throws(AuthorizationRefusal) -> (scope: [String], audience: [String]) {
        guard (parameters["scope"]?.utf8.count ?? 0) <= maximumScope else {
            throw refused(.invalidScope, "The requested scope is not available.")
        }
        let access: RequestedAccess
        do {
            access = try RequestedAccess(parameters.form, realm: realm, client: client)
        } catch {
            throw error.code == .invalidTarget
                ? refused(.invalidTarget, "The requested resource is not allowed.")
                : refused(.invalidScope, "The requested scope is not available.")
        }
        let proofs = access.scope.filter { $0.hasPrefix("verify:") }
        guard proofs.isEmpty || Set(access.scope) == ["openid", proofs[0]] else {
            throw refused(.invalidScope, "The proof of an address goes with openid alone.")
        }
        guard !proofs.contains("verify:phone") || TypedAddresses(realm, takesMail: false, takesPhones: true).takesPhones
        else { throw refused(.invalidScope, "The requested scope is not available.") }
        guard let audience = try? access.audience(of: access.scope, realm: realm, client: client) else {
            throw refused(.invalidTarget, "The requested resource is not allowed.")
        }
        return (access.scope, audience)
    }

    /// Whether a proof can begin with a pushed address: the person cannot change it.
    private static func mayProve(_ hint: String, _ scope: [String], _ realm: Realm, from origin: Origin) -> Bool {
        let provesPhone = scope.contains("verify:phone")
        guard origin.isAuthenticated, provesPhone || scope.contains("verify:email") else { return true }
        return (try? TypedAddresses(realm, takesMail: !provesPhone, takesPhones: provesPhone).read(hint)) != nil
    }

    /// - Returns: `nil` for values that are unknown, repeated, or not allowed together or here.
    private static func prompts(_ text: String?, realm: Realm, client: Client) -> Set<Prompt>? {
        let names = (text ?? "").blankSeparated
        let prompts = Set(names.compactMap(Prompt.init))
        guard prompts.count == names.count, !prompts.contains(.none) || prompts == [.none] else { return nil }
        if prompts.contains(.create), (realm.pageApp(for: client)?.registration ?? .off) == .off { return nil }
        return prompts
    }

    /// - Returns: seconds; `.none` if the text is not a number of seconds; `.some(nil)` without the parameter.
    private static func age(_ text: String?) -> Int?? {
        guard let text else { return .some(nil) }
        guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let seconds = Int(text)
        else { return .none }
        return .some(seconds)
    }
}
