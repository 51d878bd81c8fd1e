import Grants
import HTTPTypes

extension Answer {
    /// The one mapping from a token error to an answer (RFC 6749 §5.2).
    /// - Parameter basicUsed: whether the client used the `Authorization` header, which a 401 must then answer in kind.
    static func oauth(_ error: TokenError, basicUsed: Bool = false) -> Answer {
        if let limit = error.limit { return limited(limit) }
        switch error.code {
        case .temporarilyUnavailable, .rateLimited:
            return unavailable
        case .invalidClient:
            var answer = Answer(.unauthorized, json: body(error))
            if basicUsed { answer.headers[.wwwAuthenticate] = "Basic realm=\"postern\", charset=\"UTF-8\"" }
            return answer
        case .invalidRequest, .invalidGrant, .unauthorizedClient, .unsupportedGrantType, .invalidScope, .invalidTarget,
            .authorizationPending, .slowDown, .accessDenied:
            return Answer(.badRequest, json: body(error))
        }
    }

    private static func limited(_ limit: TokenError.ExceededLimit) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("error", "rate_limited")
        object.member("policy", limit.policy.rawValue)
        object.member("dimension", limit.dimension.rawValue)
        object.member("retryAfterSeconds", limit.retryAfterSeconds)
        var answer = Answer(.tooManyRequests, json: object.finish())
        answer.headers[.retryAfter] = String(limit.retryAfterSeconds)
        return answer
    }

    private static func body(_ error: TokenError) -> [UInt8] {
        var object = JSONWriter(reserving: 160)
        object.member("error", error.code.rawValue)
        object.member("error_description", error.description)
        return object.finish()
    }

    /// A token that may not do this (RFC 6750 §3.1).
    static func insufficientScope(_ scope: String? = nil) -> Answer {
        var answer = Answer.error(.forbidden, "insufficient_scope")
        let named = scope.map { ", scope=\"\($0)\"" } ?? ""
        answer.headers[.wwwAuthenticate] = "Bearer error=\"insufficient_scope\"\(named)"
        return answer
    }

    /// The sign-in is too long ago for this (RFC 9470 §3).
    /// - Parameter maximumAge: seconds.
    static func stepUp(maximumAge: Int) -> Answer {
        var answer = Answer.error(.unauthorized, "insufficient_user_authentication")
        answer.headers[.wwwAuthenticate] =
            "Bearer error=\"insufficient_user_authentication\", error_description=\"A more recent sign-in is required.\", "
            + "max_age=\"\(maximumAge)\""
        return answer
    }

    /// A protected resource's 401 (RFC 6750 §3): no error code when no credentials came.
    static func bearerChallenge(invalidToken: Bool) -> Answer {
        var answer = Answer(.unauthorized)
        answer.headers[.wwwAuthenticate] =
            invalidToken
            ? "Bearer error=\"invalid_token\", error_description=\"The access token is invalid.\"" : "Bearer"
        return answer
    }
}
