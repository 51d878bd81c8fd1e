import Testing
import Texts

@testable import HostedPages

@Suite("Names of passkeys")
struct PasskeyNameTests {
    private static let chrome =
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

    @Test(
        arguments: [
            (chrome, "Chrome (Windows)"), (chrome + " Edg/140.0.0.0", "Edge (Windows)"),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Safari/604.1",
                "Safari (iPhone)"
            ),
            (
                "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36",
                "Chrome (Android)"
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox (Linux)"),
            ("curl/8.0", nil), ("", nil),
        ] as [(String, String?)])
    func `a browser is named with its system`(_ userAgent: String, _ name: String?) {
        #expect(PasskeyName.browser(userAgent) == name)
    }

    @Test func `a name says where a passkey is kept and when it was made`() throws {
        let texts = try TextCatalogue().texts(in: .german)
        func name(_ model: String?, _ userAgent: String?) -> String {
            PasskeyName.text(model: model, userAgent: userAgent, time: 1_796_288_700, texts)
        }
        #expect(name("iCloud Keychain", Self.chrome) == "iCloud Keychain, 3. Dezember 2026, 09:05 Uhr (UTC)")
        #expect(name(nil, Self.chrome) == "Chrome (Windows), 3. Dezember 2026, 09:05 Uhr (UTC)")
        #expect(name(nil, nil).hasPrefix("Passkey, "))
        #expect(name(String(repeating: "x", count: 200), nil).count == PasskeyName.maximum)
    }
}
