import Grants
import Persistence
import TokenEndpoint

/// A sign-in for an authorization request: its client gets a code, or learns why not.
struct AuthorizationPurpose: SignInPurpose {
    let request: AuthorizationRequest
    let realm: Realm
    private let authorizations: Authorizations

    /// - Parameter realm: as the host shows it.
    init(_ request: AuthorizationRequest, in realm: Realm, _ authorizations: Authorizations) {
        self.request = request
        self.realm = realm.onPages(for: request.client)
        self.authorizations = authorizations
    }

    var client: Client? { request.client }
    var uiLocales: [String] { request.uiLocales }
    var loginHint: String? { request.loginHint }
    var hintedDevice: (user: UUIDValue, session: UUIDValue)? { request.hintedDevice }
    var wantsLogin: Bool { request.prompts.contains(.login) }
    var wantsRegistration: Bool { request.prompts.contains(.create) }
    var provableAddresses: (mail: Bool, phone: Bool)? { request.provableAddresses }
    var scope: [String] { request.scope }

    func rules(host: String) -> SignInRules { SignInRules(realm, request, host: host) }

    func canBeMet(under rules: SignInRules) -> Bool {
        guard !request.provesAddressOnly else { return request.addressACR != nil }
        return !rules.wantsAddress || rules.sendsMessages
    }

    func flow(of transaction: SignInTransaction, _ parts: PageParts) -> any PageFlow {
        if request.provesAddressOnly { return AddressVerificationFlow(parts: parts, request: request) }
        if transaction.facts.contains(.stepsUp) { return StepUpFlow(parts: parts, client: request.client) }
        return SignInFlow(parts: parts)
    }

    var destination: String? { Self.host(of: request.redirectURI) }

    var endsInBrowser: Bool {
        request.redirectURI.hasPrefix("https:") && request.client.iosApps.isEmpty && request.client.androidApps.isEmpty
    }

    func request(issuing code: AuthorizationCode?) -> AuthorizationCodeRequest? {
        var wanted = request.codeRequest
        wanted.codeHash = code.map(request.hash(of:))
        return wanted
    }

    func answer(_ outcome: PageOutcome, _ code: AuthorizationCode) async throws -> PurposeAnswer {
        answer(try await authorizations.answer(request, outcome, code, nil, realm: realm))
    }

    func confirm(
        _ cookie: BrowserCookie, host: String, isProved: Bool, consents: Bool
    ) async throws -> (PurposeAnswer, SessionCookie?) {
        let (answer, renewal) = try await authorizations.confirm(
            request, cookie: cookie, host: host, realm: realm, isProved: isProved, consents: consents)
        return (self.answer(answer), renewal)
    }

    func refuse(_ refusal: PurposeRefusal) async throws -> SignInEnd {
        let (error, description): (AuthorizationError, String) =
            switch refusal {
            case .denied: (.accessDenied, "The user refused.")
            case .unmet: (.unmetAuthenticationRequirements, "The sign-in does not meet acr_values.")
            case .otherUser: (.loginRequired, "Another user signed in.")
            }
        return end(try await authorizations.refuse(request, error, description, realm: realm))
    }

    private func answer(_ answer: Authorizations.Answer) -> PurposeAnswer {
        switch answer {
        case .response(let response): .end(end(response))
        case .page(let outcome, _): .due(outcome)
        }
    }

    private func end(_ response: AuthorizationResponse) -> SignInEnd {
        .response(response, codeHash: response.code.map(request.hash(of:)))
    }

    /// Host or scheme of a redirect URI, as people know it.
    static func host(of uri: String) -> String {
        let utf8 = uri.utf8
        let scheme = utf8.prefix { $0 != UInt8(ascii: ":") }
        guard uri.hasPrefix("http"), utf8[scheme.endIndex...].starts(with: "://".utf8) else {
            return String(Substring(scheme))
        }
        let host = utf8[scheme.endIndex...].dropFirst(3).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return String(Substring(host))
    }

    // MARK: In bytes

    fileprivate static let mark: UInt8 = 1
    /// Begins the name of a stored request, where a request in bytes begins with a smaller number.
    fileprivate static let storedMark: UInt8 = 255

    /// A long request is stored, so that `tx` fits into an address.
    func encoded(_ exchange: Exchange) async throws -> [UInt8] {
        let encoded = [Self.mark] + request.encoded
        guard encoded.count > SignInTransaction.maximumPurpose else { return encoded }
        var id = request.pushedID
        if id == nil { id = try await authorizations.keep(request, realm: realm, source: exchange.source) }
        return [Self.mark, Self.storedMark] + (id ?? []) + request.client.key.bytes
    }
}

/// Reads authorization requests from the state of a page.
struct AuthorizationPurposeReader: PurposeReader {
    let parts: PageParts

    var mark: UInt8 { AuthorizationPurpose.mark }

    func purpose(_ bytes: [UInt8], _ exchange: Exchange) async throws -> any SignInPurpose {
        AuthorizationPurpose(try await request(bytes, exchange), in: exchange.realm, parts.authorizations)
    }

    private func request(_ bytes: [UInt8], _ exchange: Exchange) async throws -> AuthorizationRequest {
        guard bytes.first == AuthorizationPurpose.storedMark else {
            return try AuthorizationRequest(bytes, realm: exchange.realm)
        }
        try parts.countLookUp(exchange)
        guard let client = storedClient(bytes, in: exchange.realm) else {
            throw AuthorizationRefusal.page(.invalidClient)
        }
        return try await parts.authorizations.request(
            pushed: Array(bytes[1..<33]), of: client, realm: exchange.realm)
    }

    func client(_ bytes: [UInt8], in realm: Realm) -> Client? {
        bytes.first == AuthorizationPurpose.storedMark
            ? storedClient(bytes, in: realm) : try? AuthorizationRequest(bytes, realm: realm).client
    }

    /// The client of a stored request: `255 ‖ id (32) ‖ client (16)`.
    private func storedClient(_ bytes: [UInt8], in realm: Realm) -> Client? {
        guard bytes.count == 1 + 32 + 16, let key = UUIDValue(bytes: bytes[33...]) else { return nil }
        return realm.clients.values.first { $0.key == key }
    }
}
