import Encoding
public import Grants
import HTTPTypes

/// The files by which platforms tie apps to a host, generated from what the administrator registered.
///
/// Two things are said in them: which apps may use the passkeys of an RP-ID, on the host that is the RP-ID; and which
/// apps may open the links of `/magic-login` in place of the browser, on every host of the realm.
public struct Associations: Sendable {
    private let passkeyClients: [Client]
    private let linkClients: [Client]

    /// The path whose links an app may claim.
    static let linkPath = "/magic-login"

    /// For a host of the realm, as the realm is seen from there: every enabled client that is admitted on it.
    public init(realm: Realm, host: String) {
        let clients = realm.clients.values.filter(\.enabled).sorted { $0.clientID < $1.clientID }
        passkeyClients = clients.filter { $0.mayUse(.passkey) && realm.rpID(for: $0) == host }
        linkClients = clients.filter { $0.mayUse(.magic) && realm.admits($0) }
    }

    /// For the host of a client's RP-ID that Postern does not serve: its passkeys, whether the client is enabled or
    /// not.
    public init(passkeysOf client: Client) {
        passkeyClients = [client]
        linkClients = []
    }

    /// The files there is something to say in, by the name each has below `/.well-known/`.
    public var files: [(name: String, json: [UInt8])] {
        [
            ("apple-app-site-association", appleAppSiteAssociation), ("assetlinks.json", assetLinks),
        ].compactMap { name, json in json.map { (name, $0) } }
    }

    /// `/.well-known/apple-app-site-association`; `nil` when no iOS app is registered.
    public var appleAppSiteAssociation: [UInt8]? {
        let links = unique(linkClients.flatMap(\.iosApps))
        let passkeys = unique(passkeyClients.flatMap(\.iosApps))
        guard !links.isEmpty || !passkeys.isEmpty else { return nil }
        var object = JSONWriter()
        if !links.isEmpty { object.member("applinks", json: Self.appLinks(links)) }
        if !passkeys.isEmpty {
            var credentials = JSONWriter()
            credentials.member("apps", passkeys)
            object.member("webcredentials", json: credentials.finish())
        }
        return object.finish()
    }

    /// Apple's Supporting associated domains: the link's query is not looked at.
    private static func appLinks(_ apps: [String]) -> [UInt8] {
        var component = JSONWriter(reserving: 64)
        component.member("/", linkPath)
        var detail = JSONWriter()
        detail.member("appIDs", apps)
        detail.member("components", json: array([component.finish()]))
        var links = JSONWriter()
        links.member("details", json: array([detail.finish()]))
        return links.finish()
    }

    /// `/.well-known/assetlinks.json` (Digital Asset Links); `nil` when no Android app is registered. The file
    /// lists hosts only: the app's intent filters decide which paths it opens.
    public var assetLinks: [UInt8]? {
        var relations: [(app: Client.AndroidApp, relations: [String])] = []
        func add(_ relation: String, of clients: [Client]) {
            for app in clients.flatMap(\.androidApps) {
                if let index = relations.firstIndex(where: { $0.app == app }) {
                    if !relations[index].relations.contains(relation) { relations[index].relations.append(relation) }
                } else {
                    relations.append((app, [relation]))
                }
            }
        }
        add("delegate_permission/common.get_login_creds", of: passkeyClients)
        add("delegate_permission/common.handle_all_urls", of: linkClients)
        guard !relations.isEmpty else { return nil }
        return Self.array(
            relations.map { app, relations in
                var target = JSONWriter()
                target.member("namespace", "android_app")
                target.member("package_name", app.packageName)
                target.member("sha256_cert_fingerprints", app.sha256CertFingerprints)
                var statement = JSONWriter()
                statement.member("relation", relations)
                statement.member("target", json: target.finish())
                return statement.finish()
            })
    }

    private func unique(_ values: [String]) -> [String] {
        Array(Set(values)).sorted()
    }

    private static func array(_ items: [[UInt8]]) -> [UInt8] {
        Array("[".utf8) + items.joined(separator: Array(",".utf8)) + Array("]".utf8)
    }
}

/// Serves the association files on the hosts of a realm; 404 where there is nothing to say.
struct AssociationRoutes: Sendable {
    var routes: [Route] {
        [
            route("/.well-known/apple-app-site-association", \.appleAppSiteAssociation),
            route("/.well-known/assetlinks.json", \.assetLinks),
        ]
    }

    private func route(_ path: String, _ file: @escaping @Sendable (Associations) -> [UInt8]?) -> Route {
        Route(
            path,
            [
                .get: .anonymous { exchange in
                    guard let json = file(Associations(realm: exchange.realm, host: exchange.host)) else {
                        return Answer(.notFound)
                    }
                    return .cacheable(json, seconds: 300, exchange)
                }
            ]
        ).cors(.all)
    }
}
