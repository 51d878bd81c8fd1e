import Encoding
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
        let style = DevTemplate("dev.css").filled()
        let script = DevTemplate("dev-passkey.js").filled()
        let text = ["client": clientID, "rpID": rpID, "email": email].mapValues(HTMLText.escape)
        page = Answer(
            html: DevTemplate("dev-passkey.html").filled(text.merging(["style": style, "script": script]) { $1 }),
            policy: [
                "default-src 'none'", "style-src '\(Answer.sourceHash(style))'",
                "script-src '\(Answer.sourceHash(script))'",
                "img-src data:",
                "connect-src 'self'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
            ])
    }

    /// The route.
    var routes: [Route] {
        [.dev("/dev/passkey", get: { [page] _ in page })]
    }
}
