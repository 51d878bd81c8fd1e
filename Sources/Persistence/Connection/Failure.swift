import CLibPQ

/// A failed operation, and what may be done about it without asking the caller.
struct Failure: Error, Equatable {
    enum Remedy: Equatable {
        /// Nothing: the caller must know.
        case none
        /// The session was dead before anything was sent: take another one; costs no attempt.
        case anotherConnection
        /// Surely not executed, or harmless to repeat: run it once more on a fresh connection.
        case onceMore
        /// Rolled back by the server for the sake of others: run it again after a short, random wait.
        case backOff
        /// The server forgot a prepared statement or its plan is no longer valid: prepare again.
        case prepareAgain
    }

    let error: StoreError
    let remedy: Remedy

    init(_ error: StoreError, _ remedy: Remedy = .none) {
        self.error = error
        self.remedy = remedy
    }

    /// Judges the refusal in `result` of a session that is still connected, by SQLSTATE.
    init(refusal result: borrowing ResultHandle, cancelled: Bool) {
        guard let sqlstate = result.sqlstate else {
            self.init(.rejected(sqlstate: "unknown"))
            return
        }
        switch sqlstate {
        case "57014" where cancelled: self.init(.cancelled)
        case "57014", "55P03": self.init(.timedOut)
        case "40001", "40P01": self.init(.conflict(sqlstate: sqlstate), .backOff)
        // Raised by postern.use_proof.
        case "PD001": self.init(.proofUsed)
        case "PD002": self.init(.proofForgotten)
        // Raised by postern.require_client.
        case "PC001": self.init(.clientFault(.client))
        case "PC002": self.init(.clientFault(.permission))
        case "PC003": self.init(.clientFault(.switch))
        case "PC004": self.init(.clientFault(.realm))
        // Raised by postern.refuse_when_left.
        case "PM001": self.init(.unavailable(.realmMoves))
        case "25006": self.init(.unavailable(.readOnly), .onceMore)
        // invalid_sql_statement_name, duplicate_prepared_statement, "cached plan must not change result type"
        case "26000", "42P05", "0A000": self.init(.rejected(sqlstate: sqlstate), .prepareAgain)
        case _ where sqlstate.hasPrefix("23"): self.init(.violation(sqlstate: sqlstate, constraint: result.constraint))
        case _ where sqlstate.hasPrefix("53") || sqlstate.hasPrefix("58"): self.init(.unavailable(.serverResources))
        default: self.init(.rejected(sqlstate: sqlstate))
        }
    }
}

/// Why an exchange with the server ended without its answer.
enum Interruption: Error {
    /// The connection is gone.
    case lost
    /// The deadline passed; the connection is in an unknown state and must be closed.
    case overdue
}

/// The end of an operation, and whether its connection may serve the next one.
struct Outcome<Value: Sendable>: Sendable {
    let result: Result<Value, Failure>
    let isReusable: Bool
}

/// Why no connection could be made. The message is for operators: host, role and database names, no secret.
struct ConnectFailure: Error {
    let reason: StoreError.Reason
    let message: String
}
