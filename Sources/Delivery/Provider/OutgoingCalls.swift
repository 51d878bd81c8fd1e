public import Persistence

/// What calls to providers and hooks need.
public struct OutgoingCalls: Sendable {
    let caller: HTTPCaller
    let signer: any CallSigner
    let secrets: SecretFiles
    let outbox: (any MessageMemory)?

    /// - Parameter outbox: the memory of `postern dev`; without it a provider of that kind cannot be asked.
    public init(
        caller: HTTPCaller = HTTPCaller(), signer: any CallSigner, secrets: SecretFiles,
        outbox: (any MessageMemory)? = nil
    ) {
        self.caller = caller
        self.signer = signer
        self.secrets = secrets
        self.outbox = outbox
    }
}

/// Keeps messages in memory instead of sending them.
public protocol MessageMemory: Sendable {
    /// Keeps one.
    func keep(_ message: LeasedMessage, text: String, code: String?, link: String?)
}
