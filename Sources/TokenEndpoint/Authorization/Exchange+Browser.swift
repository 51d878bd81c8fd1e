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
    public func cookie(named name: String) -> Substring? {
        var found: Substring?
        for line in request.headers[values: .cookie] {
            for pair in line.split(separator: ";") {
                let pair = pair.trimmingSpaces
                guard pair.hasPrefix(name), pair.dropFirst(name.count).first == "=" else { continue }
                guard found == nil else { return nil }
                found = pair.dropFirst(name.count + 1)
            }
        }
        return found
    }
}
