import Foundation
import Persistence
import Testing

@Suite("Keyring")
struct KeyringTests {
    static let lineA = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    static let lineB = "//////////////////////////////////////////8="

    @Test func `sealed data opens under any key of the ring and only for what it belongs to`() throws {
        let old = try Keyring(parsing: Self.lineA)
        let rotated = try Keyring(parsing: "# newest first\n\(Self.lineB)\n\n\(Self.lineA)\n")
        let sealed = try old.seal(Array("secret".utf8), aad: [1])
        #expect(sealed.count == 4 + 12 + 6 + 16)
        #expect(try rotated.open(sealed, aad: [1]) == Array("secret".utf8))
        #expect(throws: KeyringError.cannotOpen) { try rotated.open(sealed, aad: [2]) }
        #expect(throws: KeyringError.unknownKey) { try Keyring(parsing: Self.lineB).open(sealed, aad: [1]) }
        #expect(rotated.newest.id != old.newest.id)
        #expect(rotated.key(id: sealed[..<4])?.id == old.newest.id)
    }

    @Test func `every flipped bit and every cut of sealed data is noticed`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        let sealed = try keyring.seal([1, 2, 3], aad: [])
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 1
            #expect(throws: KeyringError.self) { try keyring.open(altered, aad: []) }
            #expect(throws: KeyringError.self) { try keyring.open(Array(sealed[..<position]), aad: []) }
        }
    }

    @Test func `a nonce is never used twice`() throws {
        let keyring = try Keyring(parsing: Self.lineA)
        let nonces = try (0..<1000).map { _ in Array(try keyring.seal([], aad: [])[4..<16]) }
        #expect(Set(nonces).count == 1000)
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
