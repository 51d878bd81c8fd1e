import Foundation

extension Account {
    /// The addresses and numbers that sign the user in.
    public func identifiers() async throws -> [Identifier] {
        try await client.accountCall("GET", Self.identifierPath).items(Identifier.init)
    }

    /// Sends a code to an address that is to be added. Wants a recent sign-in.
    public func beginIdentifier(_ address: Address) async throws -> CodeRequest {
        try await client.code(client.ask(.identifier, address.members))
    }

    /// Adds the address. Wants a recent sign-in.
    /// - Parameter code: as typed.
    public func finishIdentifier(_ request: CodeRequest, code: String) async throws -> Identifier {
        let pending = try await client.typed(code, for: request, [.identifier])
        let body: JSONValue = ["AuthSession": .string(pending.handle), "Code": .string(code)]
        let answer = try await client.accountCall("POST", Self.identifierPath, .json(body), repeats: .whileLost)
        let added = try answer.item(Identifier.init)
        try await client.change { $0.forget(pending: pending.id) }
        return added
    }

    /// Makes an address the one in the claims.
    public func makePrimary(identifier id: String) async throws -> Identifier {
        try await client.accountCall("PATCH", Self.identifierPath(id), .json(["Primary": true])).item(Identifier.init)
    }

    /// Removes an address. Wants a recent sign-in.
    public func remove(identifier id: String) async throws {
        _ = try await client.accountCall("DELETE", Self.identifierPath(id))
    }

    private static let identifierPath = "/connect/identifiers"
    private static func identifierPath(_ id: String) throws -> String { try Path.item(id, of: identifierPath) }

    /// An address or number of the account.
    public struct Identifier: Sendable, Hashable, Identifiable {
        /// Of the server.
        public let id: String
        /// The address or number.
        public let address: Address
        /// Whether it is the one in the claims.
        public let isPrimary: Bool
        /// When it was last proven.
        public let provedAt: Date?
    }
}

extension Account.Identifier: Discreet {
    /// Everything but the address itself.
    public var shown: [(String, any Sendable)] {
        [("id", id), ("address", address), ("isPrimary", isPrimary), ("provedAt", provedAt)]
    }
}

extension Account.Identifier {
    init?(_ json: JSONValue?) {
        guard let id = json?["Id"]?.string, let value = json?["Value"]?.string else { return nil }
        self.init(
            id: id, address: json?["Kind"]?.string == "phone" ? .phone(value) : .email(value),
            isPrimary: json?["Primary"]?.bool ?? false, provedAt: json?["ProvedAt"]?.time)
    }
}
