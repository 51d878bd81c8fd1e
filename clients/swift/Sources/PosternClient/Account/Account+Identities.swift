import Foundation

extension Account {
    /// The identities at Apple, Google and other providers that sign the user in.
    public func identities() async throws -> [Identity] {
        try await client.accountCall("GET", Self.identityPath).items(Identity.init)
    }

    /// Adds an identity, also one that ``PosternClient/signIn(_:for:secondFactor:)`` refused with
    /// ``PosternError/addressProofNeeded``. Wants a recent sign-in.
    public func add(_ proof: ProviderProof, for request: ProviderRequest) async throws -> Identity {
        let pending = try await client.providerRequest(request)
        var members: [String: JSONValue] = [
            "AuthSession": .string(pending.handle), "IdToken": .string(proof.identityToken),
        ]
        members["AuthorizationCode"] = proof.authorizationCode.map(JSONValue.string)
        let answer = try await client.accountCall(
            "POST", Self.identityPath, .json(.object(members)), repeats: .whileLost)
        let added = try answer.item(Identity.init)
        try await client.change { $0.forget(pending: pending.id) }
        return added
    }

    /// Removes an identity. Wants a recent sign-in.
    public func remove(identity id: String) async throws {
        _ = try await client.accountCall("DELETE", Path.item(id, of: Self.identityPath))
    }

    private static let identityPath = "/connect/identities"

    /// An identity at a provider.
    public struct Identity: Sendable, Hashable, Identifiable {
        /// Of the server.
        public let id: String
        /// The provider, by its name at the server.
        public let provider: String
        /// The provider, for people.
        public let providerName: String
        /// What the provider said last; to show, nothing else.
        public let email: String?
        /// When it was added.
        public let createdAt: Date
    }
}

extension Account.Identity: Discreet {
    /// Everything but the address.
    public var shown: [(String, any Sendable)] {
        [("id", id), ("provider", provider), ("providerName", providerName), ("createdAt", createdAt)]
    }
}

extension Account.Identity {
    init?(_ json: JSONValue?) {
        guard let id = json?["Id"]?.string, let provider = json?["Provider"]?.string,
            let createdAt = json?["CreatedAt"]?.time
        else { return nil }
        self.init(
            id: id, provider: provider, providerName: json?["ProviderName"]?.string ?? provider,
            email: json?["Email"]?.string, createdAt: createdAt)
    }
}
