import Persistence

/// The parts of a ``Realm``, which says what each is.
struct RealmContents: Sendable {
    let id: UUIDValue
    let version: Int
    let slug: String
    let displayName: String
    let issuer: String
    let primaryDomain: String?
    var nativeGrantsEnabled: Bool
    var hosted = Hosted.off
    let policy: Realm.Policy
    let clients: [String: Client]
    let scopes: [String: Scope]
    var rateLimits: [RateLimit.Policy: [RateLimit.Dimension: RateLimit]]
    var registrationFields: RegistrationFields
    let signingKeys: [SealedSigningKey]
    var channels: Set<Channel> = []
    var addressRules = AddressRules()
    var phones: PhonePolicy?
    var dpop = DPoPPolicy()
    var approvals = ApprovalPolicy()
    var possession = PossessionPolicy()
    var hintKeys: [HintKey] = []
    var hasLeft = false
    var testCodeKeys: [SealedDataKey] = []
    var apps: [App] = []
    var brand = Brand()
    var brands: [String: Brand] = [:]
    var app: App?
    var views: [String: Realm] = [:]
    var clientsOfApps: Set<UUIDValue> = []
}

/// A value behind a reference.
final class Shared<Value: Sendable>: Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
