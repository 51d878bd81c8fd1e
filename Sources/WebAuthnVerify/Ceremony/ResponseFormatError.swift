/// Why bytes are not a serialised `PublicKeyCredential` (WebAuthn L3 §5.1.8, `RegistrationResponseJSON` and
/// `AuthenticationResponseJSON`).
public enum ResponseFormatError: Error, Equatable, Sendable {
    /// Not the JSON this library reads.
    case json(JSONError)
    /// A required member is absent.
    case missingMember(Member)
    /// A member of the wrong type or encoding, or of a length that cannot be.
    case malformedMember(Member)
    /// `type` is not `public-key`.
    case notPublicKey
    /// `id` and `rawId` differ.
    case idMismatch

    /// The members read, by their names on the wire.
    public enum Member: String, Sendable {
        case id, rawId, type, response, clientDataJSON, authenticatorData, signature, userHandle, attestationObject
        case transports, authenticatorAttachment, clientExtensionResults
    }
}
