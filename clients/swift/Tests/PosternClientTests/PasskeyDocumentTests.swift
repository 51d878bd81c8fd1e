import Foundation
import Testing

@testable import PosternClient

@Suite("Documents of passkeys")
struct PasskeyDocumentTests {
    @Test func `the options of a registration are read`() throws {
        let options = try #require(
            PasskeyOptions(
                creation: Data(
                    """
                    {"rp":{"id":"id.example","name":"Acme"},"user":{"id":"AQI","name":"mike@mail.example"},"challenge":"_w8",
                     "authenticatorSelection":{"userVerification":"required"},
                     "excludeCredentials":[{"id":"Aw","type":"public-key"},{"type":"public-key"}]}
                    """.utf8)))
        #expect(options.challenge == Data([0xFF, 0x0F]) && options.rpID == "id.example")
        #expect(options.verification == "required" && options.credentials == [Data([3])])
        #expect(options.user == PasskeyOptions.User(id: Data([1, 2]), name: "mike@mail.example"))
    }

    @Test(arguments: ["", "[]", "{}", #"{"challenge":"=","rpId":"x"}"#, #"{"challenge":"AQ","rpId":1}"#])
    func `options that are none are refused`(text: String) {
        #expect(PasskeyOptions(request: Data(text.utf8)) == nil)
        #expect(PasskeyOptions(creation: Data(text.utf8)) == nil)
    }

    @Test func `documents are those of WebAuthn`() {
        let made = JSONValue(PasskeyDocument.registration(id: Data([1]), clientData: Data([2]), attestation: Data([3])))
        #expect(made?["id"] == "AQ" && made?["rawId"] == "AQ" && made?["type"] == "public-key")
        #expect(made?["response"]?["clientDataJSON"] == "Ag" && made?["response"]?["attestationObject"] == "Aw")
        let used = JSONValue(
            PasskeyDocument.assertion(
                id: Data([1]), clientData: Data([2]), authenticatorData: Data([3]), signature: Data([4]),
                user: Data([5])))
        #expect(used?["response"]?["signature"] == "BA" && used?["response"]?["userHandle"] == "BQ")
    }
}
