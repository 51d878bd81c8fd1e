import Foundation

extension Account {
    /// The passkeys, the newest first.
    public func passkeys() async throws -> [Passkey] {
        try await client.accountCall("GET", Self.passkeyPath).items(Passkey.init)
    }

    /// Adds a passkey. Wants a recent sign-in.
    /// - Parameter name: 1 to 64 characters; without one the server names the product.
    /// - Returns: the id of the passkey.
    public func addPasskey(with dialog: any PasskeyDialog, named name: String? = nil) async throws -> String {
        let begun = try await client.accountCall("POST", Self.passkeyPath + "/enroll/begin").item(PasskeyCeremony.init)
        let credential = try await PosternError.ofDialog { try await dialog.create(begun.options) }
        guard let attestation = JSONValue(credential), attestation.object != nil else {
            throw PosternError.misuse("the passkey dialog must return RegistrationResponseJSON")
        }
        var members: [String: JSONValue] = ["ceremonyId": .string(begun.id), "attestation": attestation]
        members["DisplayName"] = name.map(JSONValue.string)
        let answer = try await client.accountCall(
            "POST", Self.passkeyPath + "/enroll", .json(.object(members)), repeats: .whileLost)
        return try answer.item { $0?["Id"]?.string }
    }

    /// Gives a passkey another name.
    public func rename(passkey id: String, to name: String) async throws -> Passkey {
        let body: JSONValue = ["DisplayName": .string(name)]
        return try await client.accountCall("PATCH", Self.passkeyPath(id), .json(body)).item(Passkey.init)
    }

    /// Removes a passkey. Wants a recent sign-in.
    public func remove(passkey id: String) async throws {
        _ = try await client.accountCall("DELETE", Self.passkeyPath(id))
    }

    /// The passkeys that still count, for `PublicKeyCredential.signalAllAcceptedCredentials` and its like: JSON as the
    /// server gives it.
    public func passkeySignals() async throws -> Data {
        try await client.accountCall("GET", Self.passkeyPath + "/signals").body
    }

    private static let passkeyPath = "/connect/passkey"
    private static func passkeyPath(_ id: String) throws -> String { try Path.item(id, of: passkeyPath) }

    /// A passkey of the account.
    public struct Passkey: Sendable, Hashable, Identifiable {
        /// Of the server, for ``Account/rename(passkey:to:)`` and ``Account/remove(passkey:)``.
        public let id: String
        /// As given, else the product.
        public let name: String
        /// The relying party (WebAuthn Level 3).
        public let rpID: String
        /// When it was added.
        public let createdAt: Date
        /// When it last signed in; `nil` if it never did.
        public let lastUsedAt: Date?
    }
}

extension Account.Passkey {
    init?(_ json: JSONValue?) {
        guard let id = json?["Id"]?.string, let name = json?["DisplayName"]?.string, let rpID = json?["RpId"]?.string,
            let createdAt = json?["CreatedAt"]?.time
        else { return nil }
        self.init(id: id, name: name, rpID: rpID, createdAt: createdAt, lastUsedAt: json?["LastUsedAt"]?.time)
    }
}
