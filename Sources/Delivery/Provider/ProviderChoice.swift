import Persistence

/// Which provider a message goes to, given how it fared: the same one until it refused or failed twice, then the next
/// in order, in a circle; none that refused.
struct ProviderChoice: Sendable, Equatable {
    /// The one asked last.
    var provider: String?
    /// Its failures in a row.
    var failures = 0
    /// Those that will never take the message.
    var refusedBy: [String] = []

    private static let failuresBeforeTheNext = 2

    init(provider: String? = nil, failures: Int = 0, refusedBy: [String] = []) {
        self.provider = provider
        self.failures = failures
        self.refusedBy = refusedBy
    }

    init(_ message: LeasedMessage) {
        self.init(
            provider: message.provider, failures: message.providerFailures, refusedBy: message.refusedBy)
    }

    /// - Parameter providers: those that are enabled, in order.
    /// - Returns: `nil` when each of them refused, or there is none.
    func next(of providers: [Provider]) -> Provider? {
        let last = providers.firstIndex { $0.name == provider }
        if let last, failures < Self.failuresBeforeTheNext, !refusedBy.contains(providers[last].name) {
            return providers[last]
        }
        let start = last.map { $0 + 1 } ?? 0
        return (0..<providers.count).lazy.map { providers[(start + $0) % providers.count] }
            .first { !refusedBy.contains($0.name) }
    }

    /// After a failure of `provider`.
    func after(failureOf provider: String, refuses: Bool, counts: Bool) -> ProviderChoice {
        var choice = self
        choice.failures = (provider == self.provider ? failures : 0) + (counts ? 1 : 0)
        choice.provider = provider
        if refuses { choice.refusedBy.append(provider) }
        return choice
    }
}
