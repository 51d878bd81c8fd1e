public import Persistence

/// Realms by host, of every cluster.
///
/// A realm is served by one cluster. While it moves, or when the process has not heard yet that it has moved, two
/// clusters show it: the one that it has left says so in the snapshot, and the other's counts.
public final class RealmDirectory: Sendable {
    /// The realms of each cluster.
    public let clusters: [ClusterRealms]

    /// - Parameter clusters: the realms of each cluster, at least one.
    public init(_ clusters: [ClusterRealms]) {
        precondition(!clusters.isEmpty, "a directory is of at least one cluster")
        self.clusters = clusters
    }

    /// The realms of one cluster.
    public convenience init(source: any ConfigurationSource) {
        self.init([ClusterRealms(source: source)])
    }

    /// The realm of a canonical host as that host shows it, `nil` when there is none.
    /// - Throws: when it is in no cluster that can be asked, and not all can.
    public func realm(forHost host: String) async throws(StoreError) -> Realm? {
        // So that a cluster that is down delays no realm of another.
        if let realm = known({ $0.known(forHost: host) }) { return realm }
        return try await first { (realms) async throws(StoreError) in try await realms.realm(forHost: host) }
    }

    /// A realm by its id; `nil` when it is gone or disabled.
    public func realm(_ id: UUIDValue) async throws(StoreError) -> Realm? {
        if let realm = known({ $0.known(id) }) { return realm }
        return try await first { (realms) async throws(StoreError) in try await realms.realm(id) }
    }

    /// The realm of a canonical host as it was when its cluster was last heard, up to an hour ago: for what an answer
    /// must know while the configuration cannot be read. Nothing may be granted by it.
    public func remembered(forHost host: String) -> Realm? {
        let found = clusters.compactMap { $0.remembered(forHost: host) }
        return found.first { !$0.hasLeft } ?? found.first
    }

    /// Whether the configuration of a cluster is cached or can be read now.
    public func isAvailable() async -> Bool {
        for realms in clusters where await realms.isAvailable() { return true }
        return false
    }

    /// The number of realms and the sum of their configuration versions that this node knows; `nil` while it knows
    /// none.
    public var knownVersions: (realms: Int, version: Int64)? {
        let known = clusters.compactMap(\.knownVersions)
        guard !known.isEmpty else { return nil }
        return known.reduce((realms: 0, version: 0)) { ($0.realms + $1.realms, $0.version &+ $1.version) }
    }

    private func known(_ find: (ClusterRealms) -> Realm?) -> Realm? {
        for realms in clusters {
            if let realm = find(realms), !realm.hasLeft { return realm }
        }
        return nil
    }

    private func first(
        _ find: (ClusterRealms) async throws(StoreError) -> Realm?
    ) async throws(StoreError) -> Realm? {
        var left: Realm?
        var failure: StoreError?
        for realms in clusters {
            do {
                guard let realm = try await find(realms) else { continue }
                guard realm.hasLeft else { return realm }
                left = realm
            } catch {
                failure = failure ?? error
            }
        }
        // Of a realm between two clusters everything can be read, and what writes waits.
        if let left { return left }
        if let failure { throw failure }
        return nil
    }
}

extension Realm {
    /// The realm an administrator calls `slug`, as it is now; for commands, which come without a host.
    /// - Returns: `nil` when there is none, or when it is disabled.
    public static func named(_ slug: String, in store: ConfigurationStore) async throws(StoreError) -> Realm? {
        guard let id = try await store.realmID(slug: slug), let json = try await store.realm(id) else { return nil }
        do {
            return try Realm(json: json)
        } catch {
            throw .malformedResult
        }
    }
}
