import Foundation

/// The account of the user who is signed in. Every function uses an access token of ``Audience/account``, and throws
/// ``PosternError/signedOut(_:)`` without a session.
///
/// What changes how the person signs in wants a sign-in of the last ten minutes:
/// ``PosternError/stepUpNeeded(_:)`` asks for ``PosternClient/stepUp(_:by:)``.
public struct Account: Sendable {
    let client: PosternClient

    /// What the server knows about the user.
    public func load() async throws -> Details {
        try await client.accountCall("GET", Self.path).item(Details.init)
    }

    /// Changes the account.
    /// - Parameter changes: members of `PATCH /connect/account`, such as `FirstName`; `null` removes one.
    public func update(_ changes: [String: JSONValue]) async throws -> Details {
        try await client.accountCall("PATCH", Self.path, .json(.object(changes))).item(Details.init)
    }

    /// Deletes the account, with all its sessions, and signs out here. Wants a recent sign-in.
    public func delete() async throws {
        try await client.ending(withHint: true) { _ = try await client.accountCall("DELETE", Self.path) }
    }

    private static let path = "/connect/account"

    /// An account.
    public struct Details: Sendable, Hashable {
        /// `sub`.
        public let id: String
        /// The primary address.
        public let email: String?
        /// Whether it was proven.
        public let emailVerified: Bool
        /// The primary number, in E.164 form.
        public let phone: String?
        /// Whether it was proven.
        public let phoneVerified: Bool
        /// The given name.
        public let firstName: String?
        /// The family name.
        public let lastName: String?
        /// When the account was made.
        public let createdAt: Date
        /// Whether the account has two-factor authentication.
        public let hasTOTP: Bool
        /// How many passkeys.
        public let passkeys: Int
        /// How many live sessions, on all devices.
        public let sessions: Int
        /// All members of the answer, those of a newer server too.
        public let members: [String: JSONValue]
    }
}

extension PosternClient {
    /// The account of the user who is signed in.
    public nonisolated var account: Account { Account(client: self) }

    /// This device as one that the user trusts.
    public nonisolated var device: TrustedDevice { TrustedDevice(client: self) }
}

extension Account.Details: Discreet {
    /// Identifier and numbers; no address, no name.
    public var shown: [(String, any Sendable)] {
        [("id", id), ("hasTOTP", hasTOTP), ("passkeys", passkeys), ("sessions", sessions)]
    }
}

extension Account.Details {
    init?(_ json: JSONValue?) {
        guard let json, let members = json.object, let id = json["Sub"]?.string, let createdAt = json["CreatedAt"]?.time
        else { return nil }
        self.init(
            id: id, email: json["Email"]?.string, emailVerified: json["EmailVerified"]?.bool ?? false,
            phone: json["Phone"]?.string, phoneVerified: json["PhoneVerified"]?.bool ?? false,
            firstName: json["FirstName"]?.string, lastName: json["LastName"]?.string, createdAt: createdAt,
            hasTOTP: json["HasTotp"]?.bool ?? false, passkeys: json["Passkeys"]?.integer ?? 0,
            sessions: json["Sessions"]?.integer ?? 0, members: members)
    }
}
