/// Passkeys: ceremonies, assertions and the credentials of a user.
public struct PasskeyStore: Sendable {
    private let database: Database

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
    }

    /// Spends a login ceremony, before anything is verified, and fetches the credential it names.
    /// - Parameters:
    ///   - permission: that the client needs; without it nothing is spent.
    ///   - expiresAt: the ceremony's end, seconds since the epoch, judged by the database clock.
    ///   - session: that the assertion is to open. Of a repeatable one the same request finds the ceremony fresh again.
    public func beginAssertion(
        realm: UUIDValue, client: UUIDValue, permission: String, ceremony: [UInt8], expiresAt: Double,
        rpID: String, credentialID: [UInt8], session: NewSession, permits: PermitRequest
    ) async throws(StoreError) -> (AssertionStart?, PermitVerdict) {
        let assertion: Arguments = [
            "ceremony": ceremony, "expires": expiresAt, "session": session.isRepeatable ? session.id : nil,
            "rp_id": rpID, "credential_id": credentialID,
        ]
        return try await database.one(
            Self.calls.beginAssertion,
            session.caller(realm: realm, client: client, permission: permission).arguments + permits.arguments
                + assertion)
    }

    /// Records a verified assertion: counter, session and audit in one statement.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again: `gt:urn:cocoar:passkey`.
    ///   - passkey: the management id.
    ///   - backupState: the BS flag.
    ///   - session: opened unless the counter went back.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, passkey: UUIDValue, signCount: UInt32,
        backupState: Bool, session: NewSession
    ) async throws(StoreError) -> SignInOutcome {
        let assertion: Arguments = [
            "passkey": passkey, "sign_count": signCount, "backup_state": backupState,
        ]
        return try await database.one(
            session.page == nil ? Self.calls.redeem : Self.calls.redeemOnPage,
            session.caller(realm: realm, client: client, permission: permission).arguments + session.arguments
                + assertion)
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
        try await database.first(Self.calls.enrolmentOptions, ["realm": realm, "user": user, "rp_id": rpID])
    }

    /// Spends an enrolment ceremony. - Returns: whether this call was the first, in time.
    public func spend(realm: UUIDValue, ceremony: [UInt8], expiresAt: Double) async throws(StoreError) -> Bool {
        try await database.one(Self.calls.spend, ["realm": realm, "ceremony": ceremony, "expires": expiresAt])
    }

    /// Stores a credential of the session's user and tells the user by mail.
    /// - Parameters:
    ///   - credentialID: as the authenticator made it.
    ///   - publicKey: COSE key.
    ///   - aaguid: the authenticator's model.
    ///   - backupEligible: the BE flag.
    ///   - backupState: the BS flag.
    ///   - uvInitialized: the UV flag at registration.
    ///   - transports: hints.
    ///   - format: of the attestation statement.
    ///   - displayName: the name people read.
    ///   - notice: queued in the same transaction.
    /// - Returns: its management id; `nil` when it is registered already, the user has twenty, or the session ended.
    public func add(
        realm: UUIDValue, session: UUIDValue, rpID: String, credentialID: [UInt8], publicKey: [UInt8],
        signCount: UInt32, aaguid: UUIDValue?, backupEligible: Bool, backupState: Bool, uvInitialized: Bool,
        transports: [String], format: String, displayName: String?, source: String, notice: SealedMessage
    ) async throws(StoreError) -> UUIDValue? {
        let passkey: Arguments = [
            "realm": realm, "session": session, "rp_id": rpID, "credential_id": credentialID, "public_key": publicKey,
            "sign_count": signCount, "aaguid": aaguid, "backup_eligible": backupEligible, "backup_state": backupState,
            "uv_initialized": uvInitialized, "transports": transports, "format": format, "display_name": displayName,
            "source": source,
        ]
        return try await database.one(Self.calls.add, passkey + notice.arguments)
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
        try await database.all(Self.calls.list, ["realm": realm, "user": user, "id": id])
    }

    /// - Returns: whether the session's user owns such a passkey.
    public func rename(
        realm: UUIDValue, session: UUIDValue, id: UUIDValue, to name: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.rename, ["realm": realm, "session": session, "id": id, "display_name": name])
    }

    /// - Returns: `true` exactly once for a passkey of the session's user.
    public func delete(
        realm: UUIDValue, session: UUIDValue, id: UUIDValue, source: String, notice: SealedMessage
    ) async throws(StoreError) -> Bool {
        let passkey: Arguments = ["realm": realm, "session": session, "id": id, "source": source]
        return try await database.one(Self.calls.delete, passkey + notice.arguments)
    }
}
