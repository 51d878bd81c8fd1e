/// A numbered step of one of the two relying party procedures (WebAuthn L3 §7.1 and §7.2, editor's draft of 30 July
/// 2026).
///
/// Numbers move between drafts, so the case names say what the step is about and the raw values what it is called
/// today.
public protocol CeremonyStep: RawRepresentable, CaseIterable, Sendable, Hashable where RawValue == Int {
    /// `registration` or `authentication`, for messages.
    static var ceremony: String { get }
}

/// The steps of *Registering a New Credential* (WebAuthn L3 §7.1) that this library performs.
///
/// Steps 1, 2 and 27 are not here: the options, the call to the client and the store belong to the caller.
public enum RegistrationStep: Int, CeremonyStep {
    /// `registration`.
    public static let ceremony = "registration"

    /// Step 3: the response is an attestation response.
    case response = 3
    /// Step 4: the client extension outputs are an object.
    case clientExtensionResults = 4
    /// Step 5: `clientDataJSON` is UTF-8.
    case clientDataEncoding = 5
    /// Step 6: `clientDataJSON` is JSON with the members a client sends.
    case clientDataSyntax = 6
    /// Step 7: `type` is `webauthn.create`.
    case type = 7
    /// Step 8: `challenge` is the one issued.
    case challenge = 8
    /// Step 9: `origin` is expected.
    case origin = 9
    /// Step 10: `crossOrigin` is expected.
    case crossOrigin = 10
    /// Step 11: `topOrigin` is expected.
    case topOrigin = 11
    /// Step 12: the hash of `clientDataJSON` as received.
    case clientDataHash = 12
    /// Step 13: the attestation object is CBOR of the known shape.
    case attestationObject = 13
    /// Step 14: `rpIdHash` is the hash of the expected RP ID.
    case rpIdHash = 14
    /// Step 15: UP is set, unless creation was conditional.
    case userPresent = 15
    /// Step 16: UV is set if user verification was required.
    case userVerified = 16
    /// Step 17: BS only with BE.
    case backupState = 17
    /// Step 18: BE is what the relying party's policy allows.
    case backupEligibilityPolicy = 18
    /// Step 19: BS is what the relying party's policy allows.
    case backupStatePolicy = 19
    /// Step 20: the key's `alg` was offered, and the key is a valid one.
    case algorithm = 20
    /// Step 21: `fmt` is a supported attestation statement format.
    case format = 21
    /// Step 22: `attStmt` is a correct statement.
    case attestationStatement = 22
    /// Step 23: acceptable trust anchors for the attestation type and format.
    case trustAnchors = 23
    /// Step 24: the attestation is trustworthy under the policy.
    case trust = 24
    /// Step 25: the credential ID has at most 1023 bytes.
    case credentialIdLength = 25
    /// Step 26: the credential ID is not registered yet.
    case credentialIdUnknown = 26
    /// Step 28: extension outputs, where unsolicited ones are to be refused.
    case extensions = 28
}

/// The steps of *Verifying an Authentication Assertion* (WebAuthn L3 §7.2) that this library performs.
///
/// Steps 1 and 2 belong to the caller, and so does writing what step 24 computes.
public enum AuthenticationStep: Int, CeremonyStep {
    /// `authentication`.
    public static let ceremony = "authentication"

    /// Step 3: the response is an assertion response.
    case response = 3
    /// Step 4: the client extension outputs are an object.
    case clientExtensionResults = 4
    /// Step 5: the credential was among `allowCredentials`, if any were listed.
    case allowCredentials = 5
    /// Step 6: the credential belongs to the user who is signing in.
    case userHandle = 6
    /// Step 7: `authenticatorData` has the shape its flags announce.
    case authenticatorData = 7
    /// Step 8: `clientDataJSON` is UTF-8.
    case clientDataEncoding = 8
    /// Step 9: `clientDataJSON` is JSON with the members a client sends.
    case clientDataSyntax = 9
    /// Step 10: `type` is `webauthn.get`.
    case type = 10
    /// Step 11: `challenge` is the one issued.
    case challenge = 11
    /// Step 12: `origin` is expected.
    case origin = 12
    /// Step 13: `crossOrigin` is expected.
    case crossOrigin = 13
    /// Step 14: `topOrigin` is expected.
    case topOrigin = 14
    /// Step 15: `rpIdHash` is the hash of the expected RP ID.
    case rpIdHash = 15
    /// Step 16: UP is set.
    case userPresent = 16
    /// Step 17: UV is set if user verification was required.
    case userVerified = 17
    /// Step 18: BS only with BE.
    case backupState = 18
    /// Step 19: BE is what it was at registration.
    case backupEligible = 19
    /// Step 20: the hash of `clientDataJSON` as received.
    case clientDataHash = 20
    /// Step 21: the signature is the credential's, over `authenticatorData` ‖ hash.
    case signature = 21
    /// Step 22: the counter moved forward, or is not used.
    case signCount = 22
    /// Step 23: extension outputs, where unsolicited ones are to be refused.
    case extensions = 23
    /// Step 24: what the credential record becomes.
    case credentialRecordUpdate = 24
}
