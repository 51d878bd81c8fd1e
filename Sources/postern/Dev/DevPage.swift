import Encoding
import TokenEndpoint

/// The pages of `postern dev` that have no script.
enum DevPage {
    private static let style = DevTemplate("dev.css").filled() + DevTemplate("dev-index.css").filled()

    /// The index page.
    /// - Parameter host: where it was asked.
    static func index(_ facts: DevFacts, host: String) -> Answer {
        let home = escape(facts.links.index)
        let notice = """
            <p class="notice">No realm has the host \(escape(host)): use <a href="\(home)">\(home)</a></p>
            """
        return page(
            "dev-index.html",
            [
                "notice": facts.hosts.contains(host) ? "" : notice, "outbox": escape(facts.links.outbox),
                "passkey": escape(facts.links.passkey),
                "demoApp": escape(facts.links.demoApp), "discovery": escape(facts.links.discovery),
                "realms": facts.realms.map(card).joined(separator: "\n"),
                "examples": facts.examples.enumerated().map(details).joined(separator: "\n"),
                "administration": escape(facts.administration),
            ])
    }

    /// What a browser gets at a host that no realm has.
    /// - Parameter asked: what the request names, if it names one host.
    static func unknownHost(_ hosts: [String], port: Int, asked: String?) -> Answer {
        let name = asked.map { " " + $0.prefix(64) } ?? ""
        let items = hosts.map { "\(escape($0)):\(port)" }.map { "<li><a href=\"http://\($0)/\">\($0)</a></li>" }
        return page(
            "dev-unknown-host.html",
            ["title": escape("No realm has the host\(name)"), "hosts": items.joined(separator: "\n")])
    }

    private static func page(_ file: String, _ values: [String: String]) -> Answer {
        let values = values.merging(["style": style]) { first, _ in first }
        return Answer(
            html: DevTemplate(file).filled(values),
            policy: [
                "default-src 'none'", "style-src '\(Answer.sourceHash(style))'", "img-src data:", "form-action 'none'",
                "base-uri 'none'", "frame-ancestors 'none'",
            ])
    }

    private static func card(_ realm: DevFacts.Realm) -> String {
        let origin = escape(realm.origin)
        let others = realm.hosts.filter { !realm.origin.hasSuffix("//\($0)") && !realm.origin.contains("//\($0):") }
        let clients = realm.clients.map { client in
            let secret = client.secretFile.map { ", secret in <code>\(escape($0))</code>" } ?? ""
            return item(client.clientId, "\(escape(client.name)), \(escape(client.type))\(secret)")
        }
        let users = realm.users.map { user in
            let facts = [user.name, user.phone].compactMap(\.self).filter { $0 != user.email }.map(escape)
            return item(user.email ?? user.phone ?? "?", facts.joined(separator: ", "))
        }
        let more = realm.userCount - realm.users.count
        return """
            <section class="card" aria-labelledby="realm-\(escape(realm.realm))">
            <h3 id="realm-\(escape(realm.realm))">\(escape(realm.name)) <code>\(escape(realm.realm))</code></h3>
            <p><a href="\(origin)/">\(origin)</a>\(others.map { ", \(escape($0))" }.joined())</p>
            <h4>Clients</h4><ul>\(clients.joined())</ul>
            <h4>Users</h4><ul>\(users.joined())\(more > 0 ? "<li>and \(more) more</li>" : "")</ul>
            </section>
            """
    }

    /// - Parameter details: in HTML.
    private static func item(_ name: String, _ details: String) -> String {
        "<li><code>\(escape(name))</code><small>\(details)</small></li>"
    }

    private static func details(_ index: Int, _ example: DevFacts.Example) -> String {
        """
        <details\(index == 0 ? " open" : "")><summary>\(escape(example.name))</summary>
        <p>\(escape(example.hint))</p>
        <pre>\(escape(example.text))</pre></details>
        """
    }

    private static func escape(_ text: String) -> String { HTMLText.escape(text) }
}
