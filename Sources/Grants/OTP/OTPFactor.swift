import Encoding
public import Persistence

/// `urn:cocoar:otp`: a code from the mailbox or the phone.
public struct OTPFactor: Factor {
    /// `urn:cocoar:otp`.
    public let grantType = GrantType.otp

    private let codes: CodeStore
    private let keyring: Keyring
    private let wrongCodes: WrongCodes
    private let observe: @Sendable (Event) -> Void

    /// Something worth counting.
    public enum Event: Sendable {
        /// So many codes were compared and wrong.
        case wrong(Int)
        /// The codes of an account are closed for a day.
        case lockout
        /// A try was refused because the realm's limit of wrong codes is used up.
        case brake
    }

    /// - Parameter observe: told of every refusal worth counting.
    public init(codes: CodeStore, keyring: Keyring, observe: @escaping @Sendable (Event) -> Void = { _ in }) {
        self.codes = codes
        self.keyring = keyring
        self.observe = observe
        wrongCodes = WrongCodes(codes)
    }

    /// A code, with the handle of its request or the address that it was sent to.
    public struct Presented: Sendable {
        let code: TypedCode
        let addressKey: String
        let handle: AuthSessionHandle?

        /// A code of a handle.
        public init(_ code: TypedCode, of handle: AuthSessionHandle) {
            self.init(code, of: handle, addressKey: handle.addressKey)
        }

        fileprivate init(_ code: TypedCode, of handle: AuthSessionHandle?, addressKey: String) {
            self.code = code
            self.handle = handle
            self.addressKey = addressKey
        }

        /// What carried the code to a phone; `nil`: mail.
        var channel: Channel? {
            // A number alone does not tell: most codes come by SMS.
            handle.map(\.channel) ?? (PhoneNumber.isKey(addressKey) ? .sms : nil)
        }
    }

    /// `otp_code`, and `username` or `auth_session`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["username"] != nil || form["auth_session"] != nil else {
            throw .missing("username or auth_session")
        }
        guard form["otp_code"] != nil else { throw .missing("otp_code") }
    }

    /// `nil` when neither parameter can name an account, or the two disagree.
    public func read(_ form: FormParameters, _ context: RequestContext) -> Presented? {
        var addressKey: String?
        var handle: AuthSessionHandle?
        if let presented = form["auth_session"] {
            guard let opened = AuthSessionHandle(presented, realm: context.realm.id, keyring: keyring) else {
                return nil
            }
            handle = opened
            addressKey = opened.addressKey
        }
        if let username = form["username"] {
            guard let key = EmailAddress(username)?.key ?? (PhoneNumber.isKey(username) ? username : nil),
                handle == nil || key == addressKey
            else { return nil }
            addressKey = key
        }
        guard let addressKey else { return nil }
        return Presented(TypedCode(form["otp_code"] ?? ""), of: handle, addressKey: addressKey)
    }

    /// With the handle of a request: an address is known to others.
    public func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool { form["auth_session"] != nil }

    /// Tries with a handle queue apart from tries that name the address alone.
    public func turn(of presented: Presented, _ context: RequestContext) -> AttemptTurn {
        let subject = presented.handle.map { "handle|" + Base64.urlEncode($0.id) } ?? "address|" + presented.addressKey
        return .atOnce("code|\(context.realm.id)|\(subject)")
    }

    /// Possession of the mailbox or phone, nothing more.
    public func amr(of presented: Presented) -> [String] { MessageAddress.amr(by: presented.channel) }

    /// Counts the try, compares, consumes the address's codes and opens the session.
    public func redeem(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let realm = context.realm
        let (outcome, verdict) = try await codes.redeem(
            realm: realm.id, client: context.client.key, permission: context.permission(for: grantType),
            addressKey: presented.addressKey, handle: presented.handle?.id,
            keyed: OneTimeCode.candidates(
                presented.code, realm: realm, addressKey: presented.addressKey, keyring: keyring),
            session: session, permits: permits, failures: .failures(of: realm), brake: .brake(of: realm),
            secondFactor: proof)
        switch outcome {
        case nil: return (nil, verdict)
        case .busy: return (.busy, verdict)
        case .decided(let signIn, let wrong):
            if case .refused(let reason) = signIn { count(wrong, reason, realm: realm) }
            return (.decided(signIn), verdict)
        }
    }

    /// For a wrong code, an expired one, and an address without any.
    public func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired code.", reason: reason)
    }

    private func count(_ wrong: Int, _ reason: String, realm: Realm) {
        wrongCodes.count(wrong, of: realm)
        observe(.wrong(wrong))
        switch reason {
        case "lockout": observe(.lockout)
        case "brake": observe(.brake)
        default: break
        }
    }
}
