import Encoding
import Crypto
import Grants
import HTTPTypes

/// A body that changes with the configuration only, or never while the process runs, and its entity tag.
package struct Document: Sendable {
    let content: [UInt8]
    let mediaType: String
    let tag: String

    package init(_ content: [UInt8], mediaType: String = "application/json; charset=utf-8") {
        self.content = content
        self.mediaType = mediaType
        tag = "\"\(Base64.urlEncode(Array(SHA256.hash(data: content).prefix(12))))\""
    }

    /// Whether `If-None-Match` names this document: as a list of tags, weak or strong, or `*` (RFC 9110 §13.1.2). Our
    /// tags hold no comma, so that a tag of others which holds one matches nothing.
    func matches(_ fields: [String]) -> Bool {
        fields.contains { field in
            field.split(separator: ",").map(\.trimmingSpaces).contains { named in
                named == "*" || (named.hasPrefix("W/") ? named.dropFirst(2) : named) == tag
            }
        }
    }
}

extension Answer {
    /// Cacheable by nature; a matching `If-None-Match` is answered 304 (RFC 9110 §13.1.2). Hosts must not be mixed up.
    package static func cacheable(_ document: Document, seconds: Int, _ exchange: Exchange) -> Answer {
        let headers: HTTPFields = [
            .cacheControl: "public, max-age=\(seconds)", .eTag: document.tag, .vary: exchange.vary,
        ]
        if document.matches(exchange.request.headers[values: .ifNoneMatch]) {
            return Answer(.notModified, headers: headers)
        }
        var answer = Answer(.ok, headers: headers)
        answer.headers[.contentType] = document.mediaType
        answer.body = document.content
        return answer
    }

    /// As above, for a body that is made anew each time.
    static func cacheable(_ json: [UInt8], seconds: Int, _ exchange: Exchange) -> Answer {
        cacheable(Document(json), seconds: seconds, exchange)
    }
}
