/// A user's own e-mail addresses and phone numbers.
public struct IdentifierStore: Sendable {
    let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A proven identifier.
    public struct Identifier: Sendable {
        /// Management id.
        public let id: UUIDValue
        /// `email` or `phone`.
        public let kind: String
        /// As it was given; a number in E.164 form.
        public let value: String
        /// Whether it is the one in the claims.
        public let isPrimary: Bool
        /// Seconds since the epoch.
        public let provedAt: Double
    }

    /// A code for an identifier that is to be added.
    public struct Beginning: Sendable {
        let request: SignInRequestStore.Request
        let user: UUIDValue
        /// 16 random bytes.
        let salt: [UInt8]
        /// HMAC of the code under the server's key.
        let keyed: [UInt8]
        let message: SealedMessage

        public init(
            _ request: SignInRequestStore.Request, user: UUIDValue, salt: [UInt8], keyed: [UInt8],
            message: SealedMessage
        ) {
            self.request = request
            self.user = user
            self.salt = salt
            self.keyed = keyed
            self.message = message
        }

        func arguments(_ permits: PermitRequest) -> Arguments {
            request.arguments(permits) + ["user": user, "salt": salt, "keyed": keyed] + message.arguments
        }
    }

    /// The outcome of asking for a code.
    public enum Begun: Sendable {
        /// A code was sent, or a moment ago. The handle's id, and how many messages it may still cause.
        case handle([UInt8], sendsLeft: Int, isSent: Bool)
        /// The handle has caused all messages that it may.
        case sendLimit
        /// The user has five identifiers of the kind.
        case tooMany
    }

    /// The outcome of a try.
    public enum Added: Sendable, Equatable {
        case added(UUIDValue)
        /// Another account has proven it; told only to who gave the right code.
        case inUse
        case tooMany
        case refused
    }

    /// The outcome of a removal.
    public enum Removal: String, Sendable, CaseIterable, ColumnValue {
        case removed
        case unknown
        case lastWayIn = "last_way_in"
    }

    /// The user's proven identifiers; only the one named by `id` when given.
    public func list(
        realm: UUIDValue, user: UUIDValue, id: UUIDValue? = nil
    ) async throws(StoreError) -> [Identifier] {
        try await database.all(Self.calls.list, ["realm": realm, "user": user, "id": id])
    }

    /// Sends a code. - Returns: no outcome when a limit refused it.
    public func begin(
        _ beginning: Beginning, permits: PermitRequest
    ) async throws(StoreError) -> (Begun?, PermitVerdict) {
        try await database.one(Self.calls.begin, beginning.arguments(permits))
    }

    /// Counts the try, compares, consumes and adds. - Parameter keyed: HMAC of the code under each server key.
    public func add(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, handle: [UInt8], keyed: [[UInt8]], source: String
    ) async throws(StoreError) -> Added {
        try await database.one(
            Self.calls.add,
            ["realm": realm, "user": user, "session": session, "handle": handle, "keyed": keyed, "source": source])
    }

    /// - Returns: whether the session's user has such an identifier.
    public func makePrimary(realm: UUIDValue, session: UUIDValue, id: UUIDValue) async throws(StoreError) -> Bool {
        try await database.one(Self.calls.makePrimary, ["realm": realm, "session": session, "id": id])
    }

    /// Removes an identifier of the session's user with the codes and links that were sent there.
    public func remove(
        realm: UUIDValue, session: UUIDValue, id: UUIDValue, source: String
    ) async throws(StoreError) -> Removal {
        try await database.one(
            Self.calls.remove, ["realm": realm, "session": session, "id": id, "source": source])
    }

    struct Calls: Sendable {
        let list = FunctionCall<Identifier>(
            "own_identifiers", ["realm", "user", "id"], effect: .readOnly
        ) { (row) throws(StoreError) in
            Identifier(
                id: try row("id"), kind: try row("kind"), value: try row("value"), isPrimary: try row("is_primary"),
                provedAt: try row("proved_at"))
        }
        let begin = FunctionCall<(Begun?, PermitVerdict)>(
            "begin_identifier",
            SignInRequestStore.Request.arguments + ["user", "salt", "keyed"] + SealedMessage.arguments,
            effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), handle = columns("handle", [UInt8].self)
            let sendsLeft = columns("sends_left", Int.self)
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "send_limit": .sendLimit
                case "too_many": .tooMany
                case let word: .handle(try row[handle], sendsLeft: try row[sendsLeft], isSent: word == "sent")
                }
            }
        }
        let add = FunctionCall<Added>(
            "add_identifier", ["realm", "user", "session", "handle", "keyed", "source"], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), id = columns("id", UUIDValue?.self)
            return { (row) throws(StoreError) in
                switch try row[outcome] {
                case "added": .added(try row.some(row[id]))
                case "in_use": .inUse
                case "too_many": .tooMany
                default: .refused
                }
            }
        }
        let prove = FunctionCall<String>(
            "prove_in_browser",
            [
                "realm", "cookie_hash", "host", "new_cookie_hash", "handle", "keyed", "amr",
                AuthorizationCodeRequest.argument, "source",
            ], effect: .once)
        let makePrimary = FunctionCall<Bool>("set_primary_identifier", ["realm", "session", "id"], effect: .idempotent)
        let remove = FunctionCall<Removal>(
            "remove_own_identifier", ["realm", "session", "id", "source"], effect: .once)
    }
    static let calls = Calls()
}
