import Persistence

/// A row of `postern.mail_outbox` on lease.
struct LeasedMail: Sendable {
    let realm: UUIDValue
    let id: UUIDValue
    let recipient: String
    let payload: [UInt8]
    /// Counts this attempt.
    let attempt: Int
    /// Seconds since 1970 by the database's clock.
    let queuedAt: Double
    /// By the database's clock.
    let ageInSeconds: Double
    let lastError: String?

    init(_ row: borrowing Row) throws(StoreError) {
        realm = try row.uuid(0)
        id = try row.uuid(1)
        recipient = try row.text(2)
        payload = try row.bytes(3)
        attempt = Int(try row.int(4))
        queuedAt = try row.double(5)
        ageInSeconds = try row.double(6)
        lastError = try row.textOrNil(7)
    }
}

extension Statement {
    // A lost answer leaves rows on lease to nobody; they are due again when it ends.
    static let takeMail = Statement(
        name: "outbox_take",
        sql: """
            SELECT realm_id, id, recipient, payload, attempts, extract(epoch FROM created_at)::float8,
                   extract(epoch FROM now() - created_at)::float8, last_error
              FROM postern.outbox_take($1, make_interval(secs => $2))
             ORDER BY created_at
            """,
        effect: .once)

    static let mailSent = Statement(
        name: "outbox_sent", sql: "SELECT postern.outbox_sent($1, $2)", effect: .idempotent)

    static let mailFailed = Statement(
        name: "outbox_failed",
        sql: "SELECT postern.outbox_failed($1, $2, $3, make_interval(secs => $4), $5)",
        effect: .idempotent)

    static let mailRefused = Statement(
        name: "outbox_refused", sql: "SELECT postern.outbox_refused($1, $2, $3)", effect: .idempotent)
}
