import Grants
import HTTPTypes

/// A backend for frontends calls for all of its users from one address. As a trusted forwarder (permission
/// `cap:trusted-forwarder`, confidential, `Basic` credentials) it may name each one's address in
/// `Postern-Forwarded-For`, so that they are counted apart.
///
/// A header of its own, not `X-Forwarded-For`: that one belongs to proxies (`POSTERN_TRUSTED_PROXIES`), which overwrite
/// it, and a backend that passes on what its callers send must not pass on their claims by accident.
extension Exchange {
    /// The one address in `Postern-Forwarded-For`, as limits count it; `nil` when there is none, or anything else in
    /// it.
    var forwardedFor: String? {
        let values = request.headers[values: .posternForwardedFor]
        guard let value = values.first, values.count == 1 else { return nil }
        return IPAddress(ofProxy: value)?.limitKey
    }

    /// The address to count a request of an endpoint that asks for no authentication: the caller's, or the one a
    /// trusted forwarder names, who has to authenticate for it. Without both headers nothing is looked at.
    /// - Throws: the 401 of the token endpoint when the credentials are wrong.
    func sourceOfAnonymous() throws(Refusal) -> String {
        guard request.headers[.posternForwardedFor] != nil, request.headers[.authorization] != nil else {
            return source
        }
        let credentials = try presentedCredentials()
        do {
            return credentials.forwardedSource(by: try realm.authenticate(FormParameters(), credentials)) ?? source
        } catch {
            throw Refusal(.oauth(error, basicUsed: true))
        }
    }
}
