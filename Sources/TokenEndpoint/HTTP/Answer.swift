import Crypto
import Encoding
import struct Foundation.Data
import Grants
public import HTTPTypes
import NIOHTTP1

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

    /// A JSON object with one `Message` member, as the enrolment endpoints answer.
    static func message(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("Message", text)
        return Answer(status, json: object.finish())
    }

    /// The server cannot answer now; the caller should try again.
    public static var unavailable: Answer {
        var answer = Answer.error(.serviceUnavailable, "temporarily_unavailable")
        answer.headers[.retryAfter] = "1"
        return answer
    }

    /// The head on the wire; `no-store` unless the answer says how it may be cached.
    func head(isLast: Bool) -> HTTPResponseHead {
        var fields = HTTPHeaders()
        fields.reserveCapacity(headers.count + 6)
        for field in headers { fields.add(name: field.name.rawName, value: field.value) }
        if headers[.cacheControl] == nil {
            fields.add(name: "Cache-Control", value: "no-store")
            fields.add(name: "Pragma", value: "no-cache")
        }
        fields.add(name: "X-Content-Type-Options", value: "nosniff")
        if status != .noContent, status != .notModified {
            fields.add(name: "Content-Length", value: String(body.count))
        }
        fields.add(name: "Date", value: HTTPDate.now)
        if isLast { fields.add(name: "Connection", value: "close") }
        return HTTPResponseHead(
            version: .http1_1,
            status: HTTPResponseStatus(statusCode: status.code, reasonPhrase: status.reasonPhrase), headers: fields)
    }
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    static let retryAfter = HTTPField.Name("Retry-After")!
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
