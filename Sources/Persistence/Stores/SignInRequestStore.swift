/// The queue of requests for codes and links: recorded without a look at the users, decided by a worker.
public struct SignInRequestStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A request for a code or a link, to be decided by a worker.
    public struct Request: Sendable {
        /// The tenant.
        let realm: UUIDValue
        /// The new handle's id, 16 random bytes.
        let id: [UInt8]
        /// The handle to send again for, if one was presented.
        public let resendOf: [UInt8]?
        /// The address as typed, or a phone number.
        let address: String
        /// The folded address, or the number.
        let addressKey: String
        /// What carries a message to a phone; `nil`: mail.
        let channel: Channel?
        /// The country that a number counts to.
        let region: String?
        /// Set when the request named a client.
        let client: UUIDValue?
        /// The App whose host was asked.
        let app: String?
        /// Where it came from: an address, IPv6 by /64.
        let source: String
        /// Seconds the handle lives.
        let lifetime: Int32
        /// Messages that the handle may cause.
        let sends: Int32
        /// `sub` and `sid` of the ID token that came with it.
        let hint: (user: UUIDValue, session: UUIDValue)?
        /// The language that was asked for.
        let locale: String?
        /// Origin of the page that asks; `nil`: an app does.
        let pageOrigin: String?
        /// SHA-256 of the cookie of the browser whose page asks.
        let pageBrowser: [UInt8]?
        /// The proof that came with it.
        let proof: ProofUse?

        public init(
            realm: UUIDValue, id: [UInt8], resendOf: [UInt8]?, address: String, addressKey: String, channel: Channel?,
            region: String?, client: UUIDValue?, app: String?, source: String, lifetime: Int32, sends: Int32,
            hint: (user: UUIDValue, session: UUIDValue)?, locale: String? = nil, pageOrigin: String? = nil,
            pageBrowser: [UInt8]? = nil, proof: ProofUse? = nil
        ) {
            self.realm = realm
            self.id = id
            self.resendOf = resendOf
            self.address = address
            self.addressKey = addressKey
            self.channel = channel
            self.region = region
            self.client = client
            self.app = app
            self.source = source
            self.lifetime = lifetime
            self.sends = sends
            self.hint = hint
            self.locale = locale
            self.pageOrigin = pageOrigin
            self.pageBrowser = pageBrowser
            self.proof = proof
        }

        /// What is asked for.
        public enum Kind: String, Sendable {
            /// A code to sign in, and under posture `JitOnOtp` to register.
            case otp
            /// A code to register, under posture `ExplicitEndpoint`.
            case register
            /// A link.
            case magic
        }

        /// Who asks, the limits, what is asked for: `postern.new_request`.
        static let arguments = [
            Caller.argument, PermitRequest.argument,
            .row(
                "request", as: "new_request",
                [
                    "id", "resend_of", "kind", "address", "address_key", "channel", "region", "first_name", "last_name",
                    "locale", "page_origin", "page_browser", "hint_user", "hint_session", "lifetime", "sends",
                ]),
        ]

        func arguments(
            _ permits: PermitRequest, kind: Kind? = nil, firstName: String? = nil, lastName: String? = nil
        ) -> Arguments {
            let caller = Caller(realm: realm, client: client, source: source, app: app, proof: proof)
            let request: Arguments = [
                "id": id, "resend_of": resendOf, "kind": kind?.rawValue, "address": address,
                "address_key": addressKey, "channel": channel?.rawValue, "region": region, "first_name": firstName,
                "last_name": lastName, "locale": locale, "page_origin": pageOrigin, "page_browser": pageBrowser,
                "hint_user": hint?.user, "hint_session": hint?.session, "lifetime": lifetime, "sends": sends,
            ]
            return caller.arguments + permits.arguments + request
        }
    }

    /// The outcome of recording a request.
    public enum Recorded: Sendable {
        /// The id of the handle to answer with, and how many messages it may still cause.
        case handle([UInt8], sendsLeft: Int)
        /// The handle to send again for has caused all messages that it may. Nothing was counted.
        case sendLimit
        /// Another transaction has the handle to send again for; nothing was recorded.
        case busy
    }

    /// Records a request.
    /// - Parameters:
    ///   - firstName: given name, for a registration.
    ///   - lastName: family name, for a registration.
    ///   - brake: the realm's limit of wrong codes; `nil` while it is only watched, and for links.
    ///   - permits: what must be granted first.
    /// - Returns: no outcome when a limit refused it.
    public func record(
        _ request: Request, kind: Request.Kind, firstName: String? = nil, lastName: String? = nil,
        brake: Budget? = nil, permits: PermitRequest
    ) async throws(StoreError) -> (Recorded?, PermitVerdict) {
        try await database.one(
            Self.calls.record,
            request.arguments(permits, kind: kind, firstName: firstName, lastName: lastName) + brake.arguments)
    }

    /// A request waiting for its decision.
    public struct PendingRequest: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The row's id.
        public let id: [UInt8]
        /// `otp`, `register` or `magic`.
        public let kind: String
        /// The folded address.
        public let addressKey: String
        /// The origin of the page that asked, else the realm's.
        public let publicOrigin: String
        /// Seconds.
        public let otpLifetime: Int32
        /// Seconds.
        public let magicLinkLifetime: Int32
        /// How many digits a code of the realm has.
        public let otpDigits: Int32
    }

    /// Runs a transaction that decides requests. It may run more than once (``Database/transaction(_:_:)``).
    public func transaction<R: Sendable>(
        _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await database.transaction("decide requests", body)
    }

    /// Takes up to `limit` pending requests, to be decided before the transaction ends.
    /// - Parameters:
    ///   - realm: whose turn was last: the realm that follows is the first.
    ///   - age: how old they are at least.
    public static func takeUndecided(
        limit: Int32, after realm: UUIDValue, age: Duration, in transaction: isolated Connection
    ) throws(StoreError) -> [PendingRequest] {
        try transaction.all(calls.takeUndecided, ["limit": limit, "after": realm, "age": age])
    }

    /// What came of a request.
    public enum Decision: Sendable {
        /// A message was queued.
        case sent
        /// Nothing is sent.
        case nothing
        /// Another transaction has locked a row that the decision needs; the request stays undecided.
        case busy
    }

    /// Decides a request for a code: stores the code and queues its mail, or does neither.
    /// - Parameters:
    ///   - salt: 16 random bytes.
    ///   - keyed: the HMAC of the code under the server's key, 32 bytes.
    public static func decideCode(
        _ request: PendingRequest, code: UUIDValue, salt: [UInt8], keyed: [UInt8], mail: SealedMessage,
        in transaction: isolated Connection
    ) throws(StoreError) -> Decision {
        let outcome = try transaction.one(
            calls.decideCode,
            [
                "realm": request.realm, "request": request.id, "code_id": code, "salt": salt, "keyed": keyed,
                "template": "otp",
            ] + mail.arguments)
        return outcome == "sent" ? .sent : outcome == "busy" ? .busy : .nothing
    }

    /// What came of a request for a link.
    public enum LinkDecision: Sendable {
        /// A link is sent to this account; the mail says where the request came from.
        case send(user: UUIDValue, origin: RequestOrigin)
        /// As in ``Decision``.
        case nothing, busy
    }

    /// Decides a request for a link.
    public static func decideLink(
        _ request: PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> LinkDecision {
        try transaction.one(calls.decideLink, ["realm": request.realm, "request": request.id])
    }

    /// Stores a link that was decided to be sent, and queues its mail. - Parameter tokenHash: SHA-256 of its token.
    public static func addLink(
        _ request: PendingRequest, user: UUIDValue, tokenHash: [UInt8], mail: SealedMessage,
        in transaction: isolated Connection
    ) throws(StoreError) {
        try transaction.one(
            calls.addLink,
            ["realm": request.realm, "request": request.id, "user": user, "token_hash": tokenHash] + mail.arguments)
    }
}

