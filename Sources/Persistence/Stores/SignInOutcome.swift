/// The outcome of a presented factor.
public enum SignInOutcome: Sendable {
    /// `now` and `sessionExpiresAt` are seconds since the epoch by the database clock.
    case signedIn(user: UUIDValue, now: Double, sessionExpiresAt: Double)
    /// The reason is for logs.
    case refused(String)
    /// The first factor is right and still live; the account has a second one.
    case secondFactor(SecondFactorPrompt)
    /// The first factor is right and still live; the second one is wrong, and counted.
    case secondFactorWrong
    /// The account's second factor changed between two calls; nothing was consumed.
    case secondFactorGone
}

extension SignInOutcome {
    /// What every function returns that opens a session.
    static func columns(_ columns: inout Columns) -> RowDecoder<Self> {
        let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
        let signedIn = columns.record { (row) throws(StoreError) in
            SignInOutcome.signedIn(
                user: try row("user_id"), now: try row("db_now"), sessionExpiresAt: try row("session_expires_at"))
        }
        return { (row) throws(StoreError) in
            switch try row[outcome] {
            case "ok": try signedIn(row)
            default: .refused(try row[reason] ?? "refused")
            }
        }
    }

    /// What those return that ask for a second factor too (`postern.check_second_factor`).
    static func columnsWithSecondFactor(_ columns: inout Columns) -> RowDecoder<Self> {
        let outcome = columns("outcome", String.self), signIn = Self.columns(&columns)
        let prompt = columns.record { (row) throws(StoreError) in
            SecondFactorPrompt(
                factor: try row("factor"), sealedSeed: try row("sealed_seed"), lastStepAt: try row("last_step_at"),
                now: try row("db_now"))
        }
        return { (row) throws(StoreError) in
            switch try row[outcome] {
            case "second_factor": .secondFactor(try prompt(row))
            case "second_factor_wrong": .secondFactorWrong
            case "second_factor_gone": .secondFactorGone
            default: try signIn(row)
            }
        }
    }
}
