/// Sessions, which are the refresh families: rotation, life and revocation.
public struct SessionStore: Sendable {
    let database: Database
    private let lookups: Gatherer<UUIDValue, Lookup, LiveSession?>
    /// Rotations of realms where no row is known to be locked: each waits for its row, shortly.
    let rotations: Gatherer<UUIDValue, Rotation, RotationOutcome>
    /// Rotations that must not wait for a row.
    let cautious: Gatherer<UUIDValue, Rotation, RotationOutcome>
    let lockedRows = LockedRows()

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
        lookups = Gatherer(lanes: 3, maximumWaiting: 1024) { (realm, lookups) throws(StoreError) in
            try await Self.look(database, realm, lookups)
        }
        rotations = Gatherer(lanes: 4, maximumWaiting: 256) { (realm, rotations) throws(StoreError) in
            try await Self.rotate(database, realm, rotations, waiting: true)
        }
        cautious = Gatherer(lanes: 4, maximumWaiting: 512) { (realm, rotations) throws(StoreError) in
            try await Self.rotate(database, realm, rotations, waiting: false)
        }
    }

    /// A presented refresh token and what should follow it.
    public struct Rotation: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The client's row key.
        public let client: UUIDValue
        /// The session.
        public let session: UUIDValue
        /// The presented token's generation.
        public let generation: Int32
        /// SHA-256 of the presented token, 32 bytes.
        public let hash: [UInt8]
        /// SHA-256 of the successor under each server key; the first is stored.
        public let successorHashes: [[UInt8]]
        /// The scope asked for; `nil` keeps the family's.
        public let scope: [String]?
        /// The resources asked for; `nil` keeps the family's.
        public let resources: [String]?
        /// Seconds.
        public let refreshTokenLifetime: Int32
        /// Where the request came from, for audit.
        public let source: String
        /// Id of the key-file line that the stored successor is made under, 4 bytes.
        public let serverKey: [UInt8]
        /// What must be granted first.
        public var permits: PermitRequest
        /// Identifies this request. When an answer is lost, a retry with the same mark gets the same successor, also
        /// outside the retry window.
        let mark = Int64.random(in: .min ... .max)

        /// Takes the parts as they are.
        public init(
            realm: UUIDValue, client: UUIDValue, session: UUIDValue, generation: Int32, hash: [UInt8],
            successorHashes: [[UInt8]], scope: [String]?, resources: [String]?, refreshTokenLifetime: Int32,
            source: String, serverKey: [UInt8], permits: PermitRequest
        ) {
            self.realm = realm
            self.client = client
            self.session = session
            self.generation = generation
            self.hash = hash
            self.successorHashes = successorHashes
            self.scope = scope
            self.resources = resources
            self.refreshTokenLifetime = refreshTokenLifetime
            self.source = source
            self.serverKey = serverKey
            self.permits = permits
        }
    }

    /// The family behind a refresh that succeeded.
    public struct Rotated: Sendable {
        /// The user, `sub`.
        public let user: UUIDValue
        /// Scope names.
        public let scope: [String]
        /// Resources (RFC 8707).
        public let resources: [String]
        /// Authentication methods (RFC 8176).
        public let amr: [String]
        /// Seconds since the epoch.
        public let authTime: Double
        /// The session row's salt, 16 bytes.
        public let tokenSalt: [UInt8]
        /// The hash of the live token; it selects the successor to hand out.
        public let currentHash: [UInt8]
        /// The database clock, seconds since the epoch.
        public let now: Double
        /// Absolute end of the session, seconds since the epoch.
        public let expiresAt: Double
    }

    /// The outcome of a refresh.
    public enum RotationOutcome: Sendable {
        case rotated(Rotated)
        /// The reason is for logs.
        case refused(String)
        case invalidScope
        case invalidTarget
        case limited
        /// Another transaction holds the session's row; nothing was done.
        case busy
    }

    static func outcome(_ row: borrowing Row) throws(StoreError) -> RotationOutcome {
        switch try row.text(0) {
        case "rotated", "retried":
            .rotated(
                Rotated(
                    user: try row.uuid(2), scope: try row.texts(3), resources: try row.texts(4), amr: try row.texts(5),
                    authTime: try row.double(6), tokenSalt: try row.bytes(7), currentHash: try row.bytes(8),
                    now: try row.double(9), expiresAt: try row.double(13)))
        case "invalid_scope": .invalidScope
        case "invalid_target": .invalidTarget
        case "rate_limited": .limited
        case "busy": .busy
        case let outcome: .refused(try row.textOrNil(1) ?? outcome)
        }
    }

    /// The session behind an access token when both are alive, else `nil`.
    /// - Parameter jti: the token's 16-byte identifier, looked up among those revoked one by one.
    public func live(realm: UUIDValue, session: UUIDValue, jti: [UInt8]) async throws(StoreError) -> LiveSession? {
        try await lookups.answer(realm, Lookup(session: session, jti: jti))
    }

    /// Ends a session that belongs to `client`, and with it all of its tokens.
    public func revoke(
        realm: UUIDValue, client: UUIDValue, session: UUIDValue, reason: String
    ) async throws(StoreError) {
        _ = try await database.query(
            Self.revokeSession, [.uuid(realm), .uuid(client), .uuid(session), .text(reason)]
        ) { (row) throws(StoreError) in try row.bool(0) }
    }

    /// Ends one access token of a session that belongs to `client`.
    public func revokeAccessToken(
        realm: UUIDValue, client: UUIDValue, session: UUIDValue, jti: [UInt8], expiresAt: Double
    ) async throws(StoreError) {
        _ = try await database.query(
            Self.revokeAccessToken, [.uuid(realm), .uuid(client), .uuid(session), .bytes(jti), .double(expiresAt)]
        ) { (row) throws(StoreError) in try row.bool(0) }
    }

    static let introspect = Statement(
        name: "introspect",
        sql: """
            SELECT active, user_id, client, client_id, scope, resource, amr, auth_time, token_salt,
                   email, email_verified, first_name, last_name, db_now, expires_at, refresh_expires_at, current_hash
              FROM postern.introspect($1, $2, $3)
            """,
        effect: .readOnly)
    private static let revokeSession = Statement(
        name: "revoke_session", sql: "SELECT postern.revoke_session($1, $2, $3, $4)", effect: .idempotent)
    private static let revokeAccessToken = Statement(
        name: "revoke_access_token", sql: "SELECT postern.revoke_access_token($1, $2, $3, $4, $5)", effect: .idempotent)
}

