/// What a line of the key file seals. Each purpose has, in each realm, a key of its own: nothing that was sealed for
/// one opens for another, and no key serves more than one tenant.
public enum SealPurpose: UInt8, Sendable, CaseIterable {
    /// Opaque access tokens of sessions.
    case accessToken
    /// Opaque access tokens of service accounts.
    case serviceAccountToken
    /// Handles of requests for codes and links.
    case authSession
    /// Ceremonies of passkeys.
    case passkeyCeremony
    /// Enrolments of TOTP.
    case totpCeremony
    /// Mails that wait to be sent.
    case mail
    /// Authorization requests that wait to be opened.
    case authorizationRequest
    /// Sign-ins on pages, between two forms.
    case signInTransaction
    /// Data keys, which protect what must outlive a line.
    case dataKey
    /// Links that take an added factor away.
    case undo
    /// Addresses that are proven without an account.
    case addressVerification
    /// Opaque access tokens of such proofs.
    case addressToken
    /// Handles of a push service, by which a device is told of approvals.
    case pushHandle
    /// Keys of new devices, between the QR code and its adoption.
    case deviceOffer
    /// A mail address that a risk provider is asked about.
    case riskAddress
    /// Requests for approval that clients poll for.
    case authenticationRequest
    /// Answers to forms, for those who send the same form again.
    case sentForm

    /// What the key is derived with; never to be changed.
    var label: String {
        switch self {
        case .accessToken: "access token"
        case .serviceAccountToken: "service account token"
        case .authSession: "auth session"
        case .passkeyCeremony: "passkey ceremony"
        case .totpCeremony: "totp ceremony"
        case .mail: "mail"
        case .authorizationRequest: "authorization request"
        case .signInTransaction: "sign-in transaction"
        case .dataKey: "data key"
        case .undo: "undo"
        case .addressVerification: "address proof"
        case .addressToken: "address token"
        case .pushHandle: "push handle"
        case .deviceOffer: "device offer"
        case .riskAddress: "risk address"
        case .authenticationRequest: "authentication request"
        case .sentForm: "sent form"
        }
    }
}
