import HTTPTypes
import Telemetry
import Tracing

/// A span per request. Of a caller's `traceparent` its ids are taken, so that a trace goes on; whether it is recorded
/// only a trusted proxy may say, since every recorded trace costs this process and the receiver.
struct RequestTracing: Sendable {
    let tracer: OTLPTracer

    /// Runs `body` within the request's span.
    func trace(
        _ request: Request, _ route: Route?, isProxy: Bool, _ body: (RecordedSpan) async -> Answer
    ) async -> Answer {
        var context = ServiceContext.topLevel
        let given = request.headers[values: .traceparent]
        if given.count == 1, let parent = given.first.flatMap(TraceContext.init(traceparent:)) {
            context.trace = isProxy ? parent : parent.sampled(tracer.samples())
        }
        let method = Self.known.contains(request.method) ? request.method.rawValue : "_OTHER"
        let span = tracer.startSpan(
            route.map { "\(method) \($0.path)" } ?? method, context: context, ofKind: .server)
        // What is not recorded has no context: the calls below it then cost nothing.
        let answer =
            span.isRecording
            ? await ServiceContext.withValue(span.context) { await body(span) } : await body(span)
        if span.isRecording {
            span.updateAttributes { attributes in
                attributes["http.request.method"] = method
                attributes["http.response.status_code"] = answer.status.code
                if let route { attributes["http.route"] = route.path }
            }
            if answer.status.code >= 500 { span.setStatus(SpanStatus(code: .error)) }
        }
        span.end()
        return answer
    }

    /// Another method is the caller's text.
    private static let known: [HTTPRequest.Method] = [.get, .head, .post, .put, .patch, .delete, .options]
}
