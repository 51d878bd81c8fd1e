/// Passkeys: ceremonies, assertions and the credentials of a user.
public struct PasskeyStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A stored credential as an assertion is verified against it.
    public struct StoredCredential: Sendable {
        /// The management id.
        public let passkey: UUIDValue
        /// `user.id` of its owner.
        public let userHandle: [UInt8]
        /// COSE key.
        public let publicKey: [UInt8]
        /// Signature counter.
        public let signCount: UInt32
        /// BE flag.
        public let backupEligible: Bool
    }

    /// The outcome of a presented ceremony.
    public enum AssertionStart: Sendable {
        /// Spent by this call; the credential is `nil` when none of that id is registered for the RP-ID.
        case spent(StoredCredential?)
        /// Spent before, or expired.
        case refused
        case limited
    }

    /// Spends a login ceremony, before anything is verified, and fetches the credential it names.
    /// - Parameter expiresAt: the ceremony's end, seconds since the epoch, judged by the database clock.
    public func beginAssertion(
        realm: UUIDValue, ceremony: [UInt8], expiresAt: Double, rpID: String, credentialID: [UInt8],
        permits: PermitRequest
    ) async throws(StoreError) -> (AssertionStart, PermitVerdict) {
        let parameters: [Parameter] =
            [.uuid(realm), .bytes(ceremony), .double(expiresAt), .text(rpID), .bytes(credentialID)] + permits.parameters
        let rows = try await database.query(Self.beginAssertion, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 8, refused: 6, retryAfter: 7)
            let start: AssertionStart =
                switch try row.text(0) {
                case "spent": .spent(try Self.credential(row))
                case "rate_limited": .limited
                default: .refused
                }
            return (start, verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    private static func credential(_ row: borrowing Row) throws(StoreError) -> StoredCredential? {
        guard let passkey = try row.uuidOrNil(1) else { return nil }
        guard let signCount = UInt32(exactly: try row.bigint(4)) else { throw .malformedResult }
        return StoredCredential(
            passkey: passkey, userHandle: try row.bytes(2), publicKey: try row.bytes(3), signCount: signCount,
            backupEligible: try row.bool(5))
    }

    /// A verified assertion and the session it opens.
    public struct Redemption: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The client's row key.
        public let client: UUIDValue
        /// Checked again: `gt:urn:cocoar:passkey`.
        public let permission: String
        /// The management id.
        public let passkey: UUIDValue
        /// Signature counter.
        public let signCount: UInt32
        /// BS flag.
        public let backupState: Bool
        /// The session.
        public let session: NewSession

        /// Takes the parts as they are.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, passkey: UUIDValue, signCount: UInt32,
            backupState: Bool,
            session: NewSession
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.passkey = passkey
            self.signCount = signCount
            self.backupState = backupState
            self.session = session
        }
    }

    /// Records a verified assertion: counter, session and audit in one statement.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(_ redemption: Redemption) async throws(StoreError) -> SignInOutcome {
        let parameters: [Parameter] =
            [
                .uuid(redemption.realm), .uuid(redemption.client), .text(redemption.permission),
                .uuid(redemption.passkey),
                .bigint(Int64(redemption.signCount)), .bool(redemption.backupState),
            ] + redemption.session.parametersWithKey + [redemption.session.userAgentParameter]
        let rows = try await database.query(Self.redeemAssertion, parameters) { (row) throws(StoreError) in
            try row.text(0) == "ok"
                ? SignInOutcome.signedIn(
                    user: try row.uuid(2), now: try row.double(3), sessionExpiresAt: try row.double(4))
                : .refused(try row.textOrNil(1) ?? "refused")
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// What creation options are made from.
    public struct EnrolmentOptions: Sendable {
        /// `user.id`, 32 bytes.
        public let userHandle: [UInt8]
        /// The user's address.
        public let email: String
        /// The name people read.
        public let displayName: String
        /// Credentials of this RP-ID, to exclude.
        public let credentialIDs: [[UInt8]]
    }

    /// - Returns: `nil` when the user is gone or disabled.
    public func enrolmentOptions(
        realm: UUIDValue, user: UUIDValue, rpID: String
    ) async throws(StoreError) -> EnrolmentOptions? {
        try await database.query(Self.enrolmentOptions, [.uuid(realm), .uuid(user), .text(rpID)]) {
            (row) throws(StoreError) in
            EnrolmentOptions(
                userHandle: try row.bytes(0), email: try row.text(1), displayName: try row.text(2),
                credentialIDs: try row.byteArrays(3))
        }.first
    }

    /// Spends an enrolment ceremony. - Returns: whether this call was the first, in time.
    public func spend(realm: UUIDValue, ceremony: [UInt8], expiresAt: Double) async throws(StoreError) -> Bool {
        try await database.query(
            Self.spendCeremony, [.uuid(realm), .bytes(ceremony), .double(expiresAt)]
        ) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    /// A verified registration to store.
    public struct NewPasskey: Sendable {
        /// RP-ID.
        public let rpID: String
        /// Credential id as the authenticator made it.
        public let credentialID: [UInt8]
        /// COSE key.
        public let publicKey: [UInt8]
        /// Signature counter.
        public let signCount: UInt32
        /// Authenticator model.
        public let aaguid: UUIDValue?
        /// BE flag.
        public let backupEligible: Bool
        /// BS flag.
        public let backupState: Bool
        /// UV at registration.
        public let uvInitialized: Bool
        /// Transport hints.
        public let transports: [String]
        /// Attestation statement format.
        public let format: String
        /// The name people read.
        public let displayName: String?

        /// Takes the parts as they are.
        public init(
            rpID: String, credentialID: [UInt8], publicKey: [UInt8], signCount: UInt32, aaguid: UUIDValue?,
            backupEligible: Bool,
            backupState: Bool, uvInitialized: Bool, transports: [String], format: String, displayName: String?
        ) {
            self.rpID = rpID
            self.credentialID = credentialID
            self.publicKey = publicKey
            self.signCount = signCount
            self.aaguid = aaguid
            self.backupEligible = backupEligible
            self.backupState = backupState
            self.uvInitialized = uvInitialized
            self.transports = transports
            self.format = format
            self.displayName = displayName
        }
    }

    /// A sealed mail to queue in the same transaction.
    public struct Notice: Sendable {
        /// The id of the mail.
        public let mailID: UUIDValue
        /// Sealed.
        public let payload: [UInt8]

        /// Takes the parts as they are.
        public init(mailID: UUIDValue, payload: [UInt8]) {
            self.mailID = mailID
            self.payload = payload
        }
    }

    /// Stores a credential of the session's user and tells the user by mail.
    /// - Returns: its management id; `nil` when it is registered already, the user has twenty, or the session ended.
    public func add(
        realm: UUIDValue, session: UUIDValue, _ passkey: NewPasskey, source: String, notice: Notice
    ) async throws(StoreError) -> UUIDValue? {
        let parameters: [Parameter] = [
            .uuid(realm), .uuid(session), .text(passkey.rpID), .bytes(passkey.credentialID), .bytes(passkey.publicKey),
            .bigint(Int64(passkey.signCount)), passkey.aaguid.map { .uuid($0) } ?? .null, .bool(passkey.backupEligible),
            .bool(passkey.backupState), .bool(passkey.uvInitialized), .texts(passkey.transports), .text(passkey.format),
            passkey.displayName.map { .text($0) } ?? .null, .text(source), .uuid(notice.mailID), .bytes(notice.payload),
        ]
        return try await database.query(Self.addPasskey, parameters) { (row) throws(StoreError) in
            try row.uuidOrNil(0)
        }.first ?? nil
    }

    /// A passkey as its owner sees it.
    public struct Listed: Sendable {
        /// Management id, never the credential id.
        public let id: UUIDValue
        /// RP-ID.
        public let rpID: String
        /// Authenticator model.
        public let aaguid: UUIDValue?
        /// BE flag.
        public let backupEligible: Bool
        /// BS flag.
        public let backupState: Bool
        /// Transport hints.
        public let transports: [String]
        /// The name people read.
        public let displayName: String?
        /// Seconds since the epoch.
        public let createdAt: Double
        /// Seconds since the epoch; `nil` while unused.
        public let lastUsedAt: Double?
    }

    /// The user's passkeys, newest first; only the one named by `id` when given.
    public func list(realm: UUIDValue, user: UUIDValue, id: UUIDValue? = nil) async throws(StoreError) -> [Listed] {
        try await database.query(
            Self.listPasskeys, [.uuid(realm), .uuid(user), id.map { .uuid($0) } ?? .null]
        ) { (row) throws(StoreError) in
            Listed(
                id: try row.uuid(0), rpID: try row.text(1), aaguid: try row.uuidOrNil(2),
                backupEligible: try row.bool(3),
                backupState: try row.bool(4), transports: try row.texts(5), displayName: try row.textOrNil(6),
                createdAt: try row.double(7), lastUsedAt: try row.doubleOrNil(8))
        }
    }

    /// - Returns: whether the user owns such a passkey.
    public func rename(realm: UUIDValue, user: UUIDValue, id: UUIDValue, to name: String) async throws(StoreError)
        -> Bool
    {
        try await database.query(
            Self.renamePasskey, [.uuid(realm), .uuid(user), .uuid(id), .text(name)]
        ) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    /// - Returns: `true` exactly once for a passkey of the user.
    public func delete(
        realm: UUIDValue, session: UUIDValue, user: UUIDValue, id: UUIDValue, source: String, notice: Notice
    ) async throws(StoreError) -> Bool {
        try await database.query(
            Self.deletePasskey,
            [
                .uuid(realm), .uuid(session), .uuid(user), .uuid(id), .text(source), .uuid(notice.mailID),
                .bytes(notice.payload),
            ]
        ) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    private static let beginAssertion = Statement(
        name: "begin_assertion",
        sql: """
            SELECT outcome, passkey, user_handle, public_key, sign_count, backup_eligible, limit_ord, retry_after, granted
              FROM postern.begin_assertion($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """,
        effect: .once)
    private static let redeemAssertion = Statement(
        name: "redeem_passkey",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at
              FROM postern.redeem_passkey($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                                          postern.opened_from($15, $17), $16)
            """,
        effect: .once)
    private static let enrolmentOptions = Statement(
        name: "enrolment_options",
        sql: "SELECT user_handle, email, display_name, credential_ids FROM postern.enrolment_options($1, $2, $3)",
        effect: .readOnly)
    private static let spendCeremony = Statement(
        name: "spend_ceremony", sql: "SELECT postern.spend_ceremony($1, $2, $3)", effect: .once)
    private static let addPasskey = Statement(
        name: "add_passkey",
        sql: "SELECT postern.add_passkey($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        effect: .once)
    private static let listPasskeys = Statement(
        name: "list_passkeys",
        sql: """
            SELECT id, rp_id, aaguid, backup_eligible, backup_state, transports, display_name, created_at, last_used_at
              FROM postern.list_passkeys($1, $2, $3)
            """,
        effect: .readOnly)
    private static let renamePasskey = Statement(
        name: "rename_passkey", sql: "SELECT postern.rename_passkey($1, $2, $3, $4)", effect: .idempotent)
    private static let deletePasskey = Statement(
        name: "delete_passkey", sql: "SELECT postern.delete_passkey($1, $2, $3, $4, $5, $6, $7)", effect: .once)
}
