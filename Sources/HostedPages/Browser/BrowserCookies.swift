import Encoding
import Crypto
import Grants
import HTTPTypes
import Persistence
import TokenEndpoint

/// The two cookies of a browser (RFC 6265bis §4.1.3): one names the browser, so that forms of its tabs are its own, the
/// other its session. `__Host-` cookies cannot be set by another host or over http; development on http has none of it.
struct BrowserCookies: Sendable {
    /// SHA-256 of the value that names the browser; `nil` when it showed none.
    let browser: [UInt8]?
    /// The value itself: only this browser has it.
    let value: [UInt8]
    /// The session cookie that it showed.
    let session: BrowserCookie?
    /// `Set-Cookie` that gives the browser its name for one more day; `nil` when it showed none. Every page has it: the
    /// day is counted from the last page, not from the first.
    let renewed: String?
    private let exchange: Exchange

    /// The cookies of a request.
    init(_ exchange: Exchange) {
        let shown = exchange.cookie(named: Self.name(exchange)).flatMap { value in
            value.utf8.count == 43 ? Base64.urlDecode(value).map { (text: value, hash: Self.hash($0)) } : nil
        }
        browser = shown?.hash
        value = shown.map { Array($0.text.utf8) } ?? []
        renewed = shown.map { Self.header(for: String($0.text), exchange) }
        session = exchange.sessionCookie
        self.exchange = exchange
    }

    /// The name of the browser, a new one where it showed none, with the header that gives it.
    var named: (hash: [UInt8], header: String) {
        if let browser, let renewed { return (browser, renewed) }
        let value = randomBytes(32)
        return (Self.hash(value), Self.header(for: Base64.urlEncode(value), exchange))
    }

    private static func name(_ exchange: Exchange) -> String {
        (exchange.hasSecureCookies ? "__Host-" : "") + "postern-browser"
    }

    private static func header(for value: String, _ exchange: Exchange) -> String {
        "\(name(exchange))=\(value); Max-Age=86400" + exchange.cookieAttributes
    }

    private static func hash(_ value: [UInt8]) -> [UInt8] {
        SHA256.hash(data: value).withUnsafeBytes { Array($0) }
    }
}

extension Answer {
    /// With one more `Set-Cookie`.
    func setting(_ cookie: String?) -> Answer {
        guard let cookie else { return self }
        var answer = self
        answer.headers.append(HTTPField(name: .setCookie, value: cookie))
        return answer
    }

    /// To another page or to a client: 303, so that the browser makes a GET and never repeats a form (RFC 9700 §4.12).
    static func seeOther(_ location: String) -> Answer {
        Answer(.seeOther, headers: [.location: location])
    }
}
