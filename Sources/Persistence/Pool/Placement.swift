import Synchronization

/// Which cluster serves each realm, as far as this process knows.
///
/// Each cluster knows which realms it serves (`postern.placement`), and no two serve one realm. What a cluster has said
/// is used until its listening connection reports a change, and for a second at most when that connection says nothing.
/// A statement that comes to a cluster which the realm has left is refused there and runs again where the realm is.
final class Placement: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        /// The cluster of each realm, and when that was asked.
        var places: [UUIDValue: (cluster: Int, at: Instant)] = [:]
        /// Until when the last heartbeat of each cluster confirms what it said.
        var confirmedUntil: [Instant?]
        /// The stamp of that heartbeat.
        var stamps: [String?]
        /// Rises with every change: an answer that was asked for before one is not kept.
        var changes = 0

        mutating func forget(cluster: Int) {
            changes += 1
            confirmedUntil[cluster] = nil
            places = places.filter { $0.value.cluster != cluster }
        }
    }

    /// What a cluster says about a realm.
    private enum Answer: Sendable {
        case here, left, absent
        case failed(StoreError)
    }

    /// What `postern.placement` of a cluster says about a realm.
    typealias Ask = @Sendable (_ cluster: Int, _ realm: UUIDValue) async throws(StoreError) -> String?

    private let clusterCount: Int
    private let ask: Ask
    private let now: @Sendable () -> Instant
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state: Mutex<State>

    /// As old as a snapshot of the configuration may be.
    private static let maximumAge = Duration.seconds(1)
    /// The longest a heartbeat's answer may take.
    private static let answerTime = Duration.milliseconds(400)
    /// How long a statement waits for a realm that is between two clusters.
    private static let maximumWait = Duration.seconds(4)

    init(
        clusterCount: Int, now: @escaping @Sendable () -> Instant = { ContinuousClock.now },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        ask: @escaping Ask
    ) {
        self.clusterCount = clusterCount
        self.now = now
        self.sleep = sleep
        self.ask = ask
        state = Mutex(
            State(
                confirmedUntil: Array(repeating: nil, count: clusterCount),
                stamps: Array(repeating: nil, count: clusterCount)))
    }

    /// Runs `body` with the cluster that serves the realm. Runs it again when the realm has left that cluster: what the
    /// cluster refused for that reason has changed nothing.
    func perform<R: Sendable>(
        for realm: UUIDValue, _ body: (_ cluster: Int) async throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        let deadline = now() + Self.maximumWait
        while true {
            let place = try await place(of: realm, until: deadline)
            do {
                return try await body(place)
            } catch .unavailable(.realmMoves) {
                forget(realm)
                guard now() < deadline else { throw .unavailable(.realmMoves) }
            }
        }
    }

    /// What the listening connection of a cluster reports.
    func heard(_ event: ListenConnection.Event, from cluster: Int) {
        switch event {
        case .connected, .lost: state.withLock { $0.forget(cluster: cluster) }
        case .notification(_, let payload): UUIDValue(payload).map(forget)
        case .heartbeat(let stamp):
            let until = now() + Self.maximumAge - Self.answerTime
            state.withLock { state in
                if let known = state.stamps[cluster], known != stamp { state.forget(cluster: cluster) }
                state.stamps[cluster] = stamp
                state.confirmedUntil[cluster] = until
            }
        case .clocks: break
        }
    }

    private func forget(_ realm: UUIDValue) {
        state.withLock { state in
            state.changes += 1
            state.places[realm] = nil
        }
    }

    private func place(of realm: UUIDValue, until deadline: Instant) async throws(StoreError) -> Int {
        if let known = known(realm) { return known }
        while true {
            let asked = now()
            let changes = state.withLock { $0.changes }
            let answers = await answers(about: realm)
            if let place = answers.firstIndex(where: { if case .here = $0 { true } else { false } }) {
                state.withLock { state in
                    if state.changes == changes { state.places[realm] = (place, asked) }
                }
                return place
            }
            for case .failed(let error) in answers { throw error }
            // It is nowhere: what is asked of it is answered as for any realm that does not exist.
            guard answers.contains(where: { if case .left = $0 { true } else { false } }) else { return 0 }
            guard now() < deadline else { throw .unavailable(.realmMoves) }
            do { try await sleep(.milliseconds(20)) } catch { throw .cancelled }
        }
    }

    private func known(_ realm: UUIDValue) -> Int? {
        let moment = now()
        return state.withLock { state in
            guard let place = state.places[realm] else { return nil }
            let isConfirmed = state.confirmedUntil[place.cluster].map { moment < $0 } ?? false
            return isConfirmed || moment < place.at + Self.maximumAge ? place.cluster : nil
        }
    }

    private func answers(about realm: UUIDValue) async -> [Answer] {
        await withTaskGroup(of: (Int, Answer).self) { group in
            for cluster in 0..<clusterCount {
                group.addTask { (cluster, await self.answer(of: cluster, about: realm)) }
            }
            var answers = Array(repeating: Answer.absent, count: clusterCount)
            for await (cluster, answer) in group {
                answers[cluster] = answer
                // The other clusters need not answer, and one that is down does not.
                if case .here = answer { group.cancelAll() }
            }
            return answers
        }
    }

    private func answer(of cluster: Int, about realm: UUIDValue) async -> Answer {
        do throws(StoreError) {
            switch try await ask(cluster, realm) {
            case "here": return .here
            case "left": return .left
            default: return .absent
            }
        } catch {
            return .failed(error)
        }
    }
}
