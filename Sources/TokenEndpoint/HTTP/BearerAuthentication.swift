import Grants
import HTTPTypes
import Persistence

/// Who calls a protected endpoint (RFC 6750): the one place where a bearer token becomes a user.
struct BearerAuthentication: Sendable {
    let verifier: AccessTokenVerifier
    /// Seconds since the epoch.
    let clock: @Sendable () -> Double

    /// - Throws: the 401 to give, 403 for a client's own token, or 503 when the database cannot be asked.
    func authenticate(_ exchange: Exchange) async throws(Refusal) -> VerifiedAccessToken {
        switch exchange.bearer() {
        case .none: throw Refusal(.bearerChallenge(invalidToken: false))
        case .malformed: throw Refusal(.bearerChallenge(invalidToken: true))
        case .token(let text):
            let holder: AccessTokenVerifier.Holder?
            do {
                holder = try await verifier.identify(text, realm: exchange.realm, now: clock())
            } catch {
                throw Refusal(.unavailable)
            }
            switch holder {
            case .user(let verified): return verified
            // A good token that no user stands behind.
            case .service: throw Refusal(.insufficientScope())
            case nil: throw Refusal(.bearerChallenge(invalidToken: true))
            }
        }
    }
}
