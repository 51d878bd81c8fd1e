public import Persistence

/// `urn:cocoar:magic`: sign-in by a link from the mailbox, opened in the app or confirmed on a web page.
public struct MagicLinkGrant: Grant {
    /// `urn:cocoar:magic`.
    public let grantType = GrantType.magic
    /// Gated by the realm's native-grants flag.
    public let isNative = true

    private let links: MagicLinkStore
    private let sessions: SessionStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter
    private let turns: Turns
    private let keyring: Keyring

    /// What a link proves (RFC 8176): a secret from the mailbox that works once, as a code does; nothing more.
    private static let amr = ["otp"]
    /// With the account's second factor.
    private static let amrWithSecondFactor = ["otp", "mfa"]

    /// Creates the grant.
    public init(
        links: MagicLinkStore, sessions: SessionStore, issuer: TokenIssuer, limiter: RateLimiter, turns: Turns,
        keyring: Keyring
    ) {
        self.links = links
        self.sessions = sessions
        self.issuer = issuer
        self.limiter = limiter
        self.turns = turns
        self.keyring = keyring
    }

    /// `user_id` and `magic_token`, or `auth_session` alone. With all three the link must belong to the handle.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        try Self.requireParameters(form)
    }

    static func requireParameters(_ form: FormParameters) throws(TokenError) {
        switch (form["user_id"], form["magic_token"], form["auth_session"]) {
        case (.some, .some, _), (nil, nil, .some): return
        case (nil, .some, _): throw .missing("user_id")
        case (_, nil, _): throw .missing("magic_token")
        }
    }

    /// Consumes the link, or its confirmation, and opens the session in one statement.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let signIn = try await NewSignIn(request, issuer: issuer)
        var admission = Admission(limiter, .token, request.subjects, realm: request.realm)
        let (signedIn, amr) =
            request.form["magic_token"] != nil
            ? try await open(request, signIn, &admission) : try await poll(request, signIn, &admission)
        return try signIn.respond(signedIn, amr: amr)
    }

    /// The app has the link itself.
    private func open(
        _ request: TokenRequest, _ signIn: NewSignIn, _ admission: inout Admission
    ) async throws -> (SignedIn, amr: [String]) {
        let handle = request.form["auth_session"].map {
            AuthSessionHandle($0, realm: request.realm.id, keyring: keyring)
        }
        guard let link = MagicLink(userID: request.form["user_id"], token: request.form["magic_token"]),
            // An `auth_session` that the app sends must be a handle.
            handle == nil || handle != .some(.none)
        else {
            try await admission.count()
            throw Self.refused("malformed")
        }
        return try await decide(request, signIn, &admission, turn: link.turn(realm: request.realm)) {
            (session, permits, proof) in
            try await links.redeem(
                MagicLinkStore.Redemption(
                    realm: request.realm.id, client: request.client.key, permission: grantType.permission,
                    user: link.user, tokenHash: link.tokenHash, handle: handle??.id, session: session,
                    permits: permits, secondFactor: proof))
        }
    }

    /// The app waits for the link to be confirmed.
    private func poll(
        _ request: TokenRequest, _ signIn: NewSignIn, _ admission: inout Admission
    ) async throws -> (SignedIn, amr: [String]) {
        guard
            let handle = AuthSessionHandle(
                request.form["auth_session"] ?? "", realm: request.realm.id, keyring: keyring)
        else {
            try await admission.count()
            throw Self.refused("malformed")
        }
        let turn = "handle|\(request.realm.id)|\(Hex.encode(handle.id))"
        return try await decide(request, signIn, &admission, turn: turn) { (session, permits, proof) in
            try await links.poll(
                MagicLinkStore.Poll(
                    realm: request.realm.id, client: request.client.key, permission: grantType.permission,
                    handle: handle.id, session: session, permits: permits, secondFactor: proof))
        }
    }

    private typealias Attempt = (NewSession, PermitRequest, SecondFactorProof?) async throws ->
        (MagicLinkStore.Outcome, PermitVerdict)

    /// Runs a statement in its turn, and once more with what the request presents when the account has a second factor.
    /// The permits of the claim are taken by the first attempt.
    private func decide(
        _ request: TokenRequest, _ signIn: NewSignIn, _ admission: inout Admission, turn: String, _ attempt: Attempt
    ) async throws -> (SignedIn, amr: [String]) {
        var amr = Self.amr
        func decided(_ proof: SecondFactorProof?) async throws -> SignInOutcome {
            try await turns.untilFree(turn) {
                let outcome = try await admission.admitting { permits in
                    let (outcome, verdict) = try await attempt(signIn.record(amr: amr), permits, proof)
                    return (outcome, verdict)
                }
                switch outcome {
                case .pending: throw TokenError(.authorizationPending, "The link has not been confirmed yet.")
                case .slowDown: throw TokenError(.slowDown, "Polled too early: wait five seconds longer between polls.")
                case .denied: throw TokenError(.accessDenied, "The link was refused.")
                case .busy: return nil
                case .decided(let outcome): return outcome
                }
            }
        }
        let signedIn = try await signIn.decide(sessions: sessions, refused: Self.refused) {
            let outcome = try await decided(nil)
            guard case .secondFactor(let prompt) = outcome,
                let proof = try SecondFactorProof(request.form, prompt, realm: request.realm.id, keyring: keyring)
            else { return outcome }
            amr = Self.amrWithSecondFactor
            return try await decided(proof)
        }
        return (signedIn, amr)
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired link.", reason: reason)
    }
}
