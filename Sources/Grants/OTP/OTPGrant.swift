public import Persistence

/// `urn:cocoar:otp`: sign-in by a code from the mailbox (contract §4.1, "Codes").
public struct OTPGrant: Grant {
    /// `urn:cocoar:otp`.
    public let grantType = GrantType.otp
    /// Gated by the realm's native-grants flag.
    public let isNative = true

    private let signIns: SignInStore
    private let sessions: SessionStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter
    private let keyring: Keyring

    /// What an e-mail code proves (RFC 8176): possession of the mailbox, nothing more.
    private static let amr = ["otp"]
    /// With the account's second factor beside it.
    private static let amrWithSecondFactor = ["otp", "mfa"]

    /// Creates the grant.
    public init(
        signIns: SignInStore, sessions: SessionStore, issuer: TokenIssuer, limiter: RateLimiter, keyring: Keyring
    ) {
        self.signIns = signIns
        self.sessions = sessions
        self.issuer = issuer
        self.limiter = limiter
        self.keyring = keyring
    }

    /// `otp_code`, and `username` or `auth_session`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["username"] != nil || form["auth_session"] != nil else { throw .missing("username") }
        guard form["otp_code"] != nil else { throw .missing("otp_code") }
    }

    /// Counts the try, compares, consumes the address's codes and opens the session in one statement; in two when the account
    /// has a second factor, the first of which consumes nothing.
    public func redeem(_ request: TokenRequest) async throws(TokenError) -> TokenResponse {
        let realm = request.realm
        let signIn = try await NewSignIn(request, issuer: issuer)
        let claim = try await limiter.claim(.token, request.subjects, realm: realm)
        guard let target = Target(request.form, realm: realm, keyring: keyring) else {
            try await limiter.take(claim)
            throw Self.refused("no such address")
        }
        func redemption(
            _ permits: PermitRequest, amr: [String], _ secondFactor: SecondFactorProof? = nil
        ) -> SignInStore.Redemption {
            SignInStore.Redemption(
                realm: realm.id, client: request.client.key, permission: grantType.permission,
                emailKey: target.emailKey, handle: target.handle, keyed: target.keyed,
                session: signIn.record(amr: amr), permits: permits, failures: Self.failureBudget(realm),
                secondFactor: secondFactor)
        }
        var amr = Self.amr
        let signedIn = try await signIn.decide(sessions: sessions, refused: Self.refused) {
            let (outcome, verdict) = try await signIns.redeem(redemption(claim.permits, amr: amr))
            try limiter.settle(claim, verdict)
            guard case .secondFactor(let prompt) = outcome,
                let proof = try SecondFactorProof(request.form, prompt, realm: realm.id, keyring: keyring)
            else { return outcome }
            amr = Self.amrWithSecondFactor
            return try await signIns.redeem(redemption(PermitRequest(), amr: amr, proof)).0
        }
        return try signIn.respond(signedIn, amr: amr)
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired code.", reason: reason)
    }

    private static func failureBudget(_ realm: Realm) -> (permits: Int32, per: Double, burst: Int32) {
        guard let limit = realm.rateLimits[.token]?[.failures], limit.enforced else {
            return (permits: 1_000_000, per: 60, burst: 1_000_000)
        }
        return (Int32(clamping: limit.permits), limit.per, Int32(clamping: limit.burst))
    }
}

extension OTPGrant {
    /// Whose code is presented, and its HMAC under each server key.
    private struct Target {
        let emailKey: String
        let handle: [UInt8]?
        let keyed: [[UInt8]]

        /// `nil` when neither parameter can name an account, or the two disagree.
        init?(_ form: FormParameters, realm: Realm, keyring: Keyring) {
            let address = form["username"].map { EmailAddress($0) }
            let opened = form["auth_session"].map { AuthSessionHandle($0, realm: realm.id, keyring: keyring) }
            switch (address, opened) {
            case (nil, .some(.some(let handle))):
                emailKey = handle.emailKey
            case (.some(.some(let address)), nil):
                emailKey = address.key
            case (.some(.some(let address)), .some(.some(let handle))):
                guard address.key == handle.emailKey else { return nil }
                emailKey = address.key
            default:
                return nil
            }
            handle = (opened ?? nil)?.id
            // Blanks around the digits come from copying; nothing else is forgiven (OT-02).
            let code = (form["otp_code"] ?? "").utf8.drop { $0 == 0x20 }.reversed().drop { $0 == 0x20 }.reversed()
            let text = String(decoding: code, as: UTF8.self)
            keyed = OneTimeCode.candidates(text, realm: realm, emailKey: emailKey, keyring: keyring)
        }
    }
}
