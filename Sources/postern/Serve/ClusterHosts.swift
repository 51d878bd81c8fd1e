import Grants
import Persistence

/// Hosts that realms of two clusters have. No node serves them.
enum ClusterHosts {
    /// - Returns: one sentence for each such host, in the order of the hosts.
    /// - Throws: ``CommandFailure`` when a cluster cannot be asked.
    static func faults(in clusters: [(cluster: String, conninfo: String)]) async throws -> [String] {
        guard clusters.count > 1 else { return [] }
        var owners: [String: [Owner]] = [:]
        for (cluster, conninfo) in clusters {
            let found = try await OneOffDatabase.use(conninfo) { database in
                let store = ConfigurationStore(database)
                var found: [(host: String, owner: Owner)] = []
                var known: [UUIDValue: Realm?] = [:]
                for (host, claimed) in try await store.directory() {
                    let id = claimed.realm
                    if known[id] == nil { known[id] = try await store.snapshot(of: id) }
                    let realm = known[id] ?? nil
                    guard realm?.hasLeft != true else { continue }
                    found.append((host, Owner(cluster: cluster, realm: realm?.slug, since: claimed.claimedAt)))
                }
                return found
            }
            for (host, owner) in found { owners[host, default: []].append(owner) }
        }
        return owners.filter { Owner.contest($0.value) }.sorted { $0.key < $1.key }.map { host, owners in
            let served = owners.compactMap { owner in owner.realm.map { "\($0) of \(owner.cluster)" } }
            let kept = owners.filter { $0.realm == nil }.map { "a disabled or deleted one of \($0.cluster)" }
            return "host \(host) is of realm \((served + kept).joined(separator: " and ")): neither is served. "
                + "Take it from one of them, or disable the one that got it later"
        }
    }

    /// A realm with a host.
    private struct Owner {
        let cluster: String
        /// `nil`: it is not served.
        let realm: String?
        let since: Double

        /// As ``RealmDirectory`` decides it: of two that are served, or of one that got it after one that is not.
        static func contest(_ owners: [Owner]) -> Bool {
            let served = owners.filter { $0.realm != nil }
            let kept = owners.filter { $0.realm == nil }.map(\.since).min() ?? .infinity
            return served.count > 1 || served.contains { $0.since > kept }
        }
    }
}
