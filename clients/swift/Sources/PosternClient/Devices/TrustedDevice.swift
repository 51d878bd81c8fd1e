import Foundation

/// This device as one that the user trusts: it answers requests to sign in, signs its user in by itself, and takes other
/// devices in. Its key is the one of the store; ``SignOutScope/forgettingThisDevice`` takes it away.
///
/// A device that is added beside others is on probation for some time, in which it may do none of that.
public struct TrustedDevice: Sendable {
    let client: PosternClient

    /// Makes this device a trusted one of the user. Wants a sign-in of the last ten minutes, else throws
    /// ``PosternError/stepUpNeeded(_:)``. A device that is one already is not added twice.
    /// - Parameters:
    ///   - name: 1 to 64 characters, for the list of devices.
    ///   - pushHandle: of the platform's push service, at most 512 bytes.
    public func enrol(named name: String? = nil, pushHandle: String? = nil) async throws -> Info {
        let members = Self.members(name, pushHandle)
        _ = try await client.accountCall(
            "POST", Self.path,
            .proving { proof in .object(members.merging(["Proof": .string(proof)]) { $1 }) })
        guard let info = try await info() else { throw PosternError.unavailable(retryAfter: nil) }
        return info
    }

    /// This device as the server knows it; `nil` if it is no trusted device, or no longer one.
    public func info() async throws -> Info? {
        guard try await client.document().key != nil else { return nil }
        do {
            return try await client.deviceCall("GET", Path.ownDevice).item(Info.init)
        } catch PosternError.refused(_, _, status: 404) {
            return nil
        }
    }

    /// Changes the name or the push handle; what is `nil` stays.
    public func update(named name: String? = nil, pushHandle: String? = nil) async throws -> Info {
        guard let info = try await info() else { throw PosternError.misuse("enrol this device first") }
        let members = Self.members(name, pushHandle)
        if members.isEmpty { return info }
        return try await client.deviceCall("PATCH", try Self.path(info.id), .object(members)).item(Info.init)
    }

    /// Ends the trust in this device. The session goes on.
    public func remove() async throws {
        guard let info = try await info() else { return }
        do {
            _ = try await client.deviceCall("DELETE", try Self.path(info.id))
        } catch PosternError.refused(_, _, status: 404) {
            // Another call was faster.
        }
    }

    static let path = "/connect/devices"
    private static func path(_ id: String) throws -> String { try Path.item(id, of: path) }

    static func members(_ name: String?, _ pushHandle: String? = nil) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        members["DisplayName"] = name.map(JSONValue.string)
        members["PushHandle"] = pushHandle.map(JSONValue.string)
        return members
    }

    /// A trusted device.
    public struct Info: Sendable, Hashable, Identifiable {
        /// Of the server.
        public let id: String
        /// As given.
        public let name: String?
        /// When it was added.
        public let createdAt: Date
        /// When it was last used.
        public let lastUsedAt: Date?
        /// Until when it may neither approve, adopt nor sign in by itself; `nil` if it may.
        public let probationUntil: Date?
    }
}

extension TrustedDevice.Info {
    init?(_ json: JSONValue?) {
        guard let json, let id = json["Id"]?.string, let createdAt = json["CreatedAt"]?.time else { return nil }
        self.init(
            id: id, name: json["DisplayName"]?.string, createdAt: createdAt, lastUsedAt: json["LastUsedAt"]?.time,
            probationUntil: json["ProbationUntil"]?.time)
    }
}
