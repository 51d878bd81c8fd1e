import ArgumentParser
import Persistence

/// `postern migrate`.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring the database's schema up to this binary's.",
        discussion: """
            Uses POSTERN_MIGRATE_DATABASE_URL, else POSTERN_DATABASE_URL. The first run creates the roles \
            postern_owner, postern_app and postern_admin, so it needs a superuser or a role with CREATEROLE that may \
            create schemas in the database. Safe to run from several nodes at once. Migrates every cluster of \
            POSTERN_CLUSTERS, each by its own variable (POSTERN_MIGRATE_DATABASE_URL_NAME).
            """)

    @Flag(name: .long, help: "Change nothing; exit 1 when the database is behind.")
    var check = false

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let settings = try await Settings(file: config)
        for cluster in settings.clusters {
            let migrator = Migrator(conninfo: try cluster.migrateDatabaseURL())
            let place = settings.clusters.count > 1 ? " in cluster \(cluster.name)" : ""
            if check {
                let pending = try await migrator.check()
                guard pending.isEmpty else {
                    throw CommandFailure(
                        "the database is behind\(place): \(pending.joined(separator: ", ")); run `postern migrate`")
                }
            } else {
                try await migrator.migrate(progress: { say($0) })
            }
            say("The database\(place) is up to date (version \(Migrator.schemaVersion)).")
        }
    }
}
