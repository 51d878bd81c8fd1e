import Foundation
@testable import Persistence
import Testing

@Suite("Keyring")
struct KeyringTests {
    static let lineA = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    static let lineB = "//////////////////////////////////////////8="

    private static let sealedByPython =
        "0197818e5a6465666768696a6b6c6d6e6f707172737475767778797a7b54bf978ec5e13eb4309b9009a52ab89f5465a4034bcc"
    private let realm = UUIDValue.random()

    @Test func `sealed data opens under any key of the ring and only for what it belongs to`() throws {
        let old = try Keyring(parsing: Self.lineA)
        let rotated = try Keyring(parsing: "# newest first\n\(Self.lineB)\n\n\(Self.lineA)\n")
        let sealed = try old.seal(Array("secret".utf8), for: .mail, realm: realm, aad: [1])
        #expect(sealed.count == 1 + 4 + 24 + 6 + 16)
        #expect(try rotated.open(sealed, for: .mail, realm: realm, aad: [1]) == Array("secret".utf8))
        #expect(throws: KeyringError.cannotOpen) { try rotated.open(sealed, for: .mail, realm: realm, aad: [2]) }
        #expect(throws: KeyringError.unknownKey) {
            try Keyring(parsing: Self.lineB).open(sealed, for: .mail, realm: realm, aad: [1])
        }
        #expect(rotated.newest.id != old.newest.id)
        #expect(rotated.key(id: sealed[1..<5])?.id == old.newest.id)
    }

    @Test func `what is sealed for one purpose and realm opens for no other`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        for purpose in SealPurpose.allCases {
            let sealed = try keyring.seal([1], for: purpose, realm: realm, aad: [])
            #expect(throws: KeyringError.cannotOpen) {
                try keyring.open(sealed, for: purpose, realm: .random(), aad: [])
            }
            for other in SealPurpose.allCases where other != purpose {
                #expect(throws: KeyringError.cannotOpen) {
                    try keyring.open(sealed, for: other, realm: realm, aad: [])
                }
            }
        }
    }

    @Test func `every flipped bit and every cut of sealed data is noticed`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        let sealed = try keyring.seal([1, 2, 3], for: .mail, realm: realm, aad: [])
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 1
            #expect(throws: KeyringError.self) { try keyring.open(altered, for: .mail, realm: realm, aad: []) }
            #expect(throws: KeyringError.self) {
                try keyring.open(Array(sealed[..<position]), for: .mail, realm: realm, aad: [])
            }
        }
    }

    @Test func `a nonce is never used twice`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        let nonces = try (0..<1000).map { _ in
            Array(try keyring.seal([], for: .mail, realm: realm, aad: [])[5..<29])
        }
        #expect(Set(nonces).count == 1000)
    }

    @Test func `sealing is what docs/decisions/0024 says, computed independently`() throws {
        // Python: hmac, hashlib and AESGCM of the package cryptography.
        let keyring = try Keyring(parsing: Self.lineA)
        let realm = try #require(UUIDValue("00112233-4455-6677-8899-aabbccddeeff"))
        let sealed = try #require(bytes(hex: Self.sealedByPython))
        #expect(try keyring.open(sealed, for: .accessToken, realm: realm, aad: [1, 2]) == Array("secret".utf8))
    }

    @Test func `more realms than are remembered lose nothing`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        let first = try keyring.seal([1], for: .mail, realm: realm, aad: [])
        for _ in 0..<5000 { _ = try keyring.seal([], for: .mail, realm: .random(), aad: []) }
        #expect(try keyring.open(first, for: .mail, realm: realm, aad: []) == [1])
    }

    @Test func `keyed hashes depend on key, purpose, every part and where one part ends`() throws {
        let keyring = try Keyring(parsing: Self.lineA + "\n" + Self.lineB)
        let key = keyring.newest
        let hash = key.hmac(.codePepper, [[1, 2], [3]])
        #expect(hash.count == 32)
        #expect(hash == key.hmac(.codePepper, [[1, 2], [3]]))
        #expect(hash != key.hmac(.codePepper, [[1], [2, 3]]))
        #expect(hash != key.hmac(.codePepper, [[1, 2], [3], []]))
        #expect(hash != keyring.keys[1].hmac(.codePepper, [[1, 2], [3]]))
        #expect(
            Set(ServerKey.Purpose.allCases.map { key.hmac($0, [[1, 2], [3]]) }).count
                == ServerKey.Purpose.allCases.count)
    }

    @Test func `derivation is stable, since tokens and codes in the field depend on it`() throws {
        // HKDF-SHA-256 and HMAC-SHA-256 computed independently (Python: hmac, hashlib).
        let key = try Keyring(parsing: Self.lineA).newest
        #expect(hex(key.id) == "97818e5a")
        #expect(
            hex(key.hmac(.codePepper, [[1, 2], [3]]))
                == "b598a074218c40075968dc90ec0ccc8adf15186b71335366e8609f9fa6631b4b")
    }

    @Test func `a generated line is a key`() throws {
        let first = Keyring.generateLine()
        #expect(try Keyring(parsing: first).keys.count == 1)
        #expect(first != Keyring.generateLine())
    }

    @Test func `bad key files are refused with the number of the line and without its content`() {
        #expect(throws: KeyringError.noKey) { try Keyring(parsing: "# nothing\n\n") }
        #expect(throws: KeyringError.malformedLine(2)) { try Keyring(parsing: "\(Self.lineA)\nAAEC\n") }
        #expect(throws: KeyringError.malformedLine(1)) { try Keyring(parsing: "not base64!") }
        #expect(throws: KeyringError.duplicateKey(line: 3)) { try Keyring(parsing: "\(Self.lineA)\n\n\(Self.lineA)") }
        #expect(!KeyringError.malformedLine(1).description.contains("base64!"))
    }

    @Test("only modes 0400 and 0600 are accepted", arguments: [0o400, 0o600, 0o440, 0o640, 0o604, 0o644, 0o700, 0o666])
    func modes(_ mode: Int) throws {
        let path = "/tmp/postern-key-\(UInt64.random(in: .min ... .max))"
        try Self.lineA.write(toFile: path, atomically: false, encoding: .utf8)
        defer { unlink(path) }
        try #require(chmod(path, mode_t(mode)) == 0)
        if mode == 0o400 || mode == 0o600 {
            #expect(try Keyring(contentsOf: path).keys.count == 1)
        } else {
            #expect(throws: KeyringError.tooPermissive(path: path, mode: "0" + String(mode, radix: 8))) {
                try Keyring(contentsOf: path)
            }
        }
    }

    @Test(
        "0440 is accepted of root and the process's own group alone",
        arguments: [
            (0, 10_001, 10_001, 10_001, true), (0, 10_001, 10_001, 7, false), (7, 10_001, 7, 10_001, false),
            (0, 0, 10_001, 0, false), (0, 10_001, 0, 10_001, false),
        ] as [(uid_t, gid_t, uid_t, gid_t, Bool)])
    func lent(owner: uid_t, ownerGroup: gid_t, user: uid_t, group: gid_t, isAccepted: Bool) {
        var status = stat()
        status.st_mode = S_IFREG | 0o440
        status.st_uid = owner
        status.st_gid = ownerGroup
        #expect(SecretFile.isPrivate(status, user: user, group: group) == isAccepted)
    }

    @Test func `a missing file and a directory are named as such`() {
        #expect(throws: KeyringError.unreadable(path: "/nonexistent", reason: "No such file or directory")) {
            try Keyring(contentsOf: "/nonexistent")
        }
        #expect(throws: KeyringError.notAFile(path: "/tmp")) { try Keyring(contentsOf: "/tmp") }
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}

private func bytes(hex: String) -> [UInt8]? {
    let digits = Array(hex)
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<($0 + 2)]), radix: 16) }
    return bytes.count * 2 == digits.count ? bytes : nil
}
