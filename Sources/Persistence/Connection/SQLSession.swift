/// A session that runs SQL as it is given, without time limits. For operators.
package struct SQLSession: Sendable {
    private let connection: Connection

    /// - Parameters:
    ///   - conninfo: a libpq connection string.
    ///   - applicationName: shown in `pg_stat_activity`.
    /// - Throws: ``StatementFailure`` with the reason in one line, without the connection string.
    package init(conninfo: String, applicationName: String) async throws(StatementFailure) {
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: 1)
        configuration.applicationName = applicationName
        guard let connection = Connection(configuration) else { throw StatementFailure("no thread for a connection") }
        do {
            try await connection.connect(timeouts: false)
        } catch {
            throw StatementFailure(error.message)
        }
        self.connection = connection
    }

    /// Runs statements, all in one transaction unless they say otherwise.
    /// - Returns: the rows of the last one as text, NULL as the empty string.
    @discardableResult
    package func rows(_ sql: String) async throws(StatementFailure) -> [[String]] {
        try await connection.textRows(sql)
    }

    /// Ends the session.
    package func end() async {
        await connection.disconnect()
    }
}
