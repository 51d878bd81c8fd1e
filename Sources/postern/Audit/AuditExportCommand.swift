import ArgumentParser
import Foundation
import Glibc
import Persistence

/// `postern audit export`.
struct AuditExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a realm's audit log to standard output, one JSON object a line.",
        discussion: """
            The members are those of the view admin.audit_log. Each event appears once, when no earlier one can still \
            appear: events of a transaction that is open wait for its end, and so do later ones. The order is that of \
            transactions, so that "at" may go back a little. To resume, give the "id" of the last line as --after. \
            Reads POSTERN_DATABASE_URL; needs no running server. When there are several clusters, name the one that \
            has the realm: `postern realm list` shows it.
            """)

    @Option(name: .long, help: "The realm's slug.")
    var realm: String

    @Option(name: .long, help: "Only events at or after this moment, such as 2026-03-01T12:00:00Z.")
    var since: String?

    @Option(name: .long, help: "Only events behind the one with this id in the order of the export.")
    var after: Int64?

    @Flag(name: .long, help: "Go on with new events until stopped; an outage of the database is waited for.")
    var follow = false

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    @Option(name: .long, help: "The database cluster, when there are several; the first one when not given.")
    var cluster: String?

    /// Rows of one statement, and so what is in memory at a time. Not fewer: see `postern.export_audit`.
    private static let rows: Int32 = 10_000

    func validate() throws {
        guard since == nil || moment != nil else {
            throw ValidationError("--since is \"\(since ?? "")\": it must be a moment such as 2026-03-01T12:00:00Z")
        }
    }

    func run() async throws {
        let conninfo = try await Settings(file: config, cluster: cluster).databaseURL()
        try await Preflight.checkSchema(conninfo: conninfo)
        // A reader that is gone ends the command as an error of writing, not as a signal.
        signal(SIGPIPE, SIG_IGN)
        do {
            try await OneOffDatabase.use(conninfo, statementTimeout: .seconds(60)) { database in
                try await export(AuditStore(database), ConfigurationStore(database))
            }
        } catch let error as StoreError {
            throw CommandFailure("database: \(error)")
        }
    }

    private func export(_ store: AuditStore, _ configuration: ConfigurationStore) async throws {
        guard let id = try await configuration.realmID(slug: realm) else {
            throw CommandFailure("realm \(realm) does not exist: SELECT slug FROM admin.realms shows them")
        }
        var place = AuditStore.beginning
        if let after {
            guard let found = try await store.place(realm: id, id: after) else {
                throw CommandFailure(
                    "event \(after) is not in the audit log of realm \(realm), which keeps a year: use --since")
            }
            place = found
        }
        let since = moment?.timeIntervalSince1970 ?? 0
        var isAway = false
        while true {
            let page: AuditStore.Page
            do {
                page = try await store.page(realm: id, after: place, since: since, rows: Self.rows)
                isAway = false
            } catch {
                // What was written must not be written again by a second run of this.
                guard follow, error.isPassing else { throw CommandFailure("database: \(error)") }
                if !isAway { FileDescriptorOutput.write("waiting for the database: \(error)\n", to: STDERR_FILENO) }
                isAway = true
                try await Task.sleep(for: .seconds(1))
                continue
            }
            place = page.place
            if let lines = page.lines, !FileDescriptorOutput.write(lines + "\n", to: STDOUT_FILENO) {
                throw CommandFailure("standard output cannot be written")
            }
            guard page.isEnd else { continue }
            guard follow else { return }
            try await Task.sleep(for: .seconds(1))
        }
    }

    private var moment: Date? {
        since.flatMap { text in
            (try? Date(text, strategy: .iso8601))
                ?? (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
        }
    }
}

extension StoreError {
    /// Whether the same statement may work later.
    fileprivate var isPassing: Bool {
        switch self {
        case .unavailable, .inDoubt, .timedOut, .conflict: true
        case .cancelled, .violation, .rejected, .proofUsed, .proofForgotten, .clientFault, .malformedResult:
            false
        }
    }
}
