import Persistence

/// What a held request waits for: a change that SQL reports by `postern.wake`.
struct WaitTopic: Sendable, Hashable {
    enum Kind: String, Sendable {
        /// Approvals and devices of a user.
        case user
        case transaction
    }

    let realm: UUIDValue
    let kind: Kind
    let id: UUIDValue

    /// The channel on which topics are named.
    static let channel = "postern_wake"

    init(_ kind: Kind, _ id: UUIDValue, realm: UUIDValue) {
        self.realm = realm
        self.kind = kind
        self.id = id
    }

    /// Reads the payload of a notification: realm, kind and id. `nil` for one of a newer schema.
    init?(payload: String) {
        let parts = payload.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, let realm = UUIDValue(String(parts[0])), let kind = Kind(rawValue: String(parts[1])),
            let id = UUIDValue(String(parts[2]))
        else { return nil }
        self.init(kind, id, realm: realm)
    }
}
