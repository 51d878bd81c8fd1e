import Encoding
package import Grants
import HTTPTypes
import Logging

/// How the errors of a route read on the wire.
enum ErrorForm: Sendable {
    /// RFC 6749 §5.2: `error` and `error_description`.
    case oauth
    /// The native account endpoints: a client that may not ask is a bad request with `error` alone.
    case native
}

/// An error that says itself what to answer.
package protocol AnswerableError: Error {
    /// What to answer.
    var answer: Answer { get }
    /// For the log; `nil` when there is nothing to note.
    var reason: String? { get }
}

/// Ends a handler early with an answer.
package struct Refusal: AnswerableError {
    package let answer: Answer
    /// The error that led to it, for the log.
    package let cause: TokenError?

    package init(_ answer: Answer, because cause: TokenError? = nil) {
        self.answer = answer
        self.cause = cause
    }

    package var reason: String? { cause?.reason }
}

/// An error with what its line in the log should name beside it.
struct LabelledError: Error {
    let error: TokenError
    var labels: Logger.Metadata = [:]
    /// `nil`: as the code says.
    var level: Logger.Level?
}

/// An error of a handler, as it is answered and logged. Here errors of OAuth and of the database get the format of
/// RFC 6749. Routes with another error format (pages, possession, Prove, Cotter) make refusals of their own of them
/// before they come here.
struct ErrorAnswer {
    let answer: Answer
    /// Whether the answer depends on an account, so that its time must not tell more.
    let isAboutAccount: Bool
    /// `nil` when there is nothing to note.
    let line: (level: Logger.Level, metadata: Logger.Metadata)?

    /// - Parameter basicUsed: whether the client used the `Authorization` header.
    init(_ error: any Error, form: ErrorForm, basicUsed: Bool) {
        if let error = error as? any AnswerableError {
            answer = error.answer
            isAboutAccount = false
            let outcome = (error as? Refusal)?.cause?.code
            line = error.reason.map { reason in
                (Self.level(outcome), ["outcome": "\(outcome?.rawValue ?? "refused")", "reason": "\(reason)"])
            }
            return
        }
        let labelled = error as? LabelledError
        let error = labelled?.error ?? TokenError(error)
        answer = form == .native ? .native(error) : .oauth(error, basicUsed: basicUsed)
        isAboutAccount = error.isAboutAccount
        let metadata: Logger.Metadata = ["outcome": "\(error.code.rawValue)", "reason": "\(error.reason)"]
        line = (labelled?.level ?? Self.level(error.code), metadata.merging(labelled?.labels ?? [:]) { $1 })
    }

    /// An app that polls is told to wait every few seconds: nothing to note.
    private static func level(_ code: TokenError.Code?) -> Logger.Level {
        switch code {
        case .temporarilyUnavailable: .warning
        case .authorizationPending: .debug
        default: .info
        }
    }
}

extension TokenError {
    /// Whether it depends on what an account has.
    fileprivate var isAboutAccount: Bool {
        switch code {
        case .invalidGrant, .authorizationPending, .slowDown, .accessDenied, .expiredToken: true
        case .invalidRequest, .invalidClient, .unauthorizedClient, .unsupportedGrantType, .invalidScope, .invalidTarget,
            .unmetAuthenticationRequirements, .invalidDPoPProof, .useDPoPNonce, .temporarilyUnavailable, .rateLimited,
            .invalidBindingMessage:
            false
        }
    }
}

extension Answer {
    /// A token error on the wire (RFC 6749 §5.2).
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
            .unmetAuthenticationRequirements, .authorizationPending, .slowDown, .accessDenied, .expiredToken,
            .invalidBindingMessage:
            return Answer(.badRequest, json: body(error))
        case .invalidDPoPProof, .useDPoPNonce:
            var answer = Answer(.badRequest, json: body(error))
            answer.headers[.dpopNonce] = error.nonce
            answer.isRefusal = true
            return answer
        }
    }

    /// The same where a client that may not ask has `error` alone.
    fileprivate static func native(_ error: TokenError) -> Answer {
        switch error.code {
        case .invalidClient: .error(.badRequest, "invalid_client")
        case .unauthorizedClient: .error(.badRequest, "unauthorized_client")
        default: .oauth(error)
        }
    }

    private static func limited(_ limit: TokenError.ExceededLimit) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("error", "rate_limited")
        object.member("policy", limit.policy.rawValue)
        object.member("dimension", limit.dimension.rawValue)
        object.member("retryAfterSeconds", limit.retryAfterSeconds)
        return Answer(.tooManyRequests, json: object.finish()).retriable(after: limit.retryAfterSeconds)
    }

    private static func body(_ error: TokenError) -> [UInt8] {
        var object = JSONWriter(reserving: 160)
        object.member("error", error.code.rawValue)
        object.member("error_description", error.description)
        return object.finish()
    }

    /// A protected resource's 401 for what is bound to a key, or should be (RFC 9449 §7.1). `error` stands first in one
    /// field: clients read no other place.
    static func dpopChallenge(_ error: String, _ description: String, nonce: String? = nil) -> Answer {
        var object = JSONWriter(reserving: 160)
        object.member("error", error)
        object.member("error_description", description)
        var answer = Answer(.unauthorized, json: object.finish())
        answer.headers[.wwwAuthenticate] =
            "DPoP error=\"\(error)\", error_description=\"\(description)\", algs=\"\(ClientKey.algorithms)\""
        answer.headers[.dpopNonce] = nonce
        return answer
    }

    /// The same for a refused proof.
    static func dpopChallenge(_ error: TokenError) -> Answer {
        dpopChallenge(error.code.rawValue, error.description, nonce: error.nonce)
    }

    /// A token that is dead, foreign, or bound to another key.
    static var dpopTokenChallenge: Answer { dpopChallenge("invalid_token", "The access token is invalid.") }
}
