@testable import Grants
import Persistence
import Synchronization
import Testing

@Suite("Realms of several clusters")
struct RealmsOfClustersTests {
    /// The realms of one cluster; `nil`: it is down.
    private struct Source: ConfigurationSource {
        let realms: [Realm]?

        func directory() async throws(StoreError) -> [String: ClaimedHost] {
            Dictionary(uniqueKeysWithValues: try listed().map { ("\($0.id).example", ClaimedHost(realm: $0.id)) })
        }
        func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm? { try listed().first { $0.id == id } }
        func versions() async throws(StoreError) -> [UUIDValue: Int64] {
            Dictionary(uniqueKeysWithValues: try listed().map { ($0.id, Int64($0.version)) })
        }

        private func listed() throws(StoreError) -> [Realm] {
            guard let realms else { throw .unavailable(.connectFailed) }
            return realms
        }
    }

    private let id = UUIDValue.random()

    private func realm(version: Int, hasLeft: Bool) throws -> Realm {
        try Realm.fixture(id: id, version: version).changed { $0.hasLeft = hasLeft }
    }

    private func directory(_ clusters: [Realm]?...) -> RealmDirectory {
        RealmDirectory(clusters.map { ClusterRealms(source: Source(realms: $0)) })
    }

    @Test func `the cluster that serves a realm counts, in whatever order`() async throws {
        let (old, new) = (try realm(version: 1, hasLeft: true), try realm(version: 2, hasLeft: false))
        for directory in [directory([old], [new]), directory([new], [old])] {
            #expect(try await directory.realm(forHost: "\(id).example")?.version == 2)
            #expect(try await directory.realm(id)?.version == 2)
            #expect(directory.remembered(forHost: "\(id).example")?.version == 2)
        }
    }

    @Test func `between two clusters a realm is known where it has left`() async throws {
        let directory = directory([try realm(version: 1, hasLeft: true)], [])
        #expect(try await directory.realm(forHost: "\(id).example")?.hasLeft == true)
        #expect(try await directory.realm(id)?.hasLeft == true)
    }

    @Test func `a cluster that is down hides no realm of another`() async throws {
        for directory in [
            directory(nil, [try realm(version: 1, hasLeft: false)]),
            directory([try realm(version: 1, hasLeft: false)], nil),
        ] {
            #expect(try await directory.realm(forHost: "\(id).example") != nil)
            #expect(await directory.isAvailable())
        }
    }

    /// A cluster whose realms change and that can be stopped.
    private final class Changing: ConfigurationSource {
        private struct State {
            var realm: Realm?
            var isDown = false
            var isEnabled = true
        }
        private let state: Mutex<State>
        private let since: Double
        init(_ realm: Realm?, since: Double = 0) {
            state = Mutex(State(realm: realm))
            self.since = since
        }
        func stop() { state.withLock { $0.isDown = true } }
        func serve(_ realm: Realm?) { state.withLock { $0 = State(realm: realm) } }
        func disable() { state.withLock { $0.isEnabled = false } }
        private func now() throws(StoreError) -> State {
            let now = state.withLock { $0 }
            if now.isDown { throw .unavailable(.connectFailed) }
            return now
        }
        private func realm() throws(StoreError) -> Realm? { try now().realm }
        func directory() async throws(StoreError) -> [String: ClaimedHost] {
            let now = try now()
            guard let realm = now.realm else { return [:] }
            return ["x.example": ClaimedHost(realm: realm.id, claimedAt: since, isServed: now.isEnabled)]
        }
        func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm? {
            let now = try now()
            return now.realm.flatMap { $0.id == id && now.isEnabled ? $0 : nil }
        }
        func versions() async throws(StoreError) -> [UUIDValue: Int64] {
            try realm().map { [$0.id: Int64($0.version)] } ?? [:]
        }
    }

    @Test func `a host that two clusters serve is served by neither, and told once`() async throws {
        for ids in [(id, UUIDValue.random()), (id, id)] {
            let told = Mutex(0)
            let sources = [
                Changing(try Realm.fixture(id: ids.0, version: 1)), Changing(try Realm.fixture(id: ids.1, version: 2)),
            ]
            let clusters = sources.map { ClusterRealms(source: $0) }
            let now = Mutex(ContinuousClock.now)
            let directory = RealmDirectory(
                clusters, noteContested: { _ in told.withLock { $0 += 1 } }, clock: { now.withLock { $0 } })
            for _ in 0..<3 {
                await #expect(throws: StoreError.unavailable(.hostOfTwoClusters)) {
                    try await directory.realm(forHost: "x.example")
                }
                now.withLock { $0 += .seconds(2) }
            }
            #expect(told.withLock { $0 } == 1)
            sources[1].serve(nil)
            clusters[1].invalidate()
            #expect(try await directory.realm(forHost: "x.example")?.version == 1, "until one of them gives it up")
        }
    }

    @Test func `a realm that is disabled keeps its host from one that got it later, not from one that had it before`()
        async throws
    {
        let sources = [
            Changing(try Realm.fixture(id: id, version: 1), since: 1),
            Changing(try Realm.fixture(id: .random(), version: 2), since: 2),
        ]
        for order in [[0, 1], [1, 0]] {
            let clusters = order.map { ClusterRealms(source: sources[$0]) }
            let directory = RealmDirectory(clusters)
            func change(_ change: () -> Void) {
                change()
                for realms in clusters { realms.invalidate() }
            }
            change { sources[0].disable() }
            for _ in 0..<2 {
                await #expect(throws: StoreError.unavailable(.hostOfTwoClusters)) {
                    try await directory.realm(forHost: "x.example")
                }
            }
            change { sources[1].disable() }
            #expect(try await directory.realm(forHost: "x.example") == nil, "of two disabled ones neither is served")
            let first = try Realm.fixture(id: id, version: 3)
            change { sources[0].serve(first) }
            #expect(try await directory.realm(forHost: "x.example")?.version == 3)
            change { sources[1].stop() }
            #expect(try await directory.realm(forHost: "x.example")?.version == 3)
            let second = try Realm.fixture(id: .random(), version: 2)
            change { sources[1].serve(second) }
        }
    }

    @Test func `a host whose cluster is down is served by no other`() async throws {
        let sources = [Changing(try realm(version: 1, hasLeft: false)), Changing(nil)]
        let clusters = sources.map { ClusterRealms(source: $0) }
        let directory = RealmDirectory(clusters)
        #expect(try await directory.realm(forHost: "x.example")?.version == 1)
        sources[0].stop()
        sources[1].serve(try Realm.fixture(id: .random(), version: 7))
        for realms in clusters { realms.invalidate() }
        await #expect(throws: StoreError.unavailable(.connectFailed)) {
            try await directory.realm(forHost: "x.example")
        }
        // It was seen to have left: the other one serves it.
        sources[0].serve(try realm(version: 2, hasLeft: true))
        #expect(try await directory.realm(forHost: "x.example")?.version == 7)
        sources[0].stop()
        for realms in clusters { realms.invalidate() }
        #expect(try await directory.realm(forHost: "x.example")?.version == 7)
    }

    @Test func `a host that no cluster shows is unknown only when all were asked`() async throws {
        #expect(try await directory([], []).realm(forHost: "x.example") == nil)
        await #expect(throws: StoreError.unavailable(.connectFailed)) {
            try await directory([], nil).realm(forHost: "x.example")
        }
    }
}
