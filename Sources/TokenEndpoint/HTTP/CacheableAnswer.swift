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
}

extension Answer {
    /// Cacheable by nature; a matching `If-None-Match` is answered 304 (RFC 9110 §13.1.2). Hosts must not be mixed up.
    static func cacheable(_ document: Document, seconds: Int, _ exchange: Exchange) -> Answer {
        let headers: HTTPFields = [
            .cacheControl: "public, max-age=\(seconds)", .eTag: document.tag, .vary: exchange.vary,
        ]
        if exchange.request.headers[.ifNoneMatch] == document.tag { return Answer(.notModified, headers: headers) }
        return Answer(json: document.json, headers: headers)
    }

    /// As above, for a body that is made anew each time.
    static func cacheable(_ json: [UInt8], seconds: Int, _ exchange: Exchange) -> Answer {
        cacheable(Document(json), seconds: seconds, exchange)
    }
}
