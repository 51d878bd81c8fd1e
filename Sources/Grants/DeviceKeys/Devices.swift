import Encoding
public import Persistence

/// Trusted devices of users, without HTTP.
public struct Devices: Sendable {
    private let store: DeviceKeyStore
    private let limiter: RateLimiter
    private let keyring: Keyring
    /// Seconds since the epoch.
    private let clock: @Sendable () -> Double

    /// - Parameter clock: seconds since the epoch.
    public init(
        store: DeviceKeyStore, limiter: RateLimiter, keyring: Keyring, clock: @escaping @Sendable () -> Double
    ) {
        self.store = store
        self.limiter = limiter
        self.keyring = keyring
        self.clock = clock
    }

    /// What a device is told of itself, or is changed about it; `nil`: left as it is.
    public struct Change: Sendable {
        let displayName: String?
        let pushHandle: String?
        let clearsPushHandle: Bool

        /// Changes nothing.
        public static let none = Change()

        /// - Parameters:
        ///   - displayName: the name people read.
        ///   - pushHandle: what the push service calls the device by.
        ///   - clearsPushHandle: whether it gets none.
        public init(displayName: String? = nil, pushHandle: String? = nil, clearsPushHandle: Bool = false) {
            self.displayName = displayName
            self.pushHandle = pushHandle
            self.clearsPushHandle = clearsPushHandle
        }
    }

