import Synchronization

/// Which cluster serves each realm, as far as this process knows.
///
/// Each cluster knows which realms it serves (`postern.placement`), and no two serve one realm. What a cluster has said
/// is used until its listening connection reports a change, and for a second at most when that connection says nothing.
/// A statement that comes to a cluster which the realm has left is refused there and runs again where the realm is.
final class Placement: Sendable {
    private typealias Instant = ContinuousClock.Instant

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

    private let clusters: [Cluster]
    private let state: Mutex<State>

    private static let placement = Statement(
        name: "placement", sql: "SELECT postern.placement($1)", effect: .readOnly, payer: .server)
    /// As old as a snapshot of the configuration may be.
    private static let maximumAge = Duration.seconds(1)
    /// The longest a heartbeat's answer may take.
    private static let answerTime = Duration.milliseconds(400)
    /// How long a statement waits for a realm that is between two clusters.
    private static let patience = Duration.seconds(4)

    init(_ clusters: [Cluster]) {
        self.clusters = clusters
        state = Mutex(
            State(
                confirmedUntil: Array(repeating: nil, count: clusters.count),
                stamps: Array(repeating: nil, count: clusters.count)))
    }

    /// Runs `body` with the cluster that serves the realm. Runs it again when the realm has left that cluster: what the
    /// cluster refused for that reason has changed nothing.
    func perform<R: Sendable>(
        for realm: UUIDValue, _ body: (Cluster) async throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let place = try await place(of: realm, until: deadline)
            do {
                return try await body(clusters[place])
            } catch .unavailable(.realmMoves) {
                forget(realm)
                guard ContinuousClock.now < deadline else { throw .unavailable(.realmMoves) }
            }
        }
    }

    /// What the listening connection of a cluster reports.
    func heard(_ event: ListenConnection.Event, from cluster: Int) {
        switch event {
        case .connected, .lost: state.withLock { $0.forget(cluster: cluster) }
        case .notification(_, let payload): UUIDValue(payload).map(forget)
        case .heartbeat(let stamp):
            let until = ContinuousClock.now + Self.maximumAge - Self.answerTime
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
            let asked = ContinuousClock.now
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
            guard ContinuousClock.now < deadline else { throw .unavailable(.realmMoves) }
            do { try await Task.sleep(for: .milliseconds(20)) } catch { throw .cancelled }
        }
    }

    private func known(_ realm: UUIDValue) -> Int? {
        let now = ContinuousClock.now
        return state.withLock { state in
            guard let place = state.places[realm] else { return nil }
            let isConfirmed = state.confirmedUntil[place.cluster].map { now < $0 } ?? false
            return isConfirmed || now < place.at + Self.maximumAge ? place.cluster : nil
        }
    }

    private func answers(about realm: UUIDValue) async -> [Answer] {
        await withTaskGroup(of: (Int, Answer).self) { group in
            for (index, cluster) in clusters.enumerated() {
                group.addTask { (index, await Self.answer(of: cluster, about: realm)) }
            }
            var answers = Array(repeating: Answer.absent, count: clusters.count)
            for await (index, answer) in group {
                answers[index] = answer
                // The other clusters need not answer, and one that is down does not.
                if case .here = answer { group.cancelAll() }
            }
            return answers
        }
    }

    private static func answer(of cluster: Cluster, about realm: UUIDValue) async -> Answer {
        do {
            let rows = try await cluster.query(placement, [.uuid(realm)]) { (row) throws(StoreError) in
                try row.text(0)
            }
            switch rows.first {
            case "here": return .here
            case "left": return .left
            default: return .absent
            }
        } catch {
            return .failed(error)
        }
    }
}
