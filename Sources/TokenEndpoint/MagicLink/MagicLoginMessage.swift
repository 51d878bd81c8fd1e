import Grants
import HTTPTypes
import Persistence

/// What the page says after an answer, plainly.
enum MagicLoginMessage {
    case confirmed
    case denied
    case disowned
    case answered
    case redeemed
    case superseded
    case expired
    case unknown
    case limited
    case unavailable

    init(_ outcome: MagicLinkConfirmation.Outcome, _ choice: MagicLinkConfirmation.Choice) {
        switch outcome {
        case .confirmed: self = .confirmed
        case .denied: self = choice == .notMe ? .disowned : .denied
        case .answered: self = .answered
        case .redeemed: self = .redeemed
        case .superseded: self = .superseded
        case .expired: self = .expired
        case .unknown: self = .unknown
        case .busy: self = .unavailable
        }
    }

    var status: HTTPResponse.Status {
        switch self {
        case .confirmed: .ok
        case .limited: .tooManyRequests
        case .unavailable: .serviceUnavailable
        case .disowned: .ok
        case .denied, .answered, .redeemed, .superseded, .expired, .unknown: .badRequest
        }
    }

    /// A class of the style sheet.
    var tone: String { self == .confirmed || self == .disowned ? "good" : "bad" }

    var heading: String {
        switch self {
        case .confirmed: "Confirmed"
        case .denied: "Sign-in refused"
        case .disowned: "Nobody was signed in"
        case .answered, .redeemed: "This link was used already"
        case .superseded: "This link no longer works"
        case .expired: "This link has expired"
        case .unknown: "This link is not valid"
        case .limited: "Too many tries"
        case .unavailable: "Something went wrong on our side"
        }
    }

    var text: String {
        switch self {
        case .confirmed: "Go back to your app: it signs you in within a few seconds. You can close this page."
        case .denied:
            "That is not the number that the app shows. Nobody was signed in, and the link no longer works. "
                + "If it was you, ask for a new link in your app."
        case .disowned:
            "The link no longer works. For 15 minutes, links are mailed only to requests from devices on which you "
                + "have signed in before. You can close this page."
        case .answered, .redeemed: "A link works once. If you are not signed in, ask for a new one in your app."
        case .superseded:
            "Another link of your account was used first, or your account was signed out everywhere. "
                + "Ask for a new link in your app."
        case .expired: "Ask for a new link in your app, and open it soon after."
        case .unknown: "Part of it may be missing. Open it from the mail again, or ask for a new one in your app."
        case .limited: "The link still works. Wait a minute, then try again."
        case .unavailable: "The link still works. Try again in a moment."
        }
    }
}
