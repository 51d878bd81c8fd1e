import Grants
import HTTPTypes
import Persistence

/// Authenticates the caller of a protected endpoint (RFC 6750): the one place where a bearer token becomes a user.
///
/// A token is accepted only where it was made for (docs/decisions/0028). An access token with a resource in its `aud`
/// was made for an API, and that API must not be able to manage the user's account with it. So ``authenticate(_:)``,
/// which every account endpoint calls, refuses it.
struct BearerAuthentication: Sendable {
    private let verifier: AccessTokenVerifier
    /// Seconds since the epoch.
    private let clock: @Sendable () -> Double

    /// Changes of factors and the end of the account need a sign-in this recent, in seconds (ASVS 7.5.1, RFC 9470).
    static let stepUpAge = 600

    init(verifier: AccessTokenVerifier, clock: @escaping @Sendable () -> Double) {
        self.verifier = verifier
        self.clock = clock
    }

    /// The user, if the token may manage the account: its audience must be its client alone.
    /// - Throws: the 401 to send, 403 for a service account's token, or 503 when the database is not available.
    func authenticate(_ exchange: Exchange) async throws(Refusal) -> VerifiedAccessToken {
        let verified = try await holder(of: exchange)
        guard verified.isForClientAlone else { throw Refusal(.bearerChallenge(invalidToken: true)) }
        return verified
    }

    /// The user whose claims are asked for (OpenID Connect Core §5.3): by any token with the scope `openid`, which the
    /// app asked for and an API may have been given. It opens no more than the claims of its scopes.
    /// - Throws: as ``authenticate(_:)``, and 403 without the scope.
    func authenticateForClaims(_ exchange: Exchange) async throws(Refusal) -> VerifiedAccessToken {
        let verified = try await holder(of: exchange)
        guard verified.token.scope.contains("openid") else { throw Refusal(.insufficientScope("openid")) }
        return verified
    }

    private func holder(of exchange: Exchange) async throws(Refusal) -> VerifiedAccessToken {
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
            // Valid token of a service account: it has no user.
            case .service: throw Refusal(.insufficientScope())
            case nil: throw Refusal(.bearerChallenge(invalidToken: true))
            }
        }
    }
}
