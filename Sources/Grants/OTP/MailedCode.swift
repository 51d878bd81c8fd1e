public import Persistence

/// A code by mail: to sign in, or to register.
public struct MailedCode: SentFactor {
    /// `otp` or `register`.
    public var kind: String { purpose.rawValue }
    /// One policy for both.
    public let policy = RateLimit.Policy.nativeOTP
    /// A code may register its owner.
    public let takesNames = true

    private let purpose: SignInStore.CodeRequest.Kind
    private let signIns: SignInStore
    private let keyring: Keyring

    /// Codes for `purpose`.
    public init(_ purpose: SignInStore.CodeRequest.Kind, signIns: SignInStore, keyring: Keyring) {
        self.purpose = purpose
        self.signIns = signIns
        self.keyring = keyring
    }

    /// As long as the code.
    public func lifetime(in realm: Realm) -> Int { realm.policy.otpLifetime }

    /// A code is typed into the app.
    public func polling(ofHandle id: [UInt8]) -> Approval.Polling? { nil }

    /// Records the request with the names of whom it may register.
    public func record(
        _ request: SignInRequest, permits: PermitRequest
    ) async throws(StoreError) -> (RecordedRequest?, PermitVerdict) {
        let realm = request.realm
        let (handle, verdict) = try await signIns.request(
            SignInStore.CodeRequest(
                kind: purpose, realm: realm.id, id: request.id, resendOf: request.resendOf, email: request.email.text,
                emailKey: request.email.key, client: request.client?.key, app: realm.app?.slug,
                firstName: request.firstName?.text, lastName: request.lastName?.text, source: request.source,
                hint: request.hint.map { (user: $0.user, session: $0.session) },
                lifetime: Int32(clamping: lifetime(in: realm)), brake: .brake(of: realm)),
            permits: permits)
        return (handle.map(RecordedRequest.handle), verdict)
    }

    /// Drafts a code with its mail, and lets the statement decide whether it is sent.
    public func decide(
        _ request: SignInStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> Bool {
        let code = OneTimeCode.random(digits: Int(request.otpDigits))
        let mailID = UUIDValue.random()
        let mail = MailPayload(
            realmName: request.displayName, originHost: Realm.host(ofOrigin: request.publicOrigin),
            content: .otp(code: code, minutes: Int(request.otpLifetime + 59) / 60))
        guard let payload = try? mail.sealed(under: keyring, realm: request.realm, mail: mailID) else {
            throw .malformedResult
        }
        let draft = SignInStore.CodeDraft(
            codeID: .random(), salt: randomBytes(16),
            keyed: OneTimeCode.keyed(code, realm: request.realm, emailKey: request.emailKey, under: keyring.newest),
            mailID: mailID, payload: payload)
        return try SignInStore.decide(request, draft, in: transaction)
    }
}
