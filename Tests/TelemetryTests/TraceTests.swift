import Foundation
import Logging
import ServiceLifecycle
import Synchronization
@testable import Telemetry
import Testing
import Tracing

@Suite("Traces")
struct TraceTests {
    private let registry = PrometheusRegistry([])
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func spans(_ outcome: String) -> Int {
        let prefix = "postern_trace_spans_total{outcome=\"\(outcome)\"} "
        let line = registry.text().split(separator: "\n").first { $0.hasPrefix(prefix) }
        return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? -1
    }

    @Test func `a traceparent is read and written`() {
        let context = TraceContext(traceparent: Self.parent)
        #expect(context?.traceparent == Self.parent)
        #expect(context?.isSampled == true)
        #expect(TraceContext(traceparent: Self.parent.dropLast() + "0")?.isSampled == false)
        #expect(TraceContext(traceparent: Self.parent.dropLast(2) + "ff")?.isSampled == true)
        #expect(TraceContext(traceparent: "cc" + Self.parent.dropFirst(2) + "-later")?.isSampled == true)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-001",
        "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b7169203331-1",
    ])
    func `a malformed traceparent is nothing`(_ text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    @Test func `spans below a span are of its trace, whatever the ratio`() {
        let tracer = OTLPTracer(ratio: 0, metrics: registry)
        var context = ServiceContext.topLevel
        context.trace = TraceContext(traceparent: Self.parent)
        let request = tracer.startSpan("request", context: context, ofKind: .server)
        let call = tracer.startSpan("call", context: request.context, ofKind: .client)
        #expect(call.trace.trace == "0af7651916cd43dd8448eb211c80319c" && call.isRecording)
        #expect(call.trace.spanID != request.trace.spanID)
        call.end()
        request.end()
        request.end()
        #expect(
            tracer.buffer.take().map(\.parent) == [
                request.trace.spanID, TraceContext(traceparent: Self.parent)?.spanID,
            ])
        #expect(!call.isRecording)
    }

    @Test func `what is not sampled is not kept`() {
        let tracer = OTLPTracer(ratio: 0, metrics: registry)
        let span = tracer.startSpan("request", context: .topLevel)
        span.attributes["x"] = "y"
        #expect(!span.isRecording && span.attributes.isEmpty)
        tracer.startSpan("call", context: span.context).end()
        span.end()
        #expect(tracer.buffer.take().isEmpty)
    }

    @Test func `spans beyond the buffer are dropped and counted`() {
        let tracer = OTLPTracer(ratio: 1, metrics: registry)
        for _ in 0..<(SpanBuffer.capacity + 7) { tracer.startSpan("x", context: .topLevel).end() }
        #expect(spans("dropped") == 7)
    }

    @Test func `what the receiver does not take is counted, and the rest is exported at the end`() async throws {
        let tracer = OTLPTracer(ratio: 1, metrics: registry)
        for _ in 0..<(SpanBuffer.batch + 3) { tracer.startSpan("x", context: .topLevel).end() }
        let bodies = Mutex<[[UInt8]]>([])
        let (posts, posted) = AsyncStream<Void>.makeStream()
        let exporter = SpanExporter(tracer, version: "1") { body in
            let isFirst = bodies.withLock { bodies in
                bodies.append(body)
                return bodies.count == 1
            }
            posted.yield()
            return !isFirst
        }
        await withTaskGroup { tasks in
            let group = ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: [.init(service: exporter)], logger: .init(label: "test")))
            tasks.addTask { try? await group.run() }
            var arrived = posts.makeAsyncIterator()
            _ = await (arrived.next(), arrived.next())
            tracer.startSpan("last", context: .topLevel).end()
            await group.triggerGracefulShutdown()
            await tasks.waitForAll()
        }
        #expect(spans("failed") == SpanBuffer.batch)
        #expect(spans("exported") == 4)
        let names = try bodies.withLock { $0 }.flatMap { try Self.spans(in: $0) }.map { $0["name"] as? String }
        #expect(names.last == "last" && names.count == SpanBuffer.batch + 4)
    }

    @Test func `a span is written as OTLP has it`() throws {
        let tracer = OTLPTracer(ratio: 0, metrics: registry)
        var context = ServiceContext.topLevel
        context.trace = TraceContext(traceparent: Self.parent)
        let span = tracer.startSpan("POST \"/x\"", context: context, ofKind: .server)
        span.updateAttributes { attributes in
            attributes["http.response.status_code"] = 503
            attributes["http.route"] = "/x"
            attributes["flag"] = true
        }
        span.recordError(CancellationError())
        span.end()
        let written = try #require(try Self.spans(in: OTLPEncoder(version: "1").encode(tracer.buffer.take())).first)
        #expect(written["traceId"] as? String == "0af7651916cd43dd8448eb211c80319c")
        #expect(written["parentSpanId"] as? String == "b7ad6b7169203331")
        #expect((written["spanId"] as? String)?.count == 16)
        #expect(written["name"] as? String == "POST \"/x\"" && written["kind"] as? Int == 2)
        #expect((written["status"] as? [String: Int]) == ["code": 2])
        let start = (written["startTimeUnixNano"] as? String).flatMap { UInt64($0) } ?? 0
        let end = (written["endTimeUnixNano"] as? String).flatMap { UInt64($0) } ?? 0
        #expect(start > 1_600_000_000_000_000_000 && end >= start)
        let attributes = (written["attributes"] as? [[String: Any]] ?? []).map { attribute in
            "\(attribute["key"] ?? "") \((attribute["value"] as? [String: Any])?.map { "\($0) \($1)" } ?? [])"
        }
        #expect(
            attributes.sorted() == [
                #"flag ["boolValue 1"]"#, #"http.response.status_code ["intValue 503"]"#,
                #"http.route ["stringValue /x"]"#,
            ] || attributes.sorted().first == #"flag ["boolValue true"]"#)
    }

    private static func spans(in body: [UInt8]) throws -> [[String: Any]] {
        let object = try JSONSerialization.jsonObject(with: Data(body)) as? [String: [[String: Any]]]
        return (object?["resourceSpans"] ?? []).flatMap { $0["scopeSpans"] as? [[String: Any]] ?? [] }
            .flatMap { $0["spans"] as? [[String: Any]] ?? [] }
    }
}
