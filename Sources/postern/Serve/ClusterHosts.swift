import Grants
import Persistence

/// Hosts that realms of two clusters have. No node serves them.
enum ClusterHosts {
    /// - Returns: one sentence for each such host, in the order of the hosts.
    /// - Throws: ``CommandFailure`` when a cluster cannot be asked.
    static func faults(in clusters: [(cluster: String, conninfo: String)]) async throws -> [String] {
        guard clusters.count > 1 else { return [] }
        var owners: [String: [(cluster: String, realm: String)]] = [:]
        for (cluster, conninfo) in clusters {
            let realms = try await OneOffDatabase.use(conninfo) { database in
                let store = ConfigurationStore(database)
                var found: [(host: String, realm: String)] = []
                var known: [UUIDValue: Realm?] = [:]
                for (host, id) in try await store.directory() {
                    if known[id] == nil { known[id] = try await store.snapshot(of: id) }
                    if let realm = known[id] ?? nil, !realm.hasLeft { found.append((host, realm.slug)) }
                }
                return found
            }
            for (host, realm) in realms { owners[host, default: []].append((cluster, realm)) }
        }
        return owners.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map { host, owners in
            let names = owners.map { "\($0.realm) of \($0.cluster)" }.joined(separator: " and ")
            return "host \(host) is of realm \(names): neither is served. "
                + "Take it from one of them, or disable that realm"
        }
    }
}
