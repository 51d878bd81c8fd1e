public import Logging
public import Persistence
public import ServiceLifecycle
import Synchronization

/// Empties the outbox: takes due mails on lease, renders and sends them, and records the outcome. Realms take turns,
/// and none occupies all senders (docs/decisions/0027).
///
/// Any number of these may run on any number of nodes. A mail whose sender dies is taken again when its lease ends, so
/// none is lost, and one that had just been accepted arrives twice with the same `Message-ID`. An attempt that ended
/// without an answer is repeated once, for the same reason only once. What is over the rate stays in the queue, free
/// for other nodes to take.
///
/// Logs name the row and the class of the SMTP answer, never the address, the code or the link.
public final class OutboxSender: Service {
    /// The numbers that a test or an operator may want otherwise.
    public struct Configuration: Sendable {
        /// Mails in hand at once; the SMTP transport should have as many connections.
        public var concurrency = 6
        /// Mails of one realm in hand at once; registration mails one less. So slow recipients of one realm leave
        /// senders to other realms, and registrations leave senders to sign-ins.
        public var realmShare = 4
        /// How long a mail is reserved for this sender.
        public var lease = Duration.seconds(90)
        /// The end of the lease that is left to recording the outcome: an attempt is over before it begins.
        public var recordingTime = Duration.seconds(15)
        /// How often to look without being woken: for mails of other nodes and for retries.
        public var pollInterval = Duration.seconds(1)
        /// The most mails in any second; no bound if `nil`.
        public var mailsPerSecond: Int?
        /// What time it is for pace and rate.
        var clock: @Sendable () -> ContinuousClock.Instant = { .now }

        /// The defaults.
        public init() {}
    }

    private let outbox: OutboxStore
    private let keyring: Keyring
    private let sender: Mailbox
    private let transport: any MailTransport
    private let configuration: Configuration
    private let logger: Logger
    private let renderer: MailRenderer
    private let pace: Mutex<SendingPace>
    private let turns = Mutex(MailTurns())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let rooms: AsyncStream<ContinuousClock.Instant>
    private let room: AsyncStream<ContinuousClock.Instant>.Continuation

