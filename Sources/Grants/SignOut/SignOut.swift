public import Persistence

/// Signs browsers out (OpenID Connect RP-Initiated Logout 1.0).
public struct SignOut: Sendable {
    private let sessions: BrowserSessionStore

    public init(_ sessions: BrowserSessionStore) {
        self.sessions = sessions
    }

    /// What a browser that asks for a sign-out gets.
    public enum Outcome: Sendable {
        /// Signed out; the browser goes to this URI of the client.
        case redirect(String)
        /// Signed out; the browser stays.
        case signedOut
        /// The user has to say yes first. Nothing was done.
        case ask
    }

    /// Signs out at once if the request proves that it comes from a client of this browser: by an ID token whose
    /// session was opened through the browser's session.
    public func begin(
        _ request: SignOutRequest, cookie: BrowserCookie?, host: String, realm: Realm, source: String
    ) async throws -> Outcome {
        guard let hint = request.hint, !request.mustAsk else { return .ask }
        let (isSignedOut, _) = try await sessions.signOut(
            realm: realm.id, cookieHash: cookie?.hash, host: host, hint: (hint.session, hint.user), isConfirmed: false,
            source: source)
        guard isSignedOut else { return .ask }
        return request.wayBack.map { .redirect($0.url) } ?? .signedOut
    }

    /// Signs the browser out because the user said yes on the page, whatever a hint named.
    public func confirm(cookie: BrowserCookie?, host: String, realm: Realm, source: String) async throws {
        _ = try await sessions.signOut(
            realm: realm.id, cookieHash: cookie?.hash, host: host, hint: nil, isConfirmed: true, source: source)
    }
}

/// A request for a sign-out (OpenID Connect RP-Initiated Logout 1.0 §2).
public struct SignOutRequest: Sendable {
    /// An ID token of ours, expired or not.
    let hint: IDTokenHint?
    /// Where the browser goes after the sign-out.
    public let wayBack: WayBack?
    /// Whether something is wrong with it, so that it is taken for a link that a stranger made.
    let mustAsk: Bool
    /// The client that asks; `nil` when it is not known.
    public let client: Client?
    /// `ui_locales`, in the client's order.
    public let uiLocales: [String]

    /// Reads the parameters; none of them is required.
    public init(_ form: FormParameters, realm: Realm) {
        let hint = form["id_token_hint"].flatMap { IDTokenHint($0, realm: realm, client: nil) }
        self.hint = hint
        let named = form["client_id"].flatMap { realm.clients[$0] }
        let audience = hint.flatMap { realm.clients[$0.clientID] }
        client = audience ?? named
        uiLocales =
            (form["ui_locales"]?.utf8.count ?? 0) <= 256
            ? (form["ui_locales"] ?? "").blankSeparated : []
        let uri = form["post_logout_redirect_uri"]
        let isRegistered = uri.map { audience?.hosted.postLogoutURIs.contains($0) ?? false } ?? true
        let isClientWrong = form["client_id"].map { $0 != hint?.clientID } ?? false
        let isStateTooLong = (form["state"]?.utf8.count ?? 0) > AuthorizationRequest.maximumState
        mustAsk = hint == nil || audience == nil || !isRegistered || isClientWrong || isStateTooLong
        wayBack =
            isStateTooLong
            ? nil
            : [audience, named].lazy.compactMap(\.self).compactMap { WayBack(uri, state: form["state"], of: $0) }.first
    }

    /// A URI that is registered for the client that asks, and the `state` that goes with it.
    public struct WayBack: Sendable {
        /// Whose URI it is.
        public let client: Client
        /// As registered.
        public let uri: String
        /// As the client sent it.
        public let state: String?

        /// - Returns: `nil` without a URI, and for one that is not the client's.
        public init?(_ uri: String?, state: String?, of client: Client) {
            guard let uri, client.hosted.postLogoutURIs.contains(uri) else { return nil }
            self.client = client
            self.uri = uri
            self.state = state
        }

        /// Where the browser is sent.
        public var url: String {
            let query = state.map { "state=" + AuthorizationResponse.escaped($0) }
            return query.map { AuthorizationResponse.appending($0, to: uri) } ?? uri
        }
    }

    /// Without anything but what the browser has.
    public init() {
        hint = nil
        wayBack = nil
        mustAsk = true
        client = nil
        uiLocales = []
    }
}
