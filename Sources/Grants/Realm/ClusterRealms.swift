public import Persistence
import Synchronization

/// Where the configuration comes from.
public protocol ConfigurationSource: Sendable {
    /// The hosts of every realm.
    func directory() async throws(StoreError) -> [String: ClaimedHost]
    /// One realm as it is now, `nil` when it is gone or disabled.
    func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm?
    /// The number of every realm's last change.
    func versions() async throws(StoreError) -> [UUIDValue: Int64]
}

extension ConfigurationStore: ConfigurationSource {
    /// Reads and decodes the realm's document.
    public func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm? {
        guard let json = try await realm(id) else { return nil }
        do {
            return try Realm(json: json)
        } catch {
            throw .malformedResult
        }
    }
}

/// The realms of one cluster by host: immutable snapshots, each replaced as a whole, and never used for more than a
/// second without a confirmation.
///
/// The listening connection confirms several times a second that the configuration is unchanged. A notification names
/// the realm that changed, and only that realm's snapshot is dropped. When a heartbeat shows another stamp, the
/// versions of all realms are compared: this repairs a lost notification and reloads no unchanged realm. Without a
/// confirmation a snapshot lives one second.
public final class ClusterRealms: Sendable {
    private let source: any ConfigurationSource
    private let loader = SharedLoads()
    private let state = Mutex(DirectoryState())
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// The longest a heartbeat's answer may take.
    private static let answerTime = Duration.milliseconds(400)

    /// Loads from `source`.
    public init(
        source: any ConfigurationSource,
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.source = source
        self.clock = clock
    }

    /// The realm of a canonical host as that host shows it, `nil` when there is none.
    public func realm(forHost host: String) async throws(StoreError) -> Realm? {
        guard let claimed = try await claimedHost(host), claimed.isServed else { return nil }
        return try await realm(claimed.realm)?.seen(from: host)
    }

    /// What a cluster has to do with a host. Times are those of ``ClaimedHost``.
    enum Claim {
        /// A realm serves the host and has it since then.
        case serves(Realm, since: Double)
        /// A realm that is disabled, or deleted and not erased yet, has the host since then.
        case keeps(since: Double)
        /// Only the cluster can say: it has a realm with the host, or had one when it was last heard, or was never
        /// heard.
        case mayServe
        /// The cluster has no realm with the host, or had none when it was last heard, or the realm has left.
        case none

        /// - Parameter realm: `nil` when it is not served.
        init(_ claimed: ClaimedHost, _ realm: Realm?, _ host: String) {
            guard let realm else {
                self = .keeps(since: claimed.claimedAt)
                return
            }
            self = realm.hasLeft ? .none : .serves(realm.seen(from: host), since: claimed.claimedAt)
        }
    }

    /// What this node knows of a canonical host without asking the cluster.
    func claim(ofHost host: String) -> Claim {
        let now = clock()
        // A cluster that is down must not delay the answer, and one that is up is heard for the next one.
        if state.withLock({ $0.hosts(at: now) == nil && $0.hasHeardHosts }) { Task { _ = try? await loadHosts() } }
        return state.withLock { state in
            if let known = state.claim(ofHost: host, at: now) {
                guard let claimed = known else { return .none }
                guard claimed.isServed else { return .keeps(since: claimed.claimedAt) }
                guard let realm = state.realm(claimed.realm, at: now) else { return .mayServe }
                return Claim(claimed, realm, host)
            }
            // Another realm may have got the host a moment ago.
            guard state.hosts(at: now) == nil else { return .mayServe }
            guard let claimed = state.lastClaim(ofHost: host) else { return state.hasHeardHosts ? .none : .mayServe }
            guard claimed.isServed else { return .keeps(since: claimed.claimedAt) }
            return state.hadLeft(claimed.realm) ? .none : .mayServe
        }
    }

    /// What the cluster has to do with a canonical host; it is asked where this node does not know.
    func decidedClaim(ofHost host: String) async throws(StoreError) -> Claim {
        guard let claimed = try await claimedHost(host) else { return .none }
        return Claim(claimed, claimed.isServed ? try await realm(claimed.realm) : nil, host)
    }

