public import Persistence
import Synchronization

/// Reports to the database how many codes of a realm were compared and wrong, for the realm's limit `wrong-codes`.
///
/// A process writes the realm's row a few times a second at most, however many codes are tried. Every try on every node
/// reads the row.
///
/// Locking: `state` guards what is not reported yet, and whether a task is reporting. No lock is held over an `await`.
public final class WrongCodes: Sendable {
    private struct Pending {
        var wrong: Int
        let realm: Realm
    }

    private struct State {
        var pending: [UUIDValue: Pending] = [:]
        var isReporting = false
    }

    private let codes: CodeStore
    private let state = Mutex(State())
    /// The time between two reports. Together with the statement itself, a brake takes effect on all nodes within a
    /// second.
    private static let interval = Duration.milliseconds(200)

    /// Reports to `codes`.
    public init(_ codes: CodeStore) {
        self.codes = codes
    }

    /// Counts the codes that a refused try compared, possibly none. A try at an address with codes costs no extra
    /// statement, so that its time does not reveal the address.
    func count(_ wrong: Int, of realm: Realm) {
        guard realm.rateLimits[.token]?[.wrongCodes] != nil else { return }
        let reports = state.withLock { state in
            state.pending[realm.id, default: Pending(wrong: 0, realm: realm)].wrong += wrong
            defer { state.isReporting = true }
            return !state.isReporting
        }
        if reports { report() }
    }

    /// Reports until there is nothing left. Holds this object no longer than that.
    private func report() {
        Task {
            repeat { try? await Task.sleep(for: Self.interval) } while await reportOnce()
        }
    }

    /// - Returns: `false` when there was nothing to report; then reporting has ended.
    private func reportOnce() async -> Bool {
        let pending = state.withLock { state in
            defer { state.pending = [:] }
            if state.pending.isEmpty { state.isReporting = false }
            return state.pending
        }
        for (id, count) in pending {
            guard let limit = count.realm.rateLimits[.token]?[.wrongCodes] else { continue }
            do {
                try await codes.reportWrongCodes(
                    realm: id, wrong: Int32(clamping: count.wrong),
                    Budget(limit), enforced: limit.enforced)
            } catch {
                // Kept for the next report. A count above the limit has the effect of the limit, so it is capped there.
                state.withLock { state in
                    var kept = count
                    kept.wrong = min(kept.wrong + (state.pending[id]?.wrong ?? 0), limit.burst)
                    state.pending[id] = kept
                }
            }
        }
        return !pending.isEmpty
    }
}

extension Budget {
    /// A configured limit as the database takes it.
    init(_ limit: RateLimit) {
        self.init(permits: Int32(clamping: limit.permits), per: limit.per, burst: Int32(clamping: limit.burst))
    }

    /// The realm's limit `wrong-codes`; `nil` while it is only watched.
    static func brake(of realm: Realm) -> Budget? {
        guard let limit = realm.rateLimits[.token]?[.wrongCodes], limit.enforced else { return nil }
        return Budget(limit)
    }

    /// The failure budget of an account presented by address alone. In log-only mode, a budget too large to be used up.
    static func failures(of realm: Realm) -> Budget {
        guard let limit = realm.rateLimits[.token]?[.failures], limit.enforced else {
            return Budget(permits: 1_000_000, per: 60, burst: 1_000_000)
        }
        return Budget(limit)
    }
}
