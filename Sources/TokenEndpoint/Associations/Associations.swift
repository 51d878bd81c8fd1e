public import Grants
import HTTPTypes

/// The files by which platforms tie apps and sites to an RP-ID, generated from what the administrator registered.
public struct Associations: Sendable {
    private let clients: [Client]
    /// The RP-ID, which is the host to publish the files on.
    public let rpID: String

    /// For every enabled client of the realm whose RP-ID is `rpID`.
    public init(realm: Realm, rpID: String) {
        self.rpID = rpID
        clients = realm.clients.values
            .filter { $0.enabled && $0.mayUse(.passkey) && realm.rpID(for: $0) == rpID }
            .sorted { $0.clientID < $1.clientID }
    }

    /// For one client, enabled or not; `nil` when the realm has no such client, or no RP-ID for it.
    public init?(realm: Realm, clientID: String) {
        guard let client = realm.clients[clientID], let rpID = realm.rpID(for: client) else { return nil }
        self.rpID = rpID
        clients = [client]
    }

    /// The files there is something to say in, by the name each has below `/.well-known/`.
    public var files: [(name: String, json: [UInt8])] {
        [
            ("apple-app-site-association", appleAppSiteAssociation), ("assetlinks.json", assetLinks),
            ("webauthn", relatedOrigins),
        ].compactMap { name, json in json.map { (name, $0) } }
    }

    /// `/.well-known/apple-app-site-association`; `nil` when no iOS app is registered.
    public var appleAppSiteAssociation: [UInt8]? {
        let apps = unique(clients.flatMap(\.iosApps))
        guard !apps.isEmpty else { return nil }
        var credentials = JSONWriter()
        credentials.member("apps", apps)
        var object = JSONWriter()
        object.member("webcredentials", json: credentials.finish())
        return object.finish()
    }

    /// `/.well-known/assetlinks.json` (Digital Asset Links); `nil` when no Android app is registered.
    public var assetLinks: [UInt8]? {
        let statements = clients.flatMap(\.androidApps).map { app in
            var target = JSONWriter()
            target.member("namespace", "android_app")
            target.member("package_name", app.packageName)
            target.member("sha256_cert_fingerprints", app.sha256CertFingerprints)
            var statement = JSONWriter()
            statement.member(
                "relation",
                ["delegate_permission/common.get_login_creds", "delegate_permission/common.handle_all_urls"])
            statement.member("target", json: target.finish())
            return statement.finish()
        }
        guard !statements.isEmpty else { return nil }
        return Array("[".utf8) + statements.joined(separator: Array(",".utf8)) + Array("]".utf8)
    }

    /// `/.well-known/webauthn` (WebAuthn L3 §5.11); `nil` when no web origin is registered.
    public var relatedOrigins: [UInt8]? {
        let origins = unique(clients.flatMap(\.webOrigins))
        guard !origins.isEmpty else { return nil }
        var object = JSONWriter()
        object.member("origins", origins)
        return object.finish()
    }

    private func unique(_ values: [String]) -> [String] {
        Array(Set(values)).sorted()
    }
}

/// Serves the association files on hosts that are an RP-ID; 404 elsewhere.
struct AssociationRoutes: Sendable {
    var routes: [Route] {
        [
            route("/.well-known/apple-app-site-association", \.appleAppSiteAssociation),
            route("/.well-known/assetlinks.json", \.assetLinks),
            route("/.well-known/webauthn", \.relatedOrigins),
        ]
    }

    private func route(_ path: String, _ file: @escaping @Sendable (Associations) -> [UInt8]?) -> Route {
        Route(
            path,
            [
                .get: { exchange in
                    guard let json = file(Associations(realm: exchange.realm, rpID: exchange.host)) else {
                        return Answer(.notFound)
                    }
                    return .cacheable(json, seconds: 300, exchange)
                }
            ])
    }
}
