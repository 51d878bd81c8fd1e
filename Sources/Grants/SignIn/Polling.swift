import Encoding
import Persistence

/// A sign-in that waits until somebody answers elsewhere, while the device that asked polls with its handle (RFC 8628
/// §3.5).
///
/// This type holds the answers of a poll before there is a confirmation. The confirmation is consumed once, by the
/// statement that opens the session.
public struct Polling: Sendable {
    /// Where it stands.
    public enum State: Sendable {
        case pending
        /// Polled sooner than the interval, which is five seconds longer from now on.
        case slowDown
        case denied
        /// Past its time.
        case expired
    }

    private let state: State
    private let subject: String

    /// - Parameter subject: what is waited for, as the wire calls it: `link`.
    init(_ state: State, of subject: String) {
        self.state = state
        self.subject = subject
    }

    /// What an app that polls must know.
    public struct Terms: Sendable, Equatable {
        /// Seconds between polls.
        public let interval: Int
        /// Two digits for the user to type where the question is answered.
        public let matchNumber: String
    }

    /// Seconds between polls, until one comes too early (`sign_in_request.poll_interval`).
    static let interval = 5

    /// The key under which statements about a handle take turns.
    static func turn(ofHandle id: [UInt8], in realm: Realm) -> String { "handle|\(realm.id)|\(Hex.encode(id))" }

    var error: TokenError {
        switch state {
        case .pending: TokenError(.authorizationPending, "The \(subject) has not been confirmed yet.")
        case .slowDown: TokenError(.slowDown, "Polled too early: wait five seconds longer between polls.")
        case .denied: TokenError(.accessDenied, "The \(subject) was refused.")
        case .expired: TokenError(.expiredToken, "The request has expired.")
        }
    }
}
