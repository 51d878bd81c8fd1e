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

    /// Decides one request: a link and its mail, or nothing. - Returns: whether a mail was queued.
    static func decide(
        _ request: SignInStore.PendingRequest, in transaction: isolated Connection,
        draft: (SignInStore.PendingRequest, UUIDValue, RequestOrigin) throws(StoreError) -> Draft
    ) throws(StoreError) -> Bool {
        let decided = try transaction.query(decideLink, [.uuid(request.realm), .bytes(request.id)]) {
            (row) throws(StoreError) in
            guard try row.text(0) == "send" else { return Decision?.none }
            return Decision(
                user: try row.uuid(1),
                origin: RequestOrigin(
                    application: try row.text(2), time: try row.double(3), source: try row.textOrNil(4)))
        }
        guard let only = decided.first else { throw .malformedResult }
        guard let decision = only else { return false }
        let user = decision.user
        let link = try draft(request, user, decision.origin)
        _ = try transaction.query(
            addLink,
            [
                .uuid(request.realm), .bytes(request.id), .uuid(user), .bytes(link.tokenHash), .uuid(link.mailID),
                .bytes(link.payload),
            ]
        ) { (row) throws(StoreError) in try row.isNull(0) }
        return true
    }

    /// A decision to send a link: the recipient, and what the mail says about the request.
    private struct Decision: Sendable {
        let user: UUIDValue
        let origin: RequestOrigin
    }

    private static let decideLink = Statement(
        name: "decide_link_request",
        sql: "SELECT outcome, user_id, asked_by, asked_at, source FROM postern.decide_link_request($1, $2)",
        effect: .once)
    private static let addLink = Statement(
        name: "add_link", sql: "SELECT postern.add_link($1, $2, $3, $4, $5, $6) IS NULL", effect: .once)
}
