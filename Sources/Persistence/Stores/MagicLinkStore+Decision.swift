extension MagicLinkStore {
    /// A link made for a pending request.
    public struct Draft: Sendable {
        let tokenHash: [UInt8]
        let mailID: UUIDValue
        let payload: [UInt8]

        /// - Parameters:
        ///   - tokenHash: SHA-256 of the token, 32 bytes.
        ///   - payload: the sealed mail.
        public init(tokenHash: [UInt8], mailID: UUIDValue, payload: [UInt8]) {
            self.tokenHash = tokenHash
            self.mailID = mailID
            self.payload = payload
        }
    }

    /// A decision to send a link: the recipient, and what the mail says about the request.
    public struct Decision: Sendable {
        /// The account to sign in to.
        public let user: UUIDValue
        /// Where the request came from.
        public let origin: RequestOrigin
    }

    /// Decides a request for a link. - Returns: `nil` when nothing is sent.
    public static func decide(
        _ request: SignInStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) -> Decision? {
        let decided = try transaction.query(decideLink, [.uuid(request.realm), .bytes(request.id)]) {
            (row) throws(StoreError) in
            guard try row.text(0) == "send" else { return Decision?.none }
            return Decision(
                user: try row.uuid(1),
                origin: RequestOrigin(
                    application: try row.text(2), time: try row.double(3), source: try row.textOrNil(4)))
        }
        guard let only = decided.first else { throw .malformedResult }
        return only
    }

    /// Stores a link that was decided to be sent, and queues its mail.
    public static func add(
        _ link: Draft, of user: UUIDValue, for request: SignInStore.PendingRequest, in transaction: isolated Connection
    ) throws(StoreError) {
        _ = try transaction.query(
            addLink,
            [
                .uuid(request.realm), .bytes(request.id), .uuid(user), .bytes(link.tokenHash), .uuid(link.mailID),
                .bytes(link.payload),
            ]
        ) { (row) throws(StoreError) in try row.isNull(0) }
    }

    private static let decideLink = Statement(
        name: "decide_link_request",
        sql: "SELECT outcome, user_id, asked_by, asked_at, source FROM postern.decide_link_request($1, $2)",
        effect: .once)
    private static let addLink = Statement(
        name: "add_link", sql: "SELECT postern.add_link($1, $2, $3, $4, $5, $6) IS NULL", effect: .once)
}
