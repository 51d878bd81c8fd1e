public import Persistence

/// `POST /api/account/native/otp/request`, `…/register` and `/api/account/magic-link/request`: records a request for a
/// factor that is sent by mail or to a phone. Never reads the users table.
public struct SignInRequests: Sendable {
    /// What a request holds, decoded and bounded.
    public struct Form: Sendable {
        /// Where the code or link is to be sent.
        public let address: MessageAddress
        let firstName: PersonName?
        let lastName: PersonName?
        let clientID: String?
        let authSession: String?
        let idTokenHint: String?
        let locale: String?
        /// Origin of the page that asks; `nil`: an app does.
        let pageOrigin: String?
        /// SHA-256 of the cookie of that page's browser.
        let pageBrowser: [UInt8]?
        /// The signed-in user of a page's browser, and the browser session, in the place of an ID token.
        let device: (user: UUIDValue, session: UUIDValue)?

        /// A decoded request.
        /// - Parameters:
        ///   - locale: the language that the message is to be in.
        ///   - pageOrigin: the origin of the page that asks, where its link is to lead.
        ///   - pageBrowser: one browser that asks again within the cooldown gets the handle that it has.
        public init(
            address: MessageAddress, firstName: PersonName?, lastName: PersonName?, clientID: String?,
            authSession: String?, idTokenHint: String?, locale: String? = nil, pageOrigin: String? = nil,
            pageBrowser: [UInt8]? = nil, device: (user: UUIDValue, session: UUIDValue)? = nil
        ) {
            self.address = address
            self.firstName = firstName
            self.lastName = lastName
            self.clientID = clientID
            self.authSession = authSession
            self.idTokenHint = idTokenHint
            self.locale = locale
            self.pageOrigin = pageOrigin
            self.pageBrowser = pageBrowser
            self.device = device
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
        public let polling: Polling.Terms?
        /// How many messages the handle may still cause.
        public let sendsLeft: Int
    }

    /// The presented handle has caused all messages that it may.
    public struct SendLimit: Error {}

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
    /// - Parameter proof: of the key that the handle is bound to; it is used up.
    /// - Throws: ``SendLimit``, `rate_limited`, `invalid_client` for an unknown `ClientId`, `invalid_request` for
    ///   another App's, or what the database threw.
    public func record(
        _ form: Form, for factor: any SentFactor, realm: Realm, source: String, proof: ProofUse? = nil
    ) async throws -> Receipt {
        let client = try form.clientID.map { clientID throws(TokenError) in try Self.client(clientID, realm) }
        let presented = form.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let handle = AuthSessionHandle(addressKey: form.address.key, channel: form.address.channel)
        let request = SignInRequest(
            realm: realm, id: handle.id, resendOf: presented?.addressKey == form.address.key ? presented?.id : nil,
            address: form.address, firstName: form.firstName, lastName: form.lastName, client: client, source: source,
            hint: form.device.map { IDTokenHint(user: $0.user, session: $0.session, clientID: client?.clientID ?? "") }
                ?? form.idTokenHint.flatMap { IDTokenHint($0, realm: realm, client: client) },
            locale: form.locale, pageOrigin: form.pageOrigin, pageBrowser: form.pageBrowser, proof: proof)
        let (answered, sendsLeft) = try await record(request, for: factor)
        wakeWorker()
        return Receipt(
            authSession: try handle.with(id: answered).text(realm: realm.id, keyring: keyring),
            expiresIn: factor.lifetime(in: realm), resendAfter: realm.policy.resendCooldown,
            polling: factor.polling(ofHandle: answered), sendsLeft: sendsLeft)
    }

    private static func client(_ clientID: String, _ realm: Realm) throws(TokenError) -> Client {
        guard let client = realm.clients[clientID], client.enabled else {
            throw TokenError(.invalidClient, "Client authentication failed.", reason: "ClientId")
        }
        try realm.requireAdmission(of: client)
        return client
    }

    /// - Returns: the id of the handle to answer with, and how many messages it may still cause.
    private func record(
        _ request: SignInRequest, for factor: any SentFactor
    ) async throws -> (id: [UInt8], sendsLeft: Int) {
        let first = try await admission.admit(request, request.address.policy(or: factor.policy)) { permits in
            try await factor.record(request, permits: permits)
        }
        if let answer = try Self.answer(to: first) { return answer }
        // The presented handle is polled for, or decided about, at this moment. The permits were taken above.
        let turn = Polling.turn(ofHandle: request.resendOf ?? [], in: request.realm)
        return try await turns.retryWhileBusy(.whenBusy(turn)) {
            let (recorded, _) = try await factor.record(request, permits: PermitRequest())
            return try Self.answer(to: recorded)
        }
    }

    /// - Returns: `nil` while another transaction has the handle. - Throws: ``SendLimit``.
    private static func answer(to recorded: SignInRequestStore.Recorded?) throws -> (id: [UInt8], sendsLeft: Int)? {
        switch recorded {
        case .handle(let id, let sendsLeft): (id, sendsLeft)
        case .sendLimit: throw SendLimit()
        case .busy, nil: nil
        }
    }
}
