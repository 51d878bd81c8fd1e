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
        draft: (SignInStore.PendingRequest, UUIDValue) throws(StoreError) -> Draft
    ) throws(StoreError) -> Bool {
        let decided = try transaction.query(decideLink, [.uuid(request.realm), .bytes(request.id)]) {
            (row) throws(StoreError) in (outcome: try row.text(0), user: try row.uuidOrNil(1))
        }
        guard let only = decided.first else { throw .malformedResult }
        guard only.outcome == "send", let user = only.user else { return false }
        let link = try draft(request, user)
        _ = try transaction.query(
            addLink,
            [
                .uuid(request.realm), .bytes(request.id), .uuid(user), .bytes(link.tokenHash), .uuid(link.mailID),
                .bytes(link.payload),
            ]
        ) { (row) throws(StoreError) in try row.isNull(0) }
        return true
    }

    private static let decideLink = Statement(
        name: "decide_link", sql: "SELECT outcome, user_id FROM postern.decide_link($1, $2)", effect: .once)
    private static let addLink = Statement(
        name: "add_link", sql: "SELECT postern.add_link($1, $2, $3, $4, $5, $6) IS NULL", effect: .once)
}
