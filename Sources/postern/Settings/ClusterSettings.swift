import Persistence

/// How to reach one PostgreSQL cluster.
struct ClusterSettings: Sendable, Redacted {
    /// What operators call it.
    let name: String
    /// What its variables end with; empty for the first cluster.
    private let suffix: String
    private let server: String?
    private let migrate: String?
    private let replication: String?

    private init(name: String, suffix: String, read: (String) -> String?) {
        self.name = name
        self.suffix = suffix
        server = read("POSTERN_DATABASE_URL" + suffix)
        migrate = read("POSTERN_MIGRATE_DATABASE_URL" + suffix)
        replication = read("POSTERN_REPLICATION_URL" + suffix)
    }

    /// The first cluster, and those that `POSTERN_CLUSTERS` names.
    /// - Parameters:
    ///   - read: the value of a variable.
    ///   - first: the name of the one to put first.
    /// - Throws: ``CommandFailure`` when a name is malformed, occurs twice or is not known.
    static func all(_ read: (String) -> String?, first: String?) throws -> [ClusterSettings] {
        let home = read("POSTERN_CLUSTER") ?? "home"
        let others = (read("POSTERN_CLUSTERS") ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
        for name in [home] + others where !isName(name) {
            throw CommandFailure(
                "POSTERN_CLUSTERS names \"\(name)\": a name has lower-case letters and digits, and begins with a letter"
            )
        }
        guard Set([home] + others).count == others.count + 1 else {
            throw CommandFailure("POSTERN_CLUSTERS names a cluster twice; \(home) is that of POSTERN_DATABASE_URL")
        }
        let all =
            [ClusterSettings(name: home, suffix: "", read: read)]
            + others.map { ClusterSettings(name: $0, suffix: "_\($0.uppercased())", read: read) }
        guard let first else { return all }
        return [try named(first, of: all)] + all.filter { $0.name != first }
    }

    /// - Throws: ``CommandFailure`` when there is no such cluster.
    static func named(_ name: String, of clusters: [ClusterSettings]) throws -> ClusterSettings {
        guard let found = clusters.first(where: { $0.name == name }) else {
            throw CommandFailure(
                "there is no cluster \(name): there are \(clusters.map(\.name).joined(separator: ", "))")
        }
        return found
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
        return text.utf8.count <= 30
            && text.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// What the server connects with. - Throws: one line that says what to do.
    func databaseURL() throws -> String {
        guard let server else {
            throw CommandFailure(
                "POSTERN_DATABASE_URL\(suffix) is not set: "
                    + "it must be a libpq URI such as postgresql://postern@db/postern")
        }
        return try Self.protected(server, "POSTERN_DATABASE_URL" + suffix)
    }

    /// What migrations connect with. - Throws: one line that says what to do.
    func migrateDatabaseURL() throws -> String {
        guard let migrate else { return try databaseURL() }
        return try Self.protected(migrate, "POSTERN_MIGRATE_DATABASE_URL" + suffix)
    }

    /// What the PostgreSQL of another cluster connects with when a realm moves there.
    /// - Throws: one line that says what to do.
    func replicationURL() throws -> String {
        guard let replication else { return try migrateDatabaseURL() }
        return try Self.protected(replication, "POSTERN_REPLICATION_URL" + suffix)
    }

    private static func protected(_ conninfo: String, _ variable: String) throws -> String {
        if let problem = TransportSecurity.problem(with: conninfo) { throw CommandFailure("\(variable): \(problem)") }
        return conninfo
    }
}
