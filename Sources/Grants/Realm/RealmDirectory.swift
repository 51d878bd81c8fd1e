public import Persistence
import Synchronization

/// Realms by host, of every cluster.
///
/// A realm is served by one cluster. While it moves, or when the process has not heard yet that it has moved, two
/// clusters show it: the one that it has left says so in the snapshot, and the other's counts. A host that two clusters
/// serve is served by neither: users of one must not sign in at the other. For the same reason a host whose cluster is
/// down is served by no other, nor is that of a realm that is disabled served by a realm that got it later.
public final class RealmDirectory: Sendable {
    /// The realms of each cluster.
    public let clusters: [ClusterRealms]
    private let noteContested: @Sendable (_ host: String) -> Void
    private let clock: @Sendable () -> ContinuousClock.Instant
    /// Until when each host is known to be one of two clusters, and when that was last told.
    private let contested = Mutex<[String: (until: ContinuousClock.Instant, toldAt: ContinuousClock.Instant)]>([:])

    /// - Parameters:
    ///   - clusters: the realms of each cluster, at least one.
    ///   - noteContested: told of a host that two clusters have, at most once a minute for each host.
    public init(
        _ clusters: [ClusterRealms], noteContested: @escaping @Sendable (_ host: String) -> Void = { _ in },
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        precondition(!clusters.isEmpty, "a directory is of at least one cluster")
        self.clusters = clusters
        self.noteContested = noteContested
        self.clock = clock
    }

    /// The realms of one cluster.
    public convenience init(source: any ConfigurationSource) {
        self.init([ClusterRealms(source: source)])
    }

    /// The realm of a canonical host as that host shows it, `nil` when there is none.
    /// - Throws: when it is in no cluster that can be asked, and not all can; when the cluster that had it cannot be
    ///   asked; when two clusters have it.
    public func realm(forHost host: String) async throws(StoreError) -> Realm? {
        var owners = Owners()
        var possible: [ClusterRealms] = []
        for realms in clusters {
            let claim = realms.claim(ofHost: host)
            if case .mayServe = claim { possible.append(realms) } else { owners.add(claim) }
        }
        // A cluster that is down, and that had no realm with this host, is not asked: it delays no realm of another.
        if possible.isEmpty, let owner = owners.onlyOne { return owner }
        for realms in possible {
            do {
                owners.add(try await realms.decidedClaim(ofHost: host))
            } catch {
                if realms.isKnownOwner(ofHost: host) { throw error }
            }
        }
        if owners.isContested { return try await onlyOne(ofHost: host) }
        if let owner = owners.onlyOne { return owner }
        return try await first { (realms) async throws(StoreError) in try await realms.realm(forHost: host) }
    }

    /// Whose a host is, over all clusters.
    private struct Owners {
        private var served: [(realm: Realm, since: Double)] = []
        private var keptSince = Double.infinity

        mutating func add(_ claim: ClusterRealms.Claim) {
            switch claim {
            case .serves(let realm, let since): served.append((realm, since))
            case .keeps(let since): keptSince = min(keptSince, since)
            case .mayServe, .none: break
            }
        }

        /// Two realms serve it, or one does that got it after another one that keeps it.
        var isContested: Bool { served.count > 1 || served.contains { $0.since > keptSince } }
        /// The realm that serves it, when that is certain.
        var onlyOne: Realm? { isContested ? nil : served.first?.realm }
    }

    /// The realm of a host that two clusters seem to have: a realm that moved a moment ago has left one of them.
    private func onlyOne(ofHost host: String) async throws(StoreError) -> Realm? {
        let now = clock()
        if contested.withLock({ $0[host].map { now < $0.until } ?? false }) { throw .unavailable(.hostOfTwoClusters) }
        var owners = Owners()
        for realms in clusters { owners.add(try await realms.currentClaim(ofHost: host)) }
        guard owners.isContested else {
            contested.withLock { $0[host] = nil }
            return owners.onlyOne
        }
        let isNew = contested.withLock { contested in
            let told = contested[host]?.toldAt
            let isNew = told.map { now - $0 > .seconds(60) } ?? true
            contested[host] = (now + .seconds(1), isNew ? now : told ?? now)
            return isNew
        }
        if isNew { noteContested(host) }
        throw .unavailable(.hostOfTwoClusters)
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
        var isAvailable = false
        // Each is asked once, so that this node knows whose a host is before a cluster fails.
        for realms in clusters where !isAvailable || !realms.hasHeardHosts {
            if await realms.isAvailable() { isAvailable = true }
        }
        return isAvailable
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
