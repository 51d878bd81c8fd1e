/// A person's own account, as that person sees, changes and deletes it.
public struct AccountStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What the account holds. `createdAt` is in seconds since the epoch.
    public struct Account: Sendable {
        /// The primary e-mail address as it was given; `nil` when there is none.
        public let email: String?
        /// Whether that mailbox was proven.
        public let emailVerified: Bool
        /// The primary phone number, E.164; `nil` when there is none.
        public let phone: String?
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
    public enum Deletion: String, Sendable, CaseIterable {
        /// The account is gone.
        case deleted
        /// The sign-in is too old.
        case stepUp = "step_up"
        /// The session is not alive any more.
        case signedOut = "signed_out"
    }

    /// The account; `nil` if no enabled user has this id.
    public func account(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> Account? {
        try await database.first(Self.calls.account, ["realm": realm, "user": user])
    }

    /// Changes names. Repeating it changes nothing more than one further line in the audit log.
    /// - Returns: `false` when the user is gone.
    public func setNames(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, first: NameChange, last: NameChange, source: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.setNames,
            [
                "realm": realm, "user": user, "session": session, "set_first": first != .none, "first_name": first.name,
                "set_last": last != .none, "last_name": last.name, "source": source,
            ])
    }

    /// Deletes the account with all it has. Asked again it says ``Deletion/signedOut``, so a lost answer is in doubt
    /// and not repeated.
    /// - Parameter maximumAge: how old the session's sign-in may be, in seconds.
    public func delete(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, maximumAge: Int32, source: String
    ) async throws(StoreError) -> Deletion {
        try await database.one(
            Self.calls.delete,
            ["realm": realm, "user": user, "session": session, "max_age": maximumAge, "source": source])
    }
}

extension AccountStore.NameChange {
    fileprivate var name: String? {
        if case .set(let name) = self { name } else { nil }
    }
}

extension AccountStore.Deletion: ColumnValue {}

extension AccountStore {
    struct Calls: Sendable {
        let account = FunctionCall<Account>("own_account", ["realm", "user"], effect: .readOnly) {
            (row) throws(StoreError) in
            Account(
                email: try row("email"), emailVerified: try row("email_verified"), phone: try row("phone"),
                firstName: try row("first_name"), lastName: try row("last_name"), createdAt: try row("created_at"),
                hasTOTP: try row("has_totp"), passkeys: try row("passkeys"), sessions: try row("sessions"))
        }
        let setNames = FunctionCall<Bool>(
            "set_own_names",
            ["realm", "user", "session", "set_first", "first_name", "set_last", "last_name", "source"],
            effect: .idempotent)
        let delete = FunctionCall<Deletion>(
            "delete_own_account", ["realm", "user", "session", "max_age", "source"], effect: .once)
    }
    static let calls = Calls()
}
