import Persistence

extension SecondFactorProof {
    /// Compares what the request presents (`totp_code`, else `recovery_code`) with what the account has.
    ///
    /// - Returns: `nil` when the request presents neither.
    /// - Throws: `temporarily_unavailable` when the seed cannot be opened.
    init?(
        _ form: FormParameters, _ prompt: SecondFactorPrompt, realm: UUIDValue, keyring: Keyring
    ) throws(TokenError) {
        if let code = form["totp_code"].map(TypedCode.init) {
            let seed = try SecondFactorMaterial(prompt.sealedSeed)
                .seed(keyring: keyring, realm: realm, factor: prompt.factor)
            let step = TOTP.match(code, seed: seed.bytes, now: prompt.now, after: prompt.lastStepAt)
            self.init(factor: prompt.factor, kind: .totp(step: step))
        } else if let code = form["recovery_code"].map(TypedCode.init) {
            let keyed = try SecondFactorMaterial(prompt.sealedSeed)
                .candidates(for: code, keyring: keyring, realm: realm, factor: prompt.factor)
            self.init(factor: prompt.factor, kind: .recoveryCode(keyed))
        } else {
            return nil
        }
    }
}

extension TokenError {
    /// The account has a second factor and the request carries none. Sent only when the first factor was right.
    package static var secondFactorRequired: TokenError {
        TokenError(
            .invalidGrant, "Two-factor authentication is required; supply totp_code.", reason: "second factor required")
    }

    /// Wrong, used before, or closed for now: one text.
    package static var secondFactorInvalid: TokenError {
        TokenError(.invalidGrant, "The two-factor code is invalid.", reason: "second factor wrong")
    }
}
