import Encoding
import Grants
import HTTPTypes

/// A refusal on Prove's wire: `code` and `message`, and `error` as everywhere else.
struct ProveRefusal: AnswerableError, ServiceRefusal {
    let answer: Answer
    var reason: String? { nil }

    private init(_ answer: Answer) { self.answer = answer }

    /// `error`, `code` and `message`.
    private static func answer(
        _ status: HTTPResponse.Status, _ code: Int, _ error: String, _ message: String
    ) -> Answer {
        var object = JSONWriter(reserving: 160)
        object.member("code", code)
        object.member("message", message)
        object.member("error", error)
        return Answer(status, json: object.finish())
    }

    /// No usable access token.
    static var unauthorized: ProveRefusal {
        var answer = answer(.unauthorized, 8002, "invalid_token", "The access token is missing or invalid.")
        answer.headers[.wwwAuthenticate] = "Bearer"
        return ProveRefusal(answer)
    }

    /// The client may not do this.
    static var forbidden: ProveRefusal {
        ProveRefusal(answer(.forbidden, 8003, "insufficient_scope", "The client may not do this."))
    }

    /// It is not the moment for this call.
    static var step: ProveRefusal {
        ProveRefusal(answer(.forbidden, 8003, "step_not_allowed", "The step is not allowed now."))
    }

    static func absent(_ field: String) -> ProveRefusal { malformed("field '\(field)' is missing") }
    static func invalid(_ field: String) -> ProveRefusal { malformed("field '\(field)' is invalid") }

    static func malformed(_ message: String) -> ProveRefusal {
        ProveRefusal(answer(.badRequest, 8001, "invalid_request", message))
    }

    /// Unknown, another client's, or swept.
    static var correlation: ProveRefusal {
        ProveRefusal(answer(.badRequest, 8008, "invalid_correlation_id", "The correlationId is invalid."))
    }

    /// No key of this client.
    static var device: ProveRefusal {
        ProveRefusal(answer(.notFound, 8008, "not_found", "The device is unknown."))
    }

    /// The server cannot answer now.
    static var unavailable: ProveRefusal {
        ProveRefusal(adding: 8000, "The service is temporarily unavailable.", to: .unavailable)
    }

    /// Adds `code` and `message` to an answer of another error format.
    init(adding code: Int, _ message: String, to answer: Answer) {
        var object = JSONWriter(reserving: 96)
        object.member("code", code)
        object.member("message", message)
        var answer = answer
        let members = object.finish().dropLast()
        answer.body =
            members + (answer.body.count > 2 ? [UInt8(ascii: ",")] + answer.body.dropFirst() : Array("}".utf8))
        self.answer = answer
    }

    /// An error of the token endpoint.
    init(_ error: TokenError, basicUsed: Bool) {
        let code =
            switch error.code {
            case .invalidClient: 8002
            case .unauthorizedClient: 8003
            case .temporarilyUnavailable, .rateLimited: 8000
            default: 8001
            }
        self.init(adding: code, error.description, to: .oauth(error, basicUsed: basicUsed))
    }
}
