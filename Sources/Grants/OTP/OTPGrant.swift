public import Persistence

/// `urn:cocoar:otp`: sign-in by a code from the mailbox.
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
    private let turns: Turns
    private let wrongCodes: WrongCodes
    private let observe: @Sendable (Event) -> Void

    /// How long a try waits for others of the same address on other nodes.
    private static let patience = Duration.seconds(2)

    /// What an e-mail code proves (RFC 8176): possession of the mailbox, nothing more.
    private static let amr = ["otp"]
    /// With the account's second factor.
    private static let amrWithSecondFactor = ["otp", "mfa"]

    /// Something worth counting.
    public enum Event: Sendable {
        /// So many codes were compared and wrong.
        case wrong(Int)
        /// The codes of an account are closed for a day.
        case lockout
        /// A try was refused because the realm's limit of wrong codes is used up.
        case brake
    }

    /// - Parameters:
    ///   - turns: queues requests for one address or handle before they take a database connection.
    ///   - observe: called for every refusal worth counting.
    public init(
        signIns: SignInStore, sessions: SessionStore, issuer: TokenIssuer, limiter: RateLimiter, keyring: Keyring,
        turns: Turns, observe: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.turns = turns
        self.observe = observe
        wrongCodes = WrongCodes(signIns)
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
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let realm = request.realm
        let signIn = try await NewSignIn(request, issuer: issuer)
        guard let target = Target(request.form, realm: realm, keyring: keyring) else {
            try await limiter.count(.token, request.subjects, realm: realm)
            throw Self.refused("no such address")
        }
        let (signedIn, amr) = try await turns.run(target.turn(in: realm.id)) {
            try await redeem(target, request, signIn)
        }
        return try signIn.respond(signedIn, amr: amr)
    }

    private func redeem(
        _ target: Target, _ request: TokenRequest, _ signIn: NewSignIn
    ) async throws -> (SignedIn, amr: [String]) {
        let realm = request.realm
        var admission = Admission(limiter, .token, request.subjects, realm: realm)
        var amr = Self.amr
        func attempt(_ secondFactor: SecondFactorProof? = nil) async throws -> SignInOutcome {
            let start = ContinuousClock.now
            while true {
                let redeemed = try await admission.admitting { permits in
                    let redeemed = try await signIns.redeem(
                        SignInStore.Redemption(
                            realm: realm.id, client: request.client.key, permission: grantType.permission,
                            emailKey: target.emailKey, handle: target.handle, keyed: target.keyed,
                            session: signIn.record(amr: amr), permits: permits,
                            failures: .failures(of: realm), brake: .brake(of: realm), secondFactor: secondFactor))
                    return (redeemed, redeemed.verdict)
                }
                count(redeemed, realm: realm)
                if let outcome = redeemed.outcome { return outcome }
                // Another node tries a code of this address.
                guard ContinuousClock.now - start < Self.patience else {
                    throw TokenError.unavailable("the address is being tried elsewhere")
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 2...25)))
            }
        }
        let signedIn = try await signIn.decide(sessions: sessions, refused: Self.refused) {
            let outcome = try await attempt()
            guard case .secondFactor(let prompt) = outcome,
                let proof = try SecondFactorProof(request.form, prompt, realm: realm.id, keyring: keyring)
            else { return outcome }
            amr = Self.amrWithSecondFactor
            return try await attempt(proof)
        }
        return (signedIn, amr)
    }

    private func count(_ redeemed: SignInStore.Redeemed, realm: Realm) {
        guard case .refused(let reason) = redeemed.outcome else { return }
        wrongCodes.count(redeemed.wrong, of: realm)
        observe(.wrong(redeemed.wrong))
        switch reason {
        case "lockout": observe(.lockout)
        case "brake": observe(.brake)
        default: break
        }
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired code.", reason: reason)
    }
}

extension OTPGrant {
    /// The account and handle that the code is presented for, and the code's HMAC under each server key.
    private struct Target {
        let emailKey: String
        let handle: [UInt8]?
        let keyed: [[UInt8]]

        /// The key to queue under. Requests with a handle queue apart from requests that name only the address.
        func turn(in realm: UUIDValue) -> String {
            "code|\(realm)|" + (handle.map { "handle|" + Base64.urlEncode($0) } ?? "address|" + emailKey)
        }

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
            // Spaces around the digits come from copying and are trimmed. Any other deviation is a wrong code.
            let code = (form["otp_code"] ?? "").utf8.drop { $0 == 0x20 }.reversed().drop { $0 == 0x20 }.reversed()
            let text = String(decoding: code, as: UTF8.self)
            keyed = OneTimeCode.candidates(text, realm: realm, emailKey: emailKey, keyring: keyring)
        }
    }
}
