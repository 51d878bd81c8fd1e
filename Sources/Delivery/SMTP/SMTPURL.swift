import Glibc

/// Where mails are handed in, and how the way there is protected: the parsed form of `POSTERN_SMTP_URL`.
///
/// ```
/// smtp://[user[:password]@]host[:port][?starttls=required|optional|off][&cafile=PATH][&helo=NAME]
/// smtps://[user[:password]@]host[:port][?cafile=PATH][&helo=NAME]
/// ```
/// `user` and `password` are percent-decoded (RFC 3986 §2.1). Ports default to 465 for `smtps`, else to 587 with
/// credentials and to 25 without. Without `starttls` the value is `required` if there are credentials or the host is
/// not this machine, else `optional`: a password or a code never crosses a network in the clear unless the operator
/// wrote so.
public struct SMTPURL: Sendable, Equatable {
    /// How the connection is protected.
    public enum Security: String, Sendable, CaseIterable {
        /// TLS from the first byte (`smtps`, RFC 8314 §3.3); the certificate is verified.
        case implicit
        /// STARTTLS (RFC 3207), with a verified certificate, or no mail.
        case required
        /// STARTTLS when offered. The certificate is verified only if `cafile` is given: an attacker who can forge a
        /// certificate can also remove the offer, so verification alone would prove nothing.
        case optional
        /// No encryption.
        case off
    }

    /// A user name and password for SMTP AUTH.
    public struct Credentials: Sendable, Equatable {
        /// The user name, decoded.
        public let username: String
        /// The password, decoded; may be empty.
        public let password: String
    }

    /// A DNS name, an IPv4 address or, without brackets, an IPv6 address.
    public let host: String
    /// The TCP port, 1 to 65535.
    public let port: Int
    /// What to authenticate with, if anything.
    public let credentials: Credentials?
    /// How the connection is protected.
    public let security: Security
    /// PEM file of the certificate authorities to trust in place of the system's.
    public let caFile: String?
    /// The name to greet the server with; the machine's own name if `nil`.
    public let heloName: String?

    /// True when `host` is this machine: `localhost`, 127.0.0.0/8 or ::1.
    public var isLoopback: Bool { Self.isLoopback(host) }

    /// What an operator should know about the chosen combination, for the log at start and for `postern doctor`.
    public var warnings: [String] {
        guard !isLoopback else { return [] }
        switch (security, credentials) {
        case (.off, .some): return ["starttls=off sends the SMTP password and every code in the clear to \(host)"]
        case (.off, nil): return ["starttls=off sends every code in the clear to \(host)"]
        case (.optional, _):
            return ["starttls=optional gives way to anyone who removes the offer on the way to \(host)"]
        case (.implicit, _), (.required, _): return []
        }
    }

    /// What to say of the name that the server is greeted with (RFC 5321 §4.1.1.1): many refuse one without a dot.
    /// - Parameter machine: the name of this machine.
    public func greetingWarning(machine: String = Self.machineName) -> String? {
        let name = heloName ?? machine
        guard !isLoopback, !name.contains("."), !name.contains(":") else { return nil }
        return "the greeting (EHLO) names \"\(name)\", which has no dot, and many mail servers refuse that: add "
            + "helo=mail.example.com with a name of yours to the URL"
    }

    /// As `gethostname` tells it.
    public static var machineName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    init(host: String, port: Int, credentials: Credentials?, security: Security, caFile: String?, heloName: String?) {
        self.host = host
        self.port = port
        self.credentials = credentials
        self.security = security
        self.caFile = caFile
        self.heloName = heloName
    }

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E })
    }
}

extension SMTPURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without its credentials: safe to log.
    public var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return security == .implicit
            ? "smtps://\(name):\(port)" : "smtp://\(name):\(port)?starttls=\(security.rawValue)"
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Hides the credentials from `dump` and from string interpolation of enclosing values.
    public var customMirror: Mirror { Mirror(self, children: ["url": description]) }
}
