import Encoding
import WebAuthnVerify

extension Realm {
    /// Where the client's ceremonies may come from: `https://<rpId>`, its registered web origins at or below the RP-ID,
    /// and its Android apps. Exact strings, per client; plain http only for `localhost` and hosts
    /// below it.
    /// - Parameter pageOrigin: the page that runs the ceremony, which is accepted at or below the RP-ID.
    func relyingParty(for client: Client, rpID: String, pageOrigin: String? = nil) -> RelyingParty {
        let web = (client.webOrigins + [pageOrigin].compactMap(\.self)).filter { origin in
            let host = Self.host(ofOrigin: origin)
            guard host == rpID || host.hasSuffix("." + rpID) else { return false }
            return SecureAddress.holds(origin)
        }
        return RelyingParty(rpId: rpID, origins: Set(["https://" + rpID] + web + client.androidOrigins))
    }
}
