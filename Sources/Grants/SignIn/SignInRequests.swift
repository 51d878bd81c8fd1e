public import Persistence

/// `POST /api/account/native/otp/request`, `…/register` and `/api/account/magic-link/request`: records a request for a
/// factor that is sent by mail. Never reads the users table.
public struct SignInRequests: Sendable {
    /// What a request holds, decoded and bounded.
    public struct Form: Sendable {
        let email: EmailAddress
        let firstName: PersonName?
        let lastName: PersonName?
        let clientID: String?
        let authSession: String?
        let idTokenHint: String?

        /// A decoded request.
        public init(
            email: EmailAddress, firstName: PersonName?, lastName: PersonName?, clientID: String?,
            authSession: String?, idTokenHint: String?
        ) {
            self.email = email
            self.firstName = firstName
            self.lastName = lastName
            self.clientID = clientID
            self.authSession = authSession
            self.idTokenHint = idTokenHint
        }
    }

    /// The uniform answer.
    public struct Receipt: Sendable, Equatable {
        /// The handle to redeem the code or to poll with.
        public let authSession: String
        /// Seconds.
        public let expiresIn: Int
        /// Seconds.
        public let resendAfter: Int
        /// `nil` where the app does not poll.
        public let polling: Approval.Polling?
    }

    private let admission: RequestAdmission
    private let turns: Turns
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// - Parameter wakeWorker: called after a request was recorded, so that it is decided at once.
    public init(limiter: RateLimiter, turns: Turns, keyring: Keyring, wakeWorker: @escaping @Sendable () -> Void) {
        admission = RequestAdmission(limiter)
        self.turns = turns
        self.keyring = keyring
        self.wakeWorker = wakeWorker
    }

    /// Records a request for `factor`.
    /// - Throws: `rate_limited`, `invalid_client` for an unknown `ClientId`, `invalid_request` for another App's, or
    ///   what the database threw.
    public func record(
        _ form: Form, for factor: any SentFactor, realm: Realm, source: String
    ) async throws -> Receipt {
        let client = try form.clientID.map { clientID throws(TokenError) in try Self.client(clientID, realm) }
        let presented = form.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let handle = AuthSessionHandle(emailKey: form.email.key)
        let request = SignInRequest(
            realm: realm, id: handle.id, resendOf: presented?.emailKey == form.email.key ? presented?.id : nil,
            email: form.email, firstName: form.firstName, lastName: form.lastName, client: client, source: source,
            hint: form.idTokenHint.flatMap { IDTokenHint($0, realm: realm, client: client) })
        let answered = try await record(request, for: factor)
        wakeWorker()
        return Receipt(
            authSession: try handle.with(id: answered).text(realm: realm.id, keyring: keyring),
            expiresIn: factor.lifetime(in: realm), resendAfter: realm.policy.resendCooldown,
            polling: factor.polling(ofHandle: answered))
    }

    private static func client(_ clientID: String, _ realm: Realm) throws(TokenError) -> Client {
        guard let client = realm.clients[clientID], client.enabled else {
            throw TokenError(.invalidClient, "Client authentication failed.", reason: "ClientId")
        }
        try realm.requireAdmission(of: client)
        return client
    }

    /// - Returns: the id of the handle to answer with.
    private func record(_ request: SignInRequest, for factor: any SentFactor) async throws -> [UInt8] {
        let first = try await admission.admit(request, factor.policy) { permits in
            try await factor.record(request, permits: permits)
        }
        if case .handle(let id) = first { return id }
        // The presented handle is polled for, or decided about, at this moment. The permits were taken above.
        let turn = Approval.turn(ofHandle: request.resendOf ?? [], in: request.realm)
        return try await turns.untilFree(.whenBusy(turn)) {
            let (recorded, _) = try await factor.record(request, permits: PermitRequest())
            return if case .handle(let id) = recorded { id } else { nil }
        }
    }
}
