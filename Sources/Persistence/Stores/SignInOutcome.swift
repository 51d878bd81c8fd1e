/// The outcome of a presented factor.
public enum SignInOutcome: Sendable {
    /// Times are seconds since the epoch by the database clock. `authTime`: when the user proved who it is; `nil`: now.
    case signedIn(user: UUIDValue, now: Double, sessionExpiresAt: Double, authTime: Double? = nil)
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
            case "unmet": .unmet
            default: try signIn(row)
            }
        }
    }

    /// The same for a statement on a page, which also says what the browser gets.
    static func columnsOnPage(_ columns: inout Columns) -> RowDecoder<Self> {
        onPage(columnsWithSecondFactor(&columns), &columns)
    }

    /// The same where no second factor is asked for.
    static func columnsOnPageWithoutSecondFactor(_ columns: inout Columns) -> RowDecoder<Self> {
        onPage(Self.columns(&columns), &columns)
    }

    private static func onPage(_ decode: @escaping RowDecoder<Self>, _ columns: inout Columns) -> RowDecoder<Self> {
        let said = columns("page_outcome", String?.self, sql: "current_setting('postern.page_outcome', true)")
        return { (row) throws(StoreError) in
            let page = try row[said].flatMap(PageOutcome.init)
            if page == .profile { return .profileDue }
            if page == .secondProof { return .secondProofDue }
            if page == .registrationClosed { return .registrationClosed }
            guard case .signedIn(let user, let now, let expiresAt, _) = try decode(row), let page else {
                return try decode(row)
            }
            return .signedInOnPage(page, user: user, now: now, sessionExpiresAt: expiresAt)
        }
    }
}
