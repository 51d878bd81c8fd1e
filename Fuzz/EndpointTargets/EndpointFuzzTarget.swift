import Foundation
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Telemetry
import TokenEndpoint

/// What of HTTP requests can be fuzzed: each target takes any bytes, must neither trap nor take long, and checks what
/// must hold afterwards.
///
/// The fuzzer and the tests that replay its corpora run the same functions.
public enum EndpointFuzzTarget: String, CaseIterable, Sendable {
    /// The body of a JSON request.
    case jsonBody
    /// `Host`.
    case hostName
    /// Lines of header fields that proxies set.
    case forwarded
    /// An address of a network, and a range of them behind a blank.
    case network
    /// Bytes on a connection: the decoder, in the slices of the gate before it, and what is made of its requests.
    case httpParts
    /// `traceparent`.
    case traceParent

    /// Runs the target. - Returns: what does not hold, or nil.
    public func run(_ bytes: [UInt8]) -> String? {
        switch self {
        case .jsonBody: Self.jsonBody(bytes)
        case .hostName: Self.hostName(bytes)
        case .forwarded: Self.forwarded(bytes)
        case .network: Self.network(bytes)
        case .httpParts: Self.httpParts(bytes)
        case .traceParent: Self.traceParent(bytes)
        }
    }

    private static func jsonBody(_ bytes: [UInt8]) -> String? {
        guard let members = try? JSONMembers(parsing: bytes) else { return nil }
        guard let object = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
            // Foundation refuses numbers that a Double cannot hold; RFC 8259 §6 leaves them to the reader.
            let isHuge = String(decoding: bytes, as: UTF8.self).contains(/[0-9][eE][+\-]?[0-9]{3}|[0-9]{300}/)
            return isHuge ? nil : "accepted what Foundation refuses"
        }
        for (name, value) in object {
            guard members.has(name) == !(value is NSNull) else { return "a member is lost" }
            guard members.text(name) == value as? String else { return "another text than Foundation's" }
        }
        return nil
    }

    private static func hostName(_ bytes: [UInt8]) -> String? {
        guard let host = HostName.canonical(String(decoding: bytes, as: UTF8.self)) else { return nil }
        let isPlain = host.utf8.allSatisfy {
            (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x2E
        }
        return isPlain && !host.isEmpty && (HostName.canonical(host) == host || host.hasSuffix("."))
            ? nil : "a host that is not canonical"
    }

    private static let proxy = IPAddress("10.0.0.1")
    private static let trusted = [CIDR("10.0.0.0/8"), CIDR("fd00::/8")].compactMap(\.self)

    private static func forwarded(_ bytes: [UInt8]) -> String? {
        // By bytes: CR and LF are one Character, and neither is in a field that the decoder lets through.
        let lines = bytes.split(omittingEmptySubsequences: false) { $0 == 0x0A || $0 == 0x0D }
            .map { String(decoding: $0, as: UTF8.self) }
        var headers = HTTPHeaders([("Host", "r.example")])
        for (index, line) in lines.prefix(8).enumerated() {
            headers.add(name: index % 2 == 0 ? "X-Forwarded-For" : "X-Forwarded-Host", value: line)
        }
        let request = Request(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers))
        let stranger = Peer(
            request, address: IPAddress("203.0.113.9"), trusted: trusted, trustsForwardedHost: true)
        guard stranger.source == "203.0.113.9", stranger.forwardedHost == nil, stranger.isUntrustedForwarder else {
            return "a stranger was believed"
        }
        let peer = Peer(request, address: proxy, trusted: trusted, trustsForwardedHost: true)
        let address = peer.source.hasSuffix("/64") ? String(peer.source.dropLast(3)) : peer.source
        guard let read = IPAddress(address), read.limitKey == peer.source else { return "a source that is no address" }
        // What a proxy did not write cannot make the proxy's client another proxy's.
        return peer.forwardedHost?.contains("\n") == true ? "a host of two lines" : nil
    }

    private static func network(_ bytes: [UInt8]) -> String? {
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: " ", maxSplits: 1)
        guard let first = parts.first, let address = IPAddress(first) else { return nil }
        guard [4, 16].contains(address.bytes.count), IPAddress(address.description) == address else {
            return "an address has another text"
        }
        guard CIDR(address.description)?.contains(address) == true else { return "an address is not in itself" }
        if address.bytes.count == 16 {
            guard let key = CIDR(address.limitKey), key.contains(address) else { return "not in its own /64" }
        }
        guard parts.count == 2, let range = CIDR(parts[1]) else { return nil }
        let everything = CIDR(address.bytes.count == 4 ? "0.0.0.0/0" : "::/0")
        return range.contains(address) && everything?.contains(address) != true ? "in a part and not in the whole" : nil
    }

    private static func httpParts(_ bytes: [UInt8]) -> String? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(InputGate())
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: .requests)
        } catch {
            return "no pipeline"
        }
        // In two pieces, as a network may deliver them.
        let cut = bytes.count / 2
        for piece in [bytes[..<cut], bytes[cut...]] {
            guard (try? channel.writeInbound(ByteBuffer(bytes: piece))) != nil else { break }
        }
        var received = 0
        while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
            switch part {
            case .body(let body): received += body.readableBytes
            case .end: break
            case .head(let head):
                let request = Request(head)
                guard let path = request.path else { continue }
                guard path.hasPrefix("/"), !path.contains("?"), request.authority != nil else { return "not a path" }
                guard head.uri.contains("?") || request.query.isEmpty else { return "a query without a mark" }
                guard !path.utf8.contains(0x0A), !path.utf8.contains(0x0D), !path.utf8.contains(0x20) else {
                    return "a path of two words"
                }
            }
        }
        return received <= bytes.count ? nil : "more body than bytes"
    }

    private static func traceParent(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let context = TraceContext(traceparent: text) else { return nil }
        let same = context.traceparent.dropFirst(2).dropLast(2) == text.dropFirst(2).prefix(51)
        return same && context.trace.utf8.count == 32 && TraceContext(traceparent: context.traceparent) == context
            ? nil : "other ids than were given"
    }
}
