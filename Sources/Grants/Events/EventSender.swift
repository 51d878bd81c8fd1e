public import Logging
public import Persistence
import Synchronization

/// Sends events to webhooks: collects them from the audit log, signs and posts them, records what came of it
/// (docs/decisions/0040). Every node runs one.
///
/// The lease of a subject lets one node send one of its events at a time. A lost node loses no event: its leases end.
public final class EventSender: Sendable {
    /// Posts the token of an event to its receiver.
    public typealias Post = @Sendable (_ event: WebhookStore.Due, _ token: [UInt8]) async -> WebhookAnswer

    private let store: WebhookStore
    private let tokens: EventTokens
    private let post: Post
    private let count: @Sendable (_ outcome: String) -> Void
    private let logger: Logger
    private let wakes = WakeSignal()
    private let state = Mutex(State())

    private struct State {
        /// The webhook of each call under way.
        var busy: [UUIDValue] = []
        /// What arrived and is not recorded yet.
        var arrived: [WebhookStore.Due] = []
        /// Whether events were taken since the last look at the audit log.
        var hasTaken = false
        /// When the log last named what events wait for.
        var namedAt: ContinuousClock.Instant?
    }

    /// Calls under way at a time.
    public static let concurrency = 64
    /// Of one webhook: a receiver that hangs leaves three quarters to the others.
    private static let share: Int32 = 16
    private static let batch: Int32 = 500
    private static let interval = Duration.seconds(1)
    /// Between two looks at the audit log while there are events, so that they leave as evenly as they come.
    private static let shortInterval = Duration.milliseconds(100)
    /// Between two rounds: what ends meanwhile is recorded, and what follows is taken, by one statement each, so that
    /// events cost PostgreSQL little beside the requests that they come from.
    private static let pause = Duration.milliseconds(15)
    /// An open transaction is normal for so many seconds.
    private static let usualAge = 10.0

    /// - Parameter count: how a try ended: `delivered`, `failed` or `refused`.
    public init(
        _ store: WebhookStore, tokens: EventTokens, post: @escaping Post,
        count: @escaping @Sendable (_ outcome: String) -> Void, logger: Logger
    ) {
        self.store = store
        self.tokens = tokens
        self.post = post
        self.count = count
        self.logger = logger
    }

    /// Sends until ``stop()``, then finishes the calls under way. Cancellation abandons them to their lease.
    public func run() async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.collect() }
            tasks.addTask {
                await withDiscardingTaskGroup { calls in
                    await self.wakes.forEach(atLeastEvery: Self.interval) {
                        await self.record()
                        await self.take(&calls)
                        try? await Task.sleep(for: Self.pause)
                    }
                }
                // Of the calls that ended after the last round.
                await self.record()
            }
            // The collection sleeps; the other ends with the last call.
            await tasks.next()
            tasks.cancelAll()
        }
    }

    /// Takes nothing more.
    public func stop() {
        wakes.end()
    }

    /// One statement a second while nothing happens.
    private func collect() async {
        while !Task.isCancelled {
            var isFull = false
            let hasTaken = state.withLock { state in
                defer { state.hasTaken = false }
                return state.hasTaken
            }
            do {
                let collected = try await store.collect(batch: Self.batch)
                isFull = collected.isFull
                if isFull || hasTaken { wakes.signal() }
                await name(waiting: collected.waiting)
            } catch {
                logger.debug("events wait: the database is not available", metadata: ["error": "\(error)"])
            }
            if !isFull { try? await Task.sleep(for: hasTaken ? Self.shortInterval : Self.interval) }
        }
    }

    private func take(_ calls: inout DiscardingTaskGroup) async {
        let busy = state.withLock { $0.busy }
        let room = Self.concurrency - busy.count
        guard room > 0 else { return }
        do {
            let due = try await store.take(Int32(room), share: Self.share, busy: busy)
            state.withLock { state in
                state.busy += due.map(\.webhook)
                state.hasTaken = state.hasTaken || !due.isEmpty
            }
            for event in due {
                calls.addTask {
                    await self.send(event)
                    self.state.withLock { state in
                        if let index = state.busy.firstIndex(of: event.webhook) { state.busy.remove(at: index) }
                    }
                    self.wakes.signal()
                }
            }
        } catch {
            logger.debug("events wait: the database is not available", metadata: ["error": "\(error)"])
        }
    }

    /// Records what arrived since the last round.
    private func record() async {
        let arrived = state.withLock { state in
            defer { state.arrived.removeAll() }
            return state.arrived
        }
        guard !arrived.isEmpty, !Task.isCancelled else { return }
        do {
            for _ in 0..<(try await store.settle(delivered: arrived)) { count("delivered") }
        } catch {
            // They are sent again when their lease ends.
            logger.warning(
                "events that arrived cannot be recorded",
                metadata: ["events": "\(arrived.count)", "error": "\(error)"])
        }
    }

    private func send(_ due: WebhookStore.Due) async {
        let answer: WebhookAnswer
        do {
            answer = await post(due, Array(try await tokens.token(for: due).utf8))
        } catch {
            answer = .failed("signing")
        }
        if case .failed = answer, Task.isCancelled { return }
        guard let failure = answer.failure(attempt: due.attempts + 1) else {
            return state.withLock { $0.arrived.append(due) }
        }
        do {
            guard let failures = try await store.settle(due, failure) else { return }
            report(failure, of: due, failures: failures)
        } catch {
            // It is sent again when its lease ends.
            logger.warning(
                "what came of an event cannot be recorded", metadata: Self.metadata(of: due, ["error": "\(error)"]))
        }
    }

    private func report(_ failure: WebhookStore.Failure, of due: WebhookStore.Due, failures: Int32) {
        switch failure {
        case .refused(let code):
            count("refused")
            logger.warning("a receiver refused an event", metadata: Self.metadata(of: due, ["error": "\(code)"]))
        case .failed(let kind, _):
            count("failed")
            // Once per event, and not at all while the webhook fails for all.
            if due.attempts == 0, failures <= 5 {
                logger.notice("an event was not taken", metadata: Self.metadata(of: due, ["error": "\(kind)"]))
            }
            if failures == 5 {
                logger.warning("a webhook fails", metadata: Self.metadata(of: due, ["error": "\(kind)"]))
            }
        }
    }

    private static func metadata(of due: WebhookStore.Due, _ more: Logger.Metadata) -> Logger.Metadata {
        more.merging([
            "realm": "\(due.realm)", "webhook": "\(due.name)", "audit_id": "\(due.id)", "event": "\(due.event)",
        ]) { $1 }
    }

    /// Names the transaction that events wait for, once a minute.
    private func name(waiting seconds: Double) async {
        guard seconds > Self.usualAge else { return }
        let isDue = state.withLock { state in
            guard state.namedAt.map({ .now - $0 > .seconds(60) }) ?? true else { return false }
            state.namedAt = .now
            return true
        }
        guard isDue, let writer = try? await store.oldestWriter() else { return }
        logger.warning(
            "events wait for an open transaction",
            metadata: [
                "seconds": "\(Int(seconds))", "transaction": "\(writer.transaction)",
                "pid": "\(writer.process.map(String.init) ?? "prepared")",
            ])
    }
}
