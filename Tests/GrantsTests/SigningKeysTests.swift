import Foundation
@testable import Grants
import Logging
import Persistence
import TestSupport
import Testing

@Suite("Signing keys")
struct SigningKeysTests {
    private static let now = 1_800_000_000.0
    private let keyring = Keyring.fixture()
    private let realmID = UUIDValue.random()
    /// Its store is not connected: what these tests ask for needs no database.
    private let keys: SigningKeys

    init() {
        let database = Database(
            configuration: DatabaseConfiguration(conninfo: ""),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        keys = SigningKeys(store: SigningKeyStore(database), keyring: keyring)
    }

    /// A key as the configuration holds it. Times are seconds from now.
    private func key(
        _ algorithm: SigningAlgorithm = .es256, from: Double = -3600, until: Double? = nil, forRealm: Bool = true,
        sealedBy ring: Keyring? = nil
    ) async throws -> SealedSigningKey {
        let made = try await NewSigningKey.make(algorithm)
        let dataKey = try (ring ?? keyring).makeDataKey(.signingKey, realm: realmID)
        let sealed = try (ring ?? keyring).open(dataKey, realm: realmID)
            .seal(made.privateBytes, aad: SigningKeys.aad(realmID, made.kid))
        return SealedSigningKey(
            kid: made.kid, alg: algorithm.rawValue, forRealm: forRealm, publicJWK: made.publicJWK,
            sealedPrivateKey: sealed, dataKey: dataKey, activatesAt: Self.now + from,
            retiresAt: until.map { Self.now + $0 })
    }

    private func realm(_ keys: SealedSigningKey...) throws -> Realm {
        try .fixture(id: realmID, signingKeys: keys)
    }

    private func signer(_ realm: Realm, _ algorithm: SigningAlgorithm? = nil, at offset: Double = 0) async throws
        -> String
    {
        let client = Client.fixture("app", signingAlgorithm: algorithm)
        return try await keys.current(for: realm, client: client, now: Self.now + offset).kid
    }

    private func published(_ realm: Realm, at offset: Double = 0) async throws -> [String] {
        struct Set: Decodable {
            struct Key: Decodable { let kid: String }
            let keys: [Key]
        }
        let json = try await keys.jwks(for: realm, now: Self.now + offset)
        return try JSONDecoder().decode(Set.self, from: Data(json)).keys.map(\.kid)
    }

    @Test func `the newest key signs from the moment it is active, and the former one until then`() async throws {
        let (old, next) = (try await key(), try await key(from: 600))
        for realm in [try realm(next, old), try realm(old, next)] {
            #expect(try await signer(realm, at: 599.9) == old.kid)
            #expect(try await signer(realm, at: 600) == next.kid)
        }
    }

    @Test func `a retired key signs nothing`() async throws {
        let (old, retiring) = (try await key(from: -7200), try await key(from: -3600, until: 10))
        #expect(try await signer(realm(retiring, old), at: 9.9) == retiring.kid)
        #expect(try await signer(realm(retiring, old), at: 10) == old.kid)
    }

    @Test func `a client's own algorithm wins once its key is active, and other clients do not get that key`()
        async throws
    {
        let (ours, theirs) = (try await key(), try await key(.edDSA, from: 0, forRealm: false))
        let realm = try realm(theirs, ours)
        #expect(try await signer(realm, .edDSA) == theirs.kid)
        #expect(try await signer(realm, .edDSA, at: -1) == ours.kid)
        #expect(try await signer(realm, .rs256) == ours.kid)
        #expect(try await signer(realm) == ours.kid)
    }

    @Test func `a key is published before it signs and until it retires`() async throws {
        let (old, next) = (try await key(until: 4500), try await key(from: 600))
        let realm = try realm(next, old)
        #expect(try await published(realm) == [next.kid, old.kid])
        #expect(try await published(realm, at: 4499.9) == [next.kid, old.kid])
        #expect(try await published(realm, at: 4500) == [next.kid])
    }

    @Test func `the algorithms are those of the published keys, ES256 before there is one`() async throws {
        let realm = try realm(try await key(.rs256, until: 10), try await key(.edDSA), try await key(.edDSA, from: 600))
        #expect(SigningKeys.algorithms(of: realm, now: Self.now) == ["EdDSA", "RS256"])
        #expect(SigningKeys.algorithms(of: realm, now: Self.now + 10) == ["EdDSA"])
        #expect(SigningKeys.algorithms(of: try .fixture(), now: Self.now) == ["ES256"])
    }

    @Test func `a token is verified by the key that its header names, while that is published`() async throws {
        let (one, two) = (try await key(until: 10), try await key())
        let realm = try realm(two, one)
        let header = JWSHeader.text(alg: "ES256", typ: "at+jwt", kid: one.kid)
        #expect(keys.verifier(header: header, typ: "at+jwt", realm: realm, now: Self.now)?.kid == one.kid)
        #expect(keys.verifier(header: header, typ: "JWT", realm: realm, now: Self.now) == nil)
        #expect(keys.verifier(header: header, typ: "at+jwt", realm: realm, now: Self.now + 10) == nil)
        let none = JWSHeader.text(alg: "none", typ: "at+jwt", kid: one.kid)
        #expect(keys.verifier(header: none, typ: "at+jwt", realm: realm, now: Self.now) == nil)
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func `what a key signs is verified by its published half, and no changed byte is`(
        _ algorithm: SigningAlgorithm
    ) async throws {
        let sealed = try await key(algorithm)
        let signing = try await keys.current(for: realm(sealed), client: .fixture("app"), now: Self.now)
        let jwt = try signing.sign(Array(#"{"sub":"ada"}"#.utf8), typ: "JWT")
        let publicKey = try JSONDecoder().decode(ClientKey.self, from: Data(sealed.publicJWK.utf8))
        #expect(try #require(RegisteredJWS(jwt)).isSigned(by: [publicKey]))
        let other = try signing.sign(Array(#"{"sub":"eve"}"#.utf8), typ: "JWT")
        let mixed = jwt.split(separator: ".")[0...1].joined(separator: ".") + "." + other.split(separator: ".")[2]
        #expect(try #require(RegisteredJWS(mixed)).isSigned(by: [publicKey]) == false)
    }

    @Test func `a key that the key file cannot open is published all the same, and signs nothing`() async throws {
        let realm = try realm(try await key(sealedBy: .fixture(7)))
        #expect(try await published(realm).count == 1)
        let error = await #expect(throws: TokenError.self) { try await signer(realm) }
        #expect(error?.code == .temporarilyUnavailable)
    }

    @Test func `a private half of another realm does not open`() async throws {
        let foreign = try Realm.fixture(signingKeys: [try await key()])
        let error = await #expect(throws: TokenError.self) { try await signer(foreign) }
        #expect(error?.code == .temporarilyUnavailable)
    }

    @Test func `without a database a realm without a key has none, and says so`() async throws {
        let error = await #expect(throws: TokenError.self) { try await signer(.fixture()) }
        #expect(error?.code == .temporarilyUnavailable)
        await #expect(throws: TokenError.self) { try await published(.fixture()) }
    }
}

@Suite("Signing keys in the database")
struct StoredSigningKeysTests {
    private static let database = Task { try await MigratedDatabase() }

    /// A new realm without a key, and what reads it as it is now.
    private func realm(_ slug: String) async throws -> (slug: String, read: () async throws -> Realm) {
        let migrated = try await Self.database.value
        try await migrated.administer("SELECT admin.put_realm('\(slug)', '\(slug).example')")
        return (slug, { try #require(try await Realm.named(slug, in: ConfigurationStore(migrated.database))) })
    }

    private func node() async throws -> SigningKeys {
        SigningKeys(store: SigningKeyStore(try await Self.database.value.database), keyring: .fixture())
    }

    private var now: Double { Date().timeIntervalSince1970 }

    @Test func `nodes that need a realm's first key at the same time agree on one`() async throws {
        let realm = try await realm("first")
        let before = try await realm.read()
        #expect(before.signingKeys.isEmpty)
        let (nodes, now) = ([try await node(), try await node(), try await node(), try await node()], now)
        let signers = try await withThrowingTaskGroup(of: String.self) { group in
            for node in nodes {
                group.addTask { try await node.current(for: before, client: .fixture("app"), now: now).kid }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        let stored = try await realm.read().signingKeys
        #expect(stored.map(\.kid) == Array(signers))
        #expect(stored.first?.forRealm == true)
    }

    @Test func `a realm's first token is verified although the snapshot is from before its key`() async throws {
        let realm = try await realm("fresh")
        let (before, other, node, now) = (
            try await realm.read(), try await self.realm("stale").read(), try await node(), now
        )
        #expect(before.signingKeys.isEmpty)
        let key = try await node.current(for: before, client: .fixture("app"), now: now)
        let header = key.header(typ: "at+jwt")
        #expect(node.verifier(header: header, typ: "at+jwt", realm: before, now: now + 1)?.kid == key.kid)
        #expect(node.verifier(header: header, typ: "at+jwt", realm: other, now: now + 1) == nil)
        #expect(node.verifier(header: header, typ: "at+jwt", realm: before, now: now + 6) == nil)
        #expect(
            try await node.verifier(header: header, typ: "at+jwt", realm: realm.read(), now: now + 6)?.kid == key.kid)
    }

    @Test func `a first key that is withdrawn within seconds is refused by a snapshot that has its successor`()
        async throws
    {
        let realm = try await realm("withdrawn")
        let (before, node, now) = (try await realm.read(), try await node(), now)
        let first = try await node.current(for: before, client: .fixture("app"), now: now)
        let next = try await node.rotate(
            realm: before.id, .es256, .commanded(now: true, forRealm: true), source: "test")
        let after = try Realm.fixture(id: before.id, signingKeys: [#require(next)])
        #expect(node.verifier(header: first.header(typ: "at+jwt"), typ: "at+jwt", realm: after, now: now + 1) == nil)
    }

    @Test
    func `a key that an administrator asks for is published once, signs ten minutes later, and outlives no token`()
        async throws
    {
        let realm = try await realm("rotated")
        let node = try await node()
        let first = try await node.current(for: realm.read(), client: .fixture("app"), now: now).kid
        let migrated = try await Self.database.value
        try await migrated.administer("SELECT admin.rotate_signing_key('\(realm.slug)', 'EdDSA')")
        async let one = node.carryOutRequests()
        async let two = self.node().carryOutRequests()
        #expect(try await one + two == 1)
        let after = try await realm.read()
        let next = try #require(after.signingKeys.first { $0.kid != first })
        #expect(after.signingKeys.count == 2)
        #expect(next.alg == "EdDSA")
        #expect(try await node.current(for: after, client: .fixture("app"), now: now).kid == first)
        #expect(try await node.current(for: after, client: .fixture("app"), now: now + 601).kid == next.kid)
        let retires = try #require(after.signingKeys.first { $0.kid == first }?.retiresAt)
        #expect(retires >= next.activatesAt + 3600)
        #expect(try await node.carryOutRequests() == 0)
    }
}
