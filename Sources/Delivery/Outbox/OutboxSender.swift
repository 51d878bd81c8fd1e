public import Logging
public import Persistence
public import ServiceLifecycle
import Synchronization
public import Tracing

/// Empties the outbox: takes due messages of all channels on lease, hands them to the mail server or to providers, and
/// records the outcome. Realms take turns, and none occupies all senders of a channel (docs/decisions/0027, 0035).
///
/// Any number of these may run on any number of nodes. A message whose sender dies is taken again when its lease ends,
/// so none is lost. What is over the rate stays in the queue, free for other nodes to take.
public final class OutboxSender: Service {
    /// The numbers that a test or an operator may want otherwise.
    public struct Configuration: Sendable {
        /// Mails in hand at once; the SMTP transport should have as many connections.
        public var concurrency = 6
        /// Messages of each other channel in hand at once.
        public var messageConcurrency = 8
        /// Messages of one realm and channel in hand at once; of registrations one less. So slow recipients of one
        /// realm leave senders to other realms, and registrations leave senders to sign-ins.
        public var realmShare = 4
        /// How long a message is reserved for this sender.
        public var lease = Duration.seconds(90)
        /// The end of the lease that is left to recording the outcome: an attempt is over before it begins.
        public var recordingTime = Duration.seconds(15)
        /// How often to look without being woken: for messages of other nodes and for retries.
        public var pollInterval = Duration.seconds(1)
        /// The most mails in any second; no bound if `nil`.
        public var mailsPerSecond: Int?
        /// What time it is for pace and rate.
        var clock: @Sendable () -> ContinuousClock.Instant = { .now }

        /// The defaults.
        public init() {}
    }

    private let outbox: OutboxStore
    private let transport: any MailTransport
    private let configuration: Configuration
    private let logger: Logger
    private let mails: MailDelivery
    private let messages: MessageDelivery?
    private let recorder: OutcomeRecorder
    private let tracer: (any Tracer)?
    private let lanes: Mutex<[Lane]>
    private let wakes: WakeSignal
    private let rooms: AsyncStream<ContinuousClock.Instant>
    private let room: AsyncStream<ContinuousClock.Instant>.Continuation

