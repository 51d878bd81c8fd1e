import Crypto
public import Persistence
import Synchronization

extension SealedSigningKey {
    /// The private half. - Throws: when the key file lacks the line that seals its data key.
    func opened(with keyring: Keyring, realm: UUIDValue) throws(KeyringError) -> [UInt8] {
        let aad = SigningKeys.aad(realm, kid)
        guard let dataKey else { throw .cannotOpen }
        return try keyring.open(dataKey, realm: realm).open(sealedPrivateKey, aad: aad)
    }
}

extension Realm {
    /// Whether the key file opens every signing key.
    public func signingKeysOpen(with keyring: Keyring) -> Bool {
        signingKeys.allSatisfy { (try? $0.opened(with: keyring, realm: id)) != nil }
    }

    /// The algorithm of the realm's latest own key, active or next; `nil` before there is one.
    public var signingAlgorithm: SigningAlgorithm? {
        signingKeys.filter(\.forRealm).max { $0.activatesAt < $1.activatesAt }.flatMap {
            SigningAlgorithm(rawValue: $0.alg)
        }
    }
}

/// Opens the realm's sealed signing keys once, makes a realm's first key when it is needed, and the next when it is
/// asked for.
public final class SigningKeys: Sendable {
    private let store: SigningKeyStore
    private let keyring: Keyring
    private let opened = Mutex<[String: SigningKey]>([:])
    /// The first key of each realm that got one within ``snapshotAge``, with that time. A request may still have a
    /// snapshot of the realm from before, and the tokens that this server has just signed are good all the same.
    /// A snapshot that has such a key, or its successor, is from after: it alone says what counts.
    private let made = Mutex<[UUIDValue: (key: SealedSigningKey, at: Double)]>([:])
    /// Seconds; a snapshot is read again within one.
    private static let snapshotAge = 5.0

    /// Keys are sealed with `keyring` and kept in `store`.
    public init(store: SigningKeyStore, keyring: Keyring) {
        self.store = store
        self.keyring = keyring
    }

    /// The key to sign with now: the newest active one of the client's own algorithm, else the newest active one of the
    /// realm. A realm without one gets its first on first use, in the client's algorithm if it has its own.
    /// - Parameters:
    ///   - client: `nil` for what is not meant for a client.
    ///   - now: seconds since the epoch.
    public func current(for realm: Realm, client: Client?, now: Double) async throws(TokenError) -> SigningKey {
        var own: SealedSigningKey?
        var realms: SealedSigningKey?
        for key in realm.signingKeys where key.activatesAt <= now && (key.retiresAt.map { $0 > now } ?? true) {
            if key.alg == client?.signingAlgorithm?.rawValue, key.activatesAt >= own?.activatesAt ?? 0 { own = key }
            if key.forRealm, key.activatesAt >= realms?.activatesAt ?? 0 { realms = key }
        }
        if let key = own ?? realms { return try open(key, realm: realm.id) }
        let algorithm = realm.signingKeys.isEmpty ? client?.signingAlgorithm : nil
        return try await open(makeFirst(for: realm, algorithm, forRealm: algorithm == nil, now: now), realm: realm.id)
    }

    /// The key of an algorithm to sign with now; a realm without one gets it on first use, beside its own.
    func current(
        for realm: Realm, algorithm: SigningAlgorithm, now: Double
    ) async throws(TokenError) -> SigningKey {
        if let key = active(algorithm, of: realm, now: now) { return try open(key, realm: realm.id) }
        let forRealm = realm.signingKeys.isEmpty && algorithm == .es256
        return try await open(makeFirst(for: realm, algorithm, forRealm: forRealm, now: now), realm: realm.id)
    }

    /// The published keys of an algorithm (RFC 7517 §5), the one that signs first.
    func jwks(for realm: Realm, algorithm: SigningAlgorithm, now: Double) async throws(TokenError) -> [UInt8] {
        let signing = try await current(for: realm, algorithm: algorithm, now: now).kid
        var keys = realm.signingKeys.filter { $0.alg == algorithm.rawValue && $0.retiresAt.map { $0 > now } ?? true }
        if let made = made.withLock({ $0[realm.id]?.key }), made.kid == signing, !keys.contains(made) {
            keys.append(made)
        }
        let sorted = keys.filter { $0.kid == signing } + keys.filter { $0.kid != signing }
        return Array("{\"keys\":[\(sorted.map(\.publicJWK).joined(separator: ","))]}".utf8)
    }

    private func active(_ algorithm: SigningAlgorithm, of realm: Realm, now: Double) -> SealedSigningKey? {
        realm.signingKeys.filter {
            $0.alg == algorithm.rawValue && $0.activatesAt <= now && ($0.retiresAt.map { $0 > now } ?? true)
        }.max { $0.activatesAt < $1.activatesAt }
    }

    /// The realm's JWK Set (RFC 7517 §5): every key not yet retired, the next one included.
    public func jwks(for realm: Realm, now: Double) async throws(TokenError) -> [UInt8] {
        var keys = realm.signingKeys.filter { $0.retiresAt.map { $0 > now } ?? true }
        // Beside keys of other algorithms the realm's own is made before the first token.
        if !keys.contains(where: \.forRealm) {
            keys.append(try await makeFirst(for: realm, nil, forRealm: true, now: now))
        }
        let set = keys.map(\.publicJWK).joined(separator: ",")
        return Array("{\"keys\":[\(set)]}".utf8)
    }

    /// The algorithms of the published keys: what a verifier may meet.
    public static func algorithms(of realm: Realm, now: Double) -> [String] {
        let published = realm.signingKeys.filter { $0.retiresAt.map { $0 > now } ?? true }
        var algorithms = Set(published.map(\.alg))
        // What the realm's first key will be.
        if !published.contains(where: \.forRealm) { algorithms.insert(SigningAlgorithm.es256.rawValue) }
        return algorithms.sorted()
    }

