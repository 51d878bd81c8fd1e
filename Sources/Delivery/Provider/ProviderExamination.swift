public import Persistence

/// Looks at the providers of a channel and the receivers of events, for `postern doctor`.
public struct ProviderExamination: Sendable {
    private let caller: ProviderCaller
    private let writer: MessageWriter

    /// - Throws: an error if the texts in the binary are broken.
    public init(_ calls: OutgoingCalls) throws {
        caller = ProviderCaller(calls)
        writer = try MessageWriter()
    }

    /// Reads a provider's credential and connects to its endpoint, which is sent nothing.
    /// - Parameter realm: the slug of the provider's realm.
    /// - Returns: what is wrong, in one line.
    public func fault(of provider: Provider, realm: String) async -> String? {
        guard let url = provider.url else { return "this provider exists under postern dev only" }
        return await fault(of: url, secretName: provider.secretName, realm: realm)
    }

    /// Reads an endpoint's credential and connects to it, which is sent nothing.
    /// - Returns: what is wrong, in one line.
    public func fault(of url: String, secretName: String?, realm: String) async -> String? {
        if let secretName {
            do { _ = try await caller.secrets.secret(secretName, of: realm) } catch { return "\(error)" }
        }
        return await caller.caller.connect(to: url).map { "\(url) cannot be reached: \($0)" }
    }

    /// Sends one message with the code 000000. - Returns: what is wrong, in one line.
    public func fault(
        sending channel: ConfiguredChannel, to recipient: String, by provider: Provider
    ) async -> String? {
        let message = LeasedMessage(trying: channel, to: recipient)
        let payload = MessagePayload(
            originHost: channel.pageHost ?? "localhost",
            content: .otp(code: "000000", minutes: 1))
        do {
            let words = try writer.words(of: message, payload)
            let deadline = ContinuousClock.now + .seconds(10)
            switch await caller.send(message, words, to: provider, before: deadline) {
            case .sent: return nil
            case .refused(let failure): return "the provider refused the message: \(failure)"
            case .failed(let failure, _): return "the provider did not take the message: \(failure)"
            case .inDoubt: return "the provider did not answer: the message may have been sent"
            }
        } catch {
            return "the message could not be written: \(error)"
        }
    }
}
