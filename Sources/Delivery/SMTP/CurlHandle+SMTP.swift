import CCurl

extension CurlHandle {
    /// Everything that does not depend on the mail. Forgets what was set before, but keeps the connection.
    ///
    /// - Parameter total: How long the whole transfer may take.
    /// - Returns: False if libcurl refuses a setting, for want of memory or of a feature.
    borrowing func configure(for url: SMTPURL, limits: SMTPTransport.Limits, total: Duration) -> Bool {
        reset()
        let host = url.host.contains(":") ? "[\(url.host)]" : url.host
        let scheme = url.security == .implicit ? "smtps" : "smtp"
        var isSet = set(CURLOPT_URL, "\(scheme)://\(host):\(url.port)/\(url.heloName ?? "")")
        isSet = isSet && set(CURLOPT_PROTOCOLS_STR, "smtp,smtps")
        isSet = isSet && set(CURLOPT_PROXY, "")  // never from the environment
        isSet = isSet && set(CURLOPT_NOSIGNAL, 1)
        isSet = isSet && set(CURLOPT_CONNECTTIMEOUT_MS, limits.connect.milliseconds)
        isSet = isSet && set(CURLOPT_TIMEOUT_MS, total.milliseconds)
        isSet = isSet && set(CURLOPT_SERVER_RESPONSE_TIMEOUT, max(limits.response.milliseconds / 1000, 1))
        isSet = isSet && set(CURLOPT_LOW_SPEED_LIMIT, 1)
        isSet = isSet && set(CURLOPT_LOW_SPEED_TIME, max(limits.stalled.milliseconds / 1000, 1))
        isSet = isSet && postern_curl_set_write(raw, { _, size, count, _ in size * count }) == CURLE_OK
        return isSet && secure(url) && authenticate(url)
    }

    private borrowing func secure(_ url: SMTPURL) -> Bool {
        let verifies = url.security != .optional || url.caFile != nil
        let level: curl_usessl =
            switch url.security {
            case .implicit, .required: CURLUSESSL_ALL
            case .optional: CURLUSESSL_TRY
            case .off: CURLUSESSL_NONE
            }
        return set(CURLOPT_USE_SSL, Int(level.rawValue))
            && set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
            && set(CURLOPT_SSL_VERIFYPEER, verifies ? 1 : 0)
            && set(CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0)
            && (url.caFile.map { set(CURLOPT_CAINFO, $0) && set(CURLOPT_CAPATH, nil) } ?? true)
    }

    private borrowing func authenticate(_ url: SMTPURL) -> Bool {
        guard let credentials = url.credentials else { return true }
        // Named, because libcurl otherwise prefers GSSAPI when it is offered and the user name has an '@'.
        return set(CURLOPT_USERNAME, credentials.username) && set(CURLOPT_PASSWORD, credentials.password)
            && set(CURLOPT_LOGIN_OPTIONS, "AUTH=PLAIN;AUTH=LOGIN;AUTH=CRAM-MD5")
    }

    /// Sends one mail.
    ///
    /// - Returns: libcurl's code; `CURLE_OUT_OF_MEMORY` also for a setting that was refused.
    borrowing func send(
        _ upload: SMTPUpload, from sender: MailAddress, to recipient: MailAddress, _ url: SMTPURL,
        _ limits: SMTPTransport.Limits, _ total: Duration, _ freshConnection: Bool
    ) -> CURLcode {
        guard configure(for: url, limits: limits, total: total),
            let recipients = curl_slist_append(nil, "<\(recipient.text)>")
        else {
            return CURLE_OUT_OF_MEMORY
        }
        defer { curl_slist_free_all(recipients) }
        // No CURLOPT_INFILESIZE: not knowing the size, libcurl asks for the end after it has sent everything before it.
        let userData = Unmanaged.passUnretained(upload).toOpaque()
        let isSet =
            set(CURLOPT_MAIL_FROM, "<\(sender.text)>")
            && postern_curl_set_list(raw, CURLOPT_MAIL_RCPT, recipients) == CURLE_OK
            && set(CURLOPT_UPLOAD, 1)
            && postern_curl_set_read(raw, SMTPUpload.readCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_READDATA, userData) == CURLE_OK
            && set(CURLOPT_NOPROGRESS, 0)
            && postern_curl_set_progress(raw, SMTPUpload.progressCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_XFERINFODATA, userData) == CURLE_OK
            && set(CURLOPT_VERBOSE, 1)
            && postern_curl_set_debug(raw, SMTPUpload.debugCallback) == CURLE_OK
            && postern_curl_set_pointer(raw, CURLOPT_DEBUGDATA, userData) == CURLE_OK
            && set(CURLOPT_FRESH_CONNECT, freshConnection ? 1 : 0)
        guard isSet else { return CURLE_OUT_OF_MEMORY }
        // A later QUIT does not belong to this upload, which may be released by then.
        defer { _ = set(CURLOPT_VERBOSE, 0) }
        return withExtendedLifetime(upload) { perform() }
    }
}
