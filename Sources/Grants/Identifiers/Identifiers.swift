public import Persistence

/// A user's own e-mail addresses and phone numbers: listed, added with a proof, made primary, removed.
public struct Identifiers: Sendable {
    let store: IdentifierStore
    private let limiter: RateLimiter
    let keyring: Keyring
    private let wakeDelivery: @Sendable () -> Void

    /// - Parameter wakeDelivery: called when a message was queued.
    public init(
        store: IdentifierStore, limiter: RateLimiter, keyring: Keyring, wakeDelivery: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.limiter = limiter
        self.keyring = keyring
        self.wakeDelivery = wakeDelivery
    }

    /// What the answer to a request for a code holds.
    public struct Receipt: Sendable {
        /// The handle to present the code with.
        public let authSession: String
        /// Seconds.
        public let expiresIn: Int
        /// Seconds.
        public let resendAfter: Int
        /// How many messages the handle may still cause.
        public let sendsLeft: Int
    }

    /// Why nothing was added.
    public enum Failure: Error, Equatable, Sendable {
        /// The handle has caused all messages that it may.
        case sendLimit
        /// The user has five of the kind.
        case tooMany
        /// The code is wrong or has expired, or the handle is not this user's.
        case code
        /// Another account has proven it.
        case inUse
    }

    /// Sends a code to an address that is to be added. Who holds the address is not looked up, so it counts as unknown.
    /// - Parameters:
    ///   - authSession: a handle to send again for.
    ///   - pageOrigin: of the page where the code is typed; `nil`: an app asks for it.
    ///   - mayBeUnknown: whether it counts among the codes that its source asks for without an account.
    /// - Throws: ``Failure``, `rate_limited`, or what the database threw.
    public func begin(
        _ address: MessageAddress, authSession: String?, locale: String?, pageOrigin: String? = nil, realm: Realm,
        user: UUIDValue, client: Client, source: String, mayBeUnknown: Bool = true
    ) async throws -> Receipt {
        let sent = AddressCode(
            to: address, authSession: authSession, client: client, locale: locale, pageOrigin: pageOrigin,
            realm: realm, source: source, keyring: keyring)
        let beginning = IdentifierStore.Beginning(
            sent.record, user: user, salt: randomBytes(16),
            keyed: Self.keyed(TypedCode(sent.code), realm, address.key, keyring.newest),
            message: try sent.message(under: keyring))
        let begun = try await RequestAdmission(limiter).admit(
            sent.request, address.policy(or: .nativeOTP), mayBeUnknown: mayBeUnknown, account: user
        ) { permits in
            try await store.begin(beginning, permits: permits)
        }
        switch begun {
        case .sendLimit: throw Failure.sendLimit
        case .tooMany: throw Failure.tooMany
        case .handle(let id, let sendsLeft, let isSent):
            if isSent { wakeDelivery() }
            return Receipt(
                authSession: try sent.handle.with(id: id).text(realm: realm.id, keyring: keyring),
                expiresIn: realm.policy.otpLifetime, resendAfter: realm.policy.resendCooldown, sendsLeft: sendsLeft)
        }
    }

    /// Adds the address of a handle by its code.
    /// - Throws: ``Failure``, or what the database threw.
    public func add(
        authSession: String, code: TypedCode, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws -> IdentifierStore.Identifier {
        guard let handle = AuthSessionHandle(authSession, realm: realm.id, keyring: keyring) else { throw Failure.code }
        let added = try await store.add(
            realm: realm.id, user: verified.session.user, session: verified.token.owner, handle: handle.id,
            keyed: keyring.keys.map { Self.keyed(code, realm, handle.addressKey, $0) }, source: source)
        switch added {
        case .refused: throw Failure.code
        case .tooMany: throw Failure.tooMany
        case .inUse: throw Failure.inUse
        case .added(let id):
            wakeDelivery()
            guard let identifier = try await list(realm: realm, user: verified.session.user, id: id).first else {
                throw Failure.code
            }
            return identifier
        }
    }

    /// The user's identifiers; only the one named by `id` when given.
    public func list(
        realm: Realm, user: UUIDValue, id: UUIDValue? = nil
    ) async throws(StoreError) -> [IdentifierStore.Identifier] {
        try await store.list(realm: realm.id, user: user, id: id)
    }

    /// Makes one the primary of its kind. - Returns: it, or `nil` if the user has no such identifier.
    public func makePrimary(
        _ id: UUIDValue, realm: Realm, verified: VerifiedAccessToken
    ) async throws(StoreError) -> IdentifierStore.Identifier? {
        guard try await store.makePrimary(realm: realm.id, session: verified.token.owner, id: id) else { return nil }
        return try await store.list(realm: realm.id, user: verified.session.user, id: id).first
    }

    /// Removes one with the codes and links that were sent there.
    public func remove(
        _ id: UUIDValue, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> IdentifierStore.Removal {
        let removal = try await store.remove(
            realm: realm.id, session: verified.token.owner, id: id, source: source)
        if removal == .removed { wakeDelivery() }
        return removal
    }

    /// A code of its own kind: one that signs in does not add an identifier, nor the other way round.
    static func keyed(_ code: TypedCode, _ realm: Realm, _ key: String, _ line: ServerKey) -> [UInt8] {
        line.hmac(.codePepper, [realm.id.bytes, Array(key.utf8), Array("identifier".utf8), Array(code.text.utf8)])
    }
}
