/// Where the outbox hands its mails: an SMTP server, or the memory of `postern dev`.
public protocol MailTransport: Sendable {
    /// Hands over one mail and returns the outcome. Never throws: every failure is an outcome.
    ///
    /// When the task is cancelled the attempt is abandoned; the receiver may or may not have the mail.
    /// - Parameter deadline: When the attempt must be over: after it, another node may send the mail.
    func send(_ mail: OutgoingMail, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome

    /// Called when there is nothing to send: connections kept for the next mail of a burst may be closed.
    func rest() async
}

/// A rendered mail with what only the dev outbox shows apart from it.
public struct OutgoingMail: Sendable, Equatable {
    /// The mail.
    public let message: MailMessage
    /// The code in it, if it is about one.
    public let code: String?
    /// The link in it, if it is about one.
    public let link: String?

    /// A mail.
    public init(message: MailMessage, code: String? = nil, link: String? = nil) {
        self.message = message
        self.code = code
        self.link = link
    }
}
