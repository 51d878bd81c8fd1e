import CCurl

extension CurlHandle {
    /// Makes one call, on a connection of its own unless it may be repeated.
    ///
    /// A kept connection saves a handshake, but libcurl sends a request again by itself when it finds the kept
    /// connection closed: that could be a second message that no limit counts.
    /// - Parameter caFile: authorities in place of the system's.
    borrowing func post(
        _ call: HTTPCall, _ transfer: HTTPTransfer, scheme: String, caFile: String?, within total: Duration
    ) -> CURLcode {
        var headers: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(headers) }
        // No "Expect: 100-continue": with it, a body may be half sent when the time is over.
        for line in call.headers.map({ "\($0.name): \($0.value)" }) + ["Expect:"] {
            guard let longer = curl_slist_append(headers, line) else { return CURLE_OUT_OF_MEMORY }
            headers = longer
        }
        curl_easy_reset(raw)
        let userData = Unmanaged.passUnretained(transfer).toOpaque()
        var isSet = connects(to: call.url, scheme: scheme, caFile: caFile, connect: min(call.connect, total))
        isSet = isSet && set(CURLOPT_FRESH_CONNECT, call.mayRepeat ? 0 : 1)
        isSet = isSet && set(CURLOPT_FORBID_REUSE, call.mayRepeat ? 0 : 1)
        isSet = isSet && set(CURLOPT_MAXCONNECTS, 1)
        isSet = isSet && set(CURLOPT_POST, 1)
        isSet = isSet && set(CURLOPT_POSTFIELDSIZE, call.body.count)
        isSet = isSet && set(CURLOPT_TIMEOUT_MS, total.milliseconds)
        isSet = isSet && set(CURLOPT_USERAGENT, "Postern")
        isSet = isSet && postern_curl_set_list(raw, CURLOPT_HTTPHEADER, headers) == CURLE_OK
        isSet = isSet && postern_curl_set_read(raw, HTTPTransfer.readCallback) == CURLE_OK
        isSet = isSet && postern_curl_set_pointer(raw, CURLOPT_READDATA, userData) == CURLE_OK
        isSet = isSet && postern_curl_set_seek(raw, HTTPTransfer.seekCallback) == CURLE_OK
        isSet = isSet && postern_curl_set_pointer(raw, CURLOPT_SEEKDATA, userData) == CURLE_OK
        isSet = isSet && postern_curl_set_write(raw, HTTPTransfer.writeCallback) == CURLE_OK
        isSet = isSet && postern_curl_set_pointer(raw, CURLOPT_WRITEDATA, userData) == CURLE_OK
        isSet = isSet && set(CURLOPT_NOPROGRESS, 0)
        isSet = isSet && postern_curl_set_progress(raw, HTTPTransfer.progressCallback) == CURLE_OK
        isSet = isSet && postern_curl_set_pointer(raw, CURLOPT_XFERINFODATA, userData) == CURLE_OK
        guard isSet else { return CURLE_OUT_OF_MEMORY }
        return withExtendedLifetime(transfer) { perform() }
    }

    /// Connects, with TLS where the URL says so, and sends nothing.
    borrowing func connect(to call: HTTPCall, scheme: String, caFile: String?) -> CURLcode {
        curl_easy_reset(raw)
        guard connects(to: call.url, scheme: scheme, caFile: caFile, connect: call.connect),
            set(CURLOPT_TIMEOUT_MS, call.total.milliseconds), set(CURLOPT_CONNECT_ONLY, 1)
        else { return CURLE_OUT_OF_MEMORY }
        return perform()
    }

    /// How long the endpoint asked to be left alone.
    var retryAfter: Duration? {
        var seconds: curl_off_t = 0
        guard postern_curl_get_offset(raw, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK, seconds > 0 else { return nil }
        return .seconds(min(seconds, 86_400))
    }

    private borrowing func connects(to url: String, scheme: String, caFile: String?, connect: Duration) -> Bool {
        set(CURLOPT_URL, url)
            && set(CURLOPT_PROTOCOLS_STR, scheme)
            && set(CURLOPT_FOLLOWLOCATION, 0)
            && set(CURLOPT_PROXY, "")  // never from the environment
            && set(CURLOPT_NOSIGNAL, 1)
            && set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            && set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
            && set(CURLOPT_SSL_VERIFYPEER, 1)
            && set(CURLOPT_SSL_VERIFYHOST, 2)
            && set(CURLOPT_CONNECTTIMEOUT_MS, connect.milliseconds)
            && (caFile.map { set(CURLOPT_CAINFO, $0) && set(CURLOPT_CAPATH, nil) } ?? true)
    }
}
