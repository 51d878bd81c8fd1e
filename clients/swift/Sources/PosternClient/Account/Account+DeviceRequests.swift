import Foundation

extension Account {
    /// What a device without a keyboard asks for (RFC 8628). Wants a recent sign-in.
    /// - Parameter userCode: what the device shows, as typed.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with status 404 for a code that is wrong or over.
    public func deviceRequest(_ userCode: String) async throws -> DeviceRequest {
        let now = client.surroundings.now()
        let answer = try await client.accountCall("GET", Path.item(userCode, of: "/connect/device"))
        return try answer.item { DeviceRequest($0, userCode: userCode, at: now) }
    }

    /// Answers the request. Ask the person first whether a device in front of them shows the code.
    public func decide(_ request: DeviceRequest, _ decision: TrustedDevice.Decision) async throws {
        let body: JSONValue = ["UserCode": .string(request.userCode), "Decision": .string(decision.name)]
        _ = try await client.accountCall("POST", "/connect/device", .json(body))
    }

    /// What a device asks for.
    public struct DeviceRequest: Sendable, Hashable {
        /// What the device shows.
        public let userCode: String
        /// `client_id` of its app.
        public let clientID: String
        /// The name of its app.
        public let clientName: String?
        /// What it is to be allowed.
        public let scopes: [String]
        /// The shortened network address of the device.
        public let source: String?
        /// Whether the device is in the network of the person.
        public let sameNetwork: Bool
        /// When it asked.
        public let requestedAt: Date
        /// When the request expires, by the clock of this device.
        public let expiresAt: Date
    }
}

extension Account.DeviceRequest: Discreet {
    /// Client, scopes and times; not the code.
    public var shown: [(String, any Sendable)] {
        [("clientID", clientID), ("scopes", scopes), ("requestedAt", requestedAt), ("expiresAt", expiresAt)]
    }
}

extension Account.DeviceRequest {
    init?(_ json: JSONValue?, userCode: String, at now: Date) {
        guard let json, let clientID = json["ClientId"]?.string, let requestedAt = json["RequestedAt"]?.time,
            let life = json["ExpiresIn"]?.seconds
        else { return nil }
        self.init(
            userCode: userCode, clientID: clientID, clientName: json["ClientName"]?.string,
            scopes: json["Scope"]?.array?.compactMap { $0["Name"]?.string } ?? [], source: json["Source"]?.string,
            sameNetwork: json["SameNetwork"]?.bool ?? false, requestedAt: requestedAt,
            expiresAt: now.addingTimeInterval(life))
    }
}
