import Encoding
import Foundation
import HTTPTypes
import TokenEndpoint

/// `GET /dev/passkey`, under `postern dev` only: enrols a passkey in a real browser and signs in with it.
///
/// One document without any other resource. Its policy names the style and the script by their hashes, so that nothing
/// else runs, and lets the script speak to its own origin only.
struct DevPasskeyRoutes: Sendable {
    private let page: Answer

    /// - Parameters:
    ///   - clientID: a public client with codes, passkeys and refresh.
    ///   - rpID: its RP-ID, to be shown.
    ///   - email: a user to begin with.
    init(clientID: String, rpID: String, email: String) {
        let style = Self.embedded("dev-passkey.css")
        let script = Self.embedded("dev-passkey.js")
        var html = Self.embedded("dev-passkey.html")
        let text = ["client": clientID, "rpID": rpID, "email": email].mapValues(HTMLText.escape)
        // Style and script last: what they contain is not looked at again.
        for (name, value) in text.map({ ($0, $1) }) + [("style", style), ("script", script)] {
            html = html.replacingOccurrences(of: "{{\(name)}}", with: value)
        }
        page = Answer(
            html: html,
            policy: [
                "default-src 'none'", "style-src '\(Answer.sourceHash(style))'",
                "script-src '\(Answer.sourceHash(script))'",
                "img-src data:",
                "connect-src 'self'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
            ])
    }

    /// The route.
    var routes: [Route] {
        [Route("/dev/passkey", [.get: .anonymous { [page] _ in page }])]
    }

    private static func embedded(_ name: String) -> String {
        Embedded.templates.first { $0.name == name }?.text ?? ""
    }
}
