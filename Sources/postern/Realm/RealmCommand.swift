import ArgumentParser
import Persistence

/// `postern realm`.
struct RealmCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm", abstract: "Where realms are, and moving them between PostgreSQL clusters.",
        subcommands: [RealmListCommand.self, RealmMoveCommand.self, RealmClearCommand.self])
}

/// The realms of every cluster.
enum PlacedRealms {
    /// A realm and the cluster that has rows of it.
    struct Placed: Sendable {
        let cluster: ClusterSettings
        let realm: PlacementStore.Listed
    }

    /// - Throws: ``CommandFailure`` naming the cluster that cannot be asked.
    static func all(_ settings: Settings) async throws -> [Placed] {
        var all: [Placed] = []
        for cluster in settings.clusters {
            do {
                let realms = try await OneOffDatabase.use(
                    try cluster.databaseURL(), statementTimeout: .seconds(600)
                ) { try await PlacementStore($0).realms() }
                all += realms.map { Placed(cluster: cluster, realm: $0) }
            } catch {
                throw CommandFailure("cluster \(cluster.name): \(error)")
            }
        }
        return all
    }
}

/// `postern realm list`.
struct RealmListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show every realm with its cluster, its hosts and its size.",
        discussion: """
            One line for each realm and cluster that has rows of it: slug, cluster, state, users, sessions, hosts. \
            here: served by that cluster. leaving: served, and being copied. left: served by another cluster now; \
            postern realm clear removes these rows. \
            Reads POSTERN_DATABASE_URL and, for each name in POSTERN_CLUSTERS, POSTERN_DATABASE_URL_NAME.
            """)

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let rows = try await PlacedRealms.all(try await Settings(file: config)).map { placed in
            let realm = placed.realm
            let peer = realm.peer.map { realm.placement == "leaving" || realm.placement == "left" ? " for \($0)" : "" }
            return [
                realm.slug, placed.cluster.name,
                realm.placement + (peer ?? "") + (realm.isEnabled ? "" : ", disabled"), "\(realm.users)",
                "\(realm.sessions)", realm.hosts.joined(separator: " "),
            ]
        }
        let table = [["REALM", "CLUSTER", "STATE", "USERS", "SESSIONS", "HOSTS"]] + rows
        let widths = (0..<5).map { column in table.map { $0[column].count }.max() ?? 0 }
        for row in table {
            let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
            say((cells + [row[5]]).joined(separator: "  "))
        }
    }
}