    /// - Parameters:
    ///   - database: Where the outbox is; has to run as long as this does.
    ///   - keyring: Opens the payloads.
    ///   - sender: `POSTERN_MAIL_FROM`. Without a display name, mails show the realm's.
    ///   - transport: Where mails go.
    /// - Throws: if the templates in the binary are broken.
    public init(
        database: Database, keyring: Keyring, sender: Mailbox, transport: any MailTransport,
        configuration: Configuration = Configuration(), logger: Logger
    ) throws {
        outbox = OutboxStore(database)
        self.keyring = keyring
        self.sender = sender
        self.transport = transport
        self.configuration = configuration
        self.logger = logger
        renderer = try MailRenderer()
        pace = Mutex(
            SendingPace(concurrency: configuration.concurrency, mailsPerSecond: configuration.mailsPerSecond))
        (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (rooms, room) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Says that a mail was just queued, so that it leaves at once. May be called from anywhere, any number of times.
    public func wake() {
        signal.yield()
    }

    /// Sends until graceful shutdown, then finishes the mails in hand. Cancellation abandons them to their lease.
    public func run() async {
        await withGracefulShutdownHandler {
            await withTaskGroup { tasks in
                tasks.addTask { await self.tick() }
                tasks.addTask { await self.wakeForRoom() }
                await self.work()
                tasks.cancelAll()
            }
            await transport.rest()
        } onGracefulShutdown: {
            self.signal.finish()
        }
    }

    /// The poll: a signal every so often.
    private func tick() async {
        while true {
            signal.yield()
            do { try await Task.sleep(for: configuration.pollInterval) } catch { return }
        }
    }

    /// A signal whenever the rate, once reached, has room again: the poll alone would leave part of it unused.
    private func wakeForRoom() async {
        for await instant in rooms {
            do { try await Task.sleep(until: instant, clock: .continuous) } catch { return }
            signal.yield()
        }
    }

    private func work() async {
        await withDiscardingTaskGroup { deliveries in
            var idleRounds = 0
            for await _ in signals {
                // The lease begins no earlier than now.
                let deadline = ContinuousClock.now + configuration.lease - configuration.recordingTime
                let taken = await take()
                for mail in taken {
                    deliveries.addTask {
                        let outcome = await self.deliver(mail, before: deadline)
                        self.pace.withLock { $0.finish(outcome, at: self.configuration.clock()) }
                        self.turns.withLock { $0.finish(mail) }
                        self.signal.yield()
                    }
                }
                idleRounds = taken.isEmpty && pace.withLock(\.isIdle) ? idleRounds + 1 : 0
                if idleRounds == 5 { deliveries.addTask { await self.transport.rest() } }
            }
        }
    }

    /// Mails that are due, as many as may be in hand.
    private func take() async -> [LeasedMail] {
        let now = configuration.clock()
        let (allowance, nextRoom) = pace.withLock { ($0.allowance(at: now), $0.nextRoom(at: now)) }
        guard allowance > 0 else {
            if let nextRoom { room.yield(nextRoom) }
            return []
        }
        let turns = turns.withLock { $0 }
        do {
            let mails = try await outbox.take(
                limit: Int32(clamping: allowance), lease: configuration.lease, after: turns.last,
                share: Int32(clamping: max(configuration.realmShare, 1)), inHand: turns.inHand,
                registering: turns.registering)
            pace.withLock { $0.take(mails.count) }
            self.turns.withLock { $0.take(mails) }
            return mails
        } catch .unavailable(.notRunning) {
            return []  // starting or stopping
        } catch {
            logger.warning("outbox cannot be read", metadata: ["error": "\(error)"])
            return []
        }
    }

    private func deliver(_ mail: LeasedMail, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        let outcome =
            switch prepare(mail) {
            case .success(let outgoing): await transport.send(outgoing, before: deadline)
            case .failure(let refusal): refusal.outcome
            }
        await record(outcome, of: mail)
        return outcome
    }

    private struct Refusal: Error {
        let outcome: DeliveryOutcome
    }

    /// Opens and renders. What cannot be opened stays queued: another node may have the key or know the template.
    private func prepare(_ mail: LeasedMail) -> Result<OutgoingMail, Refusal> {
        guard let recipient = MailAddress(mail.recipient) else {
            return .failure(Refusal(outcome: .permanent(.recipient)))
        }
        do {
            guard let sealed = mail.payload else { return try prepare(notice: mail, to: recipient) }
            let payload = try MailPayload(opening: sealed, with: keyring, realm: mail.realm, mail: mail.id)
            if let minutes = payload.usefulMinutes, mail.ageInSeconds >= Double(minutes) * 60 {
                return .failure(Refusal(outcome: .permanent(.expired)))
            }
            let message = message(try renderer.render(payload), of: mail, to: recipient, realmName: payload.realmName)
            return .success(OutgoingMail(message: message, code: payload.code, link: payload.link))
        } catch {
            return .failure(Refusal(outcome: .temporary(.payload)))
        }
    }

    private func prepare(notice mail: LeasedMail, to recipient: MailAddress) throws -> Result<OutgoingMail, Refusal> {
        guard let notice = MailNotice(template: mail.template, detail: mail.detail ?? "") else {
            return .failure(Refusal(outcome: .temporary(.payload)))
        }
        let words = try renderer.render(notice, realmName: mail.realmName)
        return .success(OutgoingMail(message: message(words, of: mail, to: recipient, realmName: mail.realmName)))
    }

    private func message(
        _ words: MailRenderer.Rendered, of mail: LeasedMail, to recipient: MailAddress, realmName: String
    ) -> MailMessage {
        MailMessage(
            id: mail.id.description,
            from: sender.name == nil ? Mailbox(name: realmName, address: sender.address) : sender,
            to: recipient, subject: words.subject, text: words.text, html: words.html, queuedAt: mail.queuedAt)
    }

    private func record(_ outcome: DeliveryOutcome, of mail: LeasedMail) async {
        let doubt = DeliveryFailure.inDoubt.description
        let wasInDoubt = mail.lastError?.hasPrefix(doubt) == true
        switch outcome {
        case .accepted:
            log(.info, "mail sent", mail)
            await save(mail) { () throws(StoreError) in try await outbox.sent(mail) }
        case .inDoubt where wasInDoubt:
            await fail(mail, doubt, pause: .zero, forGood: true)
        case .inDoubt:
            await fail(mail, doubt, pause: RetrySchedule.pauseAfterDoubt, forGood: false)
        case .temporary(let failure):
            let pause = RetrySchedule.pause(afterAttempt: mail.attempt, failure)
            await fail(mail, wasInDoubt ? "\(doubt), \(failure)" : "\(failure)", pause: pause, forGood: false)
        case .permanent(.noSuchMailbox(let code)):
            let status = "\(DeliveryFailure.noSuchMailbox(code))"
            log(.error, "mail given up: no such mailbox", mail, status)
            await save(mail) { () throws(StoreError) in try await outbox.refused(mail, error: status) }
        case .permanent(let failure):
            await fail(mail, "\(failure)", pause: .zero, forGood: true)
        }
    }

    private func fail(_ mail: LeasedMail, _ status: String, pause: Duration, forGood: Bool) async {
        let message: Logger.Message = forGood ? "mail given up" : "mail not taken, will be tried again"
        log(forGood ? .error : .warning, message, mail, status)
        await save(mail) { () throws(StoreError) in
            try await outbox.failed(mail, error: status, retryAfter: pause, isFinal: forGood)
        }
    }

    /// Records an outcome and retries until the lease ends. A mail whose outcome is not recorded by then is sent again.
    private func save(_ mail: LeasedMail, _ record: () async throws(StoreError) -> Void) async {
        let giveUp = ContinuousClock.now + configuration.lease
        var pause = Duration.milliseconds(100)
        while true {
            do {
                try await record()
                return
            } catch {
                guard ContinuousClock.now + pause < giveUp, (try? await Task.sleep(for: pause)) != nil else {
                    log(.error, "outcome of a mail not recorded, it will be sent again", mail, "\(error)")
                    return
                }
                pause = min(pause * 2, .seconds(5))
            }
        }
    }

    private func log(_ level: Logger.Level, _ message: Logger.Message, _ mail: LeasedMail, _ status: String? = nil) {
        logger.log(
            level: level, message,
            metadata: [
                "mail": "\(mail.id)", "realm": "\(mail.realm)", "attempt": "\(mail.attempt)",
                "status": "\(status ?? "2xx")",
            ])
    }
}
