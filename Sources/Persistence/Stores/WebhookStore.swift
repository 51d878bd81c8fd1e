/// Events for webhooks: rows of the audit log on their way to receivers.
public struct WebhookStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// An event that is due, and its receiver.
    public struct Due: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The tenant's slug.
        public let realmSlug: String
        /// The receiver's key.
        public let webhook: UUIDValue
        /// The receiver's name.
        public let name: String
        /// Where it is posted.
        public let url: String
        /// `aud`.
        public let audience: String
        /// The file whose line is `Authorization`; `nil`: none is sent.
        public let secretName: String?
        /// Whom it is about: what is sent one after another.
        public let subject: String
        /// Under which it was taken.
        public let lease: UUIDValue
        /// `id` in the audit log.
        public let id: Int64
        /// `event` in the audit log.
        public let event: String
        /// The URI of the event's type.
        public let type: String
        /// `jti`: the same on every try.
        public let tokenID: String
        /// `txn`: the same for all events of one transaction.
        public let transaction: String
        /// When it happened, seconds since the epoch.
        public let at: Double
        /// Whose account it is about.
        public let user: UUIDValue?
        /// `sid`.
        public let session: UUIDValue?
        /// `client_id`.
        public let clientID: String?
        /// Who caused it: a network address, or `sql:` and a role.
        public let source: String?
        /// What the audit log knows beside, as a JSON object.
        public let detail: String
        /// The address that it is about, while the user has it.
        public let address: String?
        /// Whether the user is a test identity.
        public let isTestIdentity: Bool
        /// Failed tries before this one.
        public let attempts: Int
    }

    /// Why a receiver does not have an event.
    public enum Failure: Sendable, Equatable {
        /// The receiver will never take it, and gave this code.
        case refused(String)
        /// To be tried again; the text is a class of failure and never a text of the receiver.
        case failed(String, retryAfter: Int32)
    }

    /// The lag of a webhook.
    public struct Figure: Sendable {
        /// The realm's slug.
        public let realm: String
        /// The webhook's name.
        public let name: String
        /// The age of the oldest event that is not delivered, in seconds; 0: none.
        public let lag: Double
        /// Events to be sent.
        public let pending: Int64
        /// Events refused for good.
        public let setAside: Int64
    }

    /// Where a webhook's events go.
    public struct Endpoint: Sendable {
        /// The realm's slug.
        public let realm: String
        /// The webhook's name.
        public let name: String
        /// Where events are posted.
        public let url: String
        /// The file whose line is `Authorization`; `nil`: none is sent.
        public let secretName: String?
        /// The class of the last failure, while there is one.
        public let lastError: String?
    }

    /// Queues what was audited since the last call.
    /// - Returns: whether there may be more, and for how many seconds events have waited for an open transaction.
    public func collect(batch: Int32) async throws(StoreError) -> (isFull: Bool, waiting: Double) {
        try await database.one(Self.calls.collect, ["batch": batch])
    }

    /// Takes due events on a lease of 30 seconds. - Parameter busy: the webhook of each call under way.
    public func take(_ limit: Int32, share: Int32, busy: [UUIDValue]) async throws(StoreError) -> [Due] {
        try await database.all(
            Self.calls.take, ["limit": limit, "share": share, "busy": busy])
    }

    /// Records that events arrived. - Returns: for how many the lease still held.
    public func settle(delivered: [Due]) async throws(StoreError) -> Int32 {
        try await database.one(
            Self.calls.settleDelivered,
            [
                "realms": delivered.map(\.realm), "webhooks": delivered.map(\.webhook),
                "subjects": delivered.map(\.subject), "leases": delivered.map(\.lease), "events": delivered.map(\.id),
            ])
    }

    /// Records a try that failed.
    /// - Returns: failures of the webhook in a row; `nil` when the lease had ended or the webhook is gone.
    public func settle(_ due: Due, _ failure: Failure) async throws(StoreError) -> Int32? {
        let (word, error, wait): (String, String?, Int32) =
            switch failure {
            case .refused(let code): ("refused", code, 0)
            case .failed(let failure, let seconds): ("failed", failure, seconds)
            }
        return try await database.one(
            Self.calls.settle,
            [
                "realm": due.realm, "webhook": due.webhook, "subject": due.subject, "lease": due.lease,
                "event": due.id, "outcome": word, "error": error, "wait": wait,
            ])
    }

    /// The open transaction that events wait for: its id, and its process unless it is a prepared one.
    public func oldestWriter() async throws(StoreError) -> (transaction: String, process: Int32?)? {
        try await database.all(Self.calls.writer).first
    }

    /// The webhooks furthest behind.
    public func figures(top: Int32) async throws(StoreError) -> [Figure] {
        try await database.all(Self.calls.figures, ["top": top])
    }

    /// Every enabled webhook of an enabled realm.
    public func endpoints() async throws(StoreError) -> [Endpoint] {
        try await database.all(Self.calls.endpoints)
    }

    struct Calls: Sendable {
        let collect = FunctionCall<(isFull: Bool, waiting: Double)>(
            "collect_events", ["batch"], effect: .once, payer: .server
        ) { (row) throws(StoreError) in (try row("is_full"), try row("waiting")) }
        let take = FunctionCall<Due>(
            "take_events", ["limit", "share", "busy"], effect: .once, payer: .server
        ) { (row) throws(StoreError) in
            Due(
                realm: try row("realm_id"), realmSlug: try row("realm"), webhook: try row("webhook"),
                name: try row("name"), url: try row("url"),
                audience: try row("audience"), secretName: try row("secret_name"), subject: try row("subject"),
                lease: try row("lease"), id: try row("event_id"), event: try row("event"), type: try row("type"),
                tokenID: try row("jti"), transaction: try row("txn"), at: try row("at"), user: try row("user_id"),
                session: try row("session_id"), clientID: try row("client_id"), source: try row("source"),
                detail: try row("detail"), address: try row("address"), isTestIdentity: try row("test_identity"),
                attempts: try row("attempts"))
        }
        let settleDelivered = FunctionCall<Int32>(
            "settle_delivered", ["realms", "webhooks", "subjects", "leases", "events"], effect: .once, payer: .server)
        let settle = FunctionCall<Int32?>(
            "settle_event", ["realm", "webhook", "subject", "lease", "event", "outcome", "error", "wait"],
            effect: .once)
        let writer = FunctionCall<(transaction: String, process: Int32?)>(
            "oldest_writer", effect: .readOnly, payer: .server
        ) { (row) throws(StoreError) in (try row("xid"), try row("pid")) }
        let figures = FunctionCall<Figure>("webhook_figures", ["top"], effect: .readOnly, payer: .server) {
            (row) throws(StoreError) in
            Figure(
                realm: try row("realm"), name: try row("name"), lag: try row("lag"), pending: try row("pending"),
                setAside: try row("set_aside"))
        }
        let endpoints = FunctionCall<Endpoint>("webhook_endpoints", effect: .readOnly, payer: .server) {
            (row) throws(StoreError) in
            Endpoint(
                realm: try row("realm"), name: try row("name"), url: try row("url"),
                secretName: try row("secret_name"), lastError: try row("last_error"))
        }
    }
    static let calls = Calls()
}
