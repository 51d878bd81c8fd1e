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
            create schemas in the database. Safe to run from several nodes at once, and while servers serve: it \
            waits for each lock for a moment only, and tries again. A database that a newer binary has migrated is \
            refused.
            """)

    @Flag(name: .long, help: "Change nothing; exit 1 when servers of this binary do not work on the database.")
    var check = false

    @Flag(
        name: .long,
        help: """
            Change nothing; list what is missing: migrations with the tables that they lock, what they do there, what \
            is new and what goes, then files of functions.
            """)
    var plan = false

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let settings = try await Settings(file: config)
        let migrator = try Migrator(conninfo: settings.migrateDatabaseURL())
        if plan {
            let preview: MigrationPreview
            do {
                preview = try await migrator.preview()
            } catch {
                throw CommandFailure("database: \(error)")
            }
            for line in preview.lines { say(line) }
        } else if check {
            let standing = try await Preflight.checkSchema(conninfo: settings.migrateDatabaseURL())
            if standing.isNewer {
                say("A newer binary has migrated the database. This binary's servers work on it.")
            } else if !standing.pending.isEmpty {
                say(
                    "The database is behind: \(standing.pending.joined(separator: ", ")). "
                        + "This binary's servers work on it. Run `postern migrate`.")
            } else {
                say("The database is up to date (\(Self.state)).")
            }
        } else {
            try await migrator.migrate(progress: { say($0) })
            say("The database is up to date (\(Self.state)).")
        }
    }

    func validate() throws {
        guard !check || !plan else { throw ValidationError("--check and --plan exclude each other") }
    }

    private static var state: String {
        "version \(Migrator.schemaVersion), function set \(SchemaRange.own.functionSet)"
    }
}
