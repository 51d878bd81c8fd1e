/// A mail of the outbox, on lease.
public struct LeasedMail: Sendable {
    /// The tenant.
    public let realm: UUIDValue
    /// The row's id, which the payload is sealed for.
    public let id: UUIDValue
    /// Where it goes.
    public let recipient: String
    /// What it is about (``MailPayload/template``, or that of a notice).
    public let template: String
    /// What is secret, sealed; `nil` for a notice.
    public let payload: [UInt8]?
    /// What a notice says, as JSON text.
    public let detail: String?
    /// The realm as people know it, or the App that a notice names in its place.
    public let realmName: String
    /// A code for an address that has no account yet.
    public let isRegistration: Bool
    /// Counts this attempt.
    public let attempt: Int
    /// Seconds since the epoch, by the database clock.
    public let queuedAt: Double
    /// By the database clock.
    public let ageInSeconds: Double
    /// How the attempt before ended.
    public let lastError: String?
}

/// The mails that are to be sent.
public struct OutboxStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Leases mails that are due. If the answer is lost, they are due again when the lease ends.
    /// - Parameters:
    ///   - lease: how long they are the caller's.
    ///   - realm: the realm served last; this batch begins with the realm after it.
    ///   - share: how many mails of one realm the caller may have in hand.
    ///   - inHand: the realm of each mail that the caller has in hand.
    ///   - registering: the same, of those that register.
    public func take(
        limit: Int32, lease: Duration, after realm: UUIDValue, share: Int32, inHand: [UUIDValue],
        registering: [UUIDValue]
    ) async throws(StoreError) -> [LeasedMail] {
        try await database.all(
            Self.calls.take,
            [
                "limit": limit, "lease": lease, "after": realm, "share": share, "in_hand": inHand,
                "registering": registering,
            ])
    }

    /// Records that the mail server has taken a mail.
    public func sent(_ mail: LeasedMail) async throws(StoreError) {
        _ = try await database.one(Self.calls.sent, ["realm": mail.realm, "id": mail.id])
    }

    /// Records that an attempt failed. - Parameter isFinal: whether it was the last.
    public func failed(
        _ mail: LeasedMail, error: String, retryAfter: Duration, isFinal: Bool
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.failed,
            [
                "realm": mail.realm, "id": mail.id, "error": error, "retry_after": retryAfter, "permanent": isFinal,
            ])
    }

    /// Records that there is no such mailbox: no more mail goes there.
    public func refused(_ mail: LeasedMail, error: String) async throws(StoreError) {
        _ = try await database.one(Self.calls.refused, ["realm": mail.realm, "id": mail.id, "error": error])
    }
}

extension OutboxStore {
    struct Calls: Sendable {
        let take = FunctionCall<LeasedMail>(
            "take_mail", ["limit", "lease", "after", "share", "in_hand", "registering"], effect: .once
        ) { (row) throws(StoreError) in
            LeasedMail(
                realm: try row("realm_id"), id: try row("id"), recipient: try row("recipient"),
                template: try row("template"), payload: try row("payload"), detail: try row("detail"),
                realmName: try row("realm_name"), isRegistration: try row("priority") as Int == 2,
                attempt: try row("attempts"),
                queuedAt: try row("queued_at", sql: "extract(epoch FROM created_at)::float8"),
                ageInSeconds: try row("age", sql: "extract(epoch FROM now() - created_at)::float8"),
                lastError: try row("last_error"))
        }
        let sent = FunctionCall<Bool>("outbox_sent", ["realm", "id"], effect: .idempotent, payer: .server)
        let failed = FunctionCall<Bool>(
            "outbox_failed", ["realm", "id", "error", "retry_after", "permanent"], effect: .idempotent, payer: .server)
        let refused = FunctionCall<Bool>(
            "outbox_refused", ["realm", "id", "error"], effect: .idempotent, payer: .server)
    }
    static let calls = Calls()
}
