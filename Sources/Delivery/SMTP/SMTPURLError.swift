/// Why a `POSTERN_SMTP_URL` was refused. The text names the part and what is allowed, and never repeats the URL, which
/// may hold a password.
public struct SMTPURLError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence for the operator.
    public let description: String

    init(_ description: String) {
        self.description = description
    }

    static let form = "write it as smtp://[user:password@]host:port or smtps://[user:password@]host:port"
}