extension SignInRequestStore {
    struct Calls: Sendable {
        let record = FunctionCall(
            "record_sent_request", Request.arguments + [Budget.brake], effect: .once, returns: Recorded.columns)
        let takeUndecided = FunctionCall<PendingRequest>(
            "take_undecided", ["limit", "after", "age"], effect: .once
        ) { (row) throws(StoreError) in
            PendingRequest(
                realm: try row("realm_id"), id: try row("id"), kind: try row("kind"),
                addressKey: try row("address_key"),
                publicOrigin: try row("public_origin"),
                otpLifetime: try row("otp_lifetime"), magicLinkLifetime: try row("magic_link_lifetime"),
                otpDigits: try row("otp_digits"))
        }
        let decideCode = FunctionCall<String>(
            "decide_code", ["realm", "request", "code_id", "salt", "keyed", "template"] + SealedMessage.arguments,
            effect: .once)
        let decideLink = FunctionCall<LinkDecision>(
            "decide_link_request", ["realm", "request"], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), user = columns("user_id", UUIDValue.self)
            let origin = RequestOrigin.columns(&columns)
            return { (row) throws(StoreError) in
                switch try row[outcome] {
                case "send": .send(user: try row[user], origin: try row.some(origin(row)))
                case "busy": .busy
                default: .nothing
                }
            }
        }
        let addLink = FunctionCall<Void>(
            "add_link", ["realm", "request", "user", "token_hash"] + SealedMessage.arguments, effect: .once)
    }
    static let calls = Calls()
}

extension SignInRequestStore.Recorded {
    fileprivate static func columns(_ columns: inout Columns) -> RowDecoder<(Self?, PermitVerdict)> {
        let outcome = columns("outcome", String.self), handle = columns("handle", [UInt8].self)
        let sendsLeft = columns("sends_left", Int.self)
        return columns.limited { (row) throws(StoreError) in
            switch try row[outcome] {
            case "busy": .busy
            case "send_limit": .sendLimit
            default: .handle(try row[handle], sendsLeft: try row[sendsLeft])
            }
        }
    }
}