    /// What the cluster has to do with a canonical host now, whatever is cached.
    func currentClaim(ofHost host: String) async throws(StoreError) -> Claim {
        let hosts = try await loader.load("current directory") { [source] in try await source.directory() }
        guard let claimed = hosts[host] else { return .none }
        let id = claimed.realm
        let realm = try await loader.load("current realm \(id)") { [source] in try await source.snapshot(of: id) }
        return Claim(claimed, realm, host)
    }

    /// Whether the cluster was heard once and had a realm that served the host then.
    func isKnownOwner(ofHost host: String) -> Bool {
        state.withLock { $0.lastClaim(ofHost: host)?.isServed == true }
    }

    /// Whether the hosts were ever read.
    var hasHeardHosts: Bool { state.withLock { $0.hasHeardHosts } }

    /// A realm when nothing must be read for it.
    func known(_ id: UUIDValue) -> Realm? {
        let now = clock()
        return state.withLock { $0.realm(id, at: now) ?? nil }
    }

    /// The realm of a canonical host as it was when the database was last heard, up to an hour ago: for what an answer
    /// must know while the configuration cannot be read. Nothing may be granted by it.
    public func remembered(forHost host: String) -> Realm? {
        state.withLock { $0.remembered(forHost: host, at: clock()) }?.seen(from: host)
    }

    /// Whether the configuration is cached or can be read now.
    public func isAvailable() async -> Bool {
        if state.withLock({ $0.hosts(at: clock()) != nil }) { return true }
        return (try? await loadHosts()) != nil
    }

    /// The number of realms and the sum of their configuration versions that this node knows; `nil` while it knows
    /// none.
    public var knownVersions: (realms: Int, version: Int64)? { state.withLock { $0.known } }

    /// The stamp of the versions compared last.
    var knownStamp: String? { state.withLock { $0.stamp } }
    /// Whether the versions are being asked for.
    var isComparing: Bool { state.withLock { $0.isComparing } }

    // MARK: What the listening connection says

    /// A heartbeat saw this stamp, less than ``answerTime`` ago.
    public func confirm(stamp: String) {
        let now = clock()
        let mustCompare = state.withLock { state in
            guard state.stamp != stamp else {
                state.confirm(until: now + DirectoryState.maximumAge - Self.answerTime)
                return false
            }
            // Snapshots live on by the last confirmation while the versions are asked for.
            defer { state.isComparing = true }
            return !state.isComparing
        }
        if mustCompare { Task { await compare() } }
    }

    /// A realm's configuration changed. - Parameter id: what the notification carries; all realms change when it is
    /// none.
    public func changed(_ id: String) {
        guard let id = UUIDValue(id) else { return invalidate() }
        state.withLock { $0.changed(id) }
    }

    /// Changes may have been missed, and may be from now on.
    public func invalidate() {
        state.withLock { $0.clear() }
    }

    /// Finds out which realms have changed and keeps the others' snapshots.
    func compare() async {
        let asked = clock()
        let versions = try? await source.versions()
        state.withLock { state in
            state.isComparing = false
            // The next heartbeat tries again.
            if let versions { state.take(versions, asOf: asked) }
        }
    }

    // MARK: Loading

    private func claimedHost(_ host: String) async throws(StoreError) -> ClaimedHost? {
        let now = clock()
        let known = state.withLock { $0.claim(ofHost: host, at: now) }
        if let known { return known }
        return try await loadHosts()[host]
    }

    /// A realm by its id; `nil` when it is gone or disabled.
    public func realm(_ id: UUIDValue) async throws(StoreError) -> Realm? {
        let now = clock()
        let (known, ticket) = state.withLock { ($0.realm(id, at: now), $0.ticket(for: id)) }
        if let known { return known }
        let realm = try await loader.load("realm \(id) \(ticket)") { [source] in try await source.snapshot(of: id) }
        state.withLock { $0.keep(realm, of: id, ticket, loadedAt: now) }
        return realm
    }

    private func loadHosts() async throws(StoreError) -> [String: ClaimedHost] {
        let now = clock()
        let ticket = state.withLock { $0.ticketForHosts }
        let hosts = try await loader.load("directory \(ticket)") { [source] in try await source.directory() }
        state.withLock { $0.keep(hosts, ticket, loadedAt: now) }
        return hosts
    }
}
