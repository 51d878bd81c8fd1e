import Foundation
import Grants
import HTTPTypes
import NIOHTTP1
import Persistence
import TestSupport
import Testing
@testable import HostedPages
@testable import TokenEndpoint

/// A purpose of the host itself, without client, redirect URI and scope: whoever signs in runs an errand.
private struct Errand: SignInPurpose {
    static let mark: UInt8 = 200
    let realm: Realm
    let name: String

    var loginHint: String? { "ada@errands.example" }

    func answer(_ outcome: PageOutcome, _ code: AuthorizationCode) async throws -> PurposeAnswer {
        outcome == .continue ? .end(.page("/errand/\(name)")) : .due(outcome)
    }

    func confirm(
        _ cookie: BrowserCookie, host: String, isProved: Bool, consents: Bool
    ) async throws -> (PurposeAnswer, SessionCookie?) { (.end(.page("/errand/\(name)")), nil) }

    func refuse(_ refusal: PurposeRefusal) async throws -> SignInEnd { .page("/errand/\(name)?refused") }

    func encoded(_ exchange: Exchange) async throws -> [UInt8] { [Self.mark] + Array(name.utf8) }
}

private struct ErrandReader: PurposeReader {
    let mark = Errand.mark

    func purpose(_ bytes: [UInt8], _ exchange: Exchange) async throws -> any SignInPurpose {
        Errand(realm: exchange.realm, name: String(decoding: bytes, as: UTF8.self))
    }

    func client(_ bytes: [UInt8], in realm: Realm) -> Client? { nil }
}

@Suite("Purposes of a sign-in on pages")
struct PagePurposeTests {
    /// A node whose pages know errands, and a browser at its realm's host.
    private struct Scene {
        let slug: String
        let node: Application
        let pages: HostedPages
        let parts: PageParts
        let realm: Realm
        let database: MigratedDatabase

        init(_ slug: String) async throws {
            self.slug = slug
            let nodes = try await TestNodes.shared.value
            _ = try await nodes.realm(slug, also: "SELECT admin.set_hosted('\(slug)', true);")
            database = nodes.database
            var configuration = ServerConfiguration(listen: ListenAddress(host: "127.0.0.1", port: 0))
            configuration.uniformDeadline = UniformDeadline(.zero)
            var made: (HostedPages, PageParts)?
            node = try Server.compose(
                configuration, database: database.database, keyring: .fixture(),
                parts: ServerParts(
                    pages: { parts in
                        let pages = try HostedPages(parts, for: [ErrandReader()])
                        made = (pages, parts)
                        return pages
                    }, postLogoutToken: { _, _ in "not sent" }, postEvent: { _, _ in .failed("not sent") }),
                logger: quiet)
            (pages, parts) = try #require(made)
            realm = try #require(try await node.realms.realm(forHost: "\(slug).example"))
        }

        var host: String { "\(slug).example" }

        func exchange(_ headers: [(String, String)] = []) -> Exchange {
            Exchange(
                request: .fixture(.GET, "/errand", host: [host], headers), realm: realm, host: host, vary: "",
                pathParameter: "", source: ResponderFixture.stranger, arrivedAt: .now, number: 1, trace: nil,
                baseLogger: quiet)
        }

        func post(_ tx: String, _ fields: String, _ cookie: String) async -> Answer {
            await node.answer(
                .form(
                    "/sign-in", "tx=\(tx)&\(fields)", host: host,
                    [("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")]))
        }

        func get(_ target: String, _ cookie: String) async -> Answer {
            await node.answer(.fixture(.GET, target, host: [host], [("Cookie", cookie)]))
        }

        /// The first page of an errand: its `tx`, and the cookie of the browser.
        func begin(_ name: String) async throws -> (tx: String, cookie: String) {
            let page = try await pages.begin(Errand(realm: realm, name: name), exchange())
            #expect(page.status == .ok && page.text.contains(#"data-step="address""#))
            #expect(page.text.contains(#"value="ada@errands.example""#))
            let cookie = try #require(page.header("Set-Cookie")?.prefix { $0 != ";" })
            return (try tx(of: page.text, after: #"name="tx" value=""#), String(cookie))
        }

        func tx(of text: String, after mark: String) throws -> String {
            let rest = try #require(text.range(of: mark)).upperBound
            return String(text[rest...].prefix { $0 != "\"" && $0 != "&" })
        }
    }

    @Test func `a person signs in for a purpose without an authorization request, up to its end`() async throws {
        let scene = try await Scene("errands")
        let (first, cookie) = try await scene.begin("seven")
        let sent = await scene.post(first, "action=continue&address=ada%40errands.example", cookie)
        #expect(sent.status == .seeOther)
        let location = try #require(sent.header("Location"))
        let page = await scene.get(location, cookie)
        #expect(page.status == .ok && page.text.contains(#"data-step="code""#))
        let asked = try await scene.database.administer(
            "SELECT q.client IS NULL, q.address_key FROM postern.sign_in_request AS q, postern.realm AS r"
                + " WHERE r.slug = 'errands' AND q.realm_id = r.id")
        #expect(asked == ["t|ada@errands.example"])

        // The statement of the proof opens the browser's session, answers no request, and says so.
        let tx = try scene.tx(of: location, after: "tx=")
        let transaction = try #require(
            SignInTransaction(tx, realm: scene.realm, host: scene.host, keyring: scene.parts.keyring))
        let exchange = scene.exchange([("Cookie", cookie)])
        let purpose = try await PurposeReaders(all: [ErrandReader()]).purpose(transaction.purpose, exchange)
        let context = SignInContext(exchange, purpose, BrowserCookies(exchange))
        let opening = NewBrowserSession(.email, transaction, context, scene.parts)
        #expect(opening.page.request == nil && opening.page.host == scene.host)
        let outcome = try await SignInFlow(parts: scene.parts)
            .answer(.continue, opening, until: 600, transaction, context)
        guard case .end(.page(let path), let session, _) = outcome else {
            Issue.record("not at its end: \(outcome)")
            return
        }
        #expect(path == "/errand/seven")
        #expect(session?.cookie.text == opening.cookie.text)
    }

    @Test func `cancel leads to where the purpose says`() async throws {
        let scene = try await Scene("errands-left")
        let (tx, cookie) = try await scene.begin("eight")
        let left = await scene.post(tx, "action=cancel", cookie)
        #expect(left.status == .seeOther && left.header("Location") == "/errand/eight?refused")
    }

    @Test func `a purpose of a kind that the pages do not know is no purpose`() async throws {
        let scene = try await Scene("errands-unknown")
        let (tx, cookie) = try await scene.begin("nine")
        var transaction = try #require(
            SignInTransaction(tx, realm: scene.realm, host: scene.host, keyring: scene.parts.keyring))
        transaction.purpose[0] = 201
        let text = try transaction.text(realm: scene.realm, host: scene.host, keyring: scene.parts.keyring)
        let page = await scene.get("/sign-in?tx=\(text)", cookie)
        #expect(page.status == .badRequest && page.text.contains(#"data-error="invalid_request""#))
    }
}
