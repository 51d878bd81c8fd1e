import Foundation
@testable import Persistence
import Testing

/// Everything that `print`, `dump` and the reflection of an enclosing object show of a value.
func shown(_ value: Any) -> String {
    struct Holder { let value: Any }
    var text = "\(value)" + String(reflecting: value) + String(reflecting: Holder(value: value))
    dump(Holder(value: value), to: &text)
    dump([value], to: &text)
    return text
}

@Suite("Redaction")
struct PersistenceRedactionTests {
    /// In text, and as arrays of bytes are printed.
    private static let word = "correcthorse"
    private static let bytes = Array("correcthorse-correcthorse-staple".utf8)

    private static func secrets() throws -> [(String, Any)] {
        let line = Data(bytes).base64EncodedString()
        let keyring = try Keyring(parsing: line)
        let realm = UUIDValue.random()
        let dataKey = try keyring.open(keyring.makeDataKey(.totpSeed, realm: realm), realm: realm)
        let configuration = DatabaseConfiguration(conninfo: "host=db password=\(word)")
        return [
            ("Keyring", keyring), ("ServerKey", keyring.newest), ("DataKey", dataKey),
            ("SealingKey", keyring.newest.sealingKey(.mail, realm: realm)),
            ("DatabaseConfiguration", configuration),
            ("SessionSettings", try SessionSettings(configuration, conninfo: configuration.conninfo, timeouts: true)),
            ("Parameter", Parameter.text(word)), ("Parameter", Parameter.bytes(bytes)),
            ("MessagePayload", MessagePayload(originHost: "h", content: .otp(code: word, minutes: 1))),
            ("Content", MessagePayload.Content.magicLink(link: word, minutes: 1)),
            (
                "NewSession",
                NewSession(
                    id: realm, tokenSalt: bytes, refreshHash: bytes, scope: [], resources: [], amr: [],
                    accessTokenLifetime: 1, refreshTokenLifetime: 1, source: "", serverKey: [])
            ),
            ("SecondFactorProof", SecondFactorProof(factor: realm, kind: .recoveryCode([bytes]))),
            (
                "PendingCode",
                TestIdentityStore.PendingCode(realm: realm, user: realm, addressKey: "e", code: word)
            ),
        ]
    }

    @Test func `no secret of this module can be printed`() throws {
        let bytes = "\(Self.bytes[0]), \(Self.bytes[1]), \(Self.bytes[2])"
        for (type, secret) in try Self.secrets() {
            let text = shown(secret)
            #expect(text.contains("\(type)(redacted)"), "\(type)")
            #expect(!text.contains(Self.word) && !text.contains(bytes), "\(type)")
        }
    }

    @Test func `nor the id or subkeys of a line, by way of what holds it`() throws {
        struct Server { let keyring: Keyring }
        let keyring = try Keyring(parsing: Keyring.generateLine())
        var text = ""
        dump(Server(keyring: keyring), to: &text)
        #expect(!text.contains("ServerKey") && !text.contains("SymmetricKey") && !text.contains("HMAC"))
    }
}
