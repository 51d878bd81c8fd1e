import Persistence
import Synchronization

/// Bounds what forged assertions cost: each is a signature to verify, and their sender pays nothing.
///
/// A source that has used up its budget of refused calls (policy `refused`) gets a bounded number of verifications a
/// second, over all clients. A client that authenticated from there lately is always verified, so that its good calls
/// are served.
final class AssertionChecks: Sendable {
    private struct Key: Hashable {
        let realm: UUIDValue
        let source: String
        /// `nil` for the source's own count.
        let client: UUIDValue?
    }

    private struct State {
        /// Until when a client counts as known at a source.
        var known: [Key: ContinuousClock.Instant] = [:]
        /// The verifications of a source in the present second.
        var spent: [Key: (until: ContinuousClock.Instant, count: Int)] = [:]
    }

    private let state = Mutex(State())
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// Verifications a second that a source over its budget gets.
    static let perSecond = 10
    /// How long a client counts as known after it authenticated.
    private static let memory = Duration.seconds(600)
    /// The most entries of either kind; beyond it the cache is emptied.
    private static let maximumEntries = 20_000

    init(clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.clock = clock
    }

    /// Whether an assertion is to be verified that comes from a source over its budget.
    func admits(_ client: UUIDValue, realm: UUIDValue, source: String) -> Bool {
        let now = clock()
        return state.withLock { state in
            if let until = state.known[Key(realm: realm, source: source, client: client)], until > now { return true }
            let key = Key(realm: realm, source: source, client: nil)
            var spent = state.spent[key] ?? (now + .seconds(1), 0)
            if spent.until <= now { spent = (now + .seconds(1), 0) }
            guard spent.count < Self.perSecond else { return false }
            spent.count += 1
            if state.spent.count >= Self.maximumEntries { state.spent.removeAll(keepingCapacity: true) }
            state.spent[key] = spent
            return true
        }
    }

    /// A client has authenticated from a source.
    func succeeded(_ client: UUIDValue, realm: UUIDValue, source: String) {
        let until = clock() + Self.memory
        state.withLock { state in
            if state.known.count >= Self.maximumEntries { state.known.removeAll(keepingCapacity: true) }
            state.known[Key(realm: realm, source: source, client: client)] = until
        }
    }
}
