@testable import Grants
import Persistence
import Testing

@Suite("Realms of several clusters")
struct RealmsOfClustersTests {
    /// The realms of one cluster; `nil`: it is down.
    private struct Source: ConfigurationSource {
        let realms: [Realm]?

        func directory() async throws(StoreError) -> [String: UUIDValue] {
            Dictionary(uniqueKeysWithValues: try listed().map { ("\($0.id).example", $0.id) })
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

    @Test func `a host that no cluster shows is unknown only when all were asked`() async throws {
        #expect(try await directory([], []).realm(forHost: "x.example") == nil)
        await #expect(throws: StoreError.unavailable(.connectFailed)) {
            try await directory([], nil).realm(forHost: "x.example")
        }
    }
}
