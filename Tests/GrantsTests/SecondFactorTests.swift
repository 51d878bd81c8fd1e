import Encoding
@testable import Grants
import Persistence
import Testing

@Suite("TOTP")
struct TOTPTests {
    /// "12345678901234567890": the seed of both appendices.
    private static let seed = Array("12345678901234567890".utf8)

    @Test(
        "RFC 4226 appendix D: the first ten values",
        arguments: zip(
            0..<10,
            ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]))
    func hotp(_ counter: Int, _ code: String) {
        #expect(TOTP.code(Self.seed, step: Int64(counter)) == code)
    }

    @Test(
        "RFC 6238 appendix B: SHA-1, the last six of the eight digits",
        arguments: [
            (59.0, "94287082"), (1_111_111_109, "07081804"), (1_111_111_111, "14050471"), (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"), (20_000_000_000, "65353130"),
        ])
    func totp(_ instant: Double, _ code: String) {
        #expect(TOTP.code(Self.seed, step: TOTP.step(at: instant)) == String(code.suffix(6)))
    }

    @Test(
        "a step and its neighbours are accepted, no others",
        arguments: [(-2, false), (-1, true), (0, true), (1, true), (2, false)])
    func window(_ offset: Int64, _ good: Bool) {
        for now in [1_111_111_110.0, 1_111_111_139.999] {
            let code = TOTP.code(Self.seed, step: TOTP.step(at: now) + offset)
            #expect(
                TOTP.match(TypedCode(code), seed: Self.seed, now: now, after: nil)
                    == (good ? TOTP.step(at: now) + offset : nil))
        }
    }

    @Test func `a step is matched only while later than the one used last`() {
        let now = 1_111_111_110.0
        let step = TOTP.step(at: now)
        let code = TOTP.code(Self.seed, step: step)
        #expect(TOTP.match(TypedCode(code), seed: Self.seed, now: now, after: Double((step - 1) * 30)) == step)
        #expect(TOTP.match(TypedCode(code), seed: Self.seed, now: now, after: Double(step * 30)) == nil)
        #expect(TOTP.match(TypedCode(code), seed: Self.seed, now: now, after: Double((step + 1) * 30)) == nil)
    }

    @Test func `spaces between the digits do not count`() {
        let now = 1_111_111_110.0
        let code = TOTP.code(Self.seed, step: TOTP.step(at: now))
        let typed = TypedCode(" \(code.prefix(3)) \(code.suffix(3)) ")
        #expect(TOTP.match(typed, seed: Self.seed, now: now, after: nil) != nil)
    }

    @Test(
        "anything but six digits matches nothing",
        arguments: ["", "1", "-", "abcdef", "１２３４５６", "0000000", String(repeating: "1", count: 10_240)])
    func garbage(_ text: String) {
        #expect(TOTP.match(TypedCode(text), seed: Self.seed, now: 1_111_111_110, after: nil) == nil)
    }

    @Test func `a code with a digit more or less is wrong`() {
        let now = 1_111_111_110.0
        let code = TOTP.code(Self.seed, step: TOTP.step(at: now))
        for variant in [String(code.dropLast()), code + "0", "0" + code] {
            #expect(TOTP.match(TypedCode(variant), seed: Self.seed, now: now, after: nil) == nil)
        }
    }
}

@Suite("TOTP seeds")
struct TOTPSeedTests {
    private let keyring = Keyring.fixture()
    private let realm = UUIDValue.random()

    @Test func `a seed is 160 bits and 32 characters, and no two are alike`() {
        let seeds = (0..<100).map { _ in TOTPSeed.random() }
        #expect(seeds.allSatisfy { $0.bytes.count == 20 && $0.base32.utf8.count == 32 })
        #expect(Set(seeds.map(\.base32)).count == 100)
    }

