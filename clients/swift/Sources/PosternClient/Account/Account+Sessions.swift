import Foundation

extension Account {
    /// The live sessions of the user, on all devices, the newest first.
    public func sessions() async throws -> [Session] {
        try await client.accountCall("GET", Path.sessions).items(Session.init)
    }

    /// Ends one session.
    public func end(session id: String) async throws {
        _ = try await client.accountCall("DELETE", Path.item(id, of: Path.sessions))
    }

    /// Ends all sessions but the present one.
    public func endOtherSessions() async throws {
        _ = try await client.accountCall("DELETE", Path.sessions)
    }

    /// What the user allowed clients.
    public func consents() async throws -> [Consent] {
        try await client.accountCall("GET", Self.consentPath).items(Consent.init)
    }

    /// Takes a consent back and ends the client's sessions of the user.
    public func revoke(consentOf clientID: String) async throws {
        _ = try await client.accountCall("DELETE", Path.item(clientID, of: Self.consentPath))
    }

    private static let consentPath = "/connect/consents"

    /// A session.
    public struct Session: Sendable, Hashable, Identifiable {
        /// `sid`.
        public let id: String
        /// `client_id`; `nil` for a browser.
        public let clientID: String?
        /// Its name.
        public let clientName: String?
        /// What the sign-in said of its app and device.
        public let userAgent: String?
        /// When the session began.
        public let createdAt: Date
        /// When it was last refreshed.
        public let lastUsedAt: Date?
        /// Whether it is the present one.
        public let isCurrent: Bool
        /// Whether it is a browser that is signed in on the pages.
        public let isBrowser: Bool
        /// Whether its tokens are bound to a key (RFC 9449).
        public let isBound: Bool
        /// `acr`.
        public let level: String?
    }

    /// What the user allowed a client.
    public struct Consent: Sendable, Hashable {
        /// `client_id`.
        public let clientID: String
        /// Its name.
        public let clientName: String?
        /// What it may ask for.
        public let scopes: [String]
    }
}

extension Account.Session {
    init?(_ json: JSONValue?) {
        guard let json, let id = json["Id"]?.string, let createdAt = json["CreatedAt"]?.time else { return nil }
        self.init(
            id: id, clientID: json["ClientId"]?.string, clientName: json["ClientName"]?.string,
            userAgent: json["UserAgent"]?.string, createdAt: createdAt, lastUsedAt: json["LastUsedAt"]?.time,
            isCurrent: json["Current"]?.bool ?? false, isBrowser: json["Browser"]?.bool ?? false,
            isBound: json["DPoP"]?.bool ?? false, level: json["Acr"]?.string)
    }
}

extension Account.Consent {
    init?(_ json: JSONValue?) {
        guard let clientID = json?["ClientId"]?.string else { return nil }
        self.init(
            clientID: clientID, clientName: json?["ClientName"]?.string, scopes: json?["Scopes"]?.strings ?? [])
    }
}
