@testable import Grants
import Testing

@Suite("Client authentication")
struct ClientAuthenticationTests {
    private func authenticate(_ form: String, _ header: PresentedCredentials.Header = .none) throws -> Client {
        try Realm.fixture(clients: [
            .fixture("app"), .fixture("api", secret: "s3cret"), .fixture("gone", enabled: false),
        ])
        .authenticate(FormParameters(parsing: Array(form.utf8)), PresentedCredentials(header: header))
    }

    private func code(_ form: String, _ header: PresentedCredentials.Header = .none) -> TokenError.Code? {
        do {
            _ = try authenticate(form, header)
            return nil
        } catch {
            return (error as? TokenError)?.code
        }
    }

    @Test func `a public client names itself and sends no secret`() throws {
        #expect(try authenticate("client_id=app").clientID == "app")
        #expect(try authenticate("client_id=app&client_secret=").clientID == "app")
        #expect(code("client_id=app&client_secret=x") == .invalidClient)
        #expect(code("client_id=app&client_secret=+") == .invalidClient)
    }

    @Test func `a confidential client needs its secret, in the body or by Basic`() throws {
        #expect(try authenticate("client_id=api&client_secret=s3cret").clientID == "api")
        #expect(try authenticate("", .basic(.init(clientID: "api", secret: "s3cret"))).clientID == "api")
        #expect(try authenticate("client_id=api", .basic(.init(clientID: "api", secret: "s3cret"))).clientID == "api")
        #expect(code("client_id=api") == .invalidClient)
        #expect(code("client_id=api&client_secret=S3cret") == .invalidClient)
        #expect(code("", .basic(.init(clientID: "api", secret: "wrong"))) == .invalidClient)
    }

    @Test(
        "who is not known byte for byte is not known",
        arguments: ["", "nobody", "App", "app.", "app+", "*", "%25", "gone"])
    func unknown(_ clientID: String) {
        #expect(code("client_id=\(clientID)") == .invalidClient)
    }

    @Test func `two credentials in one request are refused before either is looked at`() {
        let basic = PresentedCredentials.Header.basic(.init(clientID: "api", secret: "s3cret"))
        #expect(code("client_id=api&client_secret=s3cret", basic) == .invalidRequest)
        #expect(code("client_id=app", basic) == .invalidRequest)
    }

    @Test func `a header that is not usable Basic counts as a wrong secret`() {
        #expect(code("client_id=app", .unusable) == .invalidClient)
        #expect(code("client_id=app&client_assertion=x&client_assertion_type=y") == .invalidClient)
    }

    @Test(
        "Basic credentials are form-encoded inside base64",
        arguments: [
            ("YXBpOnMzY3JldA==", "api", "s3cret"), ("YSUzQWI6YyUyNWQ=", "a:b", "c%d"), ("YXBpOg==", "api", ""),
        ])
    func basic(_ encoded: String, _ clientID: String, _ secret: String) {
        #expect(PresentedCredentials.Basic(decoding: encoded) == .init(clientID: clientID, secret: secret))
    }

    @Test("anything else is not Basic", arguments: ["", "!!!!", "/w==", "AAA6AAA=", "YXBp", "OnNlY3JldA==", "YXBpOnM"])
    func notBasic(_ encoded: String) {
        #expect(PresentedCredentials.Basic(decoding: encoded) == nil)
    }
}
