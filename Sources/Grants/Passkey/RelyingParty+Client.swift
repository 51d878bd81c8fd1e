import WebAuthnVerify

extension Realm {
    /// The client's RP-ID, else the realm's primary domain; `nil` when there is neither.
    /// The primary domain may be an IP address or a single label; those are not valid RP-IDs.
    public func rpID(for client: Client) -> String? {
        Self.usable(client.rpID ?? primaryDomain)
    }

    /// The RP-ID of a client that has none of its own.
    var primaryRPID: String? { Self.usable(primaryDomain) }

    private static func usable(_ rpID: String?) -> String? {
        guard let rpID else { return nil }
        let labels = rpID.split(separator: ".")
        let isDomain = labels.count > 1 && labels.last?.contains(where: \.isLetter) == true
        return isDomain || rpID == "localhost" ? rpID : nil
    }

    /// Where the client's ceremonies may come from: `https://<rpId>`, its registered web origins at or below the RP-ID,
    /// and its Android apps. Exact strings, per client; plain http only for `localhost`.
    func relyingParty(for client: Client, rpID: String) -> RelyingParty {
        let web = client.webOrigins.filter { origin in
            let host = Self.host(ofOrigin: origin)
            guard host == rpID || host.hasSuffix("." + rpID) else { return false }
            return origin.hasPrefix("https://") || (origin.hasPrefix("http://") && host == "localhost")
        }
        return RelyingParty(rpId: rpID, origins: Set(["https://" + rpID] + web + client.androidOrigins))
    }
}
