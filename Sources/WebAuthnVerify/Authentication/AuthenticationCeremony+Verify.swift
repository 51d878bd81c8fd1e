import Encoding
import Crypto

extension AuthenticationCeremony {
    private typealias Step = AuthenticationStep

    /// Reads the JSON serialisation of the response (§7.2 steps 3, 4 and 7).
    public static func response(parsing json: Span<UInt8>) throws(AuthenticationFailure) -> AuthenticationResponseJSON {
        do {
            return try AuthenticationResponseJSON(parsing: json)
        } catch {
            let step: Step = error == .malformedMember(.clientExtensionResults) ? .clientExtensionResults : .response
            throw AuthenticationFailure(step, error.reason)
        }
    }

    /// Verifies an assertion (WebAuthn L3 §7.2, steps 5 to 24 in their order).
    ///
    /// - Parameters:
    ///   - response: what the client sent.
    ///   - credential: the stored record found by `response.id`.
    /// - Returns: what to store and to believe.
    /// - Throws: the first step that failed. Whether it is an unknown credential or a bad signature must not be visible
    ///   to the client; that is the caller's part, as are single use of the challenge and the atomic update of the
    ///   counter.
    public func verify(
        _ response: AuthenticationResponseJSON, credential: CredentialRecord
    ) throws(AuthenticationFailure) -> VerifiedAuthentication {
        // 5, 6
        try Step.allowCredentials.require(
            allowCredentials.isEmpty || allowCredentials.contains(response.id), else: .notAllowed)
        try Step.userHandle.require(
            response.id == credential.id && owns(credential, response.userHandle), else: .mismatch)
        // 7
        let authData = try Step.authenticatorData.read { () throws(AuthenticatorDataError) in
            try AuthenticatorData(parsing: response.authenticatorData.span)
        }
        // 8 to 14
        let clientData = try clientData(response.clientDataJSON)
        try Step.type.require(clientData.type == "webauthn.get", else: .mismatch)
        try Step.challenge.require(
            // An empty challenge is a caller's mistake that must not match an empty text.
            !challenge.isEmpty && clientData.challenge.utf8.elementsEqual(Base64.urlEncode(challenge).utf8),
            else: .mismatch)
        try Step.origin.require(relyingParty.accepts(origin: clientData.origin), else: .mismatch)
        try Step.crossOrigin.require(
            relyingParty.accepts(crossOrigin: clientData.crossOrigin ?? false), else: .notAllowed)
        try Step.topOrigin.require(relyingParty.accepts(topOrigin: clientData.topOrigin), else: .notAllowed)
        // 15 to 19
        try Step.rpIdHash.require(authData.rpIdHash == relyingParty.rpIdHash, else: .mismatch)
        try Step.userPresent.require(authData.flags.contains(.userPresent), else: .missing)
        try Step.userVerified.require(
            userVerification != .required || authData.flags.contains(.userVerified), else: .missing)
        let eligible = authData.flags.contains(.backupEligible)
        try Step.backupState.require(eligible || !authData.flags.contains(.backupState), else: .mismatch)
        try Step.backupEligible.require(eligible == credential.backupEligible, else: .mismatch)
        // 20, 21
        let hash = Array(SHA256.hash(data: response.clientDataJSON))
        try verifySignature(response, clientDataHash: hash, publicKey: credential.publicKey)
        // 22, 23
        let advanced =
            authData.signCount > credential.signCount || (authData.signCount == 0 && credential.signCount == 0)
        try Step.signCount.require(advanced || signCountPolicy == .report, else: .signCountRegressed)
        try Step.extensions.require(extensions.accepts(authData.extensions), else: .notAllowed)
        // 24
        return VerifiedAuthentication(
            credentialId: response.id, userHandle: response.userHandle, flags: authData.flags,
            // A zero, or anything lower, never lowers what is stored.
            signCount: max(credential.signCount, authData.signCount),
            presentedSignCount: authData.signCount, signCountRegressed: !advanced,
            backupState: authData.flags.contains(.backupState),
            origin: clientData.origin,
            extensions: authData.extensions)
    }

    /// Step 6. Records without a user handle come from callers that looked the owner up by it.
    private func owns(_ credential: CredentialRecord, _ presented: [UInt8]?) -> Bool {
        guard let presented else { return userHandle == .optional }
        guard !presented.isEmpty else { return false }
        return credential.userHandle.map { $0 == presented } ?? true
    }

    /// Steps 8 and 9.
    private func clientData(_ bytes: [UInt8]) throws(AuthenticationFailure) -> CollectedClientData {
        try Step.clientDataEncoding.read { () throws(JSONError) in
            try JSONReader.validate(bytes.span, maximumLength: CollectedClientData.maximumLength)
        }
        return try Step.clientDataSyntax.read { () throws(JSONError) in
            try CollectedClientData(validated: bytes.span)
        }
    }

    /// Step 21: `sig` over `authData` ‖ `hash`, both as received.
    private func verifySignature(
        _ response: AuthenticationResponseJSON, clientDataHash: [UInt8], publicKey: [UInt8]
    ) throws(AuthenticationFailure) {
        let key = try Step.signature.read { () throws(COSEKeyError) in
            try CredentialPublicKey(decoding: publicKey.span, policy: algorithms)
        }
        var message: [UInt8] = []
        message.reserveCapacity(response.authenticatorData.count + 32)
        message.append(contentsOf: response.authenticatorData)
        message.append(contentsOf: clientDataHash)
        try Step.signature.require(key.isValidSignature(response.signature, for: message), else: .invalidSignature)
    }
}
