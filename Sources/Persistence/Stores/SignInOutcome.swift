/// The outcome of a presented factor.
public enum SignInOutcome: Sendable {
    /// Times are seconds since the epoch by the database clock. `authTime`: when the user proved who it is.
    /// `repeated`: the methods of a session that the same request opened a moment ago; `nil`: it is new.
    case signedIn(user: UUIDValue, now: Double, sessionExpiresAt: Double, authTime: Double, repeated: [String]?)
    /// On a page: the browser is signed in, and this is the answer to its authorization request.
    case signedInOnPage(PageOutcome, user: UUIDValue, now: Double, sessionExpiresAt: Double)
    /// On a page: the code was right, and the account is made when its user has given names.
    case profileDue
    /// On a page: the code was right, and its number signs in only with one more proof of the account.
    case secondProofDue
    /// On a page: the code was right; its address has no account, and none is made any more.
    case registrationClosed
    /// The reason is for logs.
    case refused(String)
    /// The first factor is right and still live; the account has a second one.
    case secondFactor(SecondFactorPrompt)
    /// The first factor is right and still live; the second one is wrong, and counted.
    case secondFactorWrong
    /// The account's second factor changed between two calls; nothing was consumed.
    case secondFactorGone
    /// The first factor is right and still live; `acr_values` asks for a second one, and the account has none.
    case unmet
}

extension SignInOutcome {
    /// What every function returns that signs in: `postern.sign_in_result`.
    static func columns(_ columns: inout Columns) -> RowDecoder<Self> {
        let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
        let page = columns("page_outcome", PageOutcome?.self)
        let signedIn = columns.record { (row) throws(StoreError) in
            SignInOutcome.signedIn(
                user: try row("user_id"), now: try row("db_now"), sessionExpiresAt: try row("session_expires_at"),
                authTime: try row("auth_time"), repeated: try row("repeated"))
        }
        let prompt = columns.record { (row) throws(StoreError) in
            SecondFactorPrompt(
                factor: try row("factor"), sealedSeed: try row("sealed_seed"), lastStepAt: try row("last_step_at"),
                now: try row("db_now"))
        }
        return { (row) throws(StoreError) in
            switch (try row[outcome], try row[page]) {
            case (_, .profile): return .profileDue
            case (_, .secondProof): return .secondProofDue
            case (_, .registrationClosed): return .registrationClosed
            case ("ok", let page):
                let session = try signedIn(row)
                guard let page, case .signedIn(let user, let now, let expiresAt, _, _) = session else { return session }
                return .signedInOnPage(page, user: user, now: now, sessionExpiresAt: expiresAt)
            case ("second_factor", _): return .secondFactor(try prompt(row))
            case ("second_factor_wrong", _): return .secondFactorWrong
            case ("second_factor_gone", _): return .secondFactorGone
            case ("unmet", _): return .unmet
            default: return .refused(try row[reason] ?? "refused")
            }
        }
    }

    /// The same under limits; `nil` inside while another transaction holds a row that the statement needs: nothing was
    /// done, and the caller tries again.
    static func limitedColumns(_ columns: inout Columns) -> RowDecoder<(Self??, PermitVerdict)> {
        let outcome = columns("outcome", String.self), signIn = Self.columns(&columns)
        return columns.limited { (row) throws(StoreError) -> Self? in
            try row[outcome] == "busy" ? nil : try signIn(row)
        }
    }
}
