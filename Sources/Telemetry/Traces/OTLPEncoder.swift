import Encoding
import Tracing

/// `ExportTraceServiceRequest` in the JSON encoding of OTLP 1.x: ids in hexadecimal, 64-bit numbers as strings.
struct OTLPEncoder: Sendable {
    private let resource: [UInt8]
    private let scope: [UInt8]

    init(version: String) {
        var resource = JSONWriter()
        resource.member(
            "attributes",
            json: Self.array(
                [
                    Self.attribute("service.name", .string("postern")),
                    Self.attribute("service.version", .string(version)),
                    Self.attribute("service.instance.id", .string(Hex.encode(TraceContext.randomBytes(8)))),
                ].compactMap(\.self)))
        self.resource = resource.finish()
        var scope = JSONWriter()
        scope.member("name", "postern")
        scope.member("version", version)
        self.scope = scope.finish()
    }

    func encode(_ spans: [FinishedSpan]) -> [UInt8] {
        var scoped = JSONWriter()
        scoped.member("scope", json: scope)
        scoped.member("spans", json: Self.array(spans.map(Self.span)))
        var resourced = JSONWriter()
        resourced.member("resource", json: resource)
        resourced.member("scopeSpans", json: Self.array([scoped.finish()]))
        var request = JSONWriter()
        request.member("resourceSpans", json: Self.array([resourced.finish()]))
        return request.finish()
    }

    private static func span(_ span: FinishedSpan) -> [UInt8] {
        var json = JSONWriter()
        json.member("traceId", Hex.encode(span.trace.traceID))
        json.member("spanId", Hex.encode(span.trace.spanID))
        json.member("parentSpanId", span.parent.map(Hex.encode))
        json.member("name", span.name)
        json.member("kind", kind(span.kind))
        json.member("startTimeUnixNano", String(span.start))
        json.member("endTimeUnixNano", String(span.end))
        var attributes: [[UInt8]] = []
        span.attributes.forEach { name, value in
            if let attribute = attribute(name, value) { attributes.append(attribute) }
        }
        json.member("attributes", json: array(attributes))
        if let status = span.status {
            var object = JSONWriter()
            object.member("code", status.code == .error ? 2 : 1)
            json.member("status", json: object.finish())
        }
        return json.finish()
    }

    private static func kind(_ kind: SpanKind) -> Int {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }

    /// `nil` for kinds of values that this product does not use.
    private static func attribute(_ name: String, _ value: SpanAttribute) -> [UInt8]? {
        var object = JSONWriter()
        switch value {
        case .string(let text): object.member("stringValue", text)
        case .int32(let number): object.member("intValue", String(number))
        case .int64(let number): object.member("intValue", String(number))
        case .bool(let flag): object.member("boolValue", flag)
        default: return nil
        }
        var attribute = JSONWriter()
        attribute.member("key", name)
        attribute.member("value", json: object.finish())
        return attribute.finish()
    }

    private static func array(_ values: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "[")] + values.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }
}
