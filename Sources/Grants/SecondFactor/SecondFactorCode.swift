import Persistence

/// The code of a second factor, as a request presents it beside the first one.
public enum SecondFactorCode: Sendable, Equatable {
    /// Of the authenticator app.
    case totp(TypedCode)
    /// One of the codes that were shown at the enrolment.
    case recovery(TypedCode)

    /// `totp_code`, else `recovery_code`; `nil` when the request presents neither.
    init?(_ form: FormParameters) {
        if let code = form["totp_code"].map(TypedCode.init) {
            self = .totp(code)
        } else if let code = form["recovery_code"].map(TypedCode.init) {
            self = .recovery(code)
        } else {
            return nil
        }
    }
}

extension SecondFactorProof {
    /// Compares a code with what the account has.
    /// - Throws: `temporarily_unavailable` when the seed cannot be opened.
    init(
        _ code: SecondFactorCode, _ prompt: SecondFactorPrompt, realm: UUIDValue, keyring: Keyring
    ) throws(TokenError) {
        let material = try SecondFactorMaterial(prompt.sealedSeed)
        switch code {
        case .totp(let code):
            let seed = try material.seed(keyring: keyring, realm: realm, factor: prompt.factor)
            let step = TOTP.match(code, seed: seed.bytes, now: prompt.now, after: prompt.lastStepAt)
            self.init(factor: prompt.factor, kind: .totp(step: step))
        case .recovery(let code):
            let keyed = try material.candidates(for: code, keyring: keyring, realm: realm, factor: prompt.factor)
            self.init(factor: prompt.factor, kind: .recoveryCode(keyed))
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