    /// - Parameters:
    ///   - database: Where the outbox is; has to run as long as this does.
    ///   - keyring: Opens the payloads.
    ///   - sender: `POSTERN_MAIL_FROM`. Without a display name, mails show the realm's.
    ///   - transport: Where mails go.
    ///   - calls: How providers and hooks are called; without it, mails alone are sent.
    ///   - wakes: Says that a message was just queued, so that it leaves at once.
    ///   - tracer: makes a span of each attempt; `nil`: there are none.
    ///   - observe: Counts how attempts end, by channel.
    /// - Throws: if the templates in the binary are broken.
    public init(
        database: Database, keyring: Keyring, sender: Mailbox, transport: any MailTransport,
        calls: OutgoingCalls? = nil, wakes: WakeSignal = WakeSignal(),
        configuration: Configuration = Configuration(), logger: Logger, tracer: (any Tracer)? = nil,
        observe: @escaping @Sendable (_ channel: String, _ outcome: String) -> Void = { _, _ in }
    ) throws {
        outbox = OutboxStore(database)
        self.transport = transport
        self.configuration = configuration
        self.logger = logger
        self.wakes = wakes
        self.tracer = tracer
        let recorder = OutcomeRecorder(
            outbox: outbox, lease: configuration.lease, logger: logger,
            observe: { observe($0.rawValue, $1.rawValue) })
        self.recorder = recorder
        mails = MailDelivery(
            outbox: outbox, keyring: keyring, sender: sender, transport: transport, renderer: try MailRenderer(),
            recorder: recorder)
        messages = try calls.map {
            MessageDelivery(
                outbox: OutboxStore(database), keyring: keyring, writer: try MessageWriter(),
                providers: ProviderCaller($0), recorder: recorder)
        }
        let channels = calls == nil ? [Channel.email] : Channel.all
        lanes = Mutex(
            channels.map { channel in
                channel == .email
                    ? Lane(.email, concurrency: configuration.concurrency, mailsPerSecond: configuration.mailsPerSecond)
                    : Lane(channel, concurrency: configuration.messageConcurrency)
            })
        (rooms, room) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Says that a message was just queued. May be called from anywhere, any number of times.
    public func wake() {
        wakes.signal()
    }

    /// Sends until graceful shutdown, then finishes the messages in hand. Cancellation abandons them to their lease.
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
            self.wakes.end()
        }
    }

    /// The poll: a signal every so often.
    private func tick() async {
        while true {
            wakes.signal()
            do { try await Task.sleep(for: configuration.pollInterval) } catch { return }
        }
    }

    /// A signal whenever the rate, once reached, has room again: the poll alone would leave part of it unused.
    private func wakeForRoom() async {
        for await instant in rooms {
            do { try await Task.sleep(until: instant, clock: .continuous) } catch { return }
            wakes.signal()
        }
    }

    private func work() async {
        await withDiscardingTaskGroup { deliveries in
            var idleRounds = 0
            for await _ in wakes.wakes {
                // The lease, and what is left of a message's life, begin no earlier than now.
                let start = ContinuousClock.now
                let deadline = start + configuration.lease - configuration.recordingTime
                let taken = await take()
                for message in taken {
                    deliveries.addTask {
                        let end = message.channel == .email ? deadline : min(deadline, start + message.timeLeft)
                        let outcome = await self.deliver(message, before: end)
                        let now = self.configuration.clock()
                        self.lanes.withLock { lanes in
                            let index = lanes.firstIndex { $0.channel == message.channel }
                            if let index { lanes[index].finish(message, outcome, at: now) }
                        }
                        self.wakes.signal()
                    }
                }
                let isIdle = lanes.withLock { $0.allSatisfy(\.isIdle) }
                idleRounds = taken.isEmpty && isIdle ? idleRounds + 1 : 0
                if idleRounds == 5 { deliveries.addTask { await self.transport.rest() } }
            }
        }
    }

    /// Messages that are due, as many as may be in hand.
    private func take() async -> [LeasedMessage] {
        let now = configuration.clock()
        let share = max(configuration.realmShare, 1)
        let (wishes, nextRoom) = lanes.withLock { lanes in
            (
                lanes.indices.compactMap { lanes[$0].wish(share: share, at: now) },
                lanes.compactMap { $0.nextRoom(at: now) }.min()
            )
        }
        if let nextRoom { room.yield(nextRoom) }
        guard !wishes.isEmpty else { return [] }
        do {
            let messages = try await outbox.take(
                wishes, lease: configuration.lease, share: Int32(clamping: share))
            lanes.withLock { lanes in
                for index in lanes.indices { lanes[index].take(messages) }
            }
            return messages
        } catch .unavailable(.notRunning) {
            return []  // starting or stopping
        } catch {
            logger.warning("outbox cannot be read", metadata: ["error": "\(error)"])
            return []
        }
    }

    /// One attempt, as a trace of its own: what asked for the message has been answered.
    private func deliver(_ leased: LeasedMessage, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        guard let tracer else { return await attempt(leased, before: deadline) }
        let span = tracer.startSpan("send \(leased.channel.rawValue)", context: .topLevel, ofKind: .client)
        defer { span.end() }
        guard span.isRecording else { return await attempt(leased, before: deadline) }
        let outcome = await ServiceContext.withValue(span.context) { await attempt(leased, before: deadline) }
        span.updateAttributes { attributes in
            attributes["postern.channel"] = leased.channel.rawValue
            attributes["postern.attempt"] = leased.attempt
            attributes["postern.outcome"] = outcome.kind
        }
        if outcome != .accepted { span.setStatus(SpanStatus(code: .error)) }
        return outcome
    }

    private func attempt(_ leased: LeasedMessage, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        guard let message = messages.map({ leased.openingRecipient(with: $0.keyring) }) ?? leased else {
            return await messages?.fail(unreadable: leased) ?? .permanent(.payload)
        }
        if let hook = message.hook {
            if let refusal = await ask(hook, about: message, before: deadline) { return refusal }
        }
        guard message.channel != .email, let messages else { return await mails.deliver(message, before: deadline) }
        return await messages.deliver(message, wasAllowed: message.hook != nil, before: deadline)
    }

    /// - Returns: `nil` when the message may be sent.
    private func ask(
        _ hook: PreSendHook, about message: LeasedMessage, before deadline: ContinuousClock.Instant
    ) async -> DeliveryOutcome? {
        let answer = await messages?.providers.verdict(on: message, of: hook, before: deadline) ?? .notAsked
        switch answer {
        case .allowed: return nil
        case .unusable where hook.allowsOnFailure: return nil
        case .notAsked:
            var failure = OutboxStore.Failure("\(DeliveryFailure.credential)")
            failure.retryAfter = RetrySchedule.pause(ofMessageAfterAttempt: message.attempt)
            await record(failure, .retried, "hook could not be asked, message will be tried again", of: message)
            return .temporary(.credential)
        case .denied, .unusable:
            var failure = OutboxStore.Failure("\(DeliveryFailure.denied)")
            failure.isFinal = true
            await record(failure, .denied, "message denied by the pre-send hook", of: message)
            return .permanent(.denied)
        }
    }

    private func record(
        _ failure: OutboxStore.Failure, _ outcome: OutcomeRecorder.Outcome, _ text: Logger.Message,
        of message: LeasedMessage
    ) async {
        await recorder.record(outcome, of: message, .notice, text, failure.error) { () throws(StoreError) in
            try await outbox.failed(message, failure)
        }
    }
}

extension LeasedMessage {
    /// How long it is of use, from the moment it was taken.
    var timeLeft: Duration { .milliseconds(Int64(max(min(secondsLeft, 86_400), 0) * 1000)) }
}
