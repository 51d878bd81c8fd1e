import Encoding
import Delivery
import Grants
import HTTPTypes
import TokenEndpoint

/// `GET /dev/outbox` and `/dev/outbox.json`, under `postern dev` only: what would have been mailed, newest first. A
/// `POST` to the first empties it.
struct DevOutboxRoutes: Sendable {
    let outbox: DevOutbox

    /// Both routes.
    var routes: [Route] {
        [
            .dev(
                "/dev/outbox", get: { _ in page() },
                post: { _ in
                    outbox.empty()
                    return .seeOther("/dev/outbox")
                }),
            .dev("/dev/outbox.json", get: { _ in Answer(json: list()) }),
        ]
    }

    private func list() -> [UInt8] {
        var json: [UInt8] = [UInt8(ascii: "[")]
        for (index, mail) in outbox.mails.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            json += mail.json
        }
        return json + [UInt8(ascii: "]")]
    }

    private func page() -> Answer {
        let items = outbox.mails.map { mail in
            "<article><h2>\(HTMLText.escape(mail.subject.isEmpty ? mail.channel : mail.subject))</h2>"
                + "<p>to \(HTMLText.escape(mail.to)), \(HTMLText.escape(mail.at))</p>"
                + "<pre>\(HTMLText.escape(mail.text))</pre></article>"
        }
        let button = "<form method=\"post\" action=\"/dev/outbox\"><button>Empty the outbox</button></form>"
        let body = items.isEmpty ? "<p>No mail yet. Ask for a code and reload.</p>" : button + items.joined()
        let html = """
            <!doctype html><html lang="en"><meta charset="utf-8"><title>Postern dev outbox</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta http-equiv="refresh" content="3">
            <style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
            h2,p{overflow-wrap:anywhere}
            article{border:1px solid #8886;border-radius:8px;padding:0 1rem;margin:1rem 0}
            pre{white-space:pre-wrap;overflow-wrap:anywhere}</style>
            <h1>Dev outbox</h1><p><a href="/">Index</a> <a href="/dev/passkey">Passkeys in this browser</a></p>
            \(body)</html>
            """
        return Answer(
            html: html,
            policy: [
                "default-src 'none'", "style-src 'unsafe-inline'", "form-action 'self'", "base-uri 'none'",
                "frame-ancestors 'none'",
            ])
    }
}

extension DevOutbox.Mail {
    fileprivate var json: [UInt8] {
        var object = JSONWriter()
        object.member("channel", channel)
        object.member("to", to)
        object.member("subject", subject)
        object.member("text", text)
        object.member("code", code)
        object.member("link", link)
        object.member("at", at)
        return object.finish()
    }
}
