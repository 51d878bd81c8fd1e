import CLibPQ

/// The keywords a connection starts with. Settings travel in the start-up packet, so neither a round trip nor a
/// `DISCARD ALL` changes them; `options` given by the operator are kept and ours follow.
struct SessionSettings {
    /// Keyword and value, in libpq's order: a later one wins, so an operator can override those before `dbname`.
    let keywords: [(String, String)]

    /// - Throws: `.connectFailed` when the connection string cannot be read. Its text is not repeated: it may hold a
    ///   password.
    init(_ configuration: DatabaseConfiguration, conninfo: String, timeouts: Bool) throws(ConnectFailure) {
        guard let given = PQconninfoParse(conninfo, nil) else {
            throw ConnectFailure(reason: .connectFailed, message: "the connection string is malformed")
        }
        defer { PQconninfoFree(given) }
        var options = ""
        var option = given
        while let keyword = option.pointee.keyword {
            if String(cString: keyword) == "options", let value = option.pointee.val {
                options = String(cString: value) + " "
            }
            option += 1
        }

        let statement = configuration.statementTimeout.milliseconds
        var settings = [
            "synchronous_commit=on", "default_transaction_isolation=read\\ committed", "standard_conforming_strings=on",
            "TimeZone=UTC", "IntervalStyle=postgres",
            "DateStyle=ISO", "bytea_output=hex", "client_min_messages=warning",
            // Statements take microseconds, and where a scan is discouraged its cost on paper would have them compiled
            // for a second.
            "jit=off",
        ]
        if timeouts {
            settings += [
                "statement_timeout=\(max(1, statement - min(250, statement / 2)))",
                "lock_timeout=\(configuration.lockTimeout.milliseconds)",
                "idle_in_transaction_session_timeout=\(2 * statement)",
            ]
        } else {
            settings += ["statement_timeout=0", "lock_timeout=0", "idle_in_transaction_session_timeout=0"]
        }
        if let role = configuration.role { settings.append("role=\(role)") }
        options += settings.map { "-c \($0)" }.joined(separator: " ")

        let connectSeconds = max(2, (configuration.connectTimeout.milliseconds + 999) / 1000)
        keywords = [
            ("connect_timeout", "\(connectSeconds)"),
            ("target_session_attrs", "read-write"),
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "\(statement)"),
            ("gssencmode", "disable"),
            ("application_name", configuration.applicationName),
            ("dbname", conninfo),
            ("client_encoding", "UTF8"),
            ("options", options),
        ]
    }

    /// Calls `body` with the two arrays of `PQconnectdbParams`.
    func withPointers<R>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> R
    ) -> R {
        // One block of memory for all texts: keyword NUL value NUL …
        var text: [CChar] = []
        var starts: [(Int, Int)] = []
        for (keyword, value) in keywords {
            let start = text.count
            text.append(contentsOf: keyword.utf8CString)
            starts.append((start, text.count))
            text.append(contentsOf: value.utf8CString)
        }
        return text.withUnsafeBufferPointer { memory in
            let names = starts.map { start in memory.baseAddress.map { $0 + start.0 } } + [nil]
            let values = starts.map { start in memory.baseAddress.map { $0 + start.1 } } + [nil]
            return body(names, values)
        }
    }
}
