import Encoding
import Grants
import HTTPTypes
import Persistence

/// `GET` and `POST /connect/userinfo` (OpenID Connect Core §5.3).
struct UserInfoRoutes: Sendable {
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/connect/userinfo", [.get: { try await userInfo($0) }, .post: { try await userInfo($0) }]).logged(
                as: "userinfo")
        ]
    }

    private func userInfo(_ exchange: Exchange) async throws -> Answer {
        Answer(json: Self.claims(try await bearer.authenticateForClaims(exchange)))
    }

    /// Only what the scopes ask for (OpenID Connect Core §5.4).
    private static func claims(_ verified: VerifiedAccessToken) -> [UInt8] {
        let session = verified.session
        var claims = JSONWriter()
        claims.member("sub", session.user.description)
        claims.testIdentity(session.user)
        if verified.token.scope.contains("email") {
            claims.member("email", session.email)
            claims.member("email_verified", session.emailVerified)
        }
        if verified.token.scope.contains("profile") {
            let names = [session.firstName, session.lastName].compactMap { $0 }
            claims.member("name", names.isEmpty ? nil : names.joined(separator: " "))
            claims.member("given_name", session.firstName)
            claims.member("family_name", session.lastName)
        }
        return claims.finish()
    }
}