    @Test func `the URI is what authenticator apps read`() {
        let seed = TOTPSeed(bytes: Array("12345678901234567890".utf8))
        #expect(
            seed.uri(issuer: "Fjörd: Bank", account: "ada+x@example.com")
                == "otpauth://totp/Fj%C3%B6rd%20%20Bank:ada%2Bx%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
                + "&issuer=Fj%C3%B6rd%20%20Bank&algorithm=SHA1&digits=6&period=30")
    }

    @Test func `a sealed seed opens for its realm and row only`() throws {
        let seed = TOTPSeed.random()
        let factor = UUIDValue.random()
        let key = try keyring.makeDataKey(.totpSeed, realm: realm)
        let sealed = try seed.sealed(under: keyring.open(key, realm: realm), realm: realm, factor: factor)
        #expect(sealed.count == 4 + 16 + 24 + 20 + 16)
        #expect(DataKey.id(in: sealed) == key.id)
        let material = try SecondFactorMaterial(framed(key.sealed, sealed))
        #expect(try material.seed(keyring: keyring, realm: realm, factor: factor) == seed)
        #expect(try material.seed(keyring: .fixture(2, 1), realm: realm, factor: factor) == seed)
        #expect(throws: TokenError.self) { try material.seed(keyring: keyring, realm: .random(), factor: factor) }
        #expect(throws: TokenError.self) { try material.seed(keyring: keyring, realm: realm, factor: .random()) }
        #expect(throws: TokenError.self) { try material.seed(keyring: .fixture(2), realm: realm, factor: factor) }
    }

    @Test func `a new line of the key file seals the data key anew and leaves the seed alone`() throws {
        let seed = TOTPSeed.random()
        let factor = UUIDValue.random()
        let key = try keyring.makeDataKey(.totpSeed, realm: realm)
        let sealed = try seed.sealed(under: keyring.open(key, realm: realm), realm: realm, factor: factor)
        let moved = try Keyring.fixture(2, 1).reseal(key, realm: realm)
        let material = try SecondFactorMaterial(framed(moved.sealed, sealed))
        #expect(try material.seed(keyring: .fixture(2), realm: realm, factor: factor) == seed)
        #expect(throws: TokenError.self) { try material.seed(keyring: .fixture(1), realm: realm, factor: factor) }
    }

    @Test func `recovery codes are compared under the data keys that come with the seed`() throws {
        let factor = UUIDValue.random()
        let seedKey = try keyring.makeDataKey(.totpSeed, realm: realm)
        let seed = try TOTPSeed.random().sealed(
            under: keyring.open(seedKey, realm: realm), realm: realm, factor: factor)
        let sealedKey = try keyring.makeDataKey(.recoveryCode, realm: realm)
        let key = try keyring.open(sealedKey, realm: realm)
        let material = try SecondFactorMaterial(framed(seedKey.sealed, seed, sealedKey.id.bytes + sealedKey.sealed))
        let candidates = try material.candidates(
            for: TypedCode("0123-456a-1bcd"), keyring: keyring, realm: realm, factor: factor)
        #expect(
            candidates == [RecoveryCode.keyed(TypedCode("0123-456a-1bcd"), realm: realm, factor: factor, under: key)])
        #expect(throws: TokenError.self) {
            try material.candidates(
                for: TypedCode("0123-456a-1bcd"), keyring: .fixture(2), realm: realm, factor: factor)
        }
    }

    @Test(
        "material that is cut short or foreign opens nothing",
        arguments: [
            [], [0x03, 0x70, 0x64, 0x6B], [0x03, 0x70, 0x64, 0x6B, 0, 0, 0, 9, 1],
            [0x03, 0x70, 0x64, 0x6B, 0xFF, 0xFF, 0xFF, 0xFF],
        ]
            as [[UInt8]])
    func foreignMaterial(_ bytes: [UInt8]) {
        #expect(throws: TokenError.self) {
            try SecondFactorMaterial(bytes).seed(keyring: keyring, realm: realm, factor: .random())
        }
    }

    private func framed(_ values: [UInt8]...) -> [UInt8] {
        values.reduce(into: [0x03] + Array("pdk".utf8)) { $0 += bigEndianBytes(UInt32($1.count)) + $1 }
    }

    @Test func `a ceremony is read back as made, by its realm and key only`() throws {
        let ceremony = TOTPCeremony(client: .random(), session: .random(), expiresAt: 1_234_567_890)
        let text = try ceremony.text(realm: realm, keyring: keyring)
        #expect(TOTPCeremony(text, realm: realm, keyring: keyring) == ceremony)
        #expect(TOTPCeremony(text, realm: .random(), keyring: keyring) == nil)
        #expect(TOTPCeremony(text, realm: realm, keyring: .fixture(2)) == nil)
        #expect(TOTPCeremony(text, realm: realm, keyring: .fixture(2, 1)) == ceremony)
        let characters = Array(text)
        for index in characters.indices {
            var changed = characters
            changed[index] = changed[index] == "A" ? "B" : "A"
            #expect(TOTPCeremony(String(changed), realm: realm, keyring: keyring) == nil)
        }
    }

    @Test(
        "other texts are no ceremonies",
        arguments: ["", "ptc_", "ptc_AAAA", "pcm_AAAA", " ", String(repeating: "a", count: 65_536)])
    func garbage(_ text: String) {
        #expect(TOTPCeremony(text, realm: realm, keyring: keyring) == nil)
    }
}

@Suite("Recovery codes")
struct RecoveryCodeTests {
    private let key: DataKey
    private let realm = UUIDValue.random()
    private let factor = UUIDValue.random()

    init() throws {
        key = try Self.newKey(realm)
    }

    private static func newKey(_ realm: UUIDValue) throws -> DataKey {
        let keyring = Keyring.fixture()
        return try keyring.open(keyring.makeDataKey(.recoveryCode, realm: realm), realm: realm)
    }

    @Test func `a code is twelve characters of an alphabet of 32, in groups of four`() {
        let codes = (0..<1000).map { _ in RecoveryCode.random() }
        #expect(Set(codes).count == codes.count)
        let alphabet = Set("0123456789abcdefghjkmnpqrstvwxyz")
        for code in codes {
            #expect(code.split(separator: "-").map(\.count) == [4, 4, 4])
            #expect(code.allSatisfy { $0 == "-" || alphabet.contains($0) })
        }
        for position in [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13] {
            #expect(Set(codes.map { Array($0)[position] }) == alphabet, "every character occurs at \(position)")
        }
    }

    @Test(
        "how it is typed does not count",
        arguments: ["0123-456a-1bcd", "0123456a1bcd", "O123 456A iBCD", " o123-456a-lbcd ", "0i23-456A-IBCD"])
    func spelling(_ typed: String) {
        #expect(keyed(typed) == keyed("0123-456a-1bcd"))
    }

    @Test func `another code, realm, enrolment or key is another hash`() throws {
        let hash = keyed("0123-456a-1bcd")
        #expect(hash.count == 32)
        #expect(keyed("0123-456a-1bce") != hash)
        #expect(RecoveryCode.keyed(TypedCode("0123-456a-1bcd"), realm: .random(), factor: factor, under: key) != hash)
        #expect(RecoveryCode.keyed(TypedCode("0123-456a-1bcd"), realm: realm, factor: .random(), under: key) != hash)
        #expect(
            try RecoveryCode.keyed(
                TypedCode("0123-456a-1bcd"), realm: realm, factor: factor, under: Self.newKey(realm)) != hash)
    }

    private func keyed(_ code: String) -> [UInt8] {
        RecoveryCode.keyed(TypedCode(code), realm: realm, factor: factor, under: key)
    }
}
