import Grants
import HTTPTypes
import TokenEndpoint

extension Exchange {
    /// Whether a form may have come from a page of this host. A browser says so in `Sec-Fetch-Site` (Fetch Metadata
    /// §2.3) or at least in `Origin`; a request with neither comes from no browser that is in use.
    var isOwnForm: Bool {
        let sites = request.headers[values: .secFetchSite]
        guard sites.isEmpty else { return sites == ["same-origin"] }
        let origins = request.headers[values: .origin]
        return origins.allSatisfy { $0 == "null" || $0 == origin } && origins.count <= 1
    }

    /// The origin that the browser sees: scheme and port of the issuer, and the host that was asked.
    var origin: String { realm.origin(ofHost: host) }
}
