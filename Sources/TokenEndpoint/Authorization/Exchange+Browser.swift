public import Grants
import HTTPTypes

extension Exchange {
    /// Whether cookies have the prefix `__Host-` and the attribute `Secure`: everywhere but on `http://localhost`.
    public var hasSecureCookies: Bool { !realm.issuer.hasPrefix("http:") }

    /// The name of the cookie that holds the browser's session.
    public var sessionCookieName: String { (hasSecureCookies ? "__Host-" : "") + "postern-session" }

    /// The session cookie that the browser showed; `nil` for none, for two, and for what cannot be one.
    public var sessionCookie: BrowserCookie? { cookie(named: sessionCookieName).flatMap { BrowserCookie($0) } }

    /// `Set-Cookie` of a session.
    public func header(for session: SessionCookie) -> String {
        "\(sessionCookieName)=\(session.cookie.text); Max-Age=\(session.seconds)" + cookieAttributes
    }

    /// `Set-Cookie` that ends the session cookie.
    public var endedSessionCookie: String { "\(sessionCookieName)=; Max-Age=0" + cookieAttributes }

    /// What follows the life of each cookie.
    public var cookieAttributes: String { "; Path=/; HttpOnly; SameSite=Lax" + (hasSecureCookies ? "; Secure" : "") }

    /// The value of a cookie; `nil` when it is missing or there are two of the name.
    ///
    /// Compares bytes: a stranger may send kilobytes of cookies, and text would be taken apart into characters.
    public func cookie(named name: String) -> Substring? {
        let prefix = Array("\(name)=".utf8)
        var found: Substring?
        for line in request.headers[values: .cookie] {
            let bytes = line.utf8
            var start = bytes.startIndex
            while start < bytes.endIndex {
                let end = bytes[start...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
                let pair = Substring(bytes[start..<end]).trimmingSpaces
                start = end < bytes.endIndex ? bytes.index(after: end) : end
                guard pair.utf8.starts(with: prefix) else { continue }
                guard found == nil else { return nil }
                found = Substring(pair.utf8.dropFirst(prefix.count))
            }
        }
        return found
    }
}
