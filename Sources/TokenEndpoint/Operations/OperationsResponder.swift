import HTTPTypes

/// The operator's listener: `/healthz`, `/readyz`, `/metrics`. Never on the public address.
struct OperationsResponder: Sendable {
    let metrics: Metrics
    /// `nil` when requests can be served, else why not.
    let isReady: @Sendable () async -> String?

    func respond(to request: Request) async -> Answer {
        guard request.method == .get || request.method == .head else {
            return Answer(.methodNotAllowed, headers: [.allow: "GET, HEAD"])
        }
        switch request.operationsPath {
        case "/healthz":
            return .text(.ok, "ok\n")
        case "/readyz":
            guard let reason = await isReady() else { return .text(.ok, "ready\n") }
            return .text(.serviceUnavailable, reason + "\n")
        case "/metrics":
            var answer = Answer.text(.ok, metrics.text())
            answer.headers[.contentType] = "text/plain; version=0.0.4; charset=utf-8"
            return answer
        default:
            return Answer(.notFound)
        }
    }
}

extension Answer {
    static func text(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var answer = Answer(status, headers: [.contentType: "text/plain; charset=utf-8"])
        answer.body = Array(text.utf8)
        return answer
    }
}
