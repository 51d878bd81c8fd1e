import Grants
import HTTPTypes
import TokenEndpoint

extension Exchange {
    /// Whether a form may have come from a page of this host. A browser says so in `Sec-Fetch-Site` (Fetch Metadata
    /// §2.3) or at least in `Origin`; a request with neither comes from no browser that is in use. `Origin: null` alone
    /// may be a page of anybody in a frame with a sandbox.
    var isOwnForm: Bool { mayBeOwnForm([origin]) }

    /// The same of a form on the page of a link, whose token is what counts. That page hides its address, and browsers
    /// without `Sec-Fetch-Site` then send `Origin: null`.
    var isOwnFormOfLink: Bool { mayBeOwnForm([origin, "null"]) }

    private func mayBeOwnForm(_ accepted: [String]) -> Bool {
        let sites = request.headers[values: .secFetchSite]
        guard sites.isEmpty else { return sites == ["same-origin"] }
        let origins = request.headers[values: .origin]
        return origins.allSatisfy(accepted.contains) && origins.count <= 1
    }

    /// The origin that the browser sees: scheme and port of the issuer, and the host that was asked.
    var origin: String { realm.origin(ofHost: host) }
}
