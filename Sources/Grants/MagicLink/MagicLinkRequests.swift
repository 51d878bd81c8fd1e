public import Persistence

/// `POST /api/account/magic-link/request`: records that somebody asked (contract §4.2). Never reads the users table.
public struct MagicLinkRequests: Sendable {
    /// What was asked for, decoded and bounded.
    public struct Request: Sendable {
        let email: EmailAddress
        let clientID: String?
        let authSession: String?

        /// A decoded request.
        public init(email: EmailAddress, clientID: String?, authSession: String?) {
            self.email = email
            self.clientID = clientID
            self.authSession = authSession
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
        /// Two digits for the user to find again on the link's page.
        public let matchNumber: String
    }

    /// Seconds between polls, until one comes too early (`auth_session.poll_interval`).
    static let interval = 5

    private let links: MagicLinkStore
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// - Parameter wakeWorker: called after a request was recorded, so that it is decided at once.
    public init(
        links: MagicLinkStore, limiter: RateLimiter, keyring: Keyring, wakeWorker: @escaping @Sendable () -> Void
    ) {
        self.links = links
        self.limiter = limiter
        self.keyring = keyring
        self.wakeWorker = wakeWorker
    }

    /// Records the request. - Throws: `rate_limited`, `invalid_client` for an unknown `ClientId`, `invalid_request` for another
    /// App's, `temporarily_unavailable`.
    public func record(_ request: Request, realm: Realm, source: String) async throws(TokenError) -> Receipt {
        var client: Client?
        if let clientID = request.clientID {
            guard let known = realm.clients[clientID], known.enabled else {
                throw TokenError(.invalidClient, "Client authentication failed.", reason: "ClientId")
            }
            try realm.requireAdmission(of: known)
            client = known
        }
        var subjects: [RateLimiter.Subject] = [
            .init(.target, "\(request.email.key)|\(source)"), .init(.targetTotal, request.email.key),
            .init(.source, source),
        ]
        if let client { subjects.append(.init(.client, client.clientID)) }
        if let app = realm.app { subjects.append(.init(.app, app.slug)) }
        let claim = try await limiter.claim(.magicLink, subjects, realm: realm)

        let handle = AuthSessionHandle(emailKey: request.email.key)
        let resendOf = request.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let link = MagicLinkStore.LinkRequest(
            realm: realm.id, id: handle.id, resendOf: resendOf?.emailKey == request.email.key ? resendOf?.id : nil,
            email: request.email.text, emailKey: request.email.key, client: client?.key,
            app: realm.app?.slug, source: source,
            lifetime: Int32(clamping: realm.policy.magicLinkLifetime), permits: claim.permits)
        let answered: [UInt8]?
        do {
            let (handle, verdict) = try await links.request(link)
            try limiter.settle(claim, verdict)
            answered = handle
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
        guard let answered else { throw .unavailable("limit without a verdict") }
        wakeWorker()
        return Receipt(
            authSession: try handle.with(id: answered).text(realm: realm.id, keyring: keyring),
            expiresIn: realm.policy.magicLinkLifetime, resendAfter: realm.policy.resendCooldown,
            interval: Self.interval, matchNumber: String(MatchNumber.of(handle: answered)))
    }
}
