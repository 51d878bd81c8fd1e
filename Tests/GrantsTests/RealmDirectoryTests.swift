@testable import Grants
import Persistence
import Synchronization
import TestSupport
import Testing

@Suite("Realm directory")
struct RealmDirectoryTests {
    /// A configuration that counts how often it is read.
    private final class Source: ConfigurationSource {
        private struct State {
            var versions: [UUIDValue: Int64] = [:]
            var hosts: [String: UUIDValue] = [:]
            var disabled: Set<UUIDValue> = []
            var reads: [UUIDValue: Int] = [:]
            var hostReads = 0
            var versionReads = 0
            var fails = false
            var gate: CheckedContinuation<Void, Never>?
            var isGated = false
        }

        private let state = Mutex(State())

        init(_ realms: [UUIDValue]) {
            state.withLock { state in
                for (index, id) in realms.enumerated() {
                    state.versions[id] = Int64(index + 1)
                    state.hosts["\(index).example"] = id
                }
            }
        }

        var stamp: String { state.withLock { "\($0.versions.count):\($0.versions.values.reduce(0, +))" } }
        var reads: Int { state.withLock { $0.reads.values.reduce(0, +) } }
        func reads(of id: UUIDValue) -> Int { state.withLock { $0.reads[id] ?? 0 } }
        var hostReads: Int { state.withLock { $0.hostReads } }
        var versionReads: Int { state.withLock { $0.versionReads } }
        var isWaiting: Bool { state.withLock { $0.gate != nil } }

        func change(_ id: UUIDValue) { state.withLock { $0.versions[id] = ($0.versions.values.max() ?? 0) + 1 } }
        func add(_ id: UUIDValue, host: String) {
            change(id)
            state.withLock { $0.hosts[host] = id }
        }
        func disable(_ id: UUIDValue) {
            change(id)
            state.withLock { state in
                state.disabled.insert(id)
                state.hosts = state.hosts.filter { $0.value != id }
            }
        }
        func fail(_ fails: Bool) { state.withLock { $0.fails = fails } }
        /// The next snapshot is read, and then held back.
        func gate() { state.withLock { $0.isGated = true } }
        func open() { state.withLock { $0.gate.take() }?.resume() }

        func directory() async throws(StoreError) -> [String: ClaimedHost] {
            try check()
            return state.withLock { state in
                state.hostReads += 1
                return state.hosts.mapValues { ClaimedHost(realm: $0) }
            }
        }

        func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm? {
            try check()
            let (version, isGated) = state.withLock { state in
                state.reads[id, default: 0] += 1
                defer { state.isGated = false }
                return (state.disabled.contains(id) ? nil : state.versions[id], state.isGated)
            }
            if isGated {
                await withCheckedContinuation { gate in state.withLock { $0.gate = gate } }
            }
            guard let version else { return nil }
            return try? Realm.fixture(id: id, version: Int(version))
        }

        func versions() async throws(StoreError) -> [UUIDValue: Int64] {
            try check()
            return state.withLock { state in
                state.versionReads += 1
                return state.versions
            }
        }

        private func check() throws(StoreError) {
            if state.withLock({ $0.fails }) { throw .unavailable(.connectFailed) }
        }
    }

    private let ids = (0..<1000).map { _ in UUIDValue.random() }
    private let now = TestClock()
    private let source: Source
    private let directory: ClusterRealms

    init() {
        source = Source(ids)
        directory = ClusterRealms(source: source, clock: now.read)
    }

    private func version(_ host: String) async throws -> Int? { try await directory.realm(forHost: host)?.version }

    /// What the listening connection does all the time.
    private func heartbeat() async throws {
        let before = source.versionReads
        let isNew = directory.knownStamp != source.stamp
        directory.confirm(stamp: source.stamp)
        if isNew { try await eventually { source.versionReads != before && !directory.isComparing } }
    }

