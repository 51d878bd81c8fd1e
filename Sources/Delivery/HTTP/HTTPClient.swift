import CCurl

/// Requests that a command of the operator makes of a server which the operator named: any method, `http` or `https`
/// anywhere, with the fields of the answer. They are made one after the other, each on a connection of its own.
///
/// TLS is verified and no redirect is followed. A running server calls by ``HTTPCaller``, which bounds where it goes.
public actor HTTPClient {
    /// One request; `GET` unless it says otherwise.
    public struct Request: Sendable {
        /// An absolute URL.
        public let url: String
        /// In capitals.
        public var method = "GET"
        /// Names and values, besides those that HTTP needs.
        public var headers: [(name: String, value: String)] = []
        /// What is sent with `POST`; other methods send nothing.
        public var body: [UInt8] = []
        /// For everything, name resolution included.
        public var total = Duration.seconds(10)

        /// A `GET` of this URL.
        public init(url: String) {
            self.url = url
        }
    }

    /// The whole answer.
    public struct Answer: Sendable {
        /// From 200 to 599.
        public let status: Int
        /// The fields in the order in which they came.
        public let headers: [(name: String, value: String)]
        /// At most 1 MiB.
        public let body: [UInt8]

        /// All values of a field, whose name has any case.
        public func values(of name: String) -> [String] {
            headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
    }

    /// There was no answer, or not all of it.
    public struct Failure: Error, CustomStringConvertible {
        /// Why, mostly in libcurl's words.
        public let description: String
    }

    private nonisolated let executor = BlockingExecutor(label: "postern.client")
    private static let longestAnswer = 1 << 20

    /// A thread that may block.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// A client without a connection.
    public init() {}

    /// Makes a request and waits for the end of the answer.
    public func answer(to request: Request) throws(Failure) -> Answer {
        guard let handle = CurlHandle(), let headers = CurlHandle.list(request.headers) else {
            throw Failure(description: "There is no memory.")
        }
        defer { curl_slist_free_all(headers) }
        let transfer = HTTPTransfer(request.body, longestAnswer: Self.longestAnswer)
        guard handle.prepare(request, transfer, headers) else {
            throw Failure(description: "libcurl does not take \(request.url).")
        }
        let code = withExtendedLifetime(transfer) { handle.perform() }
        guard code == CURLE_OK else {
            throw Failure(
                description: transfer.answer.count < Self.longestAnswer
                    ? String(cString: curl_easy_strerror(code)) : "The answer is longer than 1 MiB.")
        }
        return Answer(status: handle.reply, headers: handle.headers, body: transfer.answer)
    }
}

extension CurlHandle {
    /// The fields of the last answer.
    fileprivate var headers: [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        var last: UnsafeMutablePointer<curl_header>?
        while let next = curl_easy_nextheader(raw, UInt32(CURLH_HEADER), -1, last) {
            headers.append((String(cString: next.pointee.name), String(cString: next.pointee.value)))
            last = next
        }
        return headers
    }

    /// - Parameters:
    ///   - transfer: stays until the request has ended, as `headers` do.
    fileprivate borrowing func prepare(
        _ request: HTTPClient.Request, _ transfer: HTTPTransfer, _ headers: UnsafeMutablePointer<curl_slist>
    ) -> Bool {
        reaches(request.url, schemes: "http,https", connect: request.total)
            && (request.method != "POST" || set(CURLOPT_POST, 1) && set(CURLOPT_POSTFIELDSIZE, request.body.count))
            && set(CURLOPT_CUSTOMREQUEST, request.method)
            && set(CURLOPT_TIMEOUT_MS, request.total.milliseconds)
            && postern_curl_set_list(raw, CURLOPT_HTTPHEADER, headers) == CURLE_OK
            && exchanges(transfer)
    }
}
