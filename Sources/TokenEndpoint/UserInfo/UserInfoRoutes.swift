import Encoding
import Grants
import HTTPTypes
import Persistence

/// `GET` and `POST /connect/userinfo` (OpenID Connect Core §5.3).
struct UserInfoRoutes: Sendable {
    let bearer: BearerAuthentication
    let identifiers: Identifiers

    var routes: [Route] {
        [
            Route(
                "/connect/userinfo",
                [
                    .get: .claims(bearer) { try await userInfo($0, $1) },
                    .post: .claims(bearer) { try await userInfo($0, $1) },
                ]
            ).cors(.clients).logged(as: "userinfo")
        ]
    }

    private func userInfo(_ exchange: Exchange, _ caller: ClaimsCaller) async throws -> Answer {
        let verified: VerifiedAccessToken
        switch caller.person {
        case .user(let user): verified = user
        case .address(let proven):
            var claims = JSONWriter()
            claims.claims(of: proven.address)
            return Answer(json: claims.finish())
        }
        var phone: String?
        if verified.token.scope.contains("phone") {
            phone = try await identifiers.list(realm: exchange.realm, user: verified.session.user)
                .first { $0.kind == "phone" && $0.isPrimary }?.value
        }
        return Answer(json: Self.claims(verified, phone: phone))
    }

    /// Only what the scopes ask for (OpenID Connect Core §5.4).
    private static func claims(_ verified: VerifiedAccessToken, phone: String?) -> [UInt8] {
        let session = verified.session
        var claims = JSONWriter()
        claims.member("sub", session.user.description)
        claims.testIdentity(session.user)
        if verified.token.scope.contains("email"), let email = session.email {
            claims.member("email", email)
            claims.member("email_verified", session.emailVerified)
        }
        if let phone {
            claims.member("phone_number", phone)
            claims.member("phone_number_verified", true)
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
