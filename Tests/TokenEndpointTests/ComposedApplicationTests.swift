import Grants
import HTTPTypes
import NIOHTTP1
import Testing
@testable import TokenEndpoint

@Suite("Composed application")
struct ComposedApplicationTests {
    @Test func `a service account's token is active on every node until it is revoked on one`() async throws {
        let nodes = try await TestNodes.shared.value
        let secret = try await nodes.realm("service")
        let client = "client_id=service-api&client_secret=\(secret)"
        let granted = await nodes.one.answer(
            .form("/connect/token", "grant_type=client_credentials&\(client)", host: "service.example"))
        #expect(granted.status == .ok)
        #expect(granted.member("refresh_token", as: String.self) == nil)
        let token: String = try #require(granted.member("access_token"))
        let introspect = Request.form("/connect/introspect", "token=\(token)&\(client)", host: "service.example")
        let seen = await nodes.two.answer(introspect)
        #expect(seen.member("active") == true)
        #expect(seen.member("client_id") == "service-api")
        let revoked = await nodes.one.answer(
            .form("/connect/revoke", "token=\(token)&\(client)", host: "service.example"))
        #expect(revoked.status == .ok)
        #expect(await nodes.two.answer(introspect).text == #"{"active":false}"#)
    }

    @Test func `a token means nothing in another realm`() async throws {
        let nodes = try await TestNodes.shared.value
        let (own, other) = (try await nodes.realm("own"), try await nodes.realm("other"))
        let granted = await nodes.one.answer(
            .form(
                "/connect/token", "grant_type=client_credentials&client_id=own-api&client_secret=\(own)",
                host: "own.example"))
        let token: String = try #require(granted.member("access_token"))
        let introspected = await nodes.one.answer(
            .form(
                "/connect/introspect", "token=\(token)&client_id=other-api&client_secret=\(other)",
                host: "other.example"))
        #expect(introspected.text == #"{"active":false}"#)
    }

