import CCurl

extension CurlHandle {
    /// Fields for ``prepare(_:_:_:by:scheme:caFile:within:)``; to be freed when the call has ended.
    static func list(_ headers: [(name: String, value: String)]) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        // No "Expect: 100-continue": with it, a body may be half sent when the time is over.
        for line in headers.map({ "\($0.name): \($0.value)" }) + ["Expect:"] {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                return nil
            }
            list = longer
        }
        return list
    }

    /// Sets what one call needs, on a connection of its own unless it may be repeated.
    ///
    /// A kept connection saves a handshake, but libcurl sends a request again by itself when it finds the kept
    /// connection closed: that could be a second message that no limit counts.
    /// - Parameters:
    ///   - transfer: stays until the call has ended, as `headers` and `socket` do.
    ///   - caFile: authorities in place of the system's.
    borrowing func prepare(
        _ call: HTTPCall, _ transfer: HTTPTransfer, _ headers: UnsafeMutablePointer<curl_slist>,
        by socket: OutgoingSocket, scheme: String, caFile: String?, within total: Duration
    ) -> Bool {
        connects(to: call.url, by: socket, scheme: scheme, caFile: caFile, connect: min(call.connect, total))
            && set(CURLOPT_FRESH_CONNECT, call.mayRepeat ? 0 : 1)
            && set(CURLOPT_FORBID_REUSE, call.mayRepeat ? 0 : 1)
            && set(CURLOPT_POST, 1)
            && set(CURLOPT_POSTFIELDSIZE, call.body.count)
            && set(CURLOPT_TIMEOUT_MS, total.milliseconds)
            && set(CURLOPT_USERAGENT, "Postern")
            && postern_curl_set_list(raw, CURLOPT_HTTPHEADER, headers) == CURLE_OK
            && exchanges(transfer)
    }

    /// Lets a transfer give the body and take the answer's; it stays until the call has ended.
    borrowing func exchanges(_ transfer: HTTPTransfer) -> Bool {
        let userData = Unmanaged.passUnretained(transfer).toOpaque()
        return postern_curl_set_read(raw, HTTPTransfer.readCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_READDATA, userData) == CURLE_OK
            && postern_curl_set_seek(raw, HTTPTransfer.seekCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_SEEKDATA, userData) == CURLE_OK
            && postern_curl_set_write(raw, HTTPTransfer.writeCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_WRITEDATA, userData) == CURLE_OK
    }

    /// Sets what is needed to connect, with TLS where the URL says so, and to send nothing.
    borrowing func prepareConnection(
        to call: HTTPCall, by socket: OutgoingSocket, scheme: String, caFile: String?, within total: Duration
    ) -> Bool {
        connects(to: call.url, by: socket, scheme: scheme, caFile: caFile, connect: min(call.connect, total))
            && set(CURLOPT_TIMEOUT_MS, total.milliseconds)
            && set(CURLOPT_CONNECT_ONLY, 1)
    }

    /// How long the endpoint asked to be left alone.
    var retryAfter: Duration? {
        var seconds: curl_off_t = 0
        guard postern_curl_get_offset(raw, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK, seconds > 0 else { return nil }
        return .seconds(min(seconds, 86_400))
    }

    private borrowing func connects(
        to url: String, by socket: OutgoingSocket, scheme: String, caFile: String?, connect: Duration
    ) -> Bool {
        reaches(url, schemes: scheme, connect: connect)
            && postern_curl_set_open_socket(raw, OutgoingSocket.openCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_OPENSOCKETDATA, Unmanaged.passUnretained(socket).toOpaque())
                == CURLE_OK
            && (caFile.map { set(CURLOPT_CAINFO, $0) && set(CURLOPT_CAPATH, nil) } ?? true)
    }

    /// Sets where a call goes and how: HTTP/1.1, verified TLS 1.2 at least, no redirect, no proxy.
    /// - Parameter schemes: names with commas in between.
    borrowing func reaches(_ url: String, schemes: String, connect: Duration) -> Bool {
        set(CURLOPT_URL, url)
            && set(CURLOPT_PROTOCOLS_STR, schemes)
            && set(CURLOPT_FOLLOWLOCATION, 0)
            && set(CURLOPT_PROXY, "")  // never from the environment
            && set(CURLOPT_NOSIGNAL, 1)
            && set(CURLOPT_QUICK_EXIT, 1)  // or a name server that does not answer would hold the other calls
            && set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            && set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
            && set(CURLOPT_SSL_VERIFYPEER, 1)
            && set(CURLOPT_SSL_VERIFYHOST, 2)
            && set(CURLOPT_CONNECTTIMEOUT_MS, connect.milliseconds)
    }
}
