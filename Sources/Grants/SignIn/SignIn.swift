public import Persistence

/// What every sign-in needs beside its factor.
public struct SignInServices: Sendable {
    let limiter: RateLimiter
    let turns: Turns
    let sessions: SessionStore
    let keyring: Keyring

    /// - Parameters:
    ///   - turns: keeps attempts at one account from waiting on database connections.
    ///   - sessions: tells whether a sign-in whose answer was lost took place.
    public init(limiter: RateLimiter, turns: Turns, sessions: SessionStore, keyring: Keyring) {
        self.limiter = limiter
        self.turns = turns
        self.sessions = sessions
        self.keyring = keyring
    }
}

/// Who signed in, and how; times are seconds since the epoch by the database clock.
public struct SignedIn: Sendable {
    /// The user, `sub`.
    public let user: UUIDValue
    /// Authentication methods (RFC 8176) of the session.
    public let amr: [String]
    /// `auth_time`.
    public let now: Double
    /// Absolute end of the session.
    public let sessionExpiresAt: Double
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

    /// Reads, takes permits, checks, redeems, asks for the second factor, and looks up what is in doubt.
    ///
    /// - Parameter session: the session to open, by what the factor proves. It is asked for more than once and must
    ///   name one session.
    /// - Throws: `TokenError`, or what the database threw.
    public func verify(
        _ form: FormParameters, _ context: RequestContext, opening session: (_ amr: [String]) -> NewSession
    ) async throws -> SignedIn {
        var admission = Admission(services.limiter, .token, context.subjects, realm: context.realm)
        guard let presented = factor.read(form, context) else {
            try await admission.count()
            throw factor.refused("malformed")
        }
        let turn = factor.turn(of: presented, context)
        return try await services.turns.run(turn) {
            let checked = try await factor.check(presented, context, &admission)
            var amr = factor.amr(of: checked)
            do {
                var outcome = try await redeem(checked, context, opening: session(amr), nil, turn, &admission)
                if case .secondFactor(let prompt) = outcome,
                    let proof = try SecondFactorProof(form, prompt, realm: context.realm.id, keyring: services.keyring)
                {
                    amr.append("mfa")
                    outcome = try await redeem(checked, context, opening: session(amr), proof, turn, &admission)
                }
                return try signedIn(outcome, amr)
            } catch StoreError.inDoubt {
                // Only a success writes the session's row.
                let id = session(amr).id
                guard let found = try? await services.sessions.live(realm: context.realm.id, session: id, jti: [])
                else {
                    throw TokenError.unavailable("in doubt")
                }
                return SignedIn(
                    user: found.user, amr: found.amr, now: found.authTime, sessionExpiresAt: found.expiresAt)
            }
        }
    }

    /// One call of the factor's statement, again while another transaction has the account's factors.
    private func redeem(
        _ checked: F.Checked, _ context: RequestContext, opening session: NewSession, _ proof: SecondFactorProof?,
        _ turn: AttemptTurn, _ admission: inout Admission
    ) async throws -> SignInOutcome {
        try await services.turns.untilFree(turn) {
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

    private func signedIn(_ outcome: SignInOutcome, _ amr: [String]) throws(TokenError) -> SignedIn {
        switch outcome {
        case .signedIn(let user, let now, let expiresAt):
            return SignedIn(user: user, amr: amr, now: now, sessionExpiresAt: expiresAt)
        case .refused(let reason): throw factor.refused(reason)
        case .secondFactor: throw .secondFactorRequired
        case .secondFactorWrong: throw .secondFactorInvalid
        case .secondFactorGone: throw .unavailable("second factor changed")
        }
    }
}
