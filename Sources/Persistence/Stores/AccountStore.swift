/// A person's own account, as that person sees, changes and deletes it.
public struct AccountStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// What the account holds. `createdAt` is in seconds since the epoch.
    public struct Account: Sendable {
        /// The address as it was given.
        public let email: String
        /// Whether the mailbox was proven.
        public let emailVerified: Bool
        /// `nil` when there is none.
        public let firstName: String?
        /// `nil` when there is none.
        public let lastName: String?
        /// When the account was made.
        public let createdAt: Double
        /// Whether a second factor is enrolled.
        public let hasTOTP: Bool
        /// How many passkeys there are, of all RP-IDs.
        public let passkeys: Int
        /// How many sessions are alive.
        public let sessions: Int
    }

    /// A change of one name.
    public enum NameChange: Sendable, Equatable {
        /// The name stays.
        case none
        /// The name is removed.
        case remove
        /// The name is set.
        case set(String)
    }

    /// The outcome of a request to delete the account.
    public enum Deletion: Sendable, Equatable {
        /// The account is gone.
        case deleted
        /// The sign-in is too old.
        case stepUp
        /// The session is not alive any more.
        case signedOut
    }

    /// The account; `nil` if no enabled user has this id.
    public func account(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> Account? {
        try await database.query(Self.read, [.uuid(realm), .uuid(user)]) { (row) throws(StoreError) in
            Account(
                email: try row.text(0), emailVerified: try row.bool(1), firstName: try row.textOrNil(2),
                lastName: try row.textOrNil(3), createdAt: try row.double(4), hasTOTP: try row.bool(5),
                passkeys: Int(try row.int(6)), sessions: Int(try row.int(7)))
        }.first
    }

    /// Changes names. Repeating it changes nothing more than one further line in the audit log.
    /// - Returns: `false` when the user is gone.
    public func setNames(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, first: NameChange, last: NameChange, source: String
    ) async throws(StoreError) -> Bool {
        try await database.query(
            Self.rename,
            [.uuid(realm), .uuid(user), .uuid(session)] + first.parameters + last.parameters + [.text(source)]
        ) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    /// Deletes the account with all it has. Asked again it says ``Deletion/signedOut``, so a lost answer is in doubt
    /// and not repeated.
    /// - Parameter maximumAge: how old the session's sign-in may be, in seconds.
    public func delete(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, maximumAge: Int32, source: String
    ) async throws(StoreError) -> Deletion {
        let outcome = try await database.query(
            Self.delete, [.uuid(realm), .uuid(user), .uuid(session), .int(maximumAge), .text(source)]
        ) { (row) throws(StoreError) in try row.text(0) }.first
        switch outcome {
        case "deleted": return .deleted
        case "step_up": return .stepUp
        case "signed_out": return .signedOut
        default: throw .malformedResult
        }
    }

    private static let read = Statement(
        name: "account",
        sql: """
            SELECT email, email_verified, first_name, last_name, created_at, has_totp, passkeys, sessions
              FROM postern.account($1, $2)
            """,
        effect: .readOnly)
    private static let rename = Statement(
        name: "set_own_names", sql: "SELECT postern.set_own_names($1, $2, $3, $4, $5, $6, $7, $8)",
        effect: .idempotent)
    private static let delete = Statement(
        name: "delete_own_account", sql: "SELECT postern.delete_own_account($1, $2, $3, $4, $5)", effect: .once)
}

extension AccountStore.NameChange {
    fileprivate var parameters: [Parameter] {
        switch self {
        case .none: [.bool(false), .null]
        case .remove: [.bool(true), .null]
        case .set(let name): [.bool(true), .text(name)]
        }
    }
}
