import Synchronization

/// Hands mails to one SMTP server over a few connections, which are kept for the next mail while there is work.
///
/// Each connection lives on a thread of its own, so a server that answers slowly, or never, holds no thread that Swift
/// concurrency needs.
public final class SMTPTransport: MailTransport {
    /// How long a server may take.
    public struct Limits: Sendable {
        /// For name resolution, TCP and TLS.
        public var connect: Duration = .seconds(10)
        /// For one answer.
        public var response: Duration = .seconds(40)
        /// For a whole mail from connecting to the answer after its end, a second connection for it included.
        public var total: Duration = .seconds(60)
        /// For sending less than one byte per second.
        public var stalled: Duration = .seconds(20)

        /// The defaults.
        public init() {}
    }

    /// The server.
    public let url: SMTPURL
    private let sessions: [SMTPSession]
    private let free: Mutex<[Int]>

    /// - Parameters:
    ///   - url: The server.
    ///   - sessions: The most connections at a time.
    ///   - limits: How long the server may take.
    public init(url: SMTPURL, sessions: Int = 6, limits: Limits = Limits()) {
        self.url = url
        let count = max(sessions, 1)
        self.sessions = (0..<count).map { _ in SMTPSession(url: url, limits: limits) }
        self.free = Mutex(Array((0..<count).reversed()))
    }

    /// Sends one mail, on the connection used last if one is free.
    public func send(_ mail: OutgoingMail, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        let message = mail.message
        let abandoned = AbandonFlag()
        let index = free.withLock { $0.popLast() }
        // More callers than connections: wait behind another mail.
        let session = sessions[index ?? Int.random(in: sessions.indices)]
        defer { if let index { free.withLock { $0.append(index) } } }
        return await withTaskCancellationHandler {
            await session.send(
                message.serialized(), from: message.from.address, to: message.to, before: deadline, unless: abandoned)
        } onCancel: {
            abandoned.raise()
        }
    }

    /// Closes the connections that are free.
    public func rest() async {
        for session in sessions {
            await session.close()
        }
    }

    /// Asks the server whether it can be reached, is who it says and accepts the credentials, without sending a mail.
    ///
    /// - Returns: ``DeliveryOutcome/accepted`` when a mail could follow. For `postern doctor`.
    public func probe() async -> DeliveryOutcome {
        await sessions[0].probe()
    }
}
