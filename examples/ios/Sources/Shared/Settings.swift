import Foundation
import PosternClient

/// What app and widget agree on. Change it for your realm.
enum Settings {
    static let origin = URL(string: "http://localhost:8080")
    static let clientID = "demo-app"

    static func configuration() throws -> PosternConfiguration {
        guard let origin else { throw PosternError.misuse("Settings.origin is no URL") }
        var configuration = PosternConfiguration(origin: origin, clientID: clientID)
        configuration.scopes = ["openid", "offline_access", "profile", "email"]
        #if canImport(Security)
            // The entitlement of both targets; Xcode puts the team before it.
            let group = Bundle.main.object(forInfoDictionaryKey: "KeychainGroup") as? String
            configuration.store = KeychainStore(accessGroup: group)
        #endif
        return configuration
    }
}
