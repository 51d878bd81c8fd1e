import Encoding
import Crypto
public import Persistence

/// A refresh token: self-identifying, authenticated, and followed by a successor that is derived, never stored.
///
/// Text: `prt_` + base64url of `keyID (4) ‖ session (16) ‖ generation (4, big endian) ‖ secret (32) ‖ tag (16)`. The
/// tag proves that this server issued the token, so a forged or altered one is refused without touching the database,
/// and an authentic token of an older generation is proof of reuse. The database holds SHA-256 of the live token's text
/// only. The successor's secret is `HMAC-SHA-256(server key, session ‖ generation ‖ presented secret)`: a repeated
/// request yields the same successor even when the first answer was lost.
public struct RefreshToken: Sendable, Equatable {
    /// The refresh family, which is the session (`sid`).
    public let session: UUIDValue
    /// Counts rotations; 0 at sign-in.
    public let generation: UInt32
    /// The token as handed to the client.
    public let text: String
    private let secret: [UInt8]
    private let realm: UUIDValue

    static let prefix = "prt_"
    private static let byteCount = 4 + 16 + 4 + 32 + 16

    private init(realm: UUIDValue, session: UUIDValue, generation: UInt32, secret: [UInt8], key: ServerKey) {
        self.realm = realm
        self.session = session
        self.generation = generation
        self.secret = secret
        var body: [UInt8] = []
        body.reserveCapacity(Self.byteCount)
        body += key.id
        body += session.bytes
        body += bigEndianBytes(generation)
        body += secret
        body += Self.tag(realm, body, key)
        text = Self.prefix + Base64.urlEncode(body)
    }

    /// The first token of a family, with a random secret.
    public static func first(realm: UUIDValue, session: UUIDValue, keyring: Keyring) -> RefreshToken {
        first(realm: realm, session: session, secret: randomBytes(32), key: keyring.newest)
    }

    /// The first token of a family. - Parameter secret: 32 bytes, random or derived from what only its owner sent.
    static func first(realm: UUIDValue, session: UUIDValue, secret: [UInt8], key: ServerKey) -> RefreshToken {
        RefreshToken(realm: realm, session: session, generation: 0, secret: secret, key: key)
    }

    /// Reads a presented token and checks its tag; `nil` for anything this server did not issue for the realm.
    public init?(_ presented: String, realm: UUIDValue, keyring: Keyring) {
        guard presented.utf8.count <= 128, presented.hasPrefix(Self.prefix),
            let bytes = Base64.urlDecode(presented.dropFirst(Self.prefix.count)), bytes.count == Self.byteCount,
            let key = keyring.key(id: bytes[..<4]),
            let session = UUIDValue(bytes: bytes[4..<20]),
            let generation = bytes[20..<24].bigEndianInteger(as: UInt32.self),
            constantTimeEqual(bytes[56...], Self.tag(realm, bytes[..<56], key))
        else { return nil }
        self.realm = realm
        self.session = session
        self.generation = generation
        secret = Array(bytes[24..<56])
        text = presented
    }

    /// What the database stores: SHA-256 of the text, 32 bytes.
    public var hash: [UInt8] { SHA256.hash(data: Array(text.utf8)).withUnsafeBytes { Array($0) } }

    /// The one token that follows this one, under each key of the ring, newest first.
    ///
    /// More than one because two nodes may disagree for a moment about which key is newest: the stored hash decides.
    public func successors(keyring: Keyring) -> [RefreshToken] {
        guard generation < UInt32(Int32.max) else { return [] }
        return keyring.keys.map { key in
            let derived = key.hmac(
                .refreshSuccessor, [realm.bytes, session.bytes, bigEndianBytes(generation + 1), secret])
            return RefreshToken(realm: realm, session: session, generation: generation + 1, secret: derived, key: key)
        }
    }

    private static func tag(_ realm: UUIDValue, _ body: some Collection<UInt8>, _ key: ServerKey) -> ArraySlice<UInt8> {
        key.hmac(.refreshTag, [realm.bytes, Array(body)])[..<16]
    }
}

/// Tells whether a refresh token is the live one of its family, without using it (RFC 7662).
public struct RefreshTokenVerifier: Sendable {
    let keyring: Keyring
    let sessions: SessionStore

    /// Creates a verifier.
    public init(keyring: Keyring, sessions: SessionStore) {
        self.keyring = keyring
        self.sessions = sessions
    }

    /// - Returns: `nil` unless the token is its family's current generation and the session is alive.
    public func verify(
        _ presented: String, realm: Realm
    ) async throws(StoreError) -> (token: RefreshToken, session: LiveSession)? {
        guard let token = RefreshToken(presented, realm: realm.id, keyring: keyring),
            let session = try await sessions.live(realm: realm.id, session: token.session, jti: []),
            realm.clients[session.clientID]?.enabled == true,
            let hash = session.refreshHash, constantTimeEqual(hash, token.hash),
            let expiresAt = session.refreshExpiresAt, session.now < expiresAt
        else { return nil }
        return (token, session)
    }
}