    private func everything() async throws {
        for index in ids.indices { #expect(try await version("\(index).example") != nil) }
    }

    @Test func `with one realm changing all the time, no other realm is read again`() async throws {
        try await heartbeat()
        try await everything()
        let (reads, hostReads) = (source.reads, source.hostReads)
        for round in 0..<20 {
            source.change(ids[7])
            directory.changed(ids[7].description)
            now.advance(.milliseconds(200))
            try await heartbeat()
            #expect(try await version("7.example") == 1001 + round)
            try await everything()
        }
        #expect(source.reads(of: ids[7]) <= 1 + 40)
        #expect(source.reads - source.reads(of: ids[7]) == reads - 1)
        #expect(source.hostReads <= hostReads + 40)
        #expect(source.versionReads <= 21)
    }

    @Test func `a change whose notification was lost is seen at the next heartbeat, and costs no other realm`()
        async throws
    {
        try await heartbeat()
        try await everything()
        let reads = source.reads
        source.change(ids[3])
        #expect(try await version("3.example") == 4)
        now.advance(.milliseconds(400))
        try await heartbeat()
        #expect(try await version("3.example") == 1001)
        try await everything()
        #expect(source.reads == reads + 1)
    }

    @Test func `during an outage it remembers for an hour what no change has superseded`() async throws {
        try await heartbeat()
        try await everything()
        directory.changed(ids[1].description)
        source.fail(true)
        directory.invalidate()
        now.advance(.seconds(3500))
        await #expect(throws: StoreError.self) { try await directory.realm(forHost: "0.example") }
        #expect(directory.remembered(forHost: "0.example")?.version == 1)
        #expect(directory.remembered(forHost: "1.example") == nil)
        #expect(directory.remembered(forHost: "unknown.example") == nil)
        now.advance(.seconds(100))
        #expect(directory.remembered(forHost: "0.example") == nil)
    }

    @Test func `a notification counts at once`() async throws {
        try await heartbeat()
        _ = try await version("3.example")
        source.change(ids[3])
        directory.changed(ids[3].description)
        #expect(try await version("3.example") == 1001)
    }

    @Test func `without confirmation a snapshot lives one second`() async throws {
        try await heartbeat()
        _ = try await version("3.example")
        source.change(ids[3])
        now.advance(.milliseconds(1001))
        #expect(try await version("3.example") == 1001)
    }

    @Test func `confirmed snapshots live on`() async throws {
        try await heartbeat()
        _ = try await version("3.example")
        for _ in 0..<20 {
            now.advance(.milliseconds(400))
            try await heartbeat()
            #expect(try await version("3.example") == 4)
        }
        #expect(source.reads == 1)
        #expect(source.hostReads == 1)
    }

    @Test func `a new realm, a new host and a disabled realm are noticed, by notification and without`() async throws {
        try await heartbeat()
        #expect(try await version("new.example") == nil)
        let new = UUIDValue.random()
        source.add(new, host: "new.example")
        directory.changed(new.description)
        #expect(try await version("new.example") == 1001)
        source.add(ids[0], host: "alias.example")
        now.advance(.milliseconds(400))
        try await heartbeat()
        #expect(try await version("alias.example") == 1002)
        source.disable(ids[0])
        directory.changed(ids[0].description)
        #expect(try await version("alias.example") == nil)
        source.disable(new)
        now.advance(.milliseconds(400))
        try await heartbeat()
        #expect(try await version("new.example") == nil)
    }

    @Test func `a load that began before a change is not kept`() async throws {
        try await heartbeat()
        source.gate()
        let loading = Task { [directory] in try await directory.realm(forHost: "3.example")?.version }
        try await eventually { source.isWaiting }
        source.change(ids[3])
        directory.changed(ids[3].description)
        source.open()
        #expect(try await loading.value == 4)
        #expect(try await version("3.example") == 1001)
    }

    @Test func `a load that began before an unannounced change is not kept either`() async throws {
        try await heartbeat()
        source.gate()
        let loading = Task { [directory] in try await directory.realm(forHost: "3.example")?.version }
        try await eventually { source.isWaiting }
        source.change(ids[3])
        try await heartbeat()
        source.open()
        _ = try await loading.value
        #expect(try await version("3.example") == 1001)
    }

    @Test func `when the versions cannot be read nothing is older than a second, and the next heartbeat asks again`()
        async throws
    {
        try await heartbeat()
        _ = try await version("3.example")
        source.change(ids[3])
        source.fail(true)
        directory.confirm(stamp: source.stamp)
        try await eventually { !directory.isComparing }
        now.advance(.milliseconds(1001))
        await #expect(throws: StoreError.self) { _ = try await version("3.example") }
        #expect(await directory.isAvailable() == false)
        source.fail(false)
        #expect(await directory.isAvailable())
        try await heartbeat()
        #expect(try await version("3.example") == 1001)
    }
}

@Suite struct DirectoryStateTests {
    @Test func `hosts that were read before a change do not replace hosts that were read after it`() {
        var state = DirectoryState()
        let now = ContinuousClock.now
        let realm = UUIDValue.random()
        let early = state.ticketForHosts
        state.changed(realm)
        let host = ClaimedHost(realm: realm)
        state.keep(["id.example.com": host], state.ticketForHosts, loadedAt: now)
        state.keep([:], early, loadedAt: now)
        #expect(state.hosts(at: now) == ["id.example.com": host])
        #expect(state.claim(ofHost: "id.example.com", at: now) == .some(host))
    }
}
