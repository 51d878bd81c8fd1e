import Foundation

/// What shows the pages of the server. On Apple's platforms it is ``SystemWebSession``, elsewhere ``LoopbackBrowser``.
public protocol PageBrowser: Sendable {
    /// Where the pages are to send the browser back to.
    /// - Parameter registered: ``PosternConfiguration/redirectURI``.
    /// - Returns: the same, or for a loopback host with the port that this browser listens on (RFC 8252 §7.3).
    func redirect(for registered: URL) async throws -> URL

    /// Shows a page until the browser is sent to the redirect URI.
    /// - Returns: the redirect URI with the members of the answer.
    /// - Throws: ``DialogCancelled`` when the person gave up.
    func open(_ page: URL, until redirect: URL) async throws -> URL
}

/// What a sign-in on pages asks for (OpenID Connect Core §3.1.2.1).
public struct PageOptions: Sendable {
    /// Asks for nothing special.
    public init() {}

    /// `login_hint`: an address to begin with.
    public var loginHint: String?
    /// `prompt`: some of `login`, `consent`, `select_account` and `create`, separated by spaces.
    public var prompt: String?
    /// `max_age`: how old the sign-in of the browser may be, in seconds.
    public var maxAge: Int?
    /// `acr_values`: one of these levels has to be reached.
    public var levels: [String] = []
    /// `ui_locales`: languages of the pages, the best one first (RFC 5646).
    public var locales: [String] = []
}

extension PageOptions: Discreet {
    /// Everything but the address.
    public var shown: [(String, any Sendable)] {
        [("prompt", prompt), ("maxAge", maxAge), ("levels", levels), ("locales", locales)]
    }
}
