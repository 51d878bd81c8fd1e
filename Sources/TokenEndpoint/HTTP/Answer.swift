import Grants
public import HTTPTypes
import HummingbirdCore
import NIOCore

/// An answer before it becomes a response: status, headers and the whole body.
public struct Answer: Sendable, Equatable {
    /// HTTP status.
    public var status: HTTPResponse.Status
    /// Headers beside the ones every answer carries.
    public var headers: HTTPFields
    /// The body's bytes.
    public var body: [UInt8]

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

    /// The realm's flag is off (contract §4.2, §4.3).
    static var nativeGrantsDisabled: Answer {
        .problem(.badRequest, title: "NativeGrants.Disabled", detail: "Native grants are disabled for this realm.")
    }

    /// A JSON object with one `Message` member, as the enrolment endpoints answer.
    static func message(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("Message", text)
        return Answer(status, json: object.finish())
    }

    /// Ours to fix: the caller should try again (contract §4.1 rule 8).
    public static var unavailable: Answer {
        var answer = Answer.error(.serviceUnavailable, "temporarily_unavailable")
        answer.headers[.retryAfter] = "1"
        return answer
    }

    /// The response on the wire; `no-store` unless the answer says how it may be cached.
    func response(to method: HTTPRequest.Method) -> Response {
        var headers = headers
        if headers[.cacheControl] == nil {
            headers[.cacheControl] = "no-store"
            headers[.pragma] = "no-cache"
        }
        headers[.xContentTypeOptions] = "nosniff"
        let content = method == .head ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: body))
        return Response(status: status, headers: headers, body: content)
    }
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    static let pragma = HTTPField.Name("Pragma")!
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let xContentTypeOptions = HTTPField.Name("X-Content-Type-Options")!
    static let host = HTTPField.Name("Host")!
    static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
    static let xForwardedHost = HTTPField.Name("X-Forwarded-Host")!
}
