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
    /// The session cookie that it showed.
    let session: BrowserCookie?
    private let browserName: String
    private let sessionName: String
    private let attributes: String

    /// The cookies of a request.
    init(_ exchange: Exchange) {
        browserName = (exchange.hasSecureCookies ? "__Host-" : "") + "postern-browser"
        sessionName = exchange.sessionCookieName
        attributes = "; Path=/; HttpOnly; SameSite=Lax" + (exchange.hasSecureCookies ? "; Secure" : "")
        browser = exchange.cookie(named: browserName).flatMap { value in
            value.utf8.count == 43 ? Base64.urlDecode(value).map(Self.hash) : nil
        }
        session = exchange.sessionCookie
    }

    /// A name for a browser that showed none, with the header that gives it.
    func newBrowser() -> (hash: [UInt8], header: String) {
        let value = randomBytes(32)
        var header = browserName
        header.reserveCapacity(160)
        for part in ["=", Base64.urlEncode(value), "; Max-Age=86400", attributes] { header += part }
        return (Self.hash(value), header)
    }

    /// - Parameter seconds: how long the session may be idle.
    func header(for session: BrowserCookie, seconds: Int) -> String {
        "\(sessionName)=\(session.text); Max-Age=\(seconds)\(attributes)"
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
