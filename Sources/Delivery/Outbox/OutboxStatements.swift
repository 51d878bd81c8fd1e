import Persistence

/// A row of `postern.mail_outbox` on lease.
struct LeasedMail: Sendable {
    let realm: UUIDValue
    let id: UUIDValue
    let recipient: String
    let template: String
    /// What is secret, sealed; `nil` for a notice.
    let payload: [UInt8]?
    /// What a notice says, as JSON text.
    let detail: String?
    /// The realm as people know it, or the App that a notice names in its place.
    let realmName: String
    /// A code for an address that has no account yet.
    let isRegistration: Bool
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
        template = try row.text(3)
        payload = try row.bytesOrNil(4)
        detail = try row.textOrNil(5)
        attempt = Int(try row.int(6))
        queuedAt = try row.double(7)
        ageInSeconds = try row.double(8)
        lastError = try row.textOrNil(9)
        isRegistration = try row.bool(10)
        realmName = try row.text(11)
    }
}

extension Statement {
    // If the answer is lost, the rows stay leased without a sender and are due again when the lease ends.
    static let takeMail = Statement(
        name: "take_mail",
        sql: """
            SELECT realm_id, id, recipient, template, payload, detail::text, attempts, extract(epoch FROM created_at)::float8,
                   extract(epoch FROM now() - created_at)::float8, last_error, priority = 2, realm_name
              FROM postern.take_mail($1, make_interval(secs => $2), $3, $4, $5, $6)
            """,
        effect: .once)

    static let mailSent = Statement(
        name: "outbox_sent", sql: "SELECT postern.outbox_sent($1, $2)", effect: .idempotent,
        payer: .server)

    static let mailFailed = Statement(
        name: "outbox_failed",
        sql: "SELECT postern.outbox_failed($1, $2, $3, make_interval(secs => $4), $5)",
        effect: .idempotent, payer: .server)

    static let mailRefused = Statement(
        name: "outbox_refused", sql: "SELECT postern.outbox_refused($1, $2, $3)", effect: .idempotent,
        payer: .server)
}
