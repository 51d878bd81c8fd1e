import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends requests with a `URLSession`.
public struct URLSessionTransport: Transport {
    private let session: URLSession
    #if canImport(FoundationNetworking)
        private let exchanges = Exchanges()
    #endif

    /// - Parameter session: by default one without cookies and cache that gives up after 15 s without a byte. No session
    ///   follows a redirect here. On Linux only the configuration of a given session counts, not its delegate.
    public init(_ session: URLSession? = nil) {
        #if canImport(FoundationNetworking)
            let configuration = session?.configuration ?? Self.configuration
            self.session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
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

    /// Sends one request once. An answer of more than 64 MiB is given up; one of Postern, of more than 1 MiB or a minute.
    /// - Throws: `URLError`.
    public func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let limit = AnswerLimit.current
        guard let time = limit.time else { return try await exchange(request, most: limit.bytes) }
        return try await withThrowingTaskGroup(of: (Data, HTTPURLResponse).self) { group in
            group.addTask { try await exchange(request, most: limit.bytes) }
            group.addTask {
                try await Task.sleep(for: time)
                throw URLError(.timedOut)
            }
            defer { group.cancelAll() }
            guard let answer = try await group.next() else { throw URLError(.unknown) }
            return answer
        }
    }

    private func exchange(_ request: URLRequest, most: Int) async throws -> (Data, HTTPURLResponse) {
        let exchange = Exchange(most: most)
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { caller in
                guard exchange.begin(for: caller) else { return }
                #if canImport(FoundationNetworking)
                    exchanges.add(exchange, task)
                #else
                    task.delegate = exchange
                #endif
                task.resume()
            }
        } onCancel: {
            task.cancel()
            exchange.end(.failure(URLError(.cancelled)))
        }
    }
}
