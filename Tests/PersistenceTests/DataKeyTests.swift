import Foundation
import Persistence
import Testing

@Suite("Data keys")
struct DataKeyTests {
    private let realm = UUIDValue.random()

    private func ring(_ numbers: UInt8...) throws -> Keyring {
        try Keyring(
            parsing: numbers.map { Data(repeating: $0, count: 32).base64EncodedString() }.joined(separator: "\n"))
    }

    @Test func `a data key opens for its realm, row and purpose only`() throws {
        let keyring = try ring(1)
        let key = try keyring.makeDataKey(.totpSeed, realm: realm)
        #expect(throws: Never.self) { try keyring.open(key, realm: realm) }
        #expect(throws: KeyringError.cannotOpen) { try keyring.open(key, realm: .random()) }
        #expect(throws: KeyringError.cannotOpen) {
            try keyring.open(SealedDataKey(id: .random(), purpose: .totpSeed, sealed: key.sealed), realm: realm)
        }
        #expect(throws: KeyringError.cannotOpen) {
            try keyring.open(SealedDataKey(id: key.id, purpose: .signingKey, sealed: key.sealed), realm: realm)
        }
        #expect(throws: KeyringError.unknownKey) { try ring(2).open(key, realm: realm) }
    }

    @Test func `what it sealed names it, and is opened by it alone`() throws {
        let keyring = try ring(1)
        let key = try keyring.open(keyring.makeDataKey(.signingKey, realm: realm), realm: realm)
        let other = try keyring.open(keyring.makeDataKey(.signingKey, realm: realm), realm: realm)
        let sealed = try key.seal([1, 2, 3], aad: [4])
        #expect(DataKey.id(in: sealed) == key.id)
        #expect(try key.open(sealed, aad: [4]) == [1, 2, 3])
        #expect(throws: KeyringError.cannotOpen) { try key.open(sealed, aad: [5]) }
        #expect(throws: KeyringError.cannotOpen) { try other.open(sealed, aad: [4]) }
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 1
            #expect(throws: KeyringError.cannotOpen) { try key.open(altered, aad: [4]) }
            #expect(throws: KeyringError.cannotOpen) { try key.open(Array(sealed[..<position]), aad: [4]) }
        }
    }

    @Test func `a new line changes the seal of a data key and nothing that it made`() throws {
        let key = try ring(1).makeDataKey(.recoveryCode, realm: realm)
        let before = try ring(1).open(key, realm: realm)
        let moved = try ring(2, 1).reseal(key, realm: realm)
        let after = try ring(2).open(moved, realm: realm)
        #expect(moved.id == key.id && moved.sealed != key.sealed)
        #expect(after.hmac([[1], [2]]) == before.hmac([[1], [2]]))
        #expect(throws: KeyringError.unknownKey) { try ring(2).reseal(key, realm: realm) }
    }
}

@Suite("What lines of the key file protect")
struct KeyLineUseTests {
    private let keyring: Keyring
    private var newest: [UInt8] { keyring.keys[0].id }
    private var older: [UInt8] { keyring.keys[1].id }

    init() throws {
        keyring = try Keyring(parsing: Keyring.generateLine() + "\n" + Keyring.generateLine())
    }

    @Test func `a line on which nothing stands may be removed, but never the newest`() {
        var use = KeyLineUse()
        use.add(3, .session, to: newest)
        use.add(0, .session, to: older)
        #expect(use.removable(from: keyring) == [keyring.keys[1].name])
        #expect(use.missing(from: keyring).isEmpty)
        use.add(1, .session, to: older)
        #expect(use.removable(from: keyring).isEmpty)
    }

    @Test func `a line that something stands on and the file lacks is missing`() {
        var use = KeyLineUse()
        use.add(2, .totpSeed, to: [1, 2, 3, 4])
        #expect(use.missing(from: keyring) == ["01020304"])
        #expect(use.sentence(for: "01020304") == "2 TOTP seeds")
    }

    @Test func `what stands on a line is told in words`() {
        var use = KeyLineUse()
        use.add(2, .dataKey, to: newest)
        use.add(1, .signingKey, to: newest)
        use.add(40, .totpSeed, to: newest)
        use.add(12, .session, to: newest)
        #expect(
            use.sentence(for: keyring.newest.name) == "2 data keys (1 signing key, 40 TOTP seeds), 12 live sessions")
        #expect(use.sentence(for: "00000000") == nil)
    }
}
