import Encoding
import HTTPTypes
import TokenEndpoint

/// The hosts of `postern dev` that no realm has: the demo app's, `127.0.0.1`, and the unknown ones.
struct DevHosts: Sendable {
    let realm: DevRealm
    let index: DevIndexPages
    let facts: DevFactsReader
    private let files: [String: Answer]

    init(_ realm: DevRealm, index: DevIndexPages, facts: DevFactsReader) {
        self.realm = realm
        self.index = index
        self.facts = facts
        files = Self.demoApp(realm)
    }

    /// `localhost` and the hosts below it, which are this machine (RFC 6761 §6.3).
    static func isLocal(_ host: String) -> Bool { host == "localhost" || host.hasSuffix(".localhost") }

    /// What the server asks.
    var others: OtherHosts {
        OtherHosts(
            site: { request, host in await site(request, host) },
            unknown: { request in await unknown(request) })
    }

    private func site(_ request: Request, _ host: String) async -> Answer? {
        guard request.method == .get || request.method == .head, let path = request.path else { return nil }
        switch host {
        case DevRealm.appHost: return files[path]
        case "127.0.0.1": return await index.answer(path, host: host)
        default: return nil
        }
    }

    private func unknown(_ request: Request) async -> Answer {
        guard let hosts = try? await facts.facts().hosts else { return .unavailable }
        var answer: Answer
        if request.headers[values: .accept].contains(where: { $0.contains("text/html") }) {
            answer = DevPage.unknownHost(hosts, port: realm.port, asked: request.authority)
        } else {
            var object = JSONWriter()
            object.member("error", "unknown_host")
            object.member("hosts", hosts)
            answer = Answer(json: object.finish())
        }
        answer.status = .notFound
        return answer
    }

    /// The files of `examples/spa`, under a policy for a page that takes modules and answers of one other origin.
    private static func demoApp(_ realm: DevRealm) -> [String: Answer] {
        let policy = [
            "default-src 'none'", "script-src 'self' \(realm.origin)", "style-src 'self'", "img-src 'self'",
            "connect-src \(realm.origin)", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
            "require-trusted-types-for 'script'", "trusted-types 'none'",
        ].joined(separator: "; ")
        var files: [String: Answer] = [:]
        for file in Embedded.demoApp {
            guard let name = file.name.split(separator: ".").last, let type = mediaTypes[String(name)] else { continue }
            var answer = Answer(.ok, headers: [.contentType: type, .contentSecurityPolicy: policy])
            answer.body = Array(file.text.utf8)
            files[file.name == "index.html" ? "/" : "/\(file.name)"] = answer
        }
        return files
    }

    private static let mediaTypes = [
        "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml",
    ]
}
