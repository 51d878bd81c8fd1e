public import Persistence

/// A code by mail or to a phone: to sign in, or to register.
public struct SentCode: SentFactor {
    /// `otp` or `register`.
    public var kind: String { purpose.rawValue }
    /// One policy for both.
    public let policy = RateLimit.Policy.nativeOTP
    /// A code is read or heard.
    public let phoneChannels = Channel.phones
    /// A code may register its owner.
    public let takesNames = true

    private let purpose: SignInRequestStore.Request.Kind
    private let requests: SignInRequestStore
    private let keyring: Keyring

    /// Codes for `purpose`.
    public init(_ purpose: SignInRequestStore.Request.Kind, requests: SignInRequestStore, keyring: Keyring) {
        self.purpose = purpose
        self.requests = requests
        self.keyring = keyring
    }

    /// As long as the code.
    public func lifetime(in realm: Realm) -> Int { realm.policy.otpLifetime }

    /// A code is typed into the app.
    public func polling(ofHandle id: [UInt8]) -> Polling.Terms? { nil }

    /// Records the request with the names of whom it may register.
    public func record(
        _ request: SignInRequest, permits: PermitRequest
    ) async throws(StoreError) -> (SignInRequestStore.Recorded?, PermitVerdict) {
        let realm = request.realm
        return try await requests.record(
            request.record(lifetime: lifetime(in: realm)), kind: purpose, firstName: request.firstName?.text,
            lastName: request.lastName?.text, brake: .brake(of: realm), permits: permits)
    }

    /// Drafts a code with its mail, and lets the statement decide whether it is sent.
    public func decide(
        _ request: SignInRequestStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> SignInRequestStore.Decision {
        let code = OneTimeCode.random(digits: Int(request.otpDigits))
        let mail = MessagePayload(
            originHost: Realm.host(ofOrigin: request.publicOrigin),
            content: .otp(code: code, minutes: Int(request.otpLifetime + 59) / 60))
        guard let sealed = try? mail.sealed(under: keyring, realm: request.realm) else { throw .malformedResult }
        return try SignInRequestStore.decideCode(
            request, code: .random(), salt: randomBytes(16),
            keyed: OneTimeCode.keyed(code, realm: request.realm, addressKey: request.addressKey, under: keyring.newest),
            mail: sealed, in: transaction)
    }
}

extension RateLimit.Policy {
    /// `otp/request` and `register`.
    static let nativeOTP = Self(rawValue: "native-otp")
}
