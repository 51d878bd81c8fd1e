import Grants
import HTTPTypes
import Persistence

/// What the page says after an answer, plainly.
enum MagicLoginMessage {
    case confirmed
    case denied
    case answered
    case redeemed
    case superseded
    case expired
    case unknown
    case unanswered
    case limited
    case unavailable

    init(_ outcome: MagicLinkConfirmation.Outcome) {
        switch outcome {
        case .confirmed: self = .confirmed
        case .denied: self = .denied
        case .answered: self = .answered
        case .redeemed: self = .redeemed
        case .superseded: self = .superseded
        case .expired: self = .expired
        case .unknown: self = .unknown
        case .limited: self = .limited
        }
    }

    var status: HTTPResponse.Status {
        switch self {
        case .confirmed: .ok
        case .limited: .tooManyRequests
        case .unavailable: .serviceUnavailable
        case .denied, .answered, .redeemed, .superseded, .expired, .unknown, .unanswered: .badRequest
        }
    }

    /// A class of the style sheet.
    var tone: String { self == .confirmed ? "good" : "bad" }

    var heading: String {
        switch self {
        case .confirmed: "Confirmed"
        case .denied: "Sign-in refused"
        case .answered, .redeemed: "This link was used already"
        case .superseded: "This link was replaced"
        case .expired: "This link has expired"
        case .unknown: "This link is not valid"
        case .unanswered: "No number was chosen"
        case .limited: "Too many tries"
        case .unavailable: "Something went wrong on our side"
        }
    }

    var text: String {
        switch self {
        case .confirmed: "Go back to your app: it signs you in within a few seconds. You can close this page."
        case .denied:
            "Nobody was signed in, and the link no longer works. If it was you, ask for a new link in your app."
        case .answered, .redeemed: "A link works once. If you are not signed in, ask for a new one in your app."
        case .superseded: "A newer link took its place. Open the newest mail, or ask for a new link in your app."
        case .expired: "Ask for a new link in your app, and open it soon after."
        case .unknown: "Perhaps it was cut off. Open it from the mail again, or ask for a new one in your app."
        case .unanswered: "The link still works: open it from the mail again and choose a number."
        case .limited: "Wait a minute, then open the link from the mail again."
        case .unavailable: "The link still works: open it from the mail again in a moment."
        }
    }
}
