/// A limit that a statement reads for itself: `permits` per `per` seconds sustained, `burst` at once.
public struct Budget: Sendable, Equatable {
    let permits: Int32
    let per: Double
    let burst: Int32

    public init(permits: Int32, per: Double, burst: Int32) {
        self.permits = permits
        self.per = per
        self.burst = burst
    }
}

/// Codes from the mailbox, presented at the token endpoint.
public struct CodeStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// The outcome of a try.
    public enum Outcome: Sendable {
        /// Another try of this address runs at this moment: nothing was counted or consumed but the permits.
        case busy
        /// Decided, after so many codes were compared and wrong.
        case decided(SignInOutcome, wrong: Int)
    }

    /// Counts the try, compares, consumes and opens the session, in one statement. For an account with a second factor
    /// nothing is consumed until a call brings its proof; a wrong second factor is counted, but not as a try at the
    /// first one.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again: `gt:urn:cocoar:otp`.
    ///   - addressKey: the folded address.
    ///   - handle: the handle's id; `nil` when redeemed by address alone.
    ///   - keyed: HMAC of the presented code under each server key.
    ///   - session: opened when the code is right.
    ///   - permits: what must be granted first.
    ///   - failures: the failure budget of an account by address alone.
    ///   - brake: the realm's limit of wrong codes; `nil` while it is only watched.
    ///   - secondFactor: what is presented beside the code; `nil` in the first call.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, addressKey: String, handle: [UInt8]?, keyed: [[UInt8]],
        session: NewSession, permits: PermitRequest, failures: Budget, brake: Budget?,
        secondFactor: SecondFactorProof? = nil
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let code: Arguments = [
            "realm": realm, "client": client, "permission": permission, "address_key": addressKey, "handle": handle,
            "keyed": keyed,
        ]
        let limits: Arguments = [
            "failure_permits": failures.permits, "failure_per": failures.per, "failure_burst": failures.burst,
            "brake_permits": brake?.permits, "brake_per": brake?.per, "brake_burst": brake?.burst,
        ]
        return try await database.one(
            session.page == nil ? Self.calls.redeem : Self.calls.redeemOnPage,
            code + session.arguments(in: realm) + permits.arguments + limits + secondFactor.arguments)
    }

    /// Counts codes of a realm that were compared and wrong. - Parameter enforced: only for the audit log.
    public func reportWrongCodes(
        realm: UUIDValue, wrong: Int32, _ limit: Budget, enforced: Bool
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.reportWrong,
            [
                "realm": realm, "wrong": wrong, "permits": limit.permits, "per": limit.per, "burst": limit.burst,
                "enforced": enforced,
            ])
    }
}

extension CodeStore {
    struct Calls: Sendable {
        let redeem = redeemCall("redeem_code", NewSession.arguments, SignInOutcome.columnsWithSecondFactor)
        let redeemOnPage = redeemCall(
            "redeem_code_on_page", NewSession.pageArguments, SignInOutcome.columnsOnPage)
        let reportWrong = FunctionCall<Bool?>(
            "report_wrong_codes", ["realm", "wrong", "permits", "per", "burst", "enforced"], effect: .once)
    }
    static let calls = Calls()

    private static func redeemCall(
        _ name: String, _ session: [Argument], _ signIn: @escaping (inout Columns) -> RowDecoder<SignInOutcome>
    ) -> FunctionCall<(Outcome?, PermitVerdict)> {
        FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_code", named: name,
            ["realm", "client", "permission", "address_key", "handle", "keyed"] + session + PermitRequest.arguments + [
                "failure_permits", "failure_per", "failure_burst", "brake_permits", "brake_per", "brake_burst",
            ] + SecondFactorProof.arguments,
            effect: .once,
            returns: { columns in
                let outcome = columns("outcome", String.self), signIn = signIn(&columns)
                let wrong = columns("compared", Int.self)
                return columns.limited { (row) throws(StoreError) in
                    try row[outcome] == "busy" ? .busy : .decided(try signIn(row), wrong: try row[wrong])
                }
            })
    }
}
