import Encoding
import Crypto
public import FoundationEssentials

extension RegistrationCeremony {
    private typealias Step = RegistrationStep

    /// Reads the JSON serialisation of the response (§7.1 steps 3 and 4).
    public static func response(parsing json: Span<UInt8>) throws(RegistrationFailure) -> RegistrationResponseJSON {
        do {
            return try RegistrationResponseJSON(parsing: json)
        } catch {
            let step: Step = error == .malformedMember(.clientExtensionResults) ? .clientExtensionResults : .response
            throw RegistrationFailure(step, error.reason)
        }
    }

    /// Verifies a registration (WebAuthn L3 §7.1, steps 5 to 28 in their order).
    ///
    /// - Parameters:
    ///   - response: what the client sent.
    ///   - instant: the time at which attestation certificates must be valid.
    /// - Returns: the credential record to store, and what is known of the authenticator.
    /// - Throws: the first step that failed. Single use of the challenge is the caller's part.
    public func verify(
        _ response: RegistrationResponseJSON, at instant: Date
    ) async throws(RegistrationFailure) -> VerifiedRegistration {
        let statement = try verifyStatement(response)
        // 23, 24
        let anchors = attestation.trustAnchors[statement.format] ?? []
        let trust: AttestationTrust =
            switch statement.attestationType {
            case .none: .none
            case .selfAttestation: .selfAttested
            case .certified(let path):
                await TrustEvaluation.leads(path, to: anchors, at: instant) ? .trusted : .untrusted
            }
        try Step.trust.require(attestation.accepted.contains(trust), else: .attestation(.untrusted))
        // 25, 26, 28
        try Step.credentialIdLength.require(statement.credential.id.count <= 1023, else: .tooLong)
        try Step.credentialIdUnknown.require(
            !registeredCredentialIds.contains(statement.credential.id), else: .notAllowed)
        try Step.extensions.require(extensions.accepts(statement.extensions), else: .notAllowed)
        var verified = statement
        verified.trust = trust
        return verified
    }

    /// Steps 5 to 22: everything that needs no certificate path, and so no suspension.
    func verifyStatement(_ response: RegistrationResponseJSON) throws(RegistrationFailure) -> VerifiedRegistration {
        // 5 to 11
        let clientData = try clientData(response.clientDataJSON)
        try Step.type.require(clientData.type == "webauthn.create", else: .mismatch)
        try Step.challenge.require(
            // An empty challenge is a caller's mistake that must not match an empty text.
            !challenge.isEmpty && clientData.challenge.utf8.elementsEqual(Base64.urlEncode(challenge).utf8),
            else: .mismatch)
        try Step.origin.require(relyingParty.accepts(origin: clientData.origin), else: .mismatch)
        try Step.crossOrigin.require(
            relyingParty.accepts(crossOrigin: clientData.crossOrigin ?? false), else: .notAllowed)
        try Step.topOrigin.require(relyingParty.accepts(topOrigin: clientData.topOrigin), else: .notAllowed)
        // 12, 13
        let hash = Array(SHA256.hash(data: response.clientDataJSON))
        let (object, attested) = try attestationObject(response)
        let authData = object.authenticatorData
        // 14 to 19
        try Step.rpIdHash.require(authData.rpIdHash == relyingParty.rpIdHash, else: .mismatch)
        try Step.userPresent.require(!requiresUserPresence || authData.flags.contains(.userPresent), else: .missing)
        try Step.userVerified.require(
            userVerification != .required || authData.flags.contains(.userVerified), else: .missing)
        let eligible = authData.flags.contains(.backupEligible), backedUp = authData.flags.contains(.backupState)
        try Step.backupState.require(eligible || !backedUp, else: .mismatch)
        try Step.backupEligibilityPolicy.require(backup.accepts(eligible: eligible), else: .notAllowed)
        try Step.backupStatePolicy.require(backup.accepts(backedUp: backedUp), else: .notAllowed)
        // 20 to 22
        let key = try credentialKey(attested)
        let format = try format(object.fmt)
        let statement = AttestationStatement(
            format: format, attStmt: object.attStmt, authData: object.authData, authenticatorData: authData,
            clientDataHash: hash)
        let type = try Step.attestationStatement.read { () throws(AttestationError) in
            try statement.verify(key: key, policy: attestation)
        }
        return VerifiedRegistration(
            credential: CredentialRecord(
                id: attested.credentialId, publicKey: attested.credentialPublicKey, signCount: authData.signCount,
                backupEligible: eligible, backupState: backedUp,
                uvInitialized: authData.flags.contains(.userVerified), transports: response.transports,
                aaguid: attested.aaguid),
            algorithm: key.algorithm, format: format, attestationType: type, trust: .none, flags: authData.flags,
            origin: clientData.origin, extensions: authData.extensions)
    }

    /// Steps 5 and 6.
    private func clientData(_ bytes: [UInt8]) throws(RegistrationFailure) -> CollectedClientData {
        try Step.clientDataEncoding.read { () throws(JSONError) in
            try JSONReader.validate(bytes.span, maximumLength: CollectedClientData.maximumLength)
        }
        return try Step.clientDataSyntax.read { () throws(JSONError) in
            try CollectedClientData(validated: bytes.span)
        }
    }

    /// Step 13. `id` of the response must be the credential ID inside, which alone is attested.
    private func attestationObject(
        _ response: RegistrationResponseJSON
    ) throws(RegistrationFailure) -> (AttestationObject, AttestedCredentialData) {
        let object = try Step.attestationObject.read { () throws(FailureReason) in
            try AttestationObject(parsing: response.attestationObject.span)
        }
        guard let attested = object.authenticatorData.attestedCredentialData else {
            throw RegistrationFailure(.attestationObject, .attestation(.noAttestedCredentialData))
        }
        try Step.attestationObject.require(
            attested.credentialId == response.id, else: .attestation(.credentialIdMismatch))
        return (object, attested)
    }

    /// Step 20. What was offered is the policy: any other algorithm is refused, and so is a key that is not one.
    private func credentialKey(_ attested: AttestedCredentialData) throws(RegistrationFailure) -> CredentialPublicKey {
        let offered = COSEAlgorithmPolicy(accepted: pubKeyCredParams)
        return try Step.algorithm.read { () throws(COSEKeyError) -> CredentialPublicKey in
            let key = try CredentialPublicKey(decoding: attested.credentialPublicKey.span, policy: offered)
            if case .ed25519(let point) = key.material, !Ed25519Point.exists(Array(point.rawRepresentation)) {
                throw .invalidPoint
            }
            return key
        }
    }

    /// Step 21.
    private func format(_ fmt: String) throws(RegistrationFailure) -> AttestationStatementFormat {
        let known = AttestationStatementFormat.allCases.first { $0.rawValue.utf8.elementsEqual(fmt.utf8) }
        guard let known else { throw RegistrationFailure(.format, .attestation(.unknownFormat)) }
        try Step.format.require(attestation.formats.contains(known), else: .attestation(.formatNotAccepted))
        return known
    }
}
