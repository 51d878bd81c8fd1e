import Encoding
import Crypto
import Grants
import HTTPTypes

/// A body that changes with the configuration only, and its entity tag.
struct Document: Sendable {
    let json: [UInt8]
    let tag: String

    init(_ json: [UInt8]) {
        self.json = json
        tag = "\"\(Base64.urlEncode(Array(SHA256.hash(data: json).prefix(12))))\""
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
    static func cacheable(_ document: Document, seconds: Int, _ exchange: Exchange) -> Answer {
        let headers: HTTPFields = [
            .cacheControl: "public, max-age=\(seconds)", .eTag: document.tag, .vary: exchange.vary,
        ]
        if document.matches(exchange.request.headers[values: .ifNoneMatch]) {
            return Answer(.notModified, headers: headers)
        }
        return Answer(json: document.json, headers: headers)
    }

    /// As above, for a body that is made anew each time.
    static func cacheable(_ json: [UInt8], seconds: Int, _ exchange: Exchange) -> Answer {
        cacheable(Document(json), seconds: seconds, exchange)
    }
}
