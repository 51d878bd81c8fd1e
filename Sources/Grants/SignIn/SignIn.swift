public import Persistence

/// What every sign-in needs beside its factor.
public struct SignInServices: Sendable {
    let limiter: RateLimiter
    let turns: Turns
    let sessions: SessionStore
    let browserSessions: BrowserSessionStore
    let keyring: Keyring

    /// - Parameters:
    ///   - turns: keeps attempts at one account from waiting on database connections.
    ///   - sessions: tells whether a sign-in whose answer was lost took place.
    ///   - browserSessions: tells the same of a sign-in on a page.
    public init(
        limiter: RateLimiter, turns: Turns, sessions: SessionStore, browserSessions: BrowserSessionStore,
        keyring: Keyring
    ) {
        self.limiter = limiter
        self.turns = turns
        self.sessions = sessions
        self.browserSessions = browserSessions
        self.keyring = keyring
    }
}

/// Who signed in, and how; times are seconds since the epoch by the database clock.
public struct SignedIn: Sendable {
    /// The user, `sub`.
    public let user: UUIDValue
    /// Authentication methods (RFC 8176) of the session.
    public let amr: [String]
    /// When the session was opened.
    public let now: Double
    /// Absolute end of the session.
    public let sessionExpiresAt: Double
    /// `auth_time`: earlier than ``now`` after an approval.
    public internal(set) var authTime: Double
    /// Whether the same request opened the session a moment ago.
    var isRepeated = false

    init(user: UUIDValue, amr: [String], now: Double, sessionExpiresAt: Double) {
        self.user = user
        self.amr = amr
        self.now = now
        self.sessionExpiresAt = sessionExpiresAt
        authTime = now
    }
}

/// What a sign-in on a page leads to.
public enum SignedInOnPage: Sendable {
    /// The browser is signed in; what its authorization request gets, ``Authorizations`` answers.
    case signedIn(SignedIn, PageOutcome)
    /// The code was right; the account is made when its user has given names.
    case profileDue
    /// The code was right, and waits for one more proof: its number may have passed to another person.
    case secondProofDue
    /// The code was right; its address has no account, and none is made any more.
    case registrationClosed
}

/// Verifies a factor and opens the session: a sign-in without its tokens.
public struct SignIn<F: Factor>: Sendable {
    let factor: F
    private let services: SignInServices

    /// A sign-in by `factor`.
    public init(by factor: F, _ services: SignInServices) {
        self.factor = factor
        self.services = services
    }

    /// Takes permits, checks, redeems, asks for the second factor, and looks up what is in doubt.
    ///
    /// - Parameters:
    ///   - presented: `nil` for what cannot be the factor: it is counted and refused.
    ///   - second: the second factor's code, if one came with it.
    ///   - session: the session to open, by what the factor proves. It is asked for more than once and must name one
    ///     session.
    /// - Throws: `TokenError`, or what the database threw.
    public func verify(
        _ presented: F.Presented?, and second: SecondFactorCode?, _ context: RequestContext,
        opening session: (_ amr: [String]) -> NewSession
    ) async throws -> SignedIn {
        switch try await attempt(presented, second, context, opening: session) {
        case .decided(.signedIn(let user, let now, let expiresAt, let authTime, let before), let amr):
            var signedIn = SignedIn(user: user, amr: before ?? amr, now: now, sessionExpiresAt: expiresAt)
            signedIn.authTime = authTime
            signedIn.isRepeated = before != nil
            return signedIn
        case .decided(let outcome, _): throw refusal(of: outcome)
        case .inDoubt(let lost):
            guard
                let found = try? await services.sessions.live(realm: context.realm.id, session: lost.id, jti: [])
            else { throw TokenError.unavailable("in doubt") }
            return SignedIn(
                user: found.user, amr: found.amr, now: found.authTime, sessionExpiresAt: found.expiresAt)
        }
    }

