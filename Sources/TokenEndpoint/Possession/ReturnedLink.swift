import Grants
import Persistence

/// What a link's page appended to the target.
struct ReturnedLink {
    let authID: UUIDValue
    let code: String

    /// `nil` unless it is an absolute URL with each member exactly once, on an origin of a client of the realm. A
    /// target may lead on to an app by a scheme of its own.
    init?(_ url: String, realm: Realm) {
        guard url.utf8.count <= 2048, let mark = url.firstIndex(of: "?"),
            let scheme = url[..<mark].prefixMatch(of: /([A-Za-z][A-Za-z0-9+.\-]*):/)?.1.lowercased()
        else { return nil }
        if scheme == "https" || scheme == "http" {
            guard url.hasPrefix("\(scheme)://"), let origin = WebOrigin.of(url),
                realm.clients.values.contains(where: { Client.isRegistered(origin, among: $0.webOrigins) })
            else { return nil }
        }
        let query = url[url.index(after: mark)...].prefix { $0 != "#" }
        var values: [String: String] = [:]
        for pair in query.split(whereSeparator: { $0 == "&" || $0 == "?" }) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard ["asc", "authId", "pc"].contains(parts[0]) else { continue }
            guard values.updateValue(parts.count == 2 ? parts[1] : "", forKey: parts[0]) == nil else { return nil }
        }
        guard let asc = values["asc"], ["true", "false"].contains(asc), let id = values["authId"],
            let authID = UUIDValue(id), let code = values["pc"], !code.isEmpty
        else { return nil }
        self.authID = authID
        self.code = code
    }
}
