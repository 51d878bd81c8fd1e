extension MagicLinkStore {
    /// A request for a link. Never reads the users table: a worker decides later.
    public struct LinkRequest: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The new handle's id, 16 random bytes.
        public let id: [UInt8]
        /// The handle to send again for, if one was presented.
        public let resendOf: [UInt8]?
        /// The address as typed.
        public let email: String
        /// The folded address.
        public let emailKey: String
        /// Set when the request named a client.
        public let client: UUIDValue?
        /// The App whose host was asked.
        public let app: String?
        /// Where it came from: an address, IPv6 by /64.
        public let source: String
        /// Seconds the handle lives.
        public let lifetime: Int32
        /// `sub` and `sid` of the ID-token hint.
        public let hint: (user: UUIDValue, session: UUIDValue)?

        /// Takes the parts as they are.
        public init(
            realm: UUIDValue, id: [UInt8], resendOf: [UInt8]?, email: String, emailKey: String, client: UUIDValue?,
            app: String?, source: String, lifetime: Int32, hint: (user: UUIDValue, session: UUIDValue)?
        ) {
            self.realm = realm
            self.id = id
            self.resendOf = resendOf
            self.email = email
            self.emailKey = emailKey
            self.client = client
            self.app = app
            self.source = source
            self.lifetime = lifetime
            self.hint = hint
        }
    }

    /// The outcome of recording a request.
    public enum Recorded: Sendable {
        /// The id of the handle to answer with.
        case handle([UInt8])
        /// Another transaction has the handle to send again for; nothing was recorded.
        case busy
    }

    /// Records a request. - Returns: `nil` when a limit refused it.
    public func request(
        _ request: LinkRequest, permits: PermitRequest
    ) async throws(StoreError) -> (Recorded?, PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(request.realm), .bytes(request.id), request.resendOf.map { .bytes($0) } ?? .null,
                .text(request.email), .text(request.emailKey), request.client.map { .uuid($0) } ?? .null,
                .text(request.source), .int(request.lifetime),
            ] + permits.parameters + [
                request.app.map { .text($0) } ?? .null, request.hint.map { .uuid($0.user) } ?? .null,
                request.hint.map { .uuid($0.session) } ?? .null,
            ]
        return try await only(Self.requestLink, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 4, refused: 2, retryAfter: 3)
            let recorded: Recorded? =
                switch try row.text(0) {
                case "accepted": .handle(try row.bytes(1))
                case "busy": .busy
                default: nil
                }
            return (recorded, verdict)
        }
    }

    /// What the page says about the request behind a link, alive or ended. Changes nothing but the limits.
    public enum Page: Sendable {
        /// `nil`: the link does not exist.
        case shown(RequestOrigin?)
        case limited
    }

    /// Looks a link up for its page.
    public func page(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], permits: PermitRequest
    ) async throws(StoreError) -> (Page, PermitVerdict) {
        try await only(Self.linkPage, [.uuid(realm), .uuid(user), .bytes(tokenHash)] + permits.parameters) {
            (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 6, refused: 4, retryAfter: 5)
            guard try row.text(0) == "shown" else { return (.limited, verdict) }
            guard let application = try row.textOrNil(1) else { return (.shown(nil), verdict) }
            let origin = RequestOrigin(
                application: application, time: try row.double(2), source: try row.textOrNil(3))
            return (.shown(origin), verdict)
        }
    }

    private static let requestLink = Statement(
        name: "record_link_request",
        sql: """
            SELECT outcome, handle, limit_ord, retry_after, granted
              FROM postern.record_link_request($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            """,
        effect: .once)
    private static let linkPage = Statement(
        name: "link_page",
        sql: """
            SELECT outcome, asked_by, asked_at, source, limit_ord, retry_after, granted
              FROM postern.link_page($1, $2, $3, $4, $5, $6, $7, $8)
            """,
        effect: .once)
}