    /// Which key a rotation is to make, and when it is to sign.
    public enum Rotation: Sendable {
        /// What an administrator recorded; done by one server only.
        case requested
        /// By a command. `now`: sign at once. `forRealm`: for every client that asks for no algorithm of its own.
        case commanded(now: Bool, forRealm: Bool)
    }

    /// Makes and publishes the next key of an algorithm.
    /// - Returns: the next key, which is an earlier one when it was still waiting; `nil` when another server was
    ///   faster.
    public func rotate(
        realm: UUIDValue, _ algorithm: SigningAlgorithm, _ rotation: Rotation, source: String
    ) async throws(TokenError) -> SealedSigningKey? {
        let (key, sealed) = try await make(algorithm, realm: realm)
        let now = if case .commanded(now: true, _) = rotation { true } else { false }
        let forRealm = if case .commanded(_, forRealm: true) = rotation { true } else { false }
        let requested = if case .requested = rotation { true } else { false }
        do {
            let next = try await store.rotate(
                realm: realm, kid: key.kid, alg: algorithm.rawValue, publicJWK: key.publicJWK, sealed: sealed, now: now,
                forRealm: forRealm, requested: requested, source: source)
            return try next.map { try SealedSigningKey($0) }
        } catch {
            throw .unavailable("signing key: \(error)")
        }
    }

    /// Does what administrators asked for with `admin.rotate_signing_key`. - Returns: the number of keys published.
    public func carryOutRequests() async throws(TokenError) -> Int {
        var published = 0
        let requests: [(realm: UUIDValue, alg: String)]
        do { requests = try await store.requests() } catch { throw TokenError(error) }
        for request in requests {
            guard let algorithm = SigningAlgorithm(rawValue: request.alg) else { continue }
            if try await rotate(realm: request.realm, algorithm, .requested, source: "server") != nil { published += 1 }
        }
        return published
    }

    /// The key a presented JWT names, if the realm still publishes it.
    func verifier(header: some StringProtocol, typ: String, realm: Realm, now: Double) -> SigningKey? {
        var published = realm.signingKeys
        if let made = made.withLock({ $0[realm.id] }), now - made.at < Self.snapshotAge,
            made.key.forRealm
                ? !published.contains(where: \.forRealm) : !published.contains(where: { $0.alg == made.key.alg })
        {
            published.append(made.key)
        }
        for sealed in published where sealed.retiresAt.map({ $0 > now }) ?? true {
            if let key = try? open(sealed, realm: realm.id), key.header(typ: typ) == header { return key }
        }
        return nil
    }

    /// The claims of a JWT that the realm signed as one of this type; `nil` for any other text.
    func claims(
        of text: String, maximumBytes: Int = JWS.maximumBytes, typ: String, realm: Realm, now: Double
    ) -> JOSEObject? {
        RealmJWT(text, maximumBytes: maximumBytes) { header, signature, input in
            verifier(header: header, typ: typ, realm: realm, now: now)?.isValidSignature(signature, for: input)
                ?? false
        }?.claims
    }

    private func open(_ sealed: SealedSigningKey, realm: UUIDValue) throws(TokenError) -> SigningKey {
        if let key = opened.withLock({ $0[sealed.kid] }) { return key }
        guard let raw = try? sealed.opened(with: keyring, realm: realm),
            let privateKey = Self.privateKey(raw, alg: sealed.alg)
        else { throw .unavailable("signing key cannot be opened with this key file") }
        let key = SigningKey(kid: sealed.kid, privateKey: privateKey)
        opened.withLock { $0[sealed.kid] = key }
        return key
    }

    private static func privateKey(_ raw: [UInt8], alg: String) -> SigningKey.PrivateKey? {
        switch SigningAlgorithm(rawValue: alg) {
        case .es256: (try? P256.Signing.PrivateKey(rawRepresentation: raw)).map { .es256($0) }
        case .edDSA: (try? Curve25519.Signing.PrivateKey(rawRepresentation: raw)).map { .edDSA($0) }
        case .rs256: (try? RSAPrivateKey(der: raw)).map { .rs256($0) }
        case nil: nil
        }
    }

    private func makeFirst(
        for realm: Realm, _ algorithm: SigningAlgorithm?, forRealm: Bool, now: Double
    ) async throws(TokenError) -> SealedSigningKey {
        let algorithm = algorithm ?? .es256
        let (key, sealed) = try await make(algorithm, realm: realm.id)
        do {
            let inForce = try await store.add(
                realm: realm.id, kid: key.kid, alg: algorithm.rawValue, publicJWK: key.publicJWK, sealed: sealed,
                forRealm: forRealm)
            let first = try SealedSigningKey(inForce)
            made.withLock { made in
                made = made.filter { now - $0.value.at < Self.snapshotAge }
                made[realm.id] = (first, now)
            }
            return first
        } catch {
            throw .unavailable("signing key: \(error)")
        }
    }

    private func make(
        _ algorithm: SigningAlgorithm, realm: UUIDValue
    ) async throws(TokenError) -> (NewSigningKey, sealed: [UInt8]) {
        let key = try await NewSigningKey.make(algorithm)
        do {
            let dataKey = try await store.dataKeys.current(.signingKey, realm: realm, keyring: keyring)
            return (key, try dataKey.seal(key.privateBytes, aad: Self.aad(realm, key.kid)))
        } catch {
            throw .unavailable("data key: \(error)")
        }
    }

    /// What a sealed private half belongs to.
    static func aad(_ realm: UUIDValue, _ kid: String) -> [UInt8] {
        Array("signing key".utf8) + realm.bytes + Array(kid.utf8)
    }
}
