extension SMTPURL {
    /// Reads the value of `POSTERN_SMTP_URL`.
    ///
    /// - Throws: ``SMTPURLError`` naming the part that is wrong. Unknown and repeated options are errors, since a
    ///   typing mistake in `starttls` must not weaken it silently.
    public init(parsing text: String) throws(SMTPURLError) {
        guard text.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F }) else {
            throw SMTPURLError("the SMTP URL contains a space or control character; percent-encode it")
        }
        let implicitTLS: Bool
        var rest: Substring
        if text.lowercased().hasPrefix("smtp://") {
            (implicitTLS, rest) = (false, text.dropFirst(7))
        } else if text.lowercased().hasPrefix("smtps://") {
            (implicitTLS, rest) = (true, text.dropFirst(8))
        } else {
            throw SMTPURLError("the SMTP URL has an unknown scheme; \(SMTPURLError.form)")
        }
        guard !rest.contains("#") else { throw SMTPURLError("the SMTP URL contains '#'; percent-encode it as %23") }

        var options: [String: String] = [:]
        if let mark = rest.firstIndex(of: "?") {
            options = try Self.options(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if rest.last == "/" { rest.removeLast() }

        var credentials: Credentials?
        if let at = rest.lastIndex(of: "@") {
            credentials = try Self.credentials(rest[..<at])
            rest = rest[rest.index(after: at)...]
        }
        guard !rest.contains("/") else { throw SMTPURLError("the SMTP URL has a path; \(SMTPURLError.form)") }
        let (host, port) = try Self.hostAndPort(rest)

        self.init(
            host: host,
            port: port ?? (implicitTLS ? 465 : credentials == nil ? 25 : 587),
            credentials: credentials,
            security: try Self.security(options["starttls"], implicitTLS, credentials, host),
            caFile: options["cafile"],
            heloName: try Self.heloName(options["helo"])
        )
    }

    private static func security(
        _ option: String?, _ implicitTLS: Bool, _ credentials: Credentials?, _ host: String
    ) throws(SMTPURLError) -> Security {
        switch (option, implicitTLS) {
        case (nil, true): return .implicit
        case (_, true): throw SMTPURLError("starttls has no meaning with smtps://; leave it out")
        case (nil, false): return credentials == nil && isLoopback(host) ? .optional : .required
        case ("required", false): return .required
        case ("optional", false): return .optional
        case ("off", false): return .off
        case (_, false): throw SMTPURLError("starttls must be required, optional or off")
        }
    }

    private static func options(_ query: Substring) throws(SMTPURLError) -> [String: String] {
        var options: [String: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.map(String.init), ["starttls", "cafile", "helo"].contains(name) else {
                throw SMTPURLError("the SMTP URL has an unknown option; known are starttls, cafile and helo")
            }
            guard parts.count == 2, let value = decoded(parts[1]), !value.isEmpty else {
                throw SMTPURLError("the option \(name) of the SMTP URL has no valid value")
            }
            guard options.updateValue(value, forKey: name) == nil else {
                throw SMTPURLError("the option \(name) of the SMTP URL is given twice")
            }
        }
        return options
    }

    private static func credentials(_ text: Substring) throws(SMTPURLError) -> Credentials {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let username = decoded(parts.first ?? ""), let password = decoded(parts.count == 2 ? parts[1] : "") else {
            throw SMTPURLError("the user or password of the SMTP URL is not valid percent-encoded UTF-8")
        }
        guard !username.isEmpty else { throw SMTPURLError("the SMTP URL has '@' but no user name") }
        return Credentials(username: username, password: password)
    }

    private static func hostAndPort(_ text: Substring) throws(SMTPURLError) -> (host: String, port: Int?) {
        let host: Substring
        var tail: Substring
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { throw SMTPURLError("the SMTP host has '[' without ']'") }
            (host, tail) = (text[text.index(after: text.startIndex)..<end], text[text.index(after: end)...])
            guard host.contains(":"), host.utf8.allSatisfy({ isHexDigit($0) || $0 == 0x3A || $0 == 0x2E }) else {
                throw SMTPURLError("the SMTP host in brackets is not an IPv6 address")
            }
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            (host, tail) = (text[..<end], text[end...])
            guard isHostName(host) else { throw SMTPURLError("the SMTP host is not a host name; \(SMTPURLError.form)") }
        }
        guard !tail.isEmpty else { return (host.lowercased(), nil) }
        guard tail.removeFirst() == ":", tail.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(tail),
            (1...65535).contains(port)
        else { throw SMTPURLError("the SMTP port is not a number from 1 to 65535") }
        return (host.lowercased(), port)
    }

    private static func heloName(_ text: String?) throws(SMTPURLError) -> String? {
        guard let text else { return nil }
        guard isHostName(text[...]) else { throw SMTPURLError("helo must be a host name such as mail.example.com") }
        return text
    }

    /// Letters, digits, dots, hyphens and underscores, at most 253 of them, not led by a hyphen or a dot.
    private static func isHostName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first != 0x2D, first != 0x2E, text.utf8.count <= 253 else { return false }
        return text.utf8.allSatisfy { byte in
            isHexDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x2D || byte == 0x2E || byte == 0x5F
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
    }

    /// Percent-decodes `text`; `nil` if an escape is broken or the result is not UTF-8 or holds a control character.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var iterator = text.utf8.makeIterator()
        while let byte = iterator.next() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = iterator.next(), let low = iterator.next(), isHexDigit(high), isHexDigit(low),
                let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(value)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self),
            decoded.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { return nil }
        return decoded
    }
}
