import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request of a `URLSession`, and what comes of it.
///
/// A redirect is an answer like any other: tokens go to no host but the one that was asked. A body is given up when it is
/// larger than it may be: not when it is whole, which it may never be.
final class Exchange: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private let most: Int
    private var body = Data()
    private var isOver = false
    private var caller: CheckedContinuation<(Data, HTTPURLResponse), any Error>?

    /// - Parameter most: bytes of the body.
    init(most: Int) { self.most = most }

    /// - Returns: whether the task is to begin: the exchange may be over already.
    func begin(for caller: CheckedContinuation<(Data, HTTPURLResponse), any Error>) -> Bool {
        let isOver = lock.withLock {
            if !self.isOver { self.caller = caller }
            return self.isOver
        }
        if isOver { caller.resume(throwing: URLError(.cancelled)) }
        return !isOver
    }

    /// Answers the caller, once.
    func end(_ outcome: Result<(Data, HTTPURLResponse), any Error>) {
        let caller = lock.withLock {
            defer { (self.isOver, self.caller, body) = (true, nil, Data()) }
            return self.caller
        }
        caller?.resume(with: outcome)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTaken = lock.withLock {
            guard !isOver, body.count + data.count <= most else { return false }
            body.append(data)
            return true
        }
        if isTaken { return }
        dataTask.cancel()
        end(.failure(URLError(.dataLengthExceedsMaximum)))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { end(.failure(error)) } else { end(with: task.response) }
    }

    /// Answers the caller with the body that has come.
    func end(with response: URLResponse?) {
        let answer = (response as? HTTPURLResponse).map { (lock.withLock { body }, $0) }
        end(answer.map(Result.success) ?? .failure(URLError(.badServerResponse)))
    }
}

#if canImport(FoundationNetworking)
    /// The exchanges of a session. Here the delegate of a task is not asked; that of a session is.
    final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private let lock = NSLock()
        private var byTask: [Int: Exchange] = [:]

        func add(_ exchange: Exchange, _ task: URLSessionTask) {
            lock.withLock { byTask[task.taskIdentifier] = exchange }
        }

        /// A question for a password (RFC 7617), to which there is no answer: the session would wait for one for ever.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            exchange(task)?.end(with: challenge.failureResponse ?? task.response)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }

        private func exchange(_ task: URLSessionTask) -> Exchange? { lock.withLock { byTask[task.taskIdentifier] } }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            exchange(dataTask)?.urlSession(session, dataTask: dataTask, didReceive: data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            exchange(task)?.urlSession(session, task: task, didCompleteWithError: error)
            lock.withLock { byTask[task.taskIdentifier] = nil }
        }
    }
#endif