    /// The same on a page: opens the session of the browser, and answers its authorization request, if it has one and
    /// nothing else is due.
    /// - Parameter session: with its ``NewSession/page``.
    public func verifyOnPage(
        _ presented: F.Presented?, and second: SecondFactorCode?, _ context: RequestContext,
        opening session: (_ amr: [String]) -> NewSession
    ) async throws -> SignedInOnPage {
        switch try await attempt(presented, second, context, opening: session) {
        case .decided(.signedInOnPage(let page, let user, let now, let expiresAt), let amr):
            return .signedIn(SignedIn(user: user, amr: amr, now: now, sessionExpiresAt: expiresAt), page)
        case .decided(.profileDue, _): return .profileDue
        case .decided(.secondProofDue, _): return .secondProofDue
        case .decided(.registrationClosed, _): return .registrationClosed
        case .decided(let outcome, _): throw refusal(of: outcome)
        case .inDoubt(let lost):
            guard let page = lost.page,
                let standing = try? await services.browserSessions.answer(
                    realm: context.realm.id, cookieHash: page.cookieHash, host: page.host, request: nil),
                let found = standing.session
            else { throw TokenError.unavailable("in doubt") }
            // Whether the code was stored is not known: the page asks again.
            return .signedIn(
                SignedIn(user: found.user, amr: found.amr, now: found.now, sessionExpiresAt: found.expiresAt),
                .continue)
        }
    }

    /// What came of an attempt.
    private enum Attempt {
        /// The statement said so; `amr` is what was proven.
        case decided(SignInOutcome, amr: [String])
        /// The answer was lost. Only a success writes the session's row, so that a look-up tells.
        case inDoubt(NewSession)
    }

    private func attempt(
        _ presented: F.Presented?, _ second: SecondFactorCode?, _ context: RequestContext,
        opening session: (_ amr: [String]) -> NewSession
    ) async throws -> Attempt {
        var admission = Admission(services.limiter, .token, context.subjects, realm: context.realm)
        guard let presented else {
            try await admission.count(spending: context.proof)
            throw factor.refused("malformed")
        }
        let turn = factor.turn(of: presented, context)
        return try await services.turns.run(turn) {
            let checked = try await factor.check(presented, context, opening: session([]), &admission)
            var amr = factor.amr(of: checked)
            do {
                var outcome = try await redeem(checked, context, opening: session(amr), nil, turn, &admission)
                if case .secondFactor(let prompt) = outcome, let second {
                    let proof = try SecondFactorProof(
                        second, prompt, realm: context.realm.id, keyring: services.keyring)
                    amr += amr.contains("pop") ? ["otp", "mfa"] : ["mfa"]
                    outcome = try await redeem(checked, context, opening: session(amr), proof, turn, &admission)
                }
                return .decided(outcome, amr: amr)
            } catch StoreError.inDoubt {
                return .inDoubt(session(amr))
            }
        }
    }

    /// One call of the factor's statement, again while another transaction has the account's factors.
    private func redeem(
        _ checked: F.Checked, _ context: RequestContext, opening session: NewSession, _ proof: SecondFactorProof?,
        _ turn: AttemptTurn, _ admission: inout Admission
    ) async throws -> SignInOutcome {
        try await services.turns.retryWhileBusy(turn) {
            let outcome = try await admission.admitting { permits in
                try await factor.redeem(checked, context, opening: session, proof: proof, permits: permits)
            }
            switch outcome {
            case .decided(let outcome): return outcome
            case .waiting(let approval): throw approval.error
            case .busy: return nil
            }
        }
    }

    /// Why an outcome is no session of the kind that was to be opened.
    private func refusal(of outcome: SignInOutcome) -> TokenError {
        switch outcome {
        case .refused(let reason): factor.refused(reason)
        case .secondFactor: .secondFactorRequired
        case .secondFactorWrong: .secondFactorInvalid
        case .unmet: .unmetAuthenticationRequirements("no second factor")
        case .secondFactorGone: .unavailable("second factor changed")
        case .signedIn, .signedInOnPage, .profileDue, .secondProofDue, .registrationClosed:
            .unavailable("a session of another kind")
        }
    }
}
