import Delivery
import Foundation
import Grants
import Persistence

extension DoctorCommand {
    /// Every enabled provider: can its credential be read and its endpoint be reached? With `--send`, does it take a
    /// message?
    func examineChannels(_ settings: Settings, _ examination: inout Examination) async {
        let channels: [ConfiguredChannel]
        do {
            channels = try await OneOffDatabase.use(try settings.databaseURL()) {
                try await OutboxStore($0).configured()
            }
        } catch {
            return examination.fail("channels", "\(error)")
        }
        guard let keyring = try? settings.keyring(), let prober = Self.prober(settings)
        else { return examination.fail("channels", "see key file") }
        for channel in channels {
            for provider in channel.providers {
                await examination.check("\(channel.channel.rawValue) of \(channel.realmSlug) by \(provider.name)") {
                    () async throws -> Void in
                    guard let fault = await prober.fault(of: provider, realm: channel.realmSlug) else { return }
                    throw CommandFailure(fault)
                }
            }
        }
        guard let send, !send.contains("@") else { return }
        guard let channel = channels.first(where: { $0.realmSlug == realm && $0.channel.rawValue == self.channel })
        else {
            return examination.fail(
                "message to \(send)", "realm \(realm ?? "") has no enabled provider of \(self.channel)")
        }
        for provider in channel.providers {
            await examination.check("message to \(send) by \(provider.name)") { () async throws -> Void in
                try await Self.send(to: send, channel, by: provider, settings, keyring)
            }
        }
    }

    /// Every enabled webhook: can its credential be read and its receiver be reached, and what went wrong last?
    func examineWebhooks(_ settings: Settings, _ examination: inout Examination) async {
        let endpoints: [WebhookStore.Endpoint]
        do {
            endpoints = try await OneOffDatabase.use(try settings.databaseURL()) {
                try await WebhookStore($0).endpoints()
            }
        } catch {
            return examination.fail("webhooks", "\(error)")
        }
        guard let prober = Self.prober(settings) else { return examination.fail("webhooks", "see channels") }
        for endpoint in endpoints {
            await examination.check("webhook \(endpoint.name) of \(endpoint.realm)") {
                if let fault = await prober.fault(
                    of: endpoint.url, secretName: endpoint.secretName, realm: endpoint.realm)
                {
                    throw CommandFailure(fault)
                }
                return endpoint.lastError.map { "reachable, but the last events failed: \($0)" } ?? ""
            }
        }
    }

    private static func prober(_ settings: Settings) -> ProviderExamination? {
        try? ProviderExamination(
            OutgoingCalls(
                caller: HTTPCaller(sessions: 1), signer: NoSigner(),
                secrets: SecretFiles(folder: settings.secretsDirectory)))
    }

    private static func send(
        to number: String, _ channel: ConfiguredChannel, by provider: Provider, _ settings: Settings,
        _ keyring: Keyring
    ) async throws {
        let fault = try await OneOffDatabase.use(try settings.databaseURL()) { database in
            let tokens = HookTokens(
                keys: SigningKeys(store: SigningKeyStore(database), keyring: keyring),
                realms: RealmDirectory(source: ConfigurationStore(database)),
                clock: { Date().timeIntervalSince1970 })
            let sender = try ProviderExamination(
                OutgoingCalls(
                    caller: HTTPCaller(sessions: 1), signer: RealmCallSigner(tokens: tokens),
                    secrets: SecretFiles(folder: settings.secretsDirectory)))
            return await sender.fault(sending: channel, to: number, by: provider)
        }
        if let fault { throw CommandFailure(fault) }
    }

    static func testMail(from: Mailbox, to: MailAddress) -> OutgoingMail {
        let text = "This mail was sent by `postern doctor`. The mail server took it."
        return OutgoingMail(
            message: MailMessage(
                id: "\(UUIDValue.random())", from: from, to: to, subject: "Postern: a test mail", text: text,
                html: "<p>\(text)</p>", queuedAt: Date().timeIntervalSince1970))
    }
}

/// For an examination that sends nothing.
private struct NoSigner: CallSigner {
    func token(realm: UUIDValue, url: String, message: UUIDValue, body: [UInt8]) async throws -> String {
        throw CommandFailure("nothing is sent")
    }
}
