/// What pages keep beside a request for a link, and how a link stands.
public struct PageStateStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// Notes which browser's page asked for a link.
    /// - Parameters:
    ///   - handle: the handle's id, 16 bytes.
    ///   - browser: SHA-256 of the browser cookie.
    ///   - state: the sealed state of the page, at most 4,096 bytes.
    public func keep(
        realm: UUIDValue, handle: [UInt8], browser: [UInt8], state: [UInt8]
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.keep, ["realm": realm, "handle": handle, "browser": browser, "state": state])
    }

    /// Ends what was asked for with a handle: its code or link opens nothing any more.
    public func giveUp(realm: UUIDValue, handle: [UInt8]) async throws(StoreError) {
        _ = try await database.one(Self.calls.giveUp, ["realm": realm, "handle": handle])
    }

    /// A page that asked for a link.
    public struct Asking: Sendable {
        /// The sealed state of the page.
        public let state: [UInt8]
        /// Whether the link's number was typed elsewhere: then the handle signs in and no longer the link.
        public let isConfirmed: Bool
    }

    /// The page of this browser that asked for a link and can go on with it; `nil` when there is none.
    public func page(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], browser: [UInt8]
    ) async throws(StoreError) -> Asking? {
        try await database.one(
            Self.calls.page, ["realm": realm, "user": user, "token_hash": tokenHash, "browser": browser])
    }

    /// How the link of a handle stands.
    public enum LinkState: String, Sendable, CaseIterable {
        case pending
        /// It was opened, or its number typed.
        case confirmed
        case denied
        case expired
    }

    /// How the link of a handle stands, under the limits given. Consumes nothing.
    public func state(
        realm: UUIDValue, handle: [UInt8], permits: PermitRequest
    ) async throws(StoreError) -> (LinkState?, PermitVerdict) {
        try await database.one(Self.calls.state, ["realm": realm, "handle": handle] + permits.arguments)
    }
}

extension PageStateStore.LinkState: ColumnValue {}

extension PageStateStore {
    struct Calls: Sendable {
        let keep = FunctionCall<Bool?>("keep_page", ["realm", "handle", "browser", "state"], effect: .idempotent)
        let giveUp = FunctionCall<Bool?>("give_up_request", ["realm", "handle"], effect: .idempotent)
        let page = FunctionCall<Asking?>(
            "page_of_link", ["realm", "user", "token_hash", "browser"], effect: .readOnly
        ) { columns in
            let state = columns("state", [UInt8]?.self), confirmed = columns("confirmed", Bool?.self)
            return { (row) throws(StoreError) in
                guard let state = try row[state] else { return nil }
                return Asking(state: state, isConfirmed: try row[confirmed] ?? false)
            }
        }
        let state = FunctionCall<(LinkState?, PermitVerdict)>(
            "link_state", ["realm", "handle", PermitRequest.argument], effect: .once
        ) { columns in
            let state = columns("state", LinkState.self)
            return columns.limited { (row) throws(StoreError) in try row[state] }
        }
    }
    static let calls = Calls()
}
