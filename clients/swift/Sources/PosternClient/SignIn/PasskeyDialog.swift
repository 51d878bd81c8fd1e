import Foundation

/// What asks the person for a passkey. On Apple's platforms it is ``SystemPasskeyDialog``.
///
/// Options and credentials are the JSON documents of WebAuthn Level 3. They pass through this library unchanged.
public protocol PasskeyDialog: Sendable {
    /// Makes a passkey.
    /// - Parameter options: PublicKeyCredentialCreationOptionsJSON.
    /// - Returns: RegistrationResponseJSON.
    /// - Throws: ``DialogCancelled`` when the person gave up.
    func create(_ options: Data) async throws -> Data

    /// Asks for a passkey.
    /// - Parameter options: PublicKeyCredentialRequestOptionsJSON.
    /// - Returns: AuthenticationResponseJSON.
    /// - Throws: ``DialogCancelled`` when the person gave up, or has no passkey here.
    func get(_ options: Data, style: PasskeyStyle) async throws -> Data
}

/// How a passkey is asked for.
public enum PasskeyStyle: Sendable {
    /// With the system's dialog.
    case dialog
    /// Only when this device has one; otherwise the dialog ends at once.
    case onlyLocal
    /// As a suggestion of the keyboard while the person types an address.
    case autofill
}

/// The person closed a dialog, or it had nothing to offer.
public struct DialogCancelled: Error {
    /// Makes the error.
    public init() {}
}
