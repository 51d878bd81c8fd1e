import FoundationEssentials
public import Persistence
import Synchronization

/// The mail server and the provider of `postern dev`: keeps the last messages in memory and shows them, codes and links
/// included.
public final class DevOutbox: MailTransport, MessageMemory {
    /// A message as `/dev/outbox.json` shows it.
    public struct Mail: Sendable, Equatable, Encodable {
        /// A `Channel`, by its text.
        public let channel: String
        /// The recipient's address, number or handle.
        public let to: String
        /// The subject; empty but for mail.
        public let subject: String
        /// The text part.
        public let text: String
        /// The HTML part, for the page; not in the JSON.
        public let html: String
        /// The code, if the mail is about one.
        public let code: String?
        /// The link, if the mail is about one.
        public let link: String?
        /// When it was delivered, in ISO 8601 with UTC.
        public let at: String

        private enum CodingKeys: String, CodingKey { case channel, to, subject, text, code, link, at }
    }

    private let capacity: Int
    private let kept = Mutex<[Mail]>([])

    /// Keeps at most `capacity` mails.
    public init(capacity: Int = 200) {
        self.capacity = max(capacity, 1)
    }

    /// The mails, newest first.
    public var mails: [Mail] { kept.withLock { $0.reversed() } }

    /// Forgets all of them.
    public func empty() { kept.withLock { $0 = [] } }

    /// Keeps the mail and drops the oldest one beyond the capacity.
    public func send(_ mail: OutgoingMail, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        let message = mail.message
        let entry = Mail(
            channel: Channel.email.rawValue, to: message.to.text, subject: message.subject, text: message.text,
            html: message.html, code: mail.code,
            link: mail.link, at: Date().formatted(.iso8601))
        keep(entry)
        return .accepted
    }

    /// Keeps a message to a phone or device.
    public func keep(_ message: LeasedMessage, text: String, code: String?, link: String?) {
        keep(
            Mail(
                channel: message.channel.rawValue, to: message.recipient, subject: "", text: text, html: "",
                code: code, link: link, at: Date().formatted(.iso8601)))
    }

    private func keep(_ entry: Mail) {
        kept.withLock { mails in
            mails.append(entry)
            mails.removeFirst(max(mails.count - capacity, 0))
        }
    }

    /// Nothing to close.
    public func rest() async {}
}
