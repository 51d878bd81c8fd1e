public import Persistence

/// `POST /api/account/magic-link/request`: records the request for a worker to decide. Never reads the users table.
public struct MagicLinkRequests: Sendable {
    /// What was asked for, decoded and bounded.
    public struct Request: Sendable {
        let email: EmailAddress
        let clientID: String?
        let authSession: String?
        let idTokenHint: String?

        /// A decoded request.
        public init(email: EmailAddress, clientID: String?, authSession: String?, idTokenHint: String?) {
            self.email = email
            self.clientID = clientID
            self.authSession = authSession
            self.idTokenHint = idTokenHint
        }
    }

    /// The uniform answer.
    public struct Receipt: Sendable, Equatable {
        /// The handle to poll with.
        public let authSession: String
        /// Seconds.
        public let expiresIn: Int
        /// Seconds.
        public let resendAfter: Int
        /// Seconds between polls.
        public let interval: Int
        /// Two digits for the user to type on the link's page.
        public let matchNumber: String
    }

    /// Seconds between polls, until one comes too early (`auth_session.poll_interval`).
    static let interval = 5

    private let links: MagicLinkStore
    private let admission: RequestAdmission
    private let turns: Turns
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// - Parameter wakeWorker: called after a request was recorded, so that it is decided at once.
    public init(
        links: MagicLinkStore, admission: RequestAdmission, turns: Turns, keyring: Keyring,
        wakeWorker: @escaping @Sendable () -> Void
    ) {
        self.links = links
        self.admission = admission
        self.turns = turns
        self.keyring = keyring
        self.wakeWorker = wakeWorker
    }

    /// Records the request. - Throws: `rate_limited`, `invalid_client` for an unknown `ClientId`, `invalid_request` for another
    /// App's, `temporarily_unavailable`.
    public func record(_ request: Request, realm: Realm, source: String) async throws -> Receipt {
        var client: Client?
        if let clientID = request.clientID {
            guard let known = realm.clients[clientID], known.enabled else {
                throw TokenError(.invalidClient, "Client authentication failed.", reason: "ClientId")
            }
            try realm.requireAdmission(of: known)
            client = known
        }
        let hint = request.idTokenHint.flatMap { IDTokenHint($0, realm: realm, client: client) }
        let asker = RequestAdmission.Asker(emailKey: request.email.key, source: source, client: client, hint: hint)
        let handle = AuthSessionHandle(emailKey: request.email.key)
        let presented = request.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let resendOf = presented?.emailKey == request.email.key ? presented?.id : nil
        let link = MagicLinkStore.LinkRequest(
            realm: realm.id, id: handle.id, resendOf: resendOf, email: request.email.text, emailKey: request.email.key,
            client: client?.key, app: realm.app?.slug, source: source,
            lifetime: Int32(clamping: realm.policy.magicLinkLifetime),
            hint: hint.map { (user: $0.user, session: $0.session) })
        let answered = try await record(link, asker, realm: realm)
        wakeWorker()
        return Receipt(
            authSession: try handle.with(id: answered).text(realm: realm.id, keyring: keyring),
            expiresIn: realm.policy.magicLinkLifetime, resendAfter: realm.policy.resendCooldown,
            interval: Self.interval, matchNumber: String(MatchNumber.of(handle: answered)))
    }

    /// - Returns: the id of the handle to answer with.
    private func record(
        _ link: MagicLinkStore.LinkRequest, _ asker: RequestAdmission.Asker, realm: Realm
    ) async throws -> [UInt8] {
        let first = try await admission.admit(.magicLink, asker, realm: realm) { permits in
            try await links.request(link, permits: permits)
        }
        if case .handle(let id) = first { return id }
        // The presented handle is polled for, or decided about, at this moment. The permits were taken above.
        return try await turns.untilFree("handle|\(realm.id)|\(Hex.encode(link.resendOf ?? []))") {
            let (recorded, _) = try await links.request(link, permits: PermitRequest())
            return if case .handle(let id) = recorded { id } else { nil }
        }
    }
}
