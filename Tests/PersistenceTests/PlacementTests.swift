@testable import Persistence
import Synchronization
import Testing

@Suite("Placement")
struct PlacementTests {
    /// Clusters that answer as a test says, and a clock that stands still.
    private final class World: Sendable {
        private struct State {
            var now = ContinuousClock.now
            var answers: [[UUIDValue: String]]
            var down: Set<Int> = []
            var asked = 0
            /// Runs once, when a cluster is asked next, before the answer is given.
            var meanwhile: (@Sendable () -> Void)?
        }
        private let state: Mutex<State>
        /// Runs when a statement waits for a realm that is between two clusters.
        let onSleep = Mutex<(@Sendable () -> Void)?>(nil)

        init(clusters: Int) {
            state = Mutex(State(answers: Array(repeating: [:], count: clusters)))
        }

        var now: ContinuousClock.Instant { state.withLock { $0.now } }
        var asked: Int { state.withLock { $0.asked } }
        func advance(_ duration: Duration) { state.withLock { $0.now += duration } }
        func put(_ realm: UUIDValue, _ answer: String?, in cluster: Int) {
            state.withLock { $0.answers[cluster][realm] = answer }
        }
        func move(_ realm: UUIDValue, from old: Int, to new: Int) {
            put(realm, "left", in: old)
            put(realm, "here", in: new)
        }
        func setDown(_ cluster: Int, _ isDown: Bool = true) {
            state.withLock { _ = isDown ? $0.down.insert(cluster).inserted : $0.down.remove(cluster) != nil }
        }
        func meanwhile(_ work: @escaping @Sendable () -> Void) { state.withLock { $0.meanwhile = work } }

        func ask(_ cluster: Int, _ realm: UUIDValue) throws(StoreError) -> String? {
            let (isDown, answer, work) = state.withLock { state in
                state.asked += 1
                return (state.down.contains(cluster), state.answers[cluster][realm], state.meanwhile.take())
            }
            work?()
            guard !isDown else { throw .unavailable(.connectFailed) }
            return answer ?? "absent"
        }

        func placement() -> Placement {
            let count = state.withLock { $0.answers.count }
            return Placement(
                clusterCount: count, now: { self.now },
                sleep: { duration in
                    self.advance(duration)
                    self.onSleep.withLock { $0 }?()
                },
                ask: { (cluster, realm) throws(StoreError) in try self.ask(cluster, realm) })
        }
    }

    private let realm = UUIDValue.random()

    private func cluster(of realm: UUIDValue, _ placement: Placement) async throws(StoreError) -> Int {
        try await placement.perform(for: realm) { (cluster) throws(StoreError) in cluster }
    }

    @Test(arguments: [0, 1, 2]) func `the cluster that serves a realm gets its statements`(place: Int) async throws {
        let world = World(clusters: 3)
        world.put(realm, "here", in: place)
        #expect(try await cluster(of: realm, world.placement()) == place)
    }

