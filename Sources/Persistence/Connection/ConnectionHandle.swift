import CLibPQ

/// Owns one `PGconn`; freed exactly once, when the owner lets go of it.
struct ConnectionHandle: ~Copyable {
    let pointer: OpaquePointer

    init(adopting pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit { PQfinish(pointer) }
}

/// Owns one `PGresult`.
struct ResultHandle: ~Copyable {
    let pointer: OpaquePointer

    init(adopting pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit { PQclear(pointer) }

    var status: ExecStatusType { PQresultStatus(pointer) }
    var rowCount: Int32 { PQntuples(pointer) }

    /// Whether the server did what it was asked.
    var isSuccess: Bool {
        switch status {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY, PGRES_PIPELINE_SYNC: true
        default: false
        }
    }

    /// The five characters of the SQLSTATE; `nil` when libpq made the error itself.
    var sqlstate: String? { field(POSTERN_DIAG_SQLSTATE) }
    /// Name of the violated constraint.
    var constraint: String? { field(POSTERN_DIAG_CONSTRAINT_NAME) }
    /// The server's message. May hold data: for the operator who runs a migration, never for a log.
    var message: String? { field(POSTERN_DIAG_MESSAGE_PRIMARY) }
    /// The server's hint; as ``message``.
    var hint: String? { field(POSTERN_DIAG_MESSAGE_HINT) }
    /// Position of the error in the statement in characters, from 1.
    var position: Int? { field(POSTERN_DIAG_STATEMENT_POSITION).flatMap { Int($0) } }

    private func field(_ code: Int32) -> String? {
        PQresultErrorField(pointer, code).map { String(cString: $0) }
    }

    /// Decodes every row.
    func decode<R>(_ decode: (borrowing Row) throws(StoreError) -> R) throws(StoreError) -> [R] {
        let count = rowCount
        guard count > 0 else { return [] }
        let columnCount = PQnfields(pointer)
        var rows: [R] = []
        rows.reserveCapacity(Int(count))
        for index in 0..<count {
            rows.append(try decode(Row(pointer, index: index, columnCount: columnCount)))
        }
        return rows
    }
}
