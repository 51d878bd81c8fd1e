public import Persistence

/// `POST /api/account/native/otp/request` and `…/register`: records the request for a worker to decide. Never reads the
/// users table.
public struct OTPRequests: Sendable {
    /// What was asked for, decoded and bounded.
    public struct Request: Sendable {
        let kind: SignInStore.CodeRequest.Kind
        let email: EmailAddress
        let firstName: PersonName?
        let lastName: PersonName?
        let clientID: String?
        let authSession: String?
        let idTokenHint: String?

        /// A decoded request.
        public init(
            _ kind: SignInStore.CodeRequest.Kind, email: EmailAddress, firstName: PersonName?, lastName: PersonName?,
            clientID: String?, authSession: String?, idTokenHint: String?
        ) {
            self.kind = kind
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
        /// The handle to redeem the code with.
        public let authSession: String
        /// Seconds.
        public let expiresIn: Int
        /// Seconds.
        public let resendAfter: Int
    }

    private let signIns: SignInStore
    private let admission: RequestAdmission
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// - Parameter wakeWorker: called after a request was recorded, so that it is decided at once.
    public init(
        signIns: SignInStore, limiter: RateLimiter, keyring: Keyring, wakeWorker: @escaping @Sendable () -> Void
    ) {
        self.signIns = signIns
        admission = RequestAdmission(limiter)
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
        let resendOf = request.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let code = SignInStore.CodeRequest(
            kind: request.kind, realm: realm.id, id: handle.id,
            resendOf: resendOf?.emailKey == request.email.key ? resendOf?.id : nil,
            email: request.email.text, emailKey: request.email.key, client: client?.key, app: realm.app?.slug,
            firstName: request.firstName?.text, lastName: request.lastName?.text, source: source,
            hint: hint.map { (user: $0.user, session: $0.session) },
            lifetime: Int32(clamping: realm.policy.otpLifetime), brake: .brake(of: realm))
        let answered = try await admission.admit(.nativeOTP, asker, realm: realm) { permits in
            try await signIns.request(code, permits: permits)
        }
        wakeWorker()
        return Receipt(
            authSession: try handle.with(id: answered).text(realm: realm.id, keyring: keyring),
            expiresIn: realm.policy.otpLifetime, resendAfter: realm.policy.resendCooldown)
    }
}
