import Logging
import Persistence

/// Renders mails, hands them to the mail server and records the outcome.
///
/// An attempt that ended without an answer is repeated once: the mail may arrive twice, with the same `Message-ID`.
struct MailDelivery: Sendable {
    let outbox: OutboxStore
    let keyring: Keyring
    let sender: Mailbox
    let transport: any MailTransport
    let renderer: MailRenderer
    let recorder: OutcomeRecorder

    func deliver(_ mail: LeasedMessage, before deadline: ContinuousClock.Instant) async -> DeliveryOutcome {
        let outcome =
            switch prepare(mail) {
            case .success(let outgoing): attributed(outgoing, await transport.send(outgoing, before: deadline))
            case .failure(let refusal): refusal.outcome
            }
        await record(outcome, of: mail)
        return outcome
    }

    /// A refused sender address concerns only the realm that has configured it. The server's own address concerns all
    /// realms.
    private func attributed(_ mail: OutgoingMail, _ outcome: DeliveryOutcome) -> DeliveryOutcome {
        guard case .temporary(.sender(let code)) = outcome, mail.message.from.address == sender.address else {
            return outcome
        }
        return .temporary(.reply(code))
    }

    private struct Refusal: Error {
        let outcome: DeliveryOutcome
    }

    /// Opens and renders. What cannot be opened stays queued: another node may have the key or know the template.
    private func prepare(_ mail: LeasedMessage) -> Result<OutgoingMail, Refusal> {
        guard let recipient = MailAddress(mail.recipient) else {
            return .failure(Refusal(outcome: .permanent(.recipient)))
        }
        do {
            guard let sealed = mail.payload else { return try prepare(notice: mail, to: recipient) }
            let payload = try MessagePayload(opening: sealed, with: keyring, realm: mail.realm, mail: mail.id)
            if let minutes = payload.usefulMinutes, mail.ageInSeconds >= Double(minutes) * 60 {
                return .failure(Refusal(outcome: .permanent(.expired)))
            }
            let words = try renderer.render(payload, MailRenderer.Voice(of: mail, client: mail.askedBy))
            let message = message(words, of: mail, to: recipient)
            return .success(OutgoingMail(message: message, code: payload.code, link: payload.link))
        } catch {
            return .failure(Refusal(outcome: .temporary(.payload)))
        }
    }

    private func prepare(
        notice mail: LeasedMessage, to recipient: MailAddress
    ) throws -> Result<OutgoingMail, Refusal> {
        guard let notice = MailNotice(template: mail.template, detail: mail.detail ?? "") else {
            return .failure(Refusal(outcome: .temporary(.payload)))
        }
        let undo = try notice.undo?.url(realm: mail.realm, keyring: keyring)
        let words = try renderer.render(notice, MailRenderer.Voice(of: mail), undo: undo)
        return .success(OutgoingMail(message: message(words, of: mail, to: recipient)))
    }

    /// From the App's or realm's own sender, if it has one; else from the server's in the name of the realm.
    private func message(
        _ words: MailRenderer.Rendered, of mail: LeasedMessage, to recipient: MailAddress
    ) -> MailMessage {
        let own = mail.mailFrom.flatMap { Mailbox(parsing: $0) } ?? sender
        return MailMessage(
            id: mail.id.description,
            from: own.name == nil ? Mailbox(name: mail.realmName, address: own.address) : own,
            replyTo: mail.replyTo.flatMap { Mailbox(parsing: $0) }, to: recipient, subject: words.subject,
            text: words.text, html: words.html, queuedAt: mail.queuedAt)
    }

    private func record(_ outcome: DeliveryOutcome, of mail: LeasedMessage) async {
        let doubt = DeliveryFailure.inDoubt.description
        let wasInDoubt = mail.lastError?.hasPrefix(doubt) == true
        switch outcome {
        case .accepted:
            await recorder.record(.sent, of: mail, .info, "mail sent", "2xx") { () throws(StoreError) in
                try await outbox.sent(mail)
            }
        case .inDoubt where wasInDoubt:
            await fail(mail, doubt, pause: .zero, forGood: true)
        case .inDoubt:
            await fail(mail, doubt, pause: RetrySchedule.pauseAfterDoubt, forGood: false)
        case .temporary(let failure):
            let pause = RetrySchedule.pause(afterAttempt: mail.attempt, failure)
            await fail(mail, wasInDoubt ? "\(doubt), \(failure)" : "\(failure)", pause: pause, forGood: false)
        case .permanent(.noSuchMailbox(let code)):
            let status = "\(DeliveryFailure.noSuchMailbox(code))"
            await recorder.record(.dead, of: mail, .error, "mail given up: no such mailbox", status) {
                () throws(StoreError) in try await outbox.refused(mail, error: status)
            }
        case .permanent(let failure):
            await fail(mail, "\(failure)", pause: .zero, forGood: true)
        }
    }

    private func fail(_ mail: LeasedMessage, _ status: String, pause: Duration, forGood: Bool) async {
        await recorder.record(
            forGood ? .dead : .retried, of: mail, forGood ? .error : .warning,
            forGood ? "mail given up" : "mail not taken, will be tried again", status
        ) { () throws(StoreError) in
            try await outbox.failed(mail, error: status, retryAfter: pause, isFinal: forGood)
        }
    }
}
