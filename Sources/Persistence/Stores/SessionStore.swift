/// Sessions, which are the refresh families: rotation, life and revocation.
public struct SessionStore: Sendable {
    let database: Database
    private let lookups: Batcher<UUIDValue, Lookup, LiveSession?>
    private let provenLookups: Batcher<UUIDValue, ProvenLookup, ProvenSession>
    /// Rotations of realms where no row is known to be locked: each waits for its row, shortly.
    let waitingRotations: Batcher<UUIDValue, Rotation, RotationOutcome>
    /// Rotations that must not wait for a row.
    let cautiousRotations: Batcher<UUIDValue, Rotation, RotationOutcome>
    let lockedRows = LockedRows()

    public init(_ database: Database) {
        self.database = database
        let metrics = database.metrics
        lookups = Batcher(concurrency: 3, maximumWaiting: 1024, name: "lookups", metrics: metrics) {
            (realm, lookups) throws(StoreError) in
            try await Self.lookUp(lookups, realm, database)
        }
        provenLookups = Batcher(concurrency: 2, maximumWaiting: 1024, name: "proven_lookups", metrics: metrics) {
            (realm, lookups) throws(StoreError) in
            try await Self.lookUpByProof(lookups, realm, database)
        }
        waitingRotations = Batcher(
            concurrency: 2, maximumWaiting: 256, minimumBatch: 32, maximumWait: .milliseconds(10), name: "rotations",
            metrics: metrics
        ) { (realm, rotations) throws(StoreError) in
            try await Self.rotateBatch(rotations, realm, database, waiting: true)
        }
        cautiousRotations = Batcher(concurrency: 2, maximumWaiting: 512, name: "rotations", metrics: metrics) {
            (realm, rotations) throws(StoreError) in
            try await Self.rotateBatch(rotations, realm, database, waiting: false)
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
        /// The proof that came with the token.
        public var proof: ProofUse?
        /// The least that the sign-in must have proven, 1 to 3 (`postern.acr_level`); `nil`: anything.
        public var level: Int32?
        /// The greatest age of the sign-in, in seconds; `nil`: any.
        public var maximumAge: Int32?
        /// What must be granted first.
        public var permits: PermitRequest
        /// Identifies this request. When an answer is lost, a retry with the same mark gets the same successor, also
        /// outside the retry window.
        let mark = nextRequestMark()

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
        /// The context class that the sign-in asked for; `nil`: the highest that ``amr`` meets.
        public let acr: String?
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
        /// Whether this repeats the answer of the token's first use.
        public var isRepeated = false
    }

    /// The outcome of a refresh.
    public enum RotationOutcome: Sendable {
        case rotated(Rotated)
        /// The token was used before, and its answer is not repeated: the session has ended.
        case reused
        /// The reason is for logs.
        case refused(String)
        case invalidScope
        case invalidTarget
        /// The sign-in is too old, or proved less than was asked for; nothing was done.
        case unmet
        /// The proof was used before; nothing was done.
        case proofUsed
        /// As ``StoreError/proofForgotten``.
        case proofForgotten
        /// As ``StoreError/clientFault(_:)``.
        case clientFault(StoreError.ClientFault)
        /// Another transaction holds the session's row; nothing was done.
        case busy
    }

    /// The session behind an access token when both are alive, else `nil`.
    /// - Parameter jti: the token's 16-byte identifier, looked up among those revoked one by one.
    public func live(realm: UUIDValue, session: UUIDValue, jti: [UInt8]) async throws(StoreError) -> LiveSession? {
        try await lookups.submit(Lookup(session: session, jti: jti), in: realm)
    }

    /// The same for a request with a proof, which is used up.
    /// - Throws: ``StoreError/proofUsed``, ``StoreError/proofForgotten``.
    public func live(
        realm: UUIDValue, session: UUIDValue, jti: [UInt8], spending proof: ProofUse
    ) async throws(StoreError) -> LiveSession? {
        let lookup = ProvenLookup(lookup: Lookup(session: session, jti: jti), proof: proof)
        switch try await provenLookups.submit(lookup, in: realm) {
        case .session(let session): return session
        case .proofUsed: throw .proofUsed
        case .proofForgotten: throw .proofForgotten
        }
    }

    /// Ends a session that belongs to `client`, and with it all of its tokens.
    public func revoke(
        realm: UUIDValue, client: UUIDValue, session: UUIDValue, reason: String
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.revokeSession, ["realm": realm, "client": client, "session": session, "reason": reason])
    }

    /// Ends one access token of a session that belongs to `client`.
    public func revokeAccessToken(
        realm: UUIDValue, client: UUIDValue, session: UUIDValue, jti: [UInt8], expiresAt: Double
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.revokeAccessToken,
            ["realm": realm, "client": client, "session": session, "jti": jti, "expires": expiresAt])
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
    /// `acr` that was chosen by `acr_values`; `nil`: derive it from ``amr``.
    public let acr: String?
    /// Seconds since the epoch.
    public let authTime: Double
    /// The session row's salt, 16 bytes.
    public let tokenSalt: [UInt8]
    /// The user's primary address; `nil` when there is none.
    public let email: String?
    /// Whether that address was proven.
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
    /// Thumbprint of the key that its refresh tokens are bound to, 32 bytes; `nil`: none.
    public let thumbprint: [UInt8]?
    /// Whether Cotter's wire opened it.
    public let isCotters: Bool
}
