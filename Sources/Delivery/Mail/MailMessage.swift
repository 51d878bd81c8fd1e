import Texts

/// One mail: who, what and when, ready to become RFC 5322 text.
///
/// Every part that reaches a header field is a validated type or is encoded on the way, so a message cannot gain a
/// header, a recipient or a second message from its contents.
public struct MailMessage: Sendable, Equatable {
    /// The identifier of the outbox row; a second copy of a mail carries the same `Message-ID`.
    public let id: String
    /// Who sends it; also the envelope sender, so that bounces reach the operator.
    public let from: Mailbox
    /// Its only recipient.
    public let to: MailAddress
    /// The subject, unencoded.
    public let subject: String
    /// The plain text part.
    public let text: String
    /// The HTML part.
    public let html: String
    /// When the mail was queued, in seconds since 1970; the same for every copy.
    public let queuedAt: Double

    /// A message; `id` is cut to 50 letters, digits and hyphens, as a UUID has them.
    public init(
        id: String, from: Mailbox, to: MailAddress, subject: String, text: String, html: String, queuedAt: Double
    ) {
        let permitted = id.unicodeScalars.filter {
            ("a"..."z") ~= $0 || ("A"..."Z") ~= $0 || ("0"..."9") ~= $0 || $0 == "-"
        }
        self.id = String(String.UnicodeScalarView(permitted.prefix(50)))
        self.from = from
        self.to = to
        self.subject = DisplayText.clean(subject, limit: 200)
        self.text = text
        self.html = html
        self.queuedAt = queuedAt
    }

    /// The `Message-ID` with its angle brackets (RFC 5322 §3.6.4).
    public var messageID: String { "<\(id)@\(from.address.domain)>" }

    /// The message as it is sent after DATA: lines end in CRLF and have at most 998 characters (RFC 5322 §2.1.1), the
    /// body is 7-bit. Dots at the start of a line are the transport's business (RFC 5321 §4.5.2).
    public func serialized() -> [UInt8] {
        // "=_" cannot occur in quoted-printable text, so the boundary cannot occur in a part.
        let boundary = "=_postern_\(id)"
        let header = [
            "From: \(HeaderText.mailbox(from))",
            "To: \(to.text)",
            "Subject: \(HeaderText.unstructured(subject))",
            "Date: \(MailDate.rfc5322(secondsSinceEpoch: queuedAt))",
            "Message-ID: \(messageID)",
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
            "Content-Type: multipart/alternative;\r\n boundary=\"\(boundary)\"",
        ]
        var bytes: [UInt8] = []
        bytes += header.joined(separator: "\r\n").utf8
        bytes += "\r\n\r\n".utf8
        for (type, content) in [("plain", text), ("html", html)] {
            bytes += "--\(boundary)\r\n".utf8
            bytes += "Content-Type: text/\(type); charset=UTF-8\r\n".utf8
            bytes += "Content-Transfer-Encoding: quoted-printable\r\n\r\n".utf8
            bytes += QuotedPrintable.encode(content)
        }
        bytes += "--\(boundary)--\r\n".utf8
        return bytes
    }
}
