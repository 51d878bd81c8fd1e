import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with a `URLSession`.
public struct URLSessionTransport: Transport {
    private let session: URLSession

    /// - Parameter session: by default one without cookies and cache that gives up after 15 s without a byte. No session
    ///   follows a redirect here. On Linux only the configuration of a given session counts, not its delegate.
    public init(_ session: URLSession? = nil) {
        #if canImport(FoundationNetworking)
            // Here the delegate of a task is not asked about redirects; that of a session is.
            let configuration = session?.configuration ?? Self.configuration
            self.session = URLSession(configuration: configuration, delegate: RedirectRefusal(), delegateQueue: nil)
        #else
            self.session = session ?? URLSession(configuration: Self.configuration)
        #endif
    }

    private static var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = 15
        return configuration
    }

    /// Sends one request once. - Throws: `URLError`.
    public func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let (data, response) = try await session.data(for: request, delegate: RedirectRefusal())
        guard let answer = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        return (data, answer)
    }
}

/// A redirect is an answer like any other: tokens go to no host but the one that was asked.
private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
