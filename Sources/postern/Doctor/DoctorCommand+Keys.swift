import Foundation
import Grants
import Persistence

extension DoctorCommand {
    /// Looks for the RS256 key that every realm with pages publishes (OpenID Connect Core §15.1).
    /// - Throws: ``CommandFailure`` when a realm has none in force: its clients may not accept another algorithm.
    static func checkPageKeys(_ conninfo: String) async throws {
        let now = Date().timeIntervalSince1970
        let missing = try await OneOffDatabase.use(conninfo) { database in
            let store = ConfigurationStore(database)
            var missing: [String] = []
            for id in Set(try await store.directory().values.map(\.realm)) {
                guard let realm = try await store.realm(id).map({ try Realm(json: $0) }), realm.hosted.isEnabled
                else { continue }
                let isPublished = realm.signingKeys.contains {
                    $0.alg == SigningAlgorithm.rs256.rawValue && ($0.retiresAt.map { $0 > now } ?? true)
                }
                if !isPublished { missing.append(realm.slug) }
            }
            return missing
        }
        guard missing.isEmpty else {
            throw CommandFailure(
                "\(missing.sorted().joined(separator: ", ")): none is published. A running server makes it within "
                    + "5 seconds; without one: postern keys rotate --realm R --alg RS256")
        }
    }
}
