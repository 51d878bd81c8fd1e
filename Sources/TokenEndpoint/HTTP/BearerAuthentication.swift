import Grants
import HTTPTypes
import Persistence

/// Who calls a protected endpoint (RFC 6750): the one place where a bearer token becomes a user.
struct BearerAuthentication: Sendable {
    let verifier: AccessTokenVerifier
    /// Seconds since the epoch.
    let clock: @Sendable () -> Double

    /// - Throws: the 401 to give, or 503 when the database cannot be asked.
    func authenticate(_ exchange: Exchange) async throws(Refusal) -> VerifiedAccessToken {
        switch exchange.bearer() {
        case .none: throw Refusal(.bearerChallenge(invalidToken: false))
        case .malformed: throw Refusal(.bearerChallenge(invalidToken: true))
        case .token(let text):
            let verified: VerifiedAccessToken?
            do {
                verified = try await verifier.verify(text, realm: exchange.realm, now: clock())
            } catch {
                throw Refusal(.unavailable)
            }
            guard let verified else { throw Refusal(.bearerChallenge(invalidToken: true)) }
            return verified
        }
    }
}
