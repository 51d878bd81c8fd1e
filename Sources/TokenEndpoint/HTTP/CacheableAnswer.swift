import Crypto
import Grants
import HTTPTypes
import HummingbirdCore

extension Answer {
    /// Cacheable by nature; a matching `If-None-Match` is answered 304 (RFC 9110 §13.1.2). Hosts must not be mixed up.
    static func cacheable(_ json: [UInt8], seconds: Int, _ exchange: Exchange) -> Answer {
        let tag = "\"\(Base64.urlEncode(Array(SHA256.hash(data: json).prefix(12))))\""
        let headers: HTTPFields = [.cacheControl: "public, max-age=\(seconds)", .eTag: tag, .vary: "Host"]
        if exchange.request.headers[.ifNoneMatch] == tag { return Answer(.notModified, headers: headers) }
        return Answer(json: json, headers: headers)
    }
}
