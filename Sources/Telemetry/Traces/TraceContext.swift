import Encoding
public import Tracing

/// The identity of a span, as W3C Trace Context hands it from process to process.
public struct TraceContext: Sendable, Equatable {
    /// 16 bytes, not all zero.
    public let traceID: [UInt8]
    /// 8 bytes, not all zero.
    let spanID: [UInt8]
    /// Whether the trace is recorded.
    public let isSampled: Bool

    /// A span of the trace.
    init(traceID: [UInt8], spanID: [UInt8], isSampled: Bool) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
    }

    /// Reads a `traceparent` (W3C Trace Context §3.2.2); `nil` when it is malformed.
    public init?(traceparent text: String) {
        let utf8 = Array(text.utf8)
        let dash = UInt8(ascii: "-")
        guard utf8.count >= 55, utf8[2] == dash, utf8[35] == dash, utf8[52] == dash,
            let version = Self.bytes(utf8[0..<2])?.first, version != 0xFF,
            // A later version may have more fields.
            utf8.count == 55 || (version > 0 && utf8[55] == dash),
            let traceID = Self.bytes(utf8[3..<35]), traceID.contains(where: { $0 != 0 }),
            let spanID = Self.bytes(utf8[36..<52]), spanID.contains(where: { $0 != 0 }),
            let flags = Self.bytes(utf8[53..<55])?.first
        else { return nil }
        self.init(traceID: traceID, spanID: spanID, isSampled: flags & 1 == 1)
    }

    /// The `traceparent` of version 00.
    public var traceparent: String {
        "00-\(Hex.encode(traceID))-\(Hex.encode(spanID))-\(isSampled ? "01" : "00")"
    }

    /// The trace id in hexadecimal, as logs and receivers show it.
    public var trace: String { Hex.encode(traceID) }

    /// The same place in the trace, with a decision of our own.
    public func sampled(_ isSampled: Bool) -> TraceContext {
        TraceContext(traceID: traceID, spanID: spanID, isSampled: isSampled)
    }

    /// Upper case is not allowed.
    private static func bytes(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
        guard digits.allSatisfy({ !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) }) else { return nil }
        return Hex.decode(String(decoding: digits, as: UTF8.self))
    }

    static func randomBytes(_ count: Int) -> [UInt8] {
        var bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max) }
        if bytes.allSatisfy({ $0 == 0 }) { bytes[0] = 1 }
        return bytes
    }
}

private enum TraceContextKey: ServiceContextKey {
    typealias Value = TraceContext
    static let nameOverride: String? = "trace-context"
}

extension ServiceContext {
    /// The span that is under way.
    public var trace: TraceContext? {
        get { self[TraceContextKey.self] }
        set { self[TraceContextKey.self] = newValue }
    }
}
