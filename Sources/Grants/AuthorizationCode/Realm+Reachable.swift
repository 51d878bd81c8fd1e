/// What discovery lists of a realm: nothing that ends in a refusal for everybody.
extension Realm {
    /// `acr_values_supported` (OpenID Connect Discovery §3): with pages what a sign-in there can reach, else what the
    /// native grants can.
    public var reachableContexts: [String] {
        AuthorizationRequest.knownContexts.filter { value in
            switch value {
            case AuthenticationContext.phishingResistant.rawValue:
                hosted.isEnabled ? offersPasskeysOnPages : nativeGrantsEnabled && !rpIDs.isEmpty
            case "urn:postern:acr:email": hosted.isEnabled
            case "urn:postern:acr:phone": hosted.isEnabled && sendsToPhones
            default: true
            }
        }
    }

    /// Whether anybody can be given a scope, as far as the realm decides it.
    public func canReach(scope: String) -> Bool {
        switch scope {
        case "verify:email": hosted.isEnabled
        case "verify:phone": hosted.isEnabled && sendsToPhones
        default: true
        }
    }

    private var sendsToPhones: Bool { TypedAddresses(self, takesMail: false, takesPhones: true).takesPhones }

    private var rpIDs: Set<String> { Set(clients.values.filter(\.enabled).compactMap(rpID(for:))) }

    /// Passkeys are offered where the page's host is the RP-ID or below it.
    private var offersPasskeysOnPages: Bool {
        let host = Self.host(ofOrigin: endpointOrigin)
        return hosted.methods.contains(.passkey) && rpIDs.contains { host == $0 || host.hasSuffix("." + $0) }
    }
}
