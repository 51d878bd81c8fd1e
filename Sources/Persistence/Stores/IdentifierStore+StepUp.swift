extension IdentifierStore {
    /// A try at the code of an address that a signed-in browser proves.
    public struct StepUp: Sendable {
        let arguments: Arguments

        /// - Parameters:
        ///   - cookieHash: SHA-256 of the cookie that the browser showed.
        ///   - newCookieHash: SHA-256 of the one that it gets.
        ///   - keyed: HMAC of the code under each server key.
        ///   - amr: what the message proves (RFC 8176).
        public init(
            realm: UUIDValue, cookieHash: [UInt8], newCookieHash: [UInt8], host: String, handle: [UInt8],
            keyed: [[UInt8]], amr: [String], request: AuthorizationCodeRequest, source: String
        ) {
            let proof: Arguments = [
                "realm": realm, "cookie_hash": cookieHash, "new_cookie_hash": newCookieHash, "host": host,
                "handle": handle, "keyed": keyed, "amr": amr,
            ]
            arguments = proof + Optional(request).arguments + ["source": source]
        }
    }

    /// The outcome of such a try.
    public enum SteppedUp: Sendable {
        /// What the authorization request gets.
        case answered(PageOutcome)
        /// Another account has proven it; told only to who gave the right code.
        case inUse
        case tooMany
        case refused
    }

    /// Counts the try, compares, consumes, adds the address and answers the request, in one statement.
    public func prove(_ stepUp: StepUp) async throws(StoreError) -> SteppedUp {
        let outcome = try await database.one(Self.calls.prove, stepUp.arguments)
        switch outcome {
        case "in_use": return .inUse
        case "too_many": return .tooMany
        default: return PageOutcome(rawValue: outcome).map(SteppedUp.answered) ?? .refused
        }
    }
}