    /// What HTTP brings to the order of checks, before the token service's own.
    @Test func `a token request's method, header, type, size and syntax are looked at in this order, before its grant`()
        async throws
    {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm("ordered")
        let form = "application/x-www-form-urlencoded"
        func answer(
            _ method: HTTPMethod = .POST, type: String = form, headers: [(String, String)] = [],
            body: String = "grant_type=password", isTooLarge: Bool = false
        ) async -> Answer {
            await nodes.one.answer(
                .fixture(
                    method, "/connect/token", host: ["ordered.example"], [("Content-Type", type)] + headers, body: body,
                    isBodyTooLarge: isTooLarge))
        }
        let twice = [("Authorization", "Basic YTpi"), ("Authorization", "Basic YTpi")]
        let encoded = [("Content-Encoding", "gzip")]
        #expect(
            await answer(.PUT, type: "text/plain", headers: twice, body: "%", isTooLarge: true).status
                == .methodNotAllowed)
        let header = await answer(type: "text/plain", headers: twice, body: "%", isTooLarge: true)
        #expect(header.member("error_description") == "Send one Authorization header.")
        let type = await answer(type: "text/plain", headers: encoded, body: "%", isTooLarge: true)
        #expect(type.member("error_description") == "The content type must be application/x-www-form-urlencoded.")
        #expect(await answer(headers: encoded, body: "%", isTooLarge: true).status == .unsupportedMediaType)
        #expect(await answer(body: "%", isTooLarge: true).status == .contentTooLarge)
        #expect(await answer(body: "%&grant_type=password").member("error_description") == "The request is malformed.")
        #expect(await answer().member("error") == "unsupported_grant_type")
    }

    @Test(
        "the content type of a form may be written in other ways, and no other type is read",
        arguments: [
            ("application/x-www-form-urlencoded; charset=utf-8", true), ("APPLICATION/X-WWW-FORM-URLENCODED", true),
            ("application/x-www-form-urlencoded ;charset=\"UTF-8\"", true),
            ("application/x-www-form-urlencoded; charset=utf8", true),
            ("application/x-www-form-urlencoded; charset=\"UTF8\"", true),
            ("application/x-www-form-urlencoded; Charset = unicode-1-1-utf-8", true),
            ("application/x-www-form-urlencoded; charset", false),
            ("application/x-www-form-urlencoded; charset=", false),
            ("application/x-www-form-urlencoded; charset=utf-16", false),
            ("application/x-www-form-urlencoded; charset=\"utf-8", false),
            ("application/x-www-form-urlencoded;", true), ("application/x-www-form-urlencoded; version=1", true),
            ("application/x-www-form-urlencoded; charset=iso-8859-1", false), ("application/json", false), ("", false),
            ("application/x-www-form-urlencoded, text/plain", false),
        ])
    func contentTypes(_ type: String, _ isRead: Bool) async throws {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm("typed")
        let answer = await nodes.one.answer(
            .fixture(
                .POST, "/connect/token", host: ["typed.example"], [("Content-Type", type)], body: "grant_type=password")
        )
        #expect(answer.member("error") == (isRead ? "unsupported_grant_type" : "invalid_request"))
    }

    @Test func `refused codes look alike, whatever is wrong with them`() async throws {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm(
            "alike", also: "SELECT admin.put_user('alike', 'ada@mail.example', 'Ada', 'L', email_verified => true);")
        var answers: [Answer] = []
        for (name, code) in [
            ("ada@mail.example", "123456"), ("nobody@mail.example", "123456"), ("ada@mail.example", "abc"),
            ("not an address", "123456"), ("ada@mail.example", String(repeating: "9", count: 5000)),
        ] {
            let body = "grant_type=urn:cocoar:otp&client_id=alike-app&username=\(name)&otp_code=\(code)"
            answers.append(await nodes.one.answer(.form("/connect/token", body, host: "alike.example")))
        }
        #expect(answers.first?.member("error") == "invalid_grant")
        for answer in answers { #expect(answer == answers.first) }
    }

    @Test func `too many refused calls of a source are 429 on every node, and other sources are served`() async throws {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm(
            "tight", also: "SELECT admin.set_rate_limit('tight', 'refused', 'source', 3, '1 hour');")
        let request = {
            Request.fixture(.GET, "/connect/userinfo", host: ["tight.example"], [("Authorization", "Bearer pat_x")])
        }
        var statuses: [Int] = []
        for node in [nodes.one, nodes.two, nodes.one, nodes.two, nodes.one] {
            statuses.append(await node.answer(request()).status.code)
        }
        #expect(statuses == [401, 401, 401, 429, 429])
        #expect(await nodes.two.answer(request(), from: "198.51.100.1").status == .unauthorized)
        let document = Request.fixture(.GET, "/.well-known/openid-configuration", host: ["tight.example"])
        #expect(await nodes.one.answer(document).status == .ok)
    }

    @Test func `all nodes publish the same first key, which is made when it is first asked for`() async throws {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm("keyless")
        let request = Request.fixture(.GET, "/.well-known/jwks", host: ["keyless.example"])
        async let one = nodes.one.answer(request)
        async let two = nodes.two.answer(request)
        let answers = await [one, two]
        #expect(answers.map(\.status) == [.ok, .ok])
        #expect(answers[0].text == answers[1].text)
        #expect(answers[0].text.contains("\"kid\""))
    }

    @Test func `the routes are those of the composition and unknown ones do not exist`() async throws {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm("routed")
        for (target, status) in [
            ("/connect/token", 405), ("/metrics", 404), ("/healthz", 404), ("/readyz", 404), ("/dev/outbox", 404),
            ("/admin", 404), ("/.well-known/openid-configuration", 200),
        ] {
            let request = Request.fixture(.GET, target, host: ["routed.example"])
            #expect(await nodes.one.answer(request).status.code == status, "\(target)")
        }
    }
}
