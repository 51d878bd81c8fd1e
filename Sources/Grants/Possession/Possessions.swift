import Encoding
public import Persistence

/// What backends do with proofs of phone numbers (docs/wire.md): start, ask, assert, revoke.
public struct Possessions: Sendable {
    private let store: PossessionStore
    private let tokens: PossessionTokens
    private let limiter: RateLimiter
    private let keyring: Keyring

    /// - Parameter tokens: name transactions to apps.
    public init(store: PossessionStore, tokens: PossessionTokens, limiter: RateLimiter, keyring: Keyring) {
        self.store = store
        self.tokens = tokens
        self.limiter = limiter
        self.keyring = keyring
    }

    /// What a start hands out.
    public struct Started: Sendable {
        /// For the app.
        public let authToken: String
        /// For the backend.
        public let correlationID: UUIDValue
    }

    /// What is started.
    public struct Request: Sendable {
        /// Where the app is.
        public var kind: PossessionKind
        /// E.164; `nil`: the app or `proveID` names it.
        public var phone: String?
        /// A number that was proven before.
        public var proveID: UUIDValue?
        /// The person's mail address, for the risk provider alone.
        public var email: String?
        /// What is given back, and how it is done.
        public var detail: PossessionDetail

        /// A request without a number.
        public init(kind: PossessionKind, detail: PossessionDetail) {
            self.kind = kind
            self.detail = detail
        }
    }

    /// Starts a proof. - Throws: `rate_limited`, or what the database threw.
    public func start(_ request: Request, client: Client, realm: Realm) async throws -> Started {
        let id = UUIDValue.random(), authID = UUIDValue.random()
        var detail = request.detail
        if let email = request.email {
            detail.email = Base64.urlEncode(
                try keyring.seal(
                    Array(email.utf8), for: .riskAddress, realm: realm.id, aad: realm.id.bytes + authID.bytes))
        }
        // All that may fail happens before anything is stored.
        let token = try await tokens.token(authID: authID, realm: realm)
        let start = PossessionStore.Start(
            realm: realm.id, client: client.key, id: id, authID: authID, kind: request.kind, phone: request.phone,
            proveID: request.proveID, detail: detail, lifetime: PossessionTokens.lifetime)
        _ = try await limiter.admitting(.possession, [.init(.client, client.clientID)], realm: realm) { permits in
            try await store.start(start, permits: permits)
        }
        return Started(authToken: token, correlationID: id)
    }

    /// How a transaction stands; `nil`: the client has none of that id.
    public func status(_ id: UUIDValue, client: Client, realm: Realm) async throws(StoreError) -> PossessionFacts? {
        try await store.status(realm: realm.id, client: client.key, id: id)
    }

    /// What an assertion led to.
    public enum Bound: Sendable {
        case bound(PossessionFacts)
        case unknown
        /// It is not the moment for it.
        case step
    }

    /// The backend vouches for a number.
    public func bind(
        _ id: UUIDValue, to phone: String, client: Client, realm: Realm
    ) async throws(StoreError) -> Bound {
        let said = try await store.bind(realm: realm.id, client: client.key, id: id, phone: phone)
        switch said.outcome {
        case .bound: return .bound(try said.facts)
        case .unknown: return .unknown
        case .step: return .step
        }
    }

    /// Takes the number from a key that this client bound. - Returns: `false` for any other key.
    public func revoke(_ device: UUIDValue, client: Client, realm: Realm) async throws(StoreError) -> Bool {
        try await store.revoke(realm: realm.id, client: client.key, device: device)
    }
}

extension RateLimit.Policy {
    /// Starts of proofs, and the calls of an app with the token of one, which are counted in this process alone.
    public static let possession = Self(rawValue: "possession")
}

extension Realm {
    /// A number as backends and apps give it: `+` and digits, or digits of the realm's own country.
    /// - Returns: `nil` for any other text, and for a number that the realm does not send to.
    public func possessionNumber(_ text: String) -> PhoneNumber? {
        let digits = text.utf8.first == UInt8(ascii: "+") ? text.utf8.dropFirst() : text.utf8[...]
        guard let phones, (4...16).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
            digits.count < text.utf8.count || phones.defaultRegion != nil,
            let number = PhoneNumber(typed: text, defaultRegion: phones.defaultRegion),
            phones.regions.contains(number.region), !phones.isDenied(number.text)
        else { return nil }
        return number
    }
}
