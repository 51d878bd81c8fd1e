import Foundation

extension Account {
    /// Begins two-factor authentication. Nothing changes before ``finishTOTP(_:code:)``. Wants a recent sign-in.
    public func beginTOTP() async throws -> TOTPEnrolment {
        try await client.accountCall("POST", Self.totpPath + "/enroll/begin").item(TOTPEnrolment.init)
    }

    /// Turns two-factor authentication on.
    /// - Parameter code: what the authenticator app shows, as typed. A wrong one may be tried again.
    /// - Returns: ten recovery codes. Show them once: the server does not know them any more.
    public func finishTOTP(_ enrolment: TOTPEnrolment, code: String) async throws -> [String] {
        let body: JSONValue = ["ceremonyId": .string(enrolment.ceremony), "code": .string(code)]
        return try await client.accountCall("POST", Self.totpPath + "/enroll", .json(body)).item {
            $0?["recoveryCodes"]?.strings
        }
    }

    /// Turns two-factor authentication off. Wants a recent sign-in with the second factor.
    public func removeTOTP() async throws {
        _ = try await client.accountCall("DELETE", Self.totpPath)
    }

    private static let totpPath = "/connect/totp"

    /// What an authenticator app is set up with (RFC 6238). Both are secrets.
    public struct TOTPEnrolment: Sendable {
        /// base32, to type.
        public let secret: String
        /// `otpauth:`, for a QR code.
        public let uri: URL

        let ceremony: String
    }
}

extension Account.TOTPEnrolment: Discreet {
    /// Nothing.
    public var shown: [(String, any Sendable)] { [] }
}

extension Account.TOTPEnrolment {
    init?(_ json: JSONValue?) {
        guard let secret = json?["secret"]?.string, let uri = json?["uri"]?.string.flatMap({ URL(string: $0) }),
            let ceremony = json?["ceremonyId"]?.string
        else { return nil }
        self.init(secret: secret, uri: uri, ceremony: ceremony)
    }
}
