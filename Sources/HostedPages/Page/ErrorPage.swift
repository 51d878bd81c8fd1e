import HTTPTypes
import Texts
import TokenEndpoint

/// A page that ends a request, with a way on where there is one. Its kind stands in `data-error`.
struct ErrorPage: Sendable {
    /// The kinds of error pages.
    enum Kind: String, Sendable, CaseIterable {
        case invalidRequest = "invalid_request"
        case hostedDisabled = "hosted_disabled"
        case invalidClient = "invalid_client"
        case invalidRequestURI = "invalid_request_uri"
        case invalidRedirectURI = "invalid_redirect_uri"
        case foreignForm = "foreign_form"
        case cookiesNeeded = "cookies_needed"
        case rateLimited = "rate_limited"
        case unavailable = "temporarily_unavailable"

        var status: HTTPResponse.Status {
            switch self {
            case .rateLimited: .tooManyRequests
            case .unavailable: .serviceUnavailable
            default: .badRequest
            }
        }
    }

    let kind: Kind
    /// Where the same request can be made again, by GET; empty: this very address, which the page need not repeat.
    var retryURL: String?
    /// The way back to the app: `home_uri` and the name of its client.
    var home: (uri: String, name: String)?
    /// Where the realm helps, where there is no other way on.
    var support: String?
    /// Whether the page was opened in another browser than its sign-in began in.
    var isElsewhere = false

    func answer(_ renderer: PageRenderer, _ look: PageLook) -> Answer {
        let look = look.filling(["client": home?.name ?? look.product])
        var values: PageValues = [
            "text": .text(isElsewhere ? "error-started_elsewhere" : "error-\(kind.rawValue)"),
            "code": .value(kind.rawValue),
        ]
        values.set("retries", .flag(retryURL != nil))
        values.set("retry", value: retryURL)
        values.set("home", value: home?.uri)
        values.set("support", value: support)
        let answer = renderer.page(
            "error", step: "error", error: kind.rawValue, title: "error-title", values, look: look,
            status: kind.status)
        return kind == .rateLimited || kind == .unavailable ? answer.retriable(after: 1) : answer
    }
}
