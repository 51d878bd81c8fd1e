/// Requests for approval (CIBA): asked by clients, resolved by a worker, answered by trusted devices, redeemed once.
public struct ApprovalStore: Sendable {
    let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A request for approval, complete and bounded.
    public struct Request: Sendable {
        /// The tenant.
        let realm: UUIDValue
        /// The row's id.
        let id: UUIDValue
        /// Who asks: the client's row key.
        let client: UUIDValue
        /// Whom it means, as given.
        let hint: String
        /// What it is about, for the device.
        let event: String
        /// What the device shows beside.
        let bindingMessage: String?
        /// Two digits to be typed on the device; `nil`: none.
        let matchNumber: String?
        /// 32 random bytes.
        let challenge: [UInt8]
        /// Whether it gets a number of its own.
        let isEvent: Bool
        /// Whether devices see ``source``.
        let showsSource: Bool
        /// The asker's address as a Cotter client gave it.
        let ip: String?
        /// Where it came from.
        let source: String
        /// Seconds.
        let lifetime: Int32
        /// `sid` of an ID token that names the person.
        let hintSession: UUIDValue?
        /// Of the key that the approval is bound to.
        let proof: ProofUse?

        public init(
            realm: UUIDValue, id: UUIDValue, client: UUIDValue, hint: String, event: String, bindingMessage: String?,
            matchNumber: String?, challenge: [UInt8], isEvent: Bool, showsSource: Bool, ip: String?, source: String,
            lifetime: Int32, hintSession: UUIDValue?, proof: ProofUse?
        ) {
            self.realm = realm
            self.id = id
            self.client = client
            self.hint = hint
            self.event = event
            self.bindingMessage = bindingMessage
            self.matchNumber = matchNumber
            self.challenge = challenge
            self.isEvent = isEvent
            self.showsSource = showsSource
            self.ip = ip
            self.source = source
            self.lifetime = lifetime
            self.hintSession = hintSession
            self.proof = proof
        }

        static let arguments: [Argument] = [
            "realm", ProofUse.argument, PermitRequest.argument, "id", "client", "hint", "event", "binding_message",
            "match_number", "challenge", "is_event", "shows_source", "ip", "source", "lifetime", "hint_session",
        ]

        func arguments(_ permits: PermitRequest) -> Arguments {
            let request: Arguments = [
                "id": id, "client": client, "hint": hint, "event": event, "binding_message": bindingMessage,
                "match_number": matchNumber, "challenge": challenge, "is_event": isEvent,
                "shows_source": showsSource, "ip": ip, "source": source, "lifetime": lifetime,
                "hint_session": hintSession,
            ]
            return ["realm": realm] + proof.arguments(in: realm) + permits.arguments + request
        }
    }

    /// A recorded request; times are seconds since the epoch by the database clock.
    public struct Asked: Sendable {
        /// The number of an event.
        let eventID: Int?
        /// When it was recorded.
        let askedAt: Double
        /// Its end.
        public let expiresAt: Double

        /// The request under its number; `nil` for one without.
        public func event(of request: Request) -> Event? {
            eventID.map {
                Event(
                    id: request.id, number: $0, hint: request.hint, event: request.event, ip: request.ip,
                    createdAt: askedAt, updatedAt: askedAt, expiresAt: expiresAt, isNew: true, isApproved: false,
                    isRedeemed: false)
            }
        }
    }

    /// Records a request. The same work for every hint.
    public func ask(_ request: Request, permits: PermitRequest) async throws(StoreError) -> (Asked?, PermitVerdict) {
        try await database.one(Self.calls.ask, request.arguments(permits))
    }

    /// Finds out whom the next requests mean, and whether that person's devices show them.
    /// - Parameters:
    ///   - realm: whose turn was last.
    ///   - age: how old the requests are at least.
    /// - Returns: how many were resolved, and whose turn was last now.
    public func resolve(
        limit: Int32, after realm: UUIDValue, age: Duration
    ) async throws(StoreError) -> (resolved: Int, realm: UUIDValue) {
        try await database.one(Self.calls.resolve, ["limit": limit, "after": realm, "age": age])
    }

    /// What a poll learns.
    public enum Polled: Sendable {
        case pending
        /// Sooner than the interval, which is five seconds longer now.
        case slowDown
        /// Denied, reported, or answered with a wrong number.
        case denied
        case expired
        /// Another transaction has the row; nothing was consumed.
        case busy
        /// Approved or refused.
        case decided(SignInOutcome)

        static func columns(_ columns: inout Columns) -> RowDecoder<(Self?, PermitVerdict)> {
            let outcome = columns("outcome", String.self), signIn = SignInOutcome.columns(&columns)
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "pending": .pending
                case "slow_down": .slowDown
                case "denied": .denied
                case "expired": .expired
                case "busy": .busy
                default: .decided(try signIn(row))
                }
            }
        }
    }

    /// Where a request stands. After an approval it opens the session, once, in the same statement.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again.
    ///   - expiresAt: the end that the client's handle names, of a row that is gone.
    ///   - secondFactor: what is presented beside the approval; `nil` in the first call.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, id: UUIDValue, expiresAt: Double, session: NewSession,
        permits: PermitRequest, secondFactor: SecondFactorProof?
    ) async throws(StoreError) -> (Polled?, PermitVerdict) {
        try await database.one(
            Self.calls.redeem,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits)
                + ["id": id, "expires": expiresAt] + secondFactor.arguments)
    }

    /// A request under a number (Cotter's wire). Times are seconds since the epoch.
    public struct Event: Sendable {
        /// The row's id.
        public let id: UUIDValue
        /// 1 to 2³¹−1.
        public let number: Int
        /// Whom it means, as given.
        public let hint: String
        /// What it is about.
        public let event: String
        /// The asker's address as given.
        public let ip: String?
        /// When it was asked.
        public let createdAt: Double
        /// When it was answered; before that when it was asked.
        public let updatedAt: Double
        /// Its end.
        public let expiresAt: Double
        /// Not answered yet.
        public let isNew: Bool
        /// Answered by yes.
        public let isApproved: Bool
        /// Whether it opens no session any more.
        public let isRedeemed: Bool
    }

    /// An event of a client by its number, 24 hours long.
    public func event(
        _ number: Int32, realm: UUIDValue, client: UUIDValue
    ) async throws(StoreError) -> Event? {
        try await database.first(
            Self.calls.event, ["realm": realm, "client": client, "event_id": number, "hint": String?.none])
    }

    /// The newest event of a client for a hint that has no answer.
    public func newestEvent(
        for hint: String, realm: UUIDValue, client: UUIDValue
    ) async throws(StoreError) -> Event? {
        try await database.first(
            Self.calls.event, ["realm": realm, "client": client, "event_id": Int32?.none, "hint": hint])
    }
}
