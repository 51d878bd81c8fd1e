import Grants
import HTTPTypes
import Persistence

/// The pages of a server without sign-in pages: messages only.
struct MessagePages: AuthorizationPages {
    private let message = PageTemplate("authorization.html", style: "magic-login.css")

    func begin(
        _ request: AuthorizationRequest, due: PageOutcome, session: BrowserSessionStore.Live?, _ exchange: Exchange
    ) -> Answer {
        var answer = page("", "Sign-in is not available", "This server has no sign-in pages.", .ok, exchange)
        answer.headers[.posternDue] = due.rawValue
        return answer
    }

    func refused(_ error: AuthorizationPageError, _ exchange: Exchange) -> Answer {
        page(
            error.rawValue, "This request is not valid", "Go back to the app and start again.", .badRequest, exchange)
    }

    func formPost(_ response: AuthorizationResponse, _ exchange: Exchange) -> Answer {
        let fields = response.members.map { member in
            "<input type=\"hidden\" name=\"\(member.name)\" value=\"\(HTMLText.escape(member.value))\">"
        }.joined()
        let action = HTMLText.escape(response.redirectURI)
        return Answer(
            html: "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Continue</title></head><body>"
                + "<main data-step=\"form-post\"><form method=\"post\" action=\"\(action)\">\(fields)"
                + "<button>Continue</button></form></main></body></html>",
            policy: ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
    }

    func askToSignOut(_ request: SignOutRequest, _ exchange: Exchange) -> Answer {
        page("", "Sign out", "This server has no sign-out page.", .ok, exchange)
    }

    func confirmSignOut(_ form: FormParameters, _ exchange: Exchange) -> Answer {
        refused(AuthorizationPageError.invalidRequest, exchange)
    }

    func signedOut(_ client: Client?, _ exchange: Exchange) -> Answer {
        page("", "You are signed out", "You can close this window.", .ok, exchange)
    }

    func tryAgain(after retryAfter: Int, isLimited: Bool, _ exchange: Exchange) -> Answer {
        var answer = page(
            isLimited ? "rate_limited" : "temporarily_unavailable", "Please try again", "Reload this page in a moment.",
            isLimited ? .tooManyRequests : .serviceUnavailable, exchange)
        answer.headers[.retryAfter] = String(retryAfter)
        return answer
    }

    private func page(
        _ error: String, _ heading: String, _ text: String, _ status: HTTPResponse.Status, _ exchange: Exchange
    ) -> Answer {
        message.answer(
            ["realm": exchange.realm.displayName, "error": error, "heading": heading, "text": text], status: status)
    }
}

// swift-format-ignore: NeverForceUnwrap
// A literal: a wrong one stops the first test.
extension HTTPField.Name {
    static let posternDue = HTTPField.Name("Postern-Due")!
}
