/// Offers to undo a change of an account (`/undo/<token>`).
public struct UndoStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What was added or removed.
    public struct Offer: Sendable, Equatable {
        /// Which factor was added.
        public enum Kind: String, Sendable {
            case passkey
            case totp
            case identifier
            case device
            /// A device that proves a phone number of the account.
            case phoneKey = "phone-key"
            /// None: an identifier was removed.
            case removal
        }

        /// Which factor; `nil` for one of a newer schema.
        public let kind: Kind?
        /// The AAGUID of a passkey, an identifier (a number without its middle), or empty.
        public let label: String
        /// When it was done, in seconds since 1970.
        public let addedAt: Double
        /// The whole address where it was done from; `nil` when unknown.
        public let source: String?
    }

    /// The outcome of a look at an offer.
    public enum Looked: Sendable {
        case shown(Offer)
        /// It was used, has ended, or there is nothing to undo any more.
        case gone
    }

    /// What an answer did.
    public enum Undone: String, Sendable {
        /// What was added is gone.
        case undone
        /// What was removed is back.
        case restored
        /// Nothing: see ``Looked/gone``.
        case gone
    }

    /// What an offer would undo. - Returns: no outcome when a limit refused it.
    public func look(
        at token: UndoToken, realm: UUIDValue, permits: PermitRequest
    ) async throws(StoreError) -> (Looked?, PermitVerdict) {
        try await database.one(Self.calls.page, ["realm": realm, "id": token.id] + permits.arguments)
    }

    /// Undoes the change and ends all access of the account, once.
    public func undo(
        _ token: UndoToken, realm: UUIDValue, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Undone?, PermitVerdict) {
        try await database.one(
            Self.calls.undo, ["realm": realm, "id": token.id, "source": source] + permits.arguments)
    }

    struct Calls: Sendable {
        let page = FunctionCall<(Looked?, PermitVerdict)>(
            "undo_page", ["realm", "id", PermitRequest.argument], effect: .readOnly
        ) { columns in
            let outcome = columns("outcome", String.self)
            let offer = columns.record { (row) throws(StoreError) in
                Offer(
                    kind: Offer.Kind(rawValue: try row("kind")), label: try row("label"), addedAt: try row("added_at"),
                    source: try row("source"))
            }
            return columns.limited { (row) throws(StoreError) in
                try row[outcome] == "shown" ? .shown(try offer(row)) : .gone
            }
        }
        let undo = FunctionCall<(Undone?, PermitVerdict)>(
            "undo_factor", ["realm", "id", "source", PermitRequest.argument], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self)
            return columns.limited { (row) throws(StoreError) in Undone(rawValue: try row[outcome]) ?? .gone }
        }
    }
    static let calls = Calls()
}
