/// A credential record: what a relying party keeps of a credential (WebAuthn L3 §4, *Credential Record*).
///
/// Authentication reads `id`, `publicKey`, `signCount`, `backupEligible` and `userHandle`; the rest is for the caller.
public struct CredentialRecord: Sendable, Equatable {
    /// The credential ID.
    public var id: [UInt8]
    /// The COSE public key, exactly as received.
    public var publicKey: [UInt8]
    /// The last signature counter seen.
    public var signCount: UInt32
    /// BE at registration; it never changes.
    public var backupEligible: Bool
    /// BS as last seen.
    public var backupState: Bool
    /// UV at registration.
    public var uvInitialized: Bool
    /// The transports the client named at registration.
    public var transports: [String]
    /// The authenticator's model, 16 bytes.
    public var aaguid: [UInt8]
    /// The user handle (`user.id`) of the owner; nil where the caller has matched the owner itself.
    public var userHandle: [UInt8]?

    /// A record from its parts; those that authentication does not read have defaults.
    public init(
        id: [UInt8], publicKey: [UInt8], signCount: UInt32, backupEligible: Bool, backupState: Bool = false,
        uvInitialized: Bool = true, transports: [String] = [], aaguid: [UInt8] = [UInt8](repeating: 0, count: 16),
        userHandle: [UInt8]? = nil
    ) {
        self.id = id
        self.publicKey = publicKey
        self.signCount = signCount
        self.backupEligible = backupEligible
        self.backupState = backupState
        self.uvInitialized = uvInitialized
        self.transports = transports
        self.aaguid = aaguid
        self.userHandle = userHandle
    }
}
