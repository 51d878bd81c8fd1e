/// The messages that are to be sent.
public struct OutboxStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What a sender takes of one channel.
    public struct Wish: Sendable {
        /// The channel.
        public let channel: Channel
        /// How many messages.
        public let limit: Int
        /// The realm served last; this batch begins with the realm after it.
        public let after: UUIDValue
        /// The realm of each message that the caller has in hand, and whether it registers.
        public let held: [(realm: UUIDValue, registers: Bool)]

        /// A wish.
        public init(channel: Channel, limit: Int, after: UUIDValue, held: [(realm: UUIDValue, registers: Bool)]) {
            self.channel = channel
            self.limit = limit
            self.after = after
            self.held = held
        }
    }

    /// Leases messages that are due. If the answer is lost, they are due again when the lease ends.
    /// - Parameters:
    ///   - lease: how long they are the caller's.
    ///   - share: how many messages of one realm and channel the caller may have in hand.
    public func take(
        _ wishes: [Wish], lease: Duration, share: Int32
    ) async throws(StoreError) -> [LeasedMessage] {
        let held = wishes.flatMap { wish in wish.held.map { (wish.channel.rawValue, $0.realm, $0.registers) } }
        return try await database.all(
            Self.calls.take,
            [
                "channels": wishes.map(\.channel.rawValue), "limits": wishes.map { Int32(clamping: $0.limit) },
                "after": wishes.map(\.after), "lease": lease, "share": share, "held_channel": held.map(\.0),
                "held_realm": held.map(\.1), "held_priority": held.map { $0.2 ? Int32(2) : 0 },
            ])
    }

    /// Records that the mail server has taken a mail.
    public func sent(_ mail: LeasedMessage) async throws(StoreError) {
        _ = try await database.one(Self.calls.sent, ["realm": mail.realm, "id": mail.id])
    }

    /// Records that an attempt failed. - Parameter isFinal: whether it was the last.
    public func failed(
        _ mail: LeasedMessage, error: String, retryAfter: Duration, isFinal: Bool
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.failed,
            [
                "realm": mail.realm, "id": mail.id, "error": error, "retry_after": retryAfter, "permanent": isFinal,
            ])
    }

    /// Records that there is no such mailbox: no more mail goes there.
    public func refused(_ mail: LeasedMessage, error: String) async throws(StoreError) {
        _ = try await database.one(Self.calls.refused, ["realm": mail.realm, "id": mail.id, "error": error])
    }

    /// Records that a provider has taken a message. - Parameter reference: what it calls the message.
    public func sent(_ message: LeasedMessage, by provider: String, reference: String?) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.messageSent,
            ["realm": message.realm, "id": message.id, "provider": provider, "reference": reference])
    }

    /// How an attempt at a message ended that was not sent.
    public struct Failure: Sendable, Equatable {
        /// A class of error; `denied` when the pre-send hook did not allow it.
        public var error: String
        /// When to try again.
        public var retryAfter = Duration.zero
        /// Whether another try is useless.
        public var isFinal = false
        /// The provider that was asked.
        public var provider: String?
        /// That provider will never take it.
        public var providerRefuses = false
        /// It counts among the failures of that provider.
        public var counts = false
        /// The pre-send hook was asked and allowed it.
        public var wasAllowed = false

        /// A failure with this error.
        public init(_ error: String) {
            self.error = error
        }
    }

    /// Records that an attempt at a message failed.
    public func failed(_ message: LeasedMessage, _ failure: Failure) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.messageFailed,
            [
                "realm": message.realm, "id": message.id, "error": failure.error, "retry_after": failure.retryAfter,
                "permanent": failure.isFinal, "provider": failure.provider, "refuses": failure.providerRefuses,
                "counts": failure.counts, "allowed": failure.wasAllowed,
            ])
    }

    /// The enabled providers of all realms.
    public func configured() async throws(StoreError) -> [ConfiguredChannel] {
        try await database.all(Self.calls.configured, [:])
    }
}

extension OutboxStore {
    struct Calls: Sendable {
        let take = FunctionCall<LeasedMessage>(
            "take_messages",
            [
                "channels", "limits", "after", "lease", "share", "held_channel", "held_realm", "held_priority",
            ],
            effect: .once, record: LeasedMessage.decode)
        let sent = FunctionCall<Bool>("outbox_sent", ["realm", "id"], effect: .idempotent, payer: .server)
        let failed = FunctionCall<Bool>(
            "outbox_failed", ["realm", "id", "error", "retry_after", "permanent"], effect: .idempotent, payer: .server)
        let refused = FunctionCall<Bool>(
            "outbox_refused", ["realm", "id", "error"], effect: .idempotent, payer: .server)
        let messageSent = FunctionCall<Bool>(
            "message_sent", ["realm", "id", "provider", "reference"], effect: .idempotent, payer: .server)
        let messageFailed = FunctionCall<Bool?>(
            "message_failed",
            ["realm", "id", "error", "retry_after", "permanent", "provider", "refuses", "counts", "allowed"],
            effect: .once, payer: .server)
        let configured = FunctionCall<ConfiguredChannel>("all_providers", [], effect: .readOnly) {
            (row) throws(StoreError) in
            ConfiguredChannel(
                realm: try row("realm_id"), realmSlug: try row("realm"), realmName: try row("realm_name"),
                channel: try row("channel"), pageHost: try row("page_host"),
                providers: try LeasedMessage.document(row("providers")) ?? [],
                now: try row("now", sql: "extract(epoch FROM now())::float8"))
        }
    }
    static let calls = Calls()
}
