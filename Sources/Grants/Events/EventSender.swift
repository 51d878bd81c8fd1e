public import Logging
public import Persistence
import Synchronization

/// Sends events to webhooks: collects them from the audit log, signs and posts them, records what came of it
/// (docs/decisions/0040). Every node runs one.
///
/// The lease of a subject lets one node send one of its events at a time. A lost node loses no event: its leases end.
public final class EventSender: Sendable {
    /// Posts a token. - Parameter secretName: the file whose line is `Authorization`; `nil`: none is sent.
    public typealias Post =
        @Sendable (_ url: String, _ secretName: String?, _ token: [UInt8]) async -> WebhookAnswer

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
        /// When the log last named what events wait for.
        var namedAt: ContinuousClock.Instant?
    }

    /// Calls under way at a time.
    public static let concurrency = 32
    /// Of one webhook: a receiver that hangs leaves three quarters to the others.
    private static let share: Int32 = 8
    private static let batch: Int32 = 500
    private static let interval = Duration.seconds(1)
    /// An open transaction is normal for so many seconds.
    private static let patience = 10.0

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
                    await self.wakes.forEach(atLeastEvery: Self.interval) { await self.take(&calls) }
                }
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
            do {
                let collected = try await store.collect(batch: Self.batch)
                isFull = collected.isFull
                if isFull { wakes.signal() }
                await name(waiting: collected.waiting)
            } catch {
                logger.debug("events wait: the database is not available", metadata: ["error": "\(error)"])
            }
            if !isFull { try? await Task.sleep(for: Self.interval) }
        }
    }

    private func take(_ calls: inout DiscardingTaskGroup) async {
        let busy = state.withLock { $0.busy }
        let room = Self.concurrency - busy.count
        guard room > 0 else { return }
        do {
            let due = try await store.take(Int32(room), share: Self.share, busy: busy)
            state.withLock { $0.busy += due.map(\.webhook) }
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

    private func send(_ due: WebhookStore.Due) async {
        let answer: WebhookAnswer
        do {
            answer = await post(due.url, due.secretName, Array(try await tokens.token(for: due).utf8))
        } catch {
            answer = .failed("signing")
        }
        if case .failed = answer, Task.isCancelled { return }
        let outcome = answer.outcome(attempt: due.attempts + 1)
        do {
            guard let failures = try await store.settle(due, outcome) else { return }
            report(outcome, of: due, failures: failures)
        } catch {
            // It is sent again when its lease ends.
            logger.warning(
                "what came of an event cannot be recorded", metadata: Self.metadata(of: due, ["error": "\(error)"]))
        }
    }

    private func report(_ outcome: WebhookStore.Outcome, of due: WebhookStore.Due, failures: Int32) {
        switch outcome {
        case .delivered: count("delivered")
        case .refused(let code):
            count("refused")
            logger.warning("a receiver refused an event", metadata: Self.metadata(of: due, ["error": "\(code)"]))
        case .failed(let failure, _):
            count("failed")
            // Once per event, and not at all while the webhook fails for all.
            if due.attempts == 0, failures <= 5 {
                logger.notice("an event was not taken", metadata: Self.metadata(of: due, ["error": "\(failure)"]))
            }
            if failures == 5 {
                logger.warning("a webhook fails", metadata: Self.metadata(of: due, ["error": "\(failure)"]))
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
        guard seconds > Self.patience else { return }
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