extension Row {
    /// What `postern.introspect` says: `nil` when the session is not alive.
    borrowing func liveSession() throws(StoreError) -> LiveSession? {
        guard try bool(0) else { return nil }
        return LiveSession(
            user: try uuid(1), client: try uuid(2), clientID: try text(3),
            scope: try texts(4), resources: try texts(5), amr: try texts(6),
            authTime: try double(7), tokenSalt: try bytes(8), email: try text(9),
            emailVerified: try bool(10), firstName: try textOrNil(11),
            lastName: try textOrNil(12), now: try double(13), expiresAt: try double(14),
            refreshExpiresAt: try doubleOrNil(15), refreshHash: try bytesOrNil(16))
    }
}

/// A session that is alive, with its user.
public struct LiveSession: Sendable {
    /// `sub`.
    public let user: UUIDValue
    /// The client's row key.
    public let client: UUIDValue
    /// `client_id`.
    public let clientID: String
    /// Scope names.
    public let scope: [String]
    /// Resources (RFC 8707).
    public let resources: [String]
    /// Authentication methods (RFC 8176).
    public let amr: [String]
    /// Seconds since the epoch.
    public let authTime: Double
    /// The session row's salt, 16 bytes.
    public let tokenSalt: [UInt8]
    /// The user's address.
    public let email: String
    /// Whether the address was proven.
    public let emailVerified: Bool
    /// Given name.
    public let firstName: String?
    /// Family name.
    public let lastName: String?
    /// The database clock, seconds since the epoch.
    public let now: Double
    /// Absolute end, seconds since the epoch.
    public let expiresAt: Double
    /// When the live refresh token expires, seconds since the epoch; `nil` without one.
    public let refreshExpiresAt: Double?
    /// SHA-256 of the live refresh token; `nil` without one.
    public let refreshHash: [UInt8]?
}

extension Row {
    /// Reads the three columns that every limited statement returns.
    borrowing func permitVerdict(granted: Int, refused: Int, retryAfter: Int) throws(StoreError) -> PermitVerdict {
        PermitVerdict(
            granted: try intsOrNil(granted) ?? [], refused: try intOrNil(refused).map { Int($0) - 1 },
            retryAfter: try doubleOrNil(retryAfter) ?? 0)
    }
}
