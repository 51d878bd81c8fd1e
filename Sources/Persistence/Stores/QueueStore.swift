/// How the queues in the database are doing.
public struct QueueStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// One queue of one realm, or of all.
    public struct Figure: Sendable, Hashable {
        /// A channel of messages, `requests`, `approvals` or `logout-tokens`.
        public let queue: String
        /// The realm's slug; `nil` for all realms together.
        public let realm: String?
        /// How many entries wait.
        public let queued: Int64
        /// The age of the oldest entry that is due, in seconds; 0 when nothing is.
        public let oldest: Double

        /// A figure.
        public init(queue: String, realm: String?, queued: Int64, oldest: Double) {
            self.queue = queue
            self.realm = realm
            self.queued = queued
            self.oldest = oldest
        }

        /// The figure of one queue that is in several clusters. - Parameter parts: at least one.
        public static func sum(_ parts: [Figure]) -> Figure {
            Figure(
                queue: parts[0].queue, realm: parts[0].realm, queued: parts.reduce(0) { $0 + $1.queued },
                oldest: parts.map(\.oldest).max() ?? 0)
        }
    }

    /// The `top` realms that wait longest in each queue, and the totals.
    public func figures(top: Int32) async throws(StoreError) -> [Figure] {
        try await database.all(Self.calls.figures, ["top": top])
    }

    struct Calls: Sendable {
        let figures = FunctionCall<Figure>("queue_figures", ["top"], effect: .readOnly) { (row) throws(StoreError) in
            Figure(
                queue: try row("queue"), realm: try row("realm"), queued: try row("queued"), oldest: try row("oldest"))
        }
    }
    static let calls = Calls()
}