    /// The key of a proof becomes a trusted device of the token's user.
    public func add(
        _ change: Change, proof: DeviceProof, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws -> DeviceKeyStore.Added {
        try await store.add(
            realm: realm.id, proof: proof.use, session: verified.token.owner, publicKey: proof.publicKey,
            displayName: change.displayName, pushHandle: try sealed(change.pushHandle, realm), source: source)
    }

    /// The user's devices, newest first.
    public func list(realm: Realm, user: UUIDValue) async throws(StoreError) -> [DeviceKeyStore.Listed] {
        try await store.list(realm: realm.id, user: user)
    }

    /// Changes a device of the token's user. - Returns: the device; `nil` if the user has no such device.
    public func change(
        _ id: UUIDValue, _ change: Change, realm: Realm, verified: VerifiedAccessToken
    ) async throws -> DeviceKeyStore.Listed? {
        try await store.change(
            id, realm: realm.id, session: verified.token.owner, displayName: change.displayName,
            pushHandle: try sealed(change.pushHandle, realm), clearsPushHandle: change.clearsPushHandle)
    }

    /// Removes a device of the token's user. - Returns: `true` exactly once.
    public func remove(
        _ id: UUIDValue, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> Bool {
        try await store.remove(
            id, realm: realm.id, session: verified.token.owner, source: source)
    }

    /// What a device asks about itself, by its proof alone.
    public enum OwnCall: Sendable {
        case look
        case change(Change)
        case remove
    }

    /// - Parameter id: the device that the call names; `nil`: none.
    public func call(
        _ call: OwnCall, of id: UUIDValue?, proof: DeviceProof, realm: Realm, source: String
    ) async throws -> DeviceKeyStore.OwnCall {
        var change = Change.none
        var removes = false
        switch call {
        case .look: break
        case .change(let wanted): change = wanted
        case .remove: removes = true
        }
        let pushHandle = try sealed(change.pushHandle, realm)
        return try await limiter.admitting(.trustedDevice, Self.subjects(of: proof), realm: realm) { permits in
            try await store.call(
                realm: realm.id, proof: proof.use, id: id, displayName: change.displayName, pushHandle: pushHandle,
                clearsPushHandle: change.clearsPushHandle, removes: removes, source: source, permits: permits)
        }
    }

    /// The budget of calls by one device key.
    public static func subjects(of proof: DeviceProof) -> [RateLimiter.Subject] {
        [.init(.target, Hex.encode(proof.thumbprint))]
    }

    private func sealed(_ pushHandle: String?, _ realm: Realm) throws(TokenError) -> [UInt8]? {
        guard let pushHandle else { return nil }
        guard let sealed = PushHandle.sealed(pushHandle, realm: realm.id, keyring: keyring) else {
            throw .unavailable("seal")
        }
        return sealed
    }

    // MARK: Adoption

    /// What a new device shows.
    public struct Shown: Sendable {
        /// `pdo_…`.
        public let offer: String
        /// Four digits.
        public let checkCode: String
        /// In seconds.
        public let expiresIn = DeviceOffer.lifetime
    }

    /// Offers the key of a proof for adoption. Writes nothing but the used proof and the permits.
    /// - Throws: `unauthorized_client`, `invalid_request` for another App's client.
    public func offer(
        _ displayName: String?, clientID: String, proof: DeviceProof, realm: Realm, source: String
    ) async throws -> Shown {
        guard let client = realm.clients[clientID], Self.mayAdd(client) else {
            throw TokenError(.unauthorizedClient, "The client may not add trusted devices.")
        }
        try realm.requireAdmission(of: client)
        let offer = DeviceOffer(
            client: client.key, proof: proof, source: source, displayName: displayName, at: clock())
        let text = try offer.text(realm: realm.id, keyring: keyring)
        try await limiter.count(.trustedDevice, [.init(.source, source)], realm: realm, spending: proof.use)
        return Shown(offer: text, checkCode: offer.checkCode)
    }

    private static func mayAdd(_ client: Client) -> Bool {
        client.enabled && (client.mayUse(.device) || client.mayUse(.ciba))
    }

    /// What the owner reads before adopting.
    public struct Inspected: Sendable {
        /// As the new device calls itself.
        public let displayName: String?
        /// Of the app on it.
        public let clientName: String
        /// Where it asked from.
        public let source: String
        /// Seconds since the epoch.
        public let createdAt: Int
        /// In seconds.
        public let expiresIn: Int
    }

    /// - Returns: `nil` for an offer that cannot be adopted; whether it was already, only the adoption tells.
    public func inspect(_ text: String, realm: Realm) -> Inspected? {
        guard let (offer, client) = liveOffer(text, realm) else { return nil }
        return Inspected(
            displayName: offer.displayName,
            clientName: client.displayName.isEmpty ? client.clientID : client.displayName, source: offer.source,
            createdAt: offer.createdAt, expiresIn: offer.expiresAt - Int(clock()))
    }

    private func liveOffer(_ text: String, _ realm: Realm) -> (DeviceOffer, Client)? {
        guard let offer = DeviceOffer(text, realm: realm.id, keyring: keyring), Double(offer.expiresAt) > clock(),
            let client = realm.clients.values.first(where: { $0.key == offer.client }), Self.mayAdd(client)
        else { return nil }
        return (offer, client)
    }

    /// Adopts the device of an offer by the approval of a trusted one.
    /// - Parameter approval: a JWS (``SelfSignedJWS``) with `aud`, `iat`, `offer`, `jkt` and `check_code`.
    public func adopt(
        _ text: String, approval: String, realm: Realm, verified: VerifiedAccessToken, source: String
    ) async throws(StoreError) -> DeviceKeyStore.Adopted {
        guard let approval = SelfSignedJWS(approval) else { return .invalid }
        let claims = approval.claims
        let offer = liveOffer(text, realm)?.0
        let isValid =
            offer.map { offer in
                approval.type == "postern-adopt+jwt" && claims.text("aud") == realm.issuer
                    && claims.date("iat") != nil && claims.text("offer") == DeviceOffer.hash(of: text)
                    && claims.text("jkt") == Base64.urlEncode(offer.thumbprint)
                    // What is not four digits was not read off the other screen: it is no try.
                    && DeviceOffer.isCheckCode(claims.text("check_code"))
            } ?? false
        return try await store.adopt(
            realm: realm.id, session: verified.token.owner, approver: approval.thumbprint, isValid: isValid,
            offer: offer?.id ?? [], expiresAt: Double(offer?.expiresAt ?? 0),
            isRight: offer?.checkCode == claims.text("check_code"), client: offer?.client ?? verified.client.key,
            thumbprint: offer?.thumbprint ?? [], publicKey: offer?.publicKey ?? [], displayName: offer?.displayName,
            source: source)
    }
}

extension RateLimit.Policy {
    /// Calls by device keys, and offers of new ones.
    public static let trustedDevice = Self(rawValue: "trusted-device")
}
