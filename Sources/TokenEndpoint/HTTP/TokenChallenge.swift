import Grants
import HTTPTypes

/// Why a protected resource refuses an access token (RFC 6750 §3.1), for `WWW-Authenticate` in the scheme that the
/// token came by.
enum TokenChallenge: Sendable, Equatable {
    /// The token is dead or foreign.
    case invalidToken
    /// The token may not do this. - Parameter scope: what it would need, if a scope would do.
    case insufficientScope(String?)
    /// The sign-in is too long ago for this (RFC 9470 §3).
    /// - Parameters:
    ///   - maximumAge: seconds.
    ///   - context: what the new sign-in must prove; `nil`: any factor will do.
    case stepUp(maximumAge: Int, context: AuthenticationContext?)

    /// The schemes of access tokens.
    enum Scheme: String {
        case bearer = "Bearer"
        case dpop = "DPoP"
    }

    /// `WWW-Authenticate`. `error` stands first: clients read no other place.
    func header(_ scheme: Scheme) -> String { "\(scheme.rawValue) \(parameters)" }

    private var parameters: String {
        switch self {
        case .invalidToken: "error=\"invalid_token\", error_description=\"The access token is invalid.\""
        case .insufficientScope(let scope): "error=\"insufficient_scope\"" + (scope.map { ", scope=\"\($0)\"" } ?? "")
        case .stepUp(let maximumAge, let context):
            """
            error=\"insufficient_user_authentication\", error_description=\"A more recent sign-in is required.\", \
            max_age=\"\(maximumAge)\"\(context.map { ", acr_values=\"\($0.rawValue)\"" } ?? "")
            """
        }
    }
}

extension Answer {
    /// The answer with a challenge, in the scheme `Bearer` until the request says another (``challenging(_:)``).
    private func with(_ challenge: TokenChallenge) -> Answer {
        var answer = self
        answer.challenge = challenge
        answer.headers[.wwwAuthenticate] = challenge.header(.bearer)
        return answer
    }

    /// A token that may not do this (RFC 6750 §3.1).
    static func insufficientScope(_ scope: String? = nil) -> Answer {
        .error(.forbidden, "insufficient_scope").with(.insufficientScope(scope))
    }

    /// The sign-in is too long ago for this: see ``TokenChallenge/stepUp(maximumAge:context:)``.
    static func stepUp(maximumAge: Int, context: AuthenticationContext? = nil) -> Answer {
        .error(.unauthorized, "insufficient_user_authentication")
            .with(.stepUp(maximumAge: maximumAge, context: context))
    }

    /// A protected resource's 401 (RFC 6750 §3): no error code when no credentials came.
    static func bearerChallenge(invalidToken: Bool) -> Answer {
        var answer = Answer(.unauthorized)
        if invalidToken { return answer.with(.invalidToken) }
        answer.headers[.wwwAuthenticate] = "Bearer"
        answer.headers.append(HTTPField(name: .wwwAuthenticate, value: "DPoP algs=\"\(ClientKey.algorithms)\""))
        return answer
    }

    /// The challenge in the scheme that the token came by.
    func challenging(_ request: Request) -> Answer {
        guard let challenge, request.headers[.authorization]?.prefix(while: { $0 != " " }).lowercased() == "dpop"
        else { return self }
        switch challenge {
        case .invalidToken: return .dpopTokenChallenge
        case .insufficientScope, .stepUp:
            var answer = self
            answer.headers[.wwwAuthenticate] = challenge.header(.dpop)
            return answer
        }
    }
}
