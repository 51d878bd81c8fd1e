import Foundation

/// Pages in the person's own browser, which comes back to a port of this device (RFC 8252 §7.3). For command line tools
/// and desktop apps. The registered redirect URI is `http://127.0.0.1/…`, of which the port does not count.
public struct LoopbackBrowser: PageBrowser {
    /// - Parameter show: opens a URL in the browser, or prints it for the person.
    public init(show: @escaping @Sendable (URL) async -> Void) { self.show = show }

    private let show: @Sendable (URL) async -> Void
    private let listeners = LoopbackListeners()

    /// Begins to listen on 127.0.0.1.
    public func redirect(for registered: URL) async throws -> URL {
        guard var parts = URLComponents(url: registered, resolvingAgainstBaseURL: true),
            parts.scheme?.lowercased() == "http", let host = parts.host, host == "127.0.0.1" || host == "localhost"
        else { throw PosternError.misuse("LoopbackBrowser needs a redirectURI like http://127.0.0.1/signed-in") }
        let listener = try LoopbackListener()
        parts.port = Int(listener.port)
        guard let redirect = parts.url else {
            listener.end()
            throw PosternError.misuse("redirectURI is not a URL that a port can be added to")
        }
        await listeners.keep(listener, for: redirect)
        return redirect
    }

    /// Shows the page and waits up to ten minutes for the browser to come back.
    public func open(_ page: URL, until redirect: URL) async throws -> URL {
        guard let listener = await listeners.take(redirect) else {
            throw PosternError.misuse("ask redirect(for:) for the redirect URI, and use each one once")
        }
        let state = URLComponents(url: page, resolvingAgainstBaseURL: false)?.only("state")
        async let target = listener.target(of: redirect, state: state)
        await show(page)
        guard let origin = Origin(redirect), let returned = URL(string: origin.text + (try await target)) else {
            throw PosternError.invalidResponse
        }
        return returned
    }
}

extension LoopbackBrowser: Discreet {
    /// Nothing.
    public var shown: [(String, any Sendable)] { [] }
}

/// The listeners of a browser whose page is not shown yet.
private actor LoopbackListeners {
    private static let most = 4
    private var waiting: [(redirect: URL, listener: LoopbackListener)] = []

    func keep(_ listener: LoopbackListener, for redirect: URL) {
        waiting.append((redirect, listener))
        if waiting.count > Self.most { waiting.removeFirst().listener.end() }
    }

    func take(_ redirect: URL) -> LoopbackListener? {
        guard let place = waiting.firstIndex(where: { $0.redirect == redirect }) else { return nil }
        return waiting.remove(at: place).listener
    }

    deinit { for (_, listener) in waiting { listener.end() } }
}
