import CLibPQ
import Crypto
import Foundation
import Persistence

/// One statement with its parameters, and what its answer begins with.
struct Request: Sendable {
    let statement: Statement
    let parameters: [Parameter]
    /// The first byte of the first column.
    let expected: UInt8
}

/// What the callers ask for.
enum Workload: String, CaseIterable, Sendable {
    /// Changes nothing.
    case introspect
    /// Commits, and waits for the disk.
    case refresh

    var statement: Statement {
        switch self {
        case .introspect:
            Statement(
                name: "introspect",
                sql: """
                    SELECT active, user_id, client, client_id, scope, resource, amr, auth_time, token_salt, email, email_verified,
                    first_name, last_name, db_now, expires_at, refresh_expires_at, current_hash FROM postern.live_session($1, $2, $3)
                    """, effect: .readOnly)
        case .refresh:
            Statement(
                name: "refresh",
                sql: """
                    SELECT outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now, limit_ord,
                    retry_after, granted, expires_at FROM postern.rotate_session($1, $2, $3, $4, $5, ARRAY[$6::bytea],
                    1209600, '192.0.2.1', '\\x00000000', 0, NULL, '{}', '{}', '{}', '{}', '{}', NULL, NULL)
                    """, effect: .idempotent)
        }
    }

    /// Request number `n` of a caller, over the rows of sql/bench/seed.sql; `run` names the chains that
    /// `bench.seed_chains` made.
    func request(_ n: Int, caller: Int, run: Int, sessions: Int) -> Request {
        let realm = Parameter.uuid(Self.uid("realm1"))
        switch self {
        case .introspect:
            let session = Self.uid("session\(Int.random(in: 1...sessions))")
            return Request(
                statement: Self.introspectStatement,
                parameters: [realm, .uuid(session), .bytes(Array(repeating: 0, count: 16))], expected: 1)
        case .refresh:
            return Request(
                statement: Self.refreshStatement,
                parameters: [
                    realm, .uuid(Self.uid("client\(1 + caller % 20)")), .uuid(Self.uid("chain\(run):\(caller)")),
                    .int(Int32(n)), .bytes(Self.hash(run, caller, n)), .bytes(Self.hash(run, caller, n + 1)),
                ], expected: UInt8(ascii: "r"))
        }
    }

    private static let introspectStatement = Workload.introspect.statement
    private static let refreshStatement = Workload.refresh.statement

    private static func uid(_ text: String) -> UUIDValue {
        UUIDValue(bytes: Array(Insecure.MD5.hash(data: Array(text.utf8)))) ?? .random()
    }

    private static func hash(_ numbers: Int...) -> [UInt8] {
        Array(SHA256.hash(data: numbers.flatMap { n in (0..<4).map { UInt8(truncatingIfNeeded: n >> (24 - 8 * $0)) } }))
    }
}

/// A way to bring requests to PostgreSQL.
protocol Strategy: Sendable {
    /// Runs one request; whether the answer was the expected one.
    func run(_ request: Request, caller: Int) async -> Bool
    /// Closes what was opened.
    func close() async
}
