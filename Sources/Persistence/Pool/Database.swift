public import CoreMetrics
public import Logging
public import ServiceLifecycle
public import Tracing

/// The databases of one PostgreSQL cluster or of several, among which the realms are spread (docs/decisions/0047).
///
/// A statement about a realm runs in the cluster that serves the realm. Nothing above this needs to know which that is.
/// What concerns no realm, and every transaction, runs in the first cluster; what is to run in each takes ``parts``.
///
/// Add it to the service group before its users: groups stop in reverse order, so work in flight ends first.
public final class Database: Service, Sendable {
    /// How to reach a cluster.
    public struct Member: Sendable {
        /// What operators call the cluster.
        public let name: String
        /// Where its database is.
        public let configuration: DatabaseConfiguration

        /// A cluster and its database.
        public init(name: String, configuration: DatabaseConfiguration) {
            self.name = name
            self.configuration = configuration
        }
    }

    private static let placement = Statement(
        name: "placement", sql: "SELECT postern.placement($1)", effect: .readOnly, payer: .server)

    private let clusters: [Cluster]
    private let placement: Placement?
    let metrics: any MetricsFactory
    let tracer: (any Tracer)?
    /// A database for each cluster alone, in their order: for work that every cluster needs.
    public let parts: [Part]

    /// One cluster.
    public struct Part: Sendable {
        /// What operators call the cluster.
        public let name: String
        /// Where its database is.
        public let configuration: DatabaseConfiguration
        /// The cluster alone.
        public let database: Database
        /// Its place among the clusters.
        public let index: Int
    }

    /// A database in one cluster; opened by ``run()``.
    public convenience init(configuration: DatabaseConfiguration, logger: Logger) {
        self.init(members: [Member(name: "home", configuration: configuration)], logger: logger)
    }

    /// Databases in several clusters; opened by ``run()``.
    /// - Parameters:
    ///   - members: at least one.
    ///   - metrics: where their users count.
    ///   - tracer: makes a span of each call below a recorded one; `nil`: there are none.
    public init(
        members: [Member], logger: Logger, metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        tracer: (any Tracer)? = nil
    ) {
        precondition(!members.isEmpty, "a database is in at least one cluster")
        let clusters = members.map { member in
            var logger = logger
            if members.count > 1 { logger[metadataKey: "cluster"] = "\(member.name)" }
            return Cluster(configuration: member.configuration, logger: logger)
        }
        self.clusters = clusters
        self.metrics = metrics
        self.tracer = tracer
        placement =
            clusters.count > 1
            ? Placement(clusterCount: clusters.count) { (cluster, realm) async throws(StoreError) in
                try await clusters[cluster].query(Self.placement, [.uuid(realm)]) { (row) throws(StoreError) in
                    try row.text(0)
                }.first
            } : nil
        parts = zip(members, clusters).enumerated().map { index, cluster in
            Part(
                name: cluster.0.name, configuration: cluster.0.configuration,
                database: Database(only: cluster.1, metrics: metrics, tracer: tracer),
                index: index)
        }
    }

    private init(only cluster: Cluster, metrics: any MetricsFactory, tracer: (any Tracer)?) {
        clusters = [cluster]
        self.metrics = metrics
        self.tracer = tracer
        placement = nil
        parts = []
    }

    /// Opens the connections and keeps them, until graceful shutdown (statements under way may finish) or cancellation.
    public func run() async {
        await withTaskGroup(of: Void.self) { group in
            for cluster in clusters { group.addTask { await cluster.run() } }
        }
    }

    /// Runs one statement in a transaction of its own: one round trip, in the cluster of the realm that is the first
    /// parameter. The connection counts against the pool share of that realm (``Statement/payer``).
    ///
    /// While a realm moves to another cluster, a statement that writes waits until the realm is there.
    /// - Parameter realm: whose cluster to take, when the first parameter does not say it.
    /// - Returns: the decoded rows.
    public func query<R: Sendable>(
        _ statement: Statement, _ parameters: [Parameter], of realm: UUIDValue? = nil,
        _ decode: @escaping @Sendable (borrowing Row) throws(StoreError) -> R
    ) async throws(StoreError) -> [R] {
        guard let placement, let realm = realm ?? Self.realm(of: parameters) else {
            return try await clusters[0].query(statement, parameters, decode)
        }
        return try await placement.perform(for: realm) { (cluster) async throws(StoreError) in
            try await clusters[cluster].query(statement, parameters, decode)
        }
    }

    /// Runs a statement whose rows are of no interest.
    public func execute(_ statement: Statement, _ parameters: [Parameter]) async throws(StoreError) {
        _ = try await query(statement, parameters) { _ in }
    }

    /// Connections free, on loan and being made, and callers waiting, in the first cluster: for metrics and readiness.
    public var poolCounts: (free: Int, lent: Int, connecting: Int, waiting: Int) { clusters[0].poolCounts }

    /// The listening connection of a cluster reported something: where realms are may have changed.
    public func heard(_ event: ListenConnection.Event, from part: Part) {
        placement?.heard(event, from: part.index)
    }

    /// The first cluster.
    var first: Cluster { clusters[0] }

    private static func realm(of parameters: [Parameter]) -> UUIDValue? {
        if case .uuid(let realm)? = parameters.first { return realm }
        return nil
    }
}
