import HTTPTypes
public import Hummingbird
import HummingbirdCore
import NIOCore

/// The operator's listener: `/healthz`, `/readyz`, `/metrics`. Never on the public address.
public struct OperationsResponder: HTTPResponder {
    /// Hummingbird's context.
    public typealias Context = BasicRequestContext

    private let metrics: Metrics
    private let isReady: @Sendable () async -> String?

    /// - Parameter isReady: `nil` when requests can be served, else why not.
    public init(metrics: Metrics, isReady: @escaping @Sendable () async -> String?) {
        self.metrics = metrics
        self.isReady = isReady
    }

    /// Never throws.
    public func respond(to request: Hummingbird.Request, context: Context) async throws -> Response {
        let answer = await answer(request)
        var headers = answer.headers
        headers[.cacheControl] = "no-store"
        return Response(
            status: answer.status, headers: headers,
            body: request.method == .head ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
    }

    private func answer(_ request: Hummingbird.Request) async -> Answer {
        guard request.method == .get || request.method == .head else {
            return Answer(.methodNotAllowed, headers: [.allow: "GET, HEAD"])
        }
        switch request.uri.path {
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
