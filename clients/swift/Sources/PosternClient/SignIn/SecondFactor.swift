/// What an account with two-factor authentication is asked for beside a code, a link or an approval.
public enum SecondFactor: Sendable {
    /// What the authenticator app shows (RFC 6238), as typed.
    case totp(String)
    /// One of the codes that ``Account/finishTOTP(_:code:)`` gave out. It works once.
    case recoveryCode(String)
}

extension SecondFactor: Discreet {
    /// The kind; not the code.
    public var shown: [(String, any Sendable)] {
        switch self {
        case .totp: [("kind", "totp")]
        case .recoveryCode: [("kind", "recoveryCode")]
        }
    }
}

extension SecondFactor {
    /// The parameter of the token request.
    var field: (String, String) {
        switch self {
        case .totp(let code): ("totp_code", code)
        case .recoveryCode(let code): ("recovery_code", code)
        }
    }
}
