import CCurl

/// A libcurl easy handle with the connection it keeps. Closing it does not wait for the server's answer, if the
/// protocol has a good-bye.
struct CurlHandle: ~Copyable {
    let raw: UnsafeMutableRawPointer

    private static let started = postern_curl_start() == CURLE_OK

    /// - Returns: `nil` if libcurl cannot start or has no memory.
    init?() {
        guard Self.started, let raw = curl_easy_init() else { return nil }
        self.raw = raw
        reset()
    }

    deinit {
        // The answer to QUIT changes nothing, and libcurl would wait for it for as long as for any other.
        postern_curl_shut(raw, 0)
        curl_easy_cleanup(raw)
    }

    /// The last status or reply code of the server in this transfer, 0 if there was none.
    var reply: Int { long(CURLINFO_RESPONSE_CODE) }

    /// How many connections the last transfer had to make; 0 when it used the one kept.
    var connectionsMade: Int { long(CURLINFO_NUM_CONNECTS) }

    /// Ends the connection without a word.
    borrowing func hangUp() {
        postern_curl_shut(raw, 1)
    }

    /// Forgets what was set, but keeps the connection.
    borrowing func reset() {
        curl_easy_reset(raw)
        _ = postern_curl_keep_from_children(raw)
    }

    borrowing func perform() -> CURLcode { curl_easy_perform(raw) }

    borrowing func set(_ option: CURLoption, _ value: String?) -> Bool {
        postern_curl_set_string(raw, option, value) == CURLE_OK
    }

    borrowing func set(_ option: CURLoption, _ value: Int) -> Bool {
        postern_curl_set_long(raw, option, value) == CURLE_OK
    }

    borrowing func long(_ info: CURLINFO) -> Int {
        var value = 0
        return postern_curl_get_long(raw, info, &value) == CURLE_OK ? value : 0
    }
}

extension CURLcode {
    /// Whether TLS failed: it was not offered, or the certificate does not prove the server's name.
    var isTLSFault: Bool {
        switch self {
        case CURLE_USE_SSL_FAILED, CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS:
            true
        default: false
        }
    }
}

extension Duration {
    /// Whole milliseconds, at least one, as libcurl takes times.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return max(Int(clamping: seconds) * 1000 + Int(clamping: attoseconds / 1_000_000_000_000_000), 1)
    }
}
