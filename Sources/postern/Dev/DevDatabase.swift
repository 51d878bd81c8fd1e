import Foundation
import Persistence

/// The database of `postern dev`: of its private cluster, or the one that `--database` names.
struct DevDatabase: Redacted {
    /// Of a superuser, who migrates and provisions. The server itself takes off the superuser's rights.
    let conninfo: String
    /// The administrator's command.
    let psql: String
    /// Where the data stays.
    let place: String
    /// What errors call it.
    private let name: String

    /// The role as which the server works in it, with no more rights than in production.
    static let role = "postern_app"

    init(_ cluster: DevCluster) {
        conninfo = cluster.conninfo
        psql = "psql -v SHOW_CONTEXT=never -h \(cluster.socketDirectory.path) -U postgres postern"
        place = ".postern/ (--reset starts over)"
        name = "database"
    }

    /// A database that is empty, or that has realms of `postern dev` alone.
    /// - Parameter url: a libpq connection string of a superuser.
    /// - Throws: ``CommandFailure`` with the reason. Nothing was changed.
    init(url: String) async throws {
        if let problem = TransportSecurity.problem(with: url) { throw CommandFailure("--database: \(problem)") }
        conninfo = url
        psql = "psql -v SHOW_CONTEXT=never URL   (the URL of --database)"
        place = "that database"
        name = "--database"
        guard try await holds("SELECT rolsuper FROM pg_roles WHERE rolname = current_user") else {
            throw CommandFailure("--database: the role is no superuser, who makes the roles and realms of postern dev")
        }
        guard try await holds("SELECT to_regclass('postern.channel') IS NOT NULL") else { return }
        let foreign = try await rows(
            """
            SELECT r.slug FROM postern.realm AS r
             WHERE r.erased_at IS NULL AND NOT EXISTS (
                   SELECT FROM postern.channel AS c WHERE c.realm_id = r.id AND c.provider = 'outbox')
             ORDER BY r.slug LIMIT 4
            """
        ).compactMap(\.first)
        guard foreign.isEmpty else {
            let more = foreign.count > 3 ? " and others" : ""
            throw CommandFailure(
                "--database: postern dev did not make realm \(foreign.prefix(3).joined(separator: ", "))\(more), "
                    + "which is in this database: it would lift limits and show mails. Name an empty database")
        }
    }

    private func holds(_ question: String) async throws -> Bool { try await rows(question) == [["t"]] }

    /// Runs SQL in a session of its own.
    /// - Returns: the rows of the last statement as text.
    @discardableResult
    func rows(_ sql: String) async throws -> [[String]] {
        do {
            let session = try await SQLSession(conninfo: conninfo, applicationName: "postern dev")
            let rows = try await session.rows(sql)
            await session.end()
            return rows
        } catch {
            throw CommandFailure("\(name): \(error.description)")
        }
    }
}
