/// A limit that a statement reads for itself: `permits` per `per` seconds sustained, `burst` at once.
public struct Budget: Sendable, Equatable {
    let permits: Int32
    let per: Double
    let burst: Int32

    /// Takes the parts as they are.
    public init(permits: Int32, per: Double, burst: Int32) {
        self.permits = permits
        self.per = per
        self.burst = burst
    }

    var parameters: [Parameter] { [.int(permits), .double(per), .int(burst)] }

    static func parameters(_ budget: Budget?) -> [Parameter] { budget?.parameters ?? [.null, .null, .null] }
}

extension SignInStore {
    /// A code presented at the token endpoint, and the session that a right one starts.
    public struct Redemption: Sendable {
        let realm: UUIDValue
        let client: UUIDValue
        let permission: String
        let emailKey: String
        let handle: [UInt8]?
        let keyed: [[UInt8]]
        let session: NewSession
        let permits: PermitRequest
        let failures: Budget
        let brake: Budget?
        let secondFactor: SecondFactorProof?

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - permission: checked again: `gt:urn:cocoar:otp`.
        ///   - emailKey: the folded address.
        ///   - handle: the handle's id; `nil` when redeemed by address alone.
        ///   - keyed: HMAC of the presented code under each server key.
        ///   - permits: what must be granted first.
        ///   - failures: the failure budget of an account by address alone.
        ///   - brake: the realm's limit of wrong codes; `nil` while it is only watched.
        ///   - secondFactor: what is presented beside the code; `nil` in the first call.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, emailKey: String, handle: [UInt8]?,
            keyed: [[UInt8]], session: NewSession, permits: PermitRequest, failures: Budget, brake: Budget?,
            secondFactor: SecondFactorProof? = nil
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.emailKey = emailKey
            self.handle = handle
            self.keyed = keyed
            self.session = session
            self.permits = permits
            self.failures = failures
            self.brake = brake
            self.secondFactor = secondFactor
        }
    }

    /// The outcome of a try.
    public struct Redeemed: Sendable {
        /// `nil` when another try of this address runs at this moment: nothing was counted or consumed.
        public let outcome: SignInOutcome?
        /// About the permits asked for; they are taken even when `outcome` is `nil`.
        public let verdict: PermitVerdict
        /// Codes that were compared and wrong.
        public let wrong: Int
    }

    /// Counts the try, compares, consumes and opens the session, in one statement. For an account with a second factor
    /// nothing is consumed until a call brings its proof; a wrong second factor is counted, but not as a try at the
    /// first one.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(_ redemption: Redemption) async throws(StoreError) -> Redeemed {
        let parameters: [Parameter] =
            [
                .uuid(redemption.realm), .uuid(redemption.client), .text(redemption.permission),
                .text(redemption.emailKey), redemption.handle.map { .bytes($0) } ?? .null,
                .byteArrays(redemption.keyed),
            ] + redemption.session.parametersWithKey + redemption.permits.parameters
            + redemption.failures.parameters + Budget.parameters(redemption.brake)
            + SecondFactorProof.parameters(redemption.secondFactor) + [redemption.session.userAgentParameter]
        let rows = try await database.query(Self.redeemCode, parameters) { (row) throws(StoreError) in
            let outcome: SignInOutcome? =
                switch try row.text(0) {
                case "ok": .signedIn(user: try row.uuid(2), now: try row.double(3), sessionExpiresAt: try row.double(4))
                case "rate_limited": .limited
                case "busy": nil
                case let outcome: try row.refusal(outcome, reason: 1, now: 3, factor: 8)
                }
            return Redeemed(
                outcome: outcome, verdict: try row.permitVerdict(granted: 7, refused: 5, retryAfter: 6),
                wrong: Int(try row.int(11)))
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// Counts codes of a realm that were compared and wrong. - Parameter enforced: only for the audit log.
    public func reportWrongCodes(
        realm: UUIDValue, wrong: Int32, _ limit: Budget, enforced: Bool
    ) async throws(StoreError) {
        _ = try await database.query(
            Self.reportWrong, [.uuid(realm), .int(wrong)] + limit.parameters + [.bool(enforced)]
        ) { (row) throws(StoreError) in try row.isNull(0) }
    }

    private static let redeemCode = Statement(
        name: "redeem_code",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at, compared
              FROM postern.redeem_code($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                                       postern.opened_from($15, $31), $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
                                       $27, $28, $29, $30)
            """,
        effect: .once)
    private static let reportWrong = Statement(
        name: "report_wrong_codes", sql: "SELECT postern.report_wrong_codes($1, $2, $3, $4, $5, $6)", effect: .once)
}
