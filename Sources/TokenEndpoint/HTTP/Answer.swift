import Crypto
import Encoding
import struct Foundation.Data
import Grants
public import HTTPTypes
import NIOCore

/// An answer before it becomes a response: status, headers and the whole body.
public struct Answer: Sendable, Equatable {
    /// HTTP status.
    public var status: HTTPResponse.Status
    /// Headers beside the ones every answer carries.
    public var headers: HTTPFields
    /// The body's bytes.
    public var body: [UInt8]
    /// Whether it counts against its source like 401 and 403 (``RefusalLimit``).
    var isRefusal = false
    /// Why it refuses an access token; the header for it is among ``headers``.
    var challenge: TokenChallenge?

    /// An answer without a body.
    public init(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) {
        self.status = status
        self.headers = headers
        body = []
    }

    /// A JSON answer.
    public init(_ status: HTTPResponse.Status = .ok, json: [UInt8], headers: HTTPFields = [:]) {
        self.init(status, headers: headers)
        self.headers[.contentType] = "application/json; charset=utf-8"
        body = json
    }

    /// A problem (RFC 9457) with the code in `title`.
    public static func problem(_ status: HTTPResponse.Status, title: String, detail: String) -> Answer {
        var object = JSONWriter(reserving: 256)
        object.member("type", "about:blank")
        object.member("title", title)
        object.member("status", status.code)
        object.member("detail", detail)
        var answer = Answer(status, json: object.finish())
        answer.headers[.contentType] = "application/problem+json; charset=utf-8"
        return answer
    }

    /// A JSON object with one `error` member, as the native account endpoints answer.
    public static func error(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("error", text)
        return Answer(status, json: object.finish())
    }

    /// The answer when the realm has native grants switched off.
    static var nativeGrantsDisabled: Answer {
        .problem(.badRequest, title: "NativeGrants.Disabled", detail: "Native grants are disabled for this realm.")
    }

    /// The answer when the realm has trusted devices switched off.
    static var approvalsDisabled: Answer {
        .problem(.badRequest, title: "Approvals.Disabled", detail: "Approvals are disabled for this realm.")
    }

    /// The answer when the realm has proofs of phone numbers switched off.
    static var possessionDisabled: Answer {
        .problem(.badRequest, title: "Possession.Disabled", detail: "Possession is disabled for this realm.")
    }

    /// A JSON object with one `Message` member, as the enrolment endpoints answer.
    static func message(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("Message", text)
        return Answer(status, json: object.finish())
    }

    /// The server cannot answer now; the caller should try again.
    public static var unavailable: Answer {
        Answer.error(.serviceUnavailable, "temporarily_unavailable").retriable(after: 1)
    }

    /// With `Retry-After` (RFC 9110 §10.2.3), in seconds.
    package func retriable(after seconds: Int) -> Answer {
        var answer = self
        answer.headers[.retryAfter] = String(seconds)
        return answer
    }

    /// The answer on the wire (RFC 9112 §2.1, §4); `no-store` unless it says how it may be cached. Names and values of
    /// fields are legal by their types.
    /// - Parameter hasBody: false for the answer to HEAD, which says how long the body would be.
    func encoded(hasBody: Bool = true, isLast: Bool, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        var buffer = allocator.buffer(capacity: 1024 + (hasBody ? body.count : 0))
        buffer.writeString("HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n")
        var saysCaching = false
        for field in headers {
            if field.name == .cacheControl { saysCaching = true }
            buffer.writeString(field.name.rawName)
            buffer.writeStaticString(": ")
            buffer.writeString(field.value)
            buffer.writeStaticString("\r\n")
        }
        if !saysCaching { buffer.writeStaticString("Cache-Control: no-store\r\nPragma: no-cache\r\n") }
        buffer.writeStaticString("X-Content-Type-Options: nosniff\r\n")
        if status != .noContent, status != .notModified { buffer.writeString("Content-Length: \(body.count)\r\n") }
        buffer.writeStaticString("Date: ")
        buffer.writeString(HTTPDate.now)
        buffer.writeStaticString(isLast ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n")
        if hasBody { buffer.writeBytes(body) }
        return buffer
    }
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    fileprivate static let retryAfter = HTTPField.Name("Retry-After")!
    static let strictTransportSecurity = HTTPField.Name("Strict-Transport-Security")!
    static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
    static let xRobotsTag = HTTPField.Name("X-Robots-Tag")!
    static let origin = HTTPField.Name("Origin")!
    static let dpop = HTTPField.Name("DPoP")!
    static let dpopNonce = HTTPField.Name("DPoP-Nonce")!
    static let host = HTTPField.Name("Host")!
    static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
    static let traceparent = HTTPField.Name("traceparent")!
    static let posternForwardedFor = HTTPField.Name("Postern-Forwarded-For")!
    static let xForwardedHost = HTTPField.Name("X-Forwarded-Host")!
}

extension Answer {
    /// A page with its content security policy.
    public init(html: String, policy: [String]) {
        self.init(
            .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .contentSecurityPolicy: policy.joined(separator: "; "),
            ])
        body = Array(html.utf8)
    }

    /// The source expression of a style or script in a page's policy (CSP Level 3 §2.3.1).
    public static func sourceHash(_ text: String) -> String {
        "sha256-" + Data(SHA256.hash(data: Array(text.utf8))).base64EncodedString()
    }
}
