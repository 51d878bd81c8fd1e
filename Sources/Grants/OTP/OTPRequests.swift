public import Persistence

/// `POST /api/account/native/otp/request` and `…/register`: records that somebody asked (contract §4.2). Never reads the users table.
public struct OTPRequests: Sendable {
    /// What was asked for, decoded and bounded.
    public struct Request: Sendable {
        let kind: SignInStore.CodeRequest.Kind
        let email: EmailAddress
        let firstName: String?
        let lastName: String?
        let clientID: String?
        let authSession: String?

        /// A decoded request.
        public init(
            _ kind: SignInStore.CodeRequest.Kind, email: EmailAddress, firstName: String?, lastName: String?,
            clientID: String?, authSession: String?
        ) {
            self.kind = kind
            self.email = email
            self.firstName = firstName
            self.lastName = lastName
            self.clientID = clientID
            self.authSession = authSession
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
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let wakeWorker: @Sendable () -> Void

    /// - Parameter wakeWorker: called after a request was recorded, so that it is decided at once.
    public init(
        signIns: SignInStore, limiter: RateLimiter, keyring: Keyring, wakeWorker: @escaping @Sendable () -> Void
    ) {
        self.signIns = signIns
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
        let claim = try await limiter.claim(.nativeOTP, subjects, realm: realm)

        let handle = AuthSessionHandle(emailKey: request.email.key)
        let resendOf = request.authSession.flatMap { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
        let code = SignInStore.CodeRequest(
            kind: request.kind, realm: realm.id, id: handle.id,
            resendOf: resendOf?.emailKey == request.email.key ? resendOf?.id : nil,
            email: request.email.text, emailKey: request.email.key, client: client?.key, app: realm.app?.slug,
            firstName: request.firstName, lastName: request.lastName,
            lifetime: Int32(clamping: realm.policy.otpLifetime), permits: claim.permits)
        let answered: [UInt8]?
        do {
            let (handle, verdict) = try await signIns.request(code)
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
            expiresIn: realm.policy.otpLifetime, resendAfter: realm.policy.resendCooldown)
    }
}