    @Test func `clusters are asked again after a second without a heartbeat`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 1)
        let placement = world.placement()
        _ = try await cluster(of: realm, placement)
        let asked = world.asked
        world.advance(.milliseconds(999))
        _ = try await cluster(of: realm, placement)
        #expect(world.asked == asked)
        world.move(realm, from: 1, to: 0)
        world.advance(.milliseconds(1))
        #expect(try await cluster(of: realm, placement) == 0)
        #expect(world.asked > asked)
    }

    @Test func `heartbeats with one stamp confirm what a cluster said, for 600 ms each`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 1)
        let placement = world.placement()
        placement.heard(.heartbeat("1:1"), from: 1)
        _ = try await cluster(of: realm, placement)
        let asked = world.asked
        for _ in 0..<10 {
            world.advance(.milliseconds(500))
            placement.heard(.heartbeat("1:1"), from: 1)
            _ = try await cluster(of: realm, placement)
        }
        #expect(world.asked == asked)
        world.advance(.milliseconds(600))
        _ = try await cluster(of: realm, placement)
        #expect(world.asked > asked, "the last heartbeat is too old")
    }

    @Test func `heartbeats of another cluster confirm nothing`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 1)
        let placement = world.placement()
        _ = try await cluster(of: realm, placement)
        let asked = world.asked
        world.advance(.seconds(1))
        placement.heard(.heartbeat("1:1"), from: 0)
        _ = try await cluster(of: realm, placement)
        #expect(world.asked > asked)
    }

    @Test func `every report of a change makes the clusters be asked again`() async throws {
        let changes: [ListenConnection.Event] = [
            .connected, .lost, .heartbeat("2:7"), .notification(channel: "postern_config", payload: "\(realm)"),
        ]
        for change in changes {
            let world = World(clusters: 2)
            world.put(realm, "here", in: 0)
            let placement = world.placement()
            placement.heard(.heartbeat("1:1"), from: 0)
            #expect(try await cluster(of: realm, placement) == 0)
            world.move(realm, from: 0, to: 1)
            #expect(try await cluster(of: realm, placement) == 0, "no report has come")
            placement.heard(change, from: 0)
            #expect(try await cluster(of: realm, placement) == 1, "\(change)")
        }
    }

    @Test func `a notification about one realm leaves the others as they were`() async throws {
        let (world, other) = (World(clusters: 2), UUIDValue.random())
        for one in [realm, other] { world.put(one, "here", in: 1) }
        let placement = world.placement()
        for one in [realm, other] { _ = try await cluster(of: one, placement) }
        let asked = world.asked
        placement.heard(.notification(channel: "postern_config", payload: "\(realm)"), from: 1)
        placement.heard(.notification(channel: "postern_config", payload: "no realm"), from: 1)
        _ = try await cluster(of: other, placement)
        #expect(world.asked == asked)
    }

    @Test func `an answer that was asked for before a change is not kept`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 0)
        let (placement, realm) = (world.placement(), realm)
        world.meanwhile { placement.heard(.notification(channel: "postern_config", payload: "\(realm)"), from: 0) }
        _ = try await cluster(of: realm, placement)
        world.move(realm, from: 0, to: 1)
        #expect(try await cluster(of: realm, placement) == 1)
    }

    @Test func `a statement that a cluster refuses runs again where the realm is`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 0)
        let (placement, realm) = (world.placement(), realm)
        let ran = Mutex<[Int]>([])
        let place = try await placement.perform(for: realm) { (cluster) throws(StoreError) in
            ran.withLock { $0.append(cluster) }
            guard cluster == 1 else {
                world.move(realm, from: 0, to: 1)
                throw .unavailable(.realmMoves)
            }
            return cluster
        }
        #expect(place == 1)
        #expect(ran.withLock { $0 } == [0, 1])
    }

    @Test func `other failures of a statement are not repeated`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "here", in: 0)
        let placement = world.placement()
        let runs = Mutex(0)
        await #expect(throws: StoreError.inDoubt) {
            try await placement.perform(for: realm) { (_) throws(StoreError) -> Int in
                runs.withLock { $0 += 1 }
                throw .inDoubt
            }
        }
        #expect(runs.withLock { $0 } == 1)
    }

    @Test func `a statement waits for a realm that is on its way`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "left", in: 0)
        let (placement, realm, began) = (world.placement(), realm, world.now)
        world.onSleep.withLock { action in
            action = { if world.now - began >= .seconds(3) { world.put(realm, "here", in: 1) } }
        }
        #expect(try await cluster(of: realm, placement) == 1)
        #expect(world.now - began < .milliseconds(3100))
    }

    @Test func `a statement waits for four seconds at most`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "left", in: 0)
        let (placement, began) = (world.placement(), world.now)
        await #expect(throws: StoreError.unavailable(.realmMoves)) { try await cluster(of: realm, placement) }
        #expect(world.now - began >= .seconds(4))
        #expect(world.now - began < .milliseconds(4100))
    }

    @Test func `a realm that no cluster knows is asked of the first, and of all again the next time`() async throws {
        let world = World(clusters: 2)
        let placement = world.placement()
        #expect(try await cluster(of: realm, placement) == 0)
        world.put(realm, "here", in: 1)
        #expect(try await cluster(of: realm, placement) == 1, "that it is unknown was not kept")
    }

    @Test func `a cluster that is down stops the realms that no other cluster serves, and no others`() async throws {
        let (world, there) = (World(clusters: 2), UUIDValue.random())
        world.put(realm, "here", in: 0)
        world.put(there, "here", in: 1)
        world.setDown(1)
        let placement = world.placement()
        #expect(try await cluster(of: realm, placement) == 0)
        await #expect(throws: StoreError.unavailable(.connectFailed)) { try await cluster(of: there, placement) }
        world.setDown(1, false)
        #expect(try await cluster(of: there, placement) == 1)
    }

    @Test func `a realm that has left for a cluster that is down is not taken for an unknown one`() async throws {
        let world = World(clusters: 2)
        world.put(realm, "left", in: 0)
        world.setDown(1)
        await #expect(throws: StoreError.unavailable(.connectFailed)) {
            try await cluster(of: realm, world.placement())
        }
    }
}
