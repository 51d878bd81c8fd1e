import Crypto
public import Persistence
import Synchronization

/// A signing key ready for use.
public struct SigningKey: Sendable {
    /// Key identifier.
    public let kid: String
    /// ES256 private key.
    let privateKey: P256.Signing.PrivateKey

    /// The JWS protected header, base64url: tokens of this key carry exactly these characters.
    func header(typ: String) -> String {
        var header = JSONWriter(reserving: 128)
        header.member("alg", "ES256")
        header.member("typ", typ)
        header.member("kid", kid)
        return Base64.urlEncode(header.finish())
    }

    /// A compact JWS over `claims` (RFC 7515 §3.1): our own few lines over the signature primitive (design decision 12).
    func sign(_ claims: [UInt8], typ: String) throws(TokenError) -> String {
        let input = header(typ: typ) + "." + Base64.urlEncode(claims)
        guard let signature = try? privateKey.signature(for: Array(input.utf8)) else { throw .unavailable("sign") }
        return input + "." + Base64.urlEncode(signature.rawRepresentation)
    }
}

extension Realm {
    /// Whether every signing key was sealed under a key of the ring.
    public func signingKeysOpen(with keyring: Keyring) -> Bool {
        signingKeys.allSatisfy {
            (try? keyring.open($0.sealedPrivateKey, aad: SigningKeys.aad(id, $0.kid))) != nil
        }
    }
}

/// Opens the realm's sealed signing keys once, and makes a realm's first key when it is needed.
public final class SigningKeys: Sendable {
    private let store: SigningKeyStore
    private let keyring: Keyring
    private let opened = Mutex<[String: SigningKey]>([:])

    /// Keys are sealed with `keyring` and kept in `store`.
    public init(store: SigningKeyStore, keyring: Keyring) {
        self.store = store
        self.keyring = keyring
    }

    /// The key to sign with now: the most recently activated one, made on first use.
    /// - Parameter now: seconds since the epoch.
    public func current(for realm: Realm, now: Double) async throws(TokenError) -> SigningKey {
        let usable = realm.signingKeys.filter {
            $0.alg == "ES256" && $0.activatesAt <= now && ($0.retiresAt.map { $0 > now } ?? true)
        }
        if let newest = usable.max(by: { $0.activatesAt < $1.activatesAt }) {
            return try open(newest, realm: realm.id)
        }
        return try await open(makeFirst(for: realm), realm: realm.id)
    }

    /// The realm's JWK Set (RFC 7517 §5): every key not yet retired, the next one included.
    public func jwks(for realm: Realm, now: Double) async throws(TokenError) -> [UInt8] {
        var keys = realm.signingKeys.filter { $0.retiresAt.map { $0 > now } ?? true }
        if keys.isEmpty { keys = [try await makeFirst(for: realm)] }
        let set = keys.map(\.publicJWK).joined(separator: ",")
        return Array("{\"keys\":[\(set)]}".utf8)
    }

    /// The key a presented JWT names, if the realm still publishes it.
    func verifier(header: some StringProtocol, typ: String, realm: Realm, now: Double) -> SigningKey? {
        for sealed in realm.signingKeys where sealed.retiresAt.map({ $0 > now }) ?? true {
            if let key = try? open(sealed, realm: realm.id), key.header(typ: typ) == header { return key }
        }
        return nil
    }

    private func open(_ sealed: SealedSigningKey, realm: UUIDValue) throws(TokenError) -> SigningKey {
        if let key = opened.withLock({ $0[sealed.kid] }) { return key }
        guard let raw = try? keyring.open(sealed.sealedPrivateKey, aad: Self.aad(realm, sealed.kid)),
            let privateKey = try? P256.Signing.PrivateKey(rawRepresentation: raw)
        else { throw .unavailable("signing key cannot be opened with this key file") }
        let key = SigningKey(kid: sealed.kid, privateKey: privateKey)
        opened.withLock { $0[sealed.kid] = key }
        return key
    }

    private func makeFirst(for realm: Realm) async throws(TokenError) -> SealedSigningKey {
        let privateKey = P256.Signing.PrivateKey()
        let point = privateKey.publicKey.rawRepresentation
        let kid = Self.thumbprint(point)
        var jwk = JSONWriter(reserving: 256)
        jwk.member("kty", "EC")
        jwk.member("crv", "P-256")
        jwk.member("x", Base64.urlEncode(point.prefix(32)))
        jwk.member("y", Base64.urlEncode(point.suffix(32)))
        jwk.member("kid", kid)
        jwk.member("use", "sig")
        jwk.member("alg", "ES256")
        guard let sealed = try? keyring.seal(Array(privateKey.rawRepresentation), aad: Self.aad(realm.id, kid)) else {
            throw .unavailable("seal")
        }
        let publicJWK = String(decoding: jwk.finish(), as: UTF8.self)
        do {
            let inForce = try await store.add(
                realm: realm.id, kid: kid, alg: "ES256", publicJWK: publicJWK, sealed: sealed)
            return try SealedSigningKey(inForce)
        } catch {
            throw .unavailable("signing key: \(error)")
        }
    }

    /// JWK thumbprint (RFC 7638), shortened to 128 bits: a stable `kid` without a registry.
    private static func thumbprint(_ point: some Collection<UInt8>) -> String {
        let x = Base64.urlEncode(Array(point.prefix(32)))
        let y = Base64.urlEncode(Array(point.suffix(32)))
        let digest = SHA256.hash(data: Array(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#.utf8))
        return Base64.urlEncode(Array(digest.prefix(16)))
    }

    fileprivate static func aad(_ realm: UUIDValue, _ kid: String) -> [UInt8] {
        Array("signing key".utf8) + realm.bytes + Array(kid.utf8)
    }
}
