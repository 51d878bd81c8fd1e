public import Persistence
import Synchronization

/// Realms by host: immutable snapshots, swapped whole, never older than a second (design decision 1).
///
/// The listening connection confirms several times a second that the configuration is what it was; a notification or a changed
/// stamp throws the snapshots away, and so does losing that connection. Without a confirmation a snapshot lives one second.
public final class RealmDirectory: Sendable {
    private struct State {
        /// Rises with every invalidation: a load that began before one is not kept.
        var epoch = 0
        var stamp: String?
        /// Until when the last confirmation holds.
        var confirmedUntil: ContinuousClock.Instant?
        var hosts: Loaded<[String: UUIDValue]>?
        var realms: [UUIDValue: Loaded<Realm?>] = [:]
    }

    private struct Loaded<Value: Sendable>: Sendable {
        let value: Value
        let at: ContinuousClock.Instant
    }

    private let store: ConfigurationStore
    private let loader = SharedLoads()
    private let state = Mutex(State())

    /// The oldest a snapshot may be.
    private static let maximumAge = Duration.seconds(1)
    /// The longest a heartbeat's answer may take.
    private static let answerTime = Duration.milliseconds(400)

    /// Loads through `store`.
    public init(store: ConfigurationStore) {
        self.store = store
    }

    /// The realm of a canonical host as that host shows it, `nil` when there is none.
    public func realm(forHost host: String) async throws(StoreError) -> Realm? {
        guard let id = try await hosts()[host] else { return nil }
        return try await realm(id)?.seen(from: host)
    }

    private func realm(_ id: UUIDValue) async throws(StoreError) -> Realm? {
        if let realm = fresh({ $0.realms[id] }) { return realm }
        let epoch = state.withLock { $0.epoch }
        let realm = try await loader.load("realm \(id) \(epoch)") { [store] in
            guard let json = try await store.realm(id) else { return nil as Realm? }
            return try Realm(json: json)
        }
        keep(realm, epoch) { $0.realms[id] = $1 }
        return realm
    }

    private func hosts() async throws(StoreError) -> [String: UUIDValue] {
        if let hosts = fresh(\.hosts) { return hosts }
        let epoch = state.withLock { $0.epoch }
        let hosts = try await loader.load("directory \(epoch)") { [store] in try await store.directory() }
        keep(hosts, epoch) { $0.hosts = $1 }
        return hosts
    }

    /// The listening connection saw this stamp, less than ``answerTime`` ago.
    public func confirm(stamp: String) {
        state.withLock { state in
            if state.stamp != stamp {
                Self.clear(&state)
                state.stamp = stamp
            }
            state.confirmedUntil = ContinuousClock.now + (Self.maximumAge - Self.answerTime)
        }
    }

    /// Something changed, or nobody would tell us if it did.
    public func invalidate() {
        state.withLock { state in
            Self.clear(&state)
            state.confirmedUntil = nil
        }
    }

    private static func clear(_ state: inout State) {
        state.epoch += 1
        state.hosts = nil
        state.realms.removeAll(keepingCapacity: true)
    }

    private func fresh<Value: Sendable>(_ entry: (borrowing State) -> Loaded<Value>?) -> Value? {
        let now = ContinuousClock.now
        return state.withLock { state in
            guard let loaded = entry(state) else { return nil }
            let confirmed = state.confirmedUntil.map { now < $0 } ?? false
            return confirmed || now < loaded.at + Self.maximumAge ? loaded.value : nil
        }
    }

    private func keep<Value: Sendable>(
        _ value: Value, _ epoch: Int, _ store: (inout State, Loaded<Value>) -> Void
    ) {
        let loaded = Loaded(value: value, at: ContinuousClock.now)
        state.withLock { state in
            if state.epoch == epoch { store(&state, loaded) }
        }
    }
}
