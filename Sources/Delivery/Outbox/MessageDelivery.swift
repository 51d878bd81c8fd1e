import Logging
import Persistence

/// Writes messages to phones and devices, hands them to providers and records the outcome.
///
/// A provider that refuses a message, or fails twice, gives way to the next. A message in doubt is sent once more with
/// the same id, by this sender or another: one person gets one extra message at most.
struct MessageDelivery: Sendable {
    let outbox: OutboxStore
    let keyring: Keyring
    let writer: MessageWriter
    let providers: ProviderCaller
    let recorder: OutcomeRecorder

    /// - Parameter wasAllowed: the pre-send hook was asked just now and allowed the message.
    func deliver(
        _ message: LeasedMessage, wasAllowed: Bool, before deadline: ContinuousClock.Instant
    ) async -> DeliveryOutcome {
        var failure = OutboxStore.Failure("")
        failure.wasAllowed = wasAllowed
        let words: MessageWords
        do {
            let payload = try message.payload.map {
                try MessagePayload(opening: $0, with: keyring, realm: message.realm, mail: message.id)
            }
            let notice = message.detail.flatMap { MailNotice(template: message.template, detail: $0) }
            let undo = try notice?.undo?.url(realm: message.realm, keyring: keyring)
            words = try writer.words(of: message, payload, undo: undo)
        } catch {
            // Another node may have the key or know the template.
            failure.retryAfter = RetrySchedule.pause(ofMessageAfterAttempt: message.attempt)
            return await fail(message, failure, .payload)
        }
        let choice = ProviderChoice(message)
        guard let provider = choice.next(of: message.providers) else {
            failure.retryAfter = RetrySchedule.pause(ofMessageAfterAttempt: message.attempt)
            return await fail(message, failure, .provider)
        }
        let outcome = await providers.send(message, words, to: provider, before: deadline)
        failure.provider = provider.name
        switch outcome {
        case .sent(let reference):
            await recorder.record(.sent, of: message, .info, "message sent", "2xx", provider: provider.name) {
                () throws(StoreError) in try await outbox.sent(message, by: provider.name, reference: reference)
            }
            return .accepted
        case .inDoubt:
            failure.isFinal = wasInDoubt(message)
            failure.retryAfter = RetrySchedule.pauseOfMessageAfterDoubt
            _ = await fail(message, failure, .inDoubt)
            return .inDoubt
        case .refused(let reason):
            failure.providerRefuses = true
            failure.counts = true
            let next = choice.after(failureOf: provider.name, refuses: true, counts: true).next(of: message.providers)
            failure.isFinal = next == nil
            return await fail(message, failure, reason)
        case .failed(let reason, let retryAfter):
            failure.counts = reason != .cancelled
            let next = choice.after(failureOf: provider.name, refuses: false, counts: failure.counts)
                .next(of: message.providers)
            if next?.name == provider.name {
                failure.retryAfter = max(
                    RetrySchedule.pause(ofMessageAfterAttempt: message.attempt), retryAfter ?? .zero)
            }
            return await fail(message, failure, reason)
        }
    }

    /// Another node may have the line of the key file.
    func fail(unreadable message: LeasedMessage) async -> DeliveryOutcome {
        var failure = OutboxStore.Failure("")
        failure.retryAfter = RetrySchedule.pause(ofMessageAfterAttempt: message.attempt)
        return await fail(message, failure, .payload)
    }

    private func wasInDoubt(_ message: LeasedMessage) -> Bool {
        message.lastError?.hasPrefix(DeliveryFailure.inDoubt.description) == true
    }

    private func fail(
        _ message: LeasedMessage, _ failure: OutboxStore.Failure, _ reason: DeliveryFailure
    ) async -> DeliveryOutcome {
        var failure = failure
        // A doubt is remembered until the end.
        failure.error =
            wasInDoubt(message) && reason != .inDoubt ? "\(DeliveryFailure.inDoubt), \(reason)" : "\(reason)"
        let recorded = failure
        await recorder.record(
            failure.isFinal ? .dead : .retried, of: message, failure.isFinal ? .error : .warning,
            failure.isFinal ? "message given up" : "message not taken, will be tried again", failure.error,
            provider: failure.provider
        ) { () throws(StoreError) in try await outbox.failed(message, recorded) }
        return failure.isFinal ? .permanent(reason) : .temporary(reason)
    }
}
