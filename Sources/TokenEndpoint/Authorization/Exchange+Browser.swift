public import Grants
import HTTPTypes

extension Exchange {
    /// Whether cookies have the prefix `__Host-` and the attribute `Secure`: everywhere but on
    /// `http://localhost` and hosts below it.
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

    /// As many cookies as are looked at. Browsers keep at most 180 for a host.
    private static let maximumCookies = 200

    /// The value of a cookie; `nil` when it is missing, there are two of the name, or it stands behind too many others.
    ///
    /// Compares bytes, and takes nothing apart into characters but a cookie of the name: a stranger may send thousands
    /// of cookies.
    public func cookie(named name: String) -> Substring? {
        let prefix = Array("\(name)=".utf8)
        var found: Substring?
        var left = Self.maximumCookies
        for line in request.headers[values: .cookie] {
            var rest = line.utf8[...]
            while left > 0, !rest.isEmpty {
                left -= 1
                let pair = rest.prefix { $0 != UInt8(ascii: ";") }
                rest = rest[pair.endIndex...].dropFirst()
                let named = pair.withoutLeadingSpaces
                guard named.starts(with: prefix) else { continue }
                guard found == nil else { return nil }
                found = Substring(Substring(named).trimmingSpaces.utf8.dropFirst(prefix.count))
            }
        }
        return found
    }
}
