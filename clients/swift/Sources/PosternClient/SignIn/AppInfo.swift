/// What an app may want to know of its server before it shows its first screen.
public struct AppInfo: Sendable, Hashable {
    /// How an account comes to be.
    public enum Registration: String, Sendable {
        /// An administrator makes it.
        case off = "Off"
        /// The first code that a new address redeems makes it.
        case justInTime = "JitOnOtp"
        /// ``PosternClient/register(_:names:)`` makes it.
        case explicit = "ExplicitEndpoint"
    }

    /// Whether a registration has this field.
    public enum Field: String, Sendable { case off = "Off", optional = "Optional", required = "Required" }

    /// The name of the App or realm.
    public let displayName: String
    /// Whether codes, links and passkeys sign in here; if not, the pages may.
    public let nativeGrants: Bool
    /// How an account comes to be.
    public let registration: Registration
    /// The relying party of passkeys (WebAuthn Level 3), if there is one.
    public let rpID: String?
    /// The given name.
    public let firstName: Field
    /// The family name.
    public let lastName: Field
}

extension AppInfo {
    /// `nil` if it is not what the server promises. A value that a newer server has counts as off.
    init?(_ json: JSONValue?) {
        guard let json, let displayName = json["DisplayName"]?.string, let nativeGrants = json["NativeGrants"]?.bool
        else { return nil }
        let fields = json["RegistrationFields"]
        self.init(
            displayName: displayName, nativeGrants: nativeGrants,
            registration: json["Registration"]?.string.flatMap(Registration.init) ?? .off,
            rpID: json["RpId"]?.string, firstName: fields?["Firstname"]?.string.flatMap(Field.init) ?? .off,
            lastName: fields?["Lastname"]?.string.flatMap(Field.init) ?? .off)
    }
}
