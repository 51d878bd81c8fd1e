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

    /// The realm's limit of wrong codes.
    static let brake = Argument.row(
        "brake", as: "budget",
        [
            .value("permits", from: "brake_permits"), .value("per", from: "brake_per"),
            .value("burst", from: "brake_burst"),
        ])
}

extension Budget? {
    /// For ``Budget/brake``; `nil` while the limit is only watched.
    var arguments: Arguments {
        ["brake_permits": self?.permits, "brake_per": self?.per, "brake_burst": self?.burst]
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
        let code: Arguments = ["address_key": addressKey, "handle": handle, "keyed": keyed]
        let limits: Arguments = [
            "failure_permits": failures.permits, "failure_per": failures.per, "failure_burst": failures.burst,
        ]
        return try await database.one(
            session.page == nil ? Self.calls.redeem : Self.calls.redeemOnPage,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits) + code + limits
                + brake.arguments + secondFactor.arguments)
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
        let redeem = redeemCall("redeem_code", NewSession.signInArguments)
        let redeemOnPage = redeemCall("redeem_code_on_page", NewSession.signInOnPageArguments)
        let reportWrong = FunctionCall<Bool?>(
            "report_wrong_codes", ["realm", "wrong", "permits", "per", "burst", "enforced"], effect: .once)
    }
    static let calls = Calls()

    private static let failures = Argument.row(
        "failures", as: "budget",
        [
            .value("permits", from: "failure_permits"), .value("per", from: "failure_per"),
            .value("burst", from: "failure_burst"),
        ])

    private static func redeemCall(
        _ name: String, _ signIn: [Argument]
    ) -> FunctionCall<(Outcome?, PermitVerdict)> {
        FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_code", named: name,
            signIn + ["address_key", "handle", "keyed", failures, Budget.brake, SecondFactorProof.argument],
            effect: .once,
            returns: { columns in
                let outcome = columns("outcome", String.self), signIn = SignInOutcome.columns(&columns)
                let wrong = columns("compared", Int.self)
                return columns.limited { (row) throws(StoreError) in
                    try row[outcome] == "busy" ? .busy : .decided(try signIn(row), wrong: try row[wrong])
                }
            })
    }
}
