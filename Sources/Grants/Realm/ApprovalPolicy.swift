/// What a realm lets trusted devices do (`admin.set_approvals`).
public struct ApprovalPolicy: Sendable, Equatable {
    /// Whether there are trusted devices and approvals.
    public let isEnabled: Bool
    /// Whether clients without a secret may ask for approvals.
    public let admitsPublicClients: Bool
    /// How long an approval can be given, in seconds.
    public let lifetime: Int

    package init(isEnabled: Bool = false, admitsPublicClients: Bool = false, lifetime: Int = 120) {
        self.isEnabled = isEnabled
        self.admitsPublicClients = admitsPublicClients
        self.lifetime = lifetime
    }
}

/// As `postern.realm_config` writes it.
struct ApprovalPolicyRecord: Decodable {
    let enabled: Bool
    let publicClients: Bool
    let lifetime: Int
}

extension ApprovalPolicy {
    init(_ record: ApprovalPolicyRecord) {
        self.init(
            isEnabled: record.enabled, admitsPublicClients: record.publicClients, lifetime: record.lifetime)
    }
}
