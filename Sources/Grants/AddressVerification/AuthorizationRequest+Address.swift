extension AuthorizationRequest {
    /// Whether the address that is to be proven is a phone number.
    public var provesPhone: Bool { scope.contains("verify:phone") }

    /// The `acr` that the proof of an address gives: the first value asked for that it meets; `nil`: none of them.
    public var addressACR: String? {
        let met = [
            AuthenticationContext.oneFactor.rawValue, provesPhone ? "urn:postern:acr:phone" : "urn:postern:acr:email",
        ]
        return acrValues.isEmpty ? met[0] : acrValues.first(where: met.contains)
    }

    /// The kinds of address by which `acr_values` can be met; `nil` when something else is wanted, or nothing.
    public var provableAddresses: (mail: Bool, phone: Bool)? {
        let (mail, phone) = ("urn:postern:acr:email", "urn:postern:acr:phone")
        // With a wanted proof (`verify:email`, `verify:phone`) the sign-in itself is with that address.
        guard wantedProof == nil, !acrValues.isEmpty, acrValues.allSatisfy([mail, phone].contains) else { return nil }
        return (acrValues.contains(mail), acrValues.contains(phone))
    }
}
