import Logging
import Persistence

/// Records how an attempt ended, and says so in the log and to the metrics. Logs name the row and a class of answer,
/// never the address, the code or the link.
struct OutcomeRecorder: Sendable {
    /// What is counted.
    typealias Observer = @Sendable (Channel, Outcome) -> Void

    /// How an attempt ended, for a metric.
    enum Outcome: String, Sendable, CaseIterable {
        case sent, retried, dead, denied
    }

    let outbox: OutboxStore
    let lease: Duration
    let logger: Logger
    let observe: Observer

    /// Says how an attempt ended and records it, until the lease ends. A message whose outcome is not recorded by then
    /// is taken again.
    func record(
        _ outcome: Outcome, of message: LeasedMessage, _ level: Logger.Level, _ text: Logger.Message, _ status: String,
        provider: String? = nil, save: () async throws(StoreError) -> Void
    ) async {
        observe(message.channel, outcome)
        log(level, text, message, status, provider)
        let giveUp = ContinuousClock.now + lease
        var pause = Duration.milliseconds(100)
        while true {
            do {
                try await save()
                return
            } catch {
                guard ContinuousClock.now + pause < giveUp, (try? await Task.sleep(for: pause)) != nil else {
                    log(.error, "outcome of a message not recorded, it will be sent again", message, "\(error)")
                    return
                }
                pause = min(pause * 2, .seconds(5))
            }
        }
    }

    private func log(
        _ level: Logger.Level, _ text: Logger.Message, _ message: LeasedMessage, _ status: String,
        _ provider: String? = nil
    ) {
        var metadata: Logger.Metadata = [
            message.channel == .email ? "mail" : "message": "\(message.id)", "realm": "\(message.realm)",
            "attempt": "\(message.attempt)", "status": "\(status)",
        ]
        if message.channel != .email { metadata["channel"] = "\(message.channel.rawValue)" }
        if let provider { metadata["provider"] = "\(provider)" }
        logger.log(level: level, text, metadata: metadata)
    }
}
