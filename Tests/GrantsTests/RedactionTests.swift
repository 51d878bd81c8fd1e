import Foundation
@testable import Grants
import Persistence
import Testing

@Suite("Redaction")
struct GrantsRedactionTests {
    private static let word = "correcthorse"
    private static let bytes = Array("correcthorse-correcthorse-staple".utf8)

    private func shown(_ value: Any) -> String {
        var text = "\(value)" + String(reflecting: value) + String(reflecting: [value])
        dump([value], to: &text)
        return text
    }

    /// A seed that names its data key, with both in bytes.
    private static var material: [UInt8] {
        let seed: [UInt8] = [0x02] + Array("pdk".utf8) + UUIDValue.random().bytes + bytes + bytes
        let framed: [UInt8] = [bytes, seed].flatMap { part -> [UInt8] in [0, 0, 0, UInt8(part.count)] + part }
        return [0x03] + Array("pdk".utf8) + framed
    }

    private func secrets() async throws -> [(String, Any)] {
        let keyring = Keyring.fixture()
        let realm = UUIDValue.random()
        let made = try await NewSigningKey.make(.es256)
        let rsa = try await NewSigningKey.make(.rs256)
        let refresh = RefreshToken.first(realm: realm, session: realm, keyring: keyring)
        let form = try FormParameters(parsing: Array("grant_type=x&client_secret=\(Self.word)".utf8))
        return [
            ("TOTPSeed", TOTPSeed(bytes: Array(Self.bytes.prefix(20)))),
            ("TOTPCeremony", TOTPCeremony(client: realm, session: realm, expiresAt: 1)),
            ("PasskeyCeremony", PasskeyCeremony.login(client: realm, rpID: "r", expiresAt: 1)),
            ("SecondFactorMaterial", try SecondFactorMaterial(Self.material)),
            ("RefreshToken", refresh), ("NewSigningKey", made), ("NewSigningKey", rsa),
            ("RSAPrivateKey", try RSAPrivateKey(der: rsa.privateBytes)),
            ("SigningKey", SigningKey(kid: "k", privateKey: .rs256(try RSAPrivateKey(der: rsa.privateBytes)))),
            ("FormParameters", form), ("MagicLink", MagicLink(for: realm)),
            ("AuthSessionHandle", AuthSessionHandle(addressKey: "e")),
            (
                "TokenResponse",
                TokenResponse(
                    accessToken: Self.word, expiresIn: 1, scope: [], refreshToken: Self.word, idToken: Self.word,
                    isBound: false)
            ),
        ]
    }

    @Test func `no secret of this module can be printed`() async throws {
        let bytes = "\(Self.bytes[0]), \(Self.bytes[1]), \(Self.bytes[2])"
        for (type, secret) in try await secrets() {
            let text = shown(secret)
            #expect(text.contains("\(type)(redacted)"), "\(type)")
            #expect(!text.contains(Self.word) && !text.contains(bytes) && !text.contains("prt_"), "\(type)")
        }
    }
}
