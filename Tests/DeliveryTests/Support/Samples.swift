import Testing

@testable import Delivery

/// A mail to send.
func sampleMail(
    id: String = "5c0f6a2e-2d0e-4d4f-9a8e-0c9e2f4b7a11", to: String = "ada@example.com", subject: String = "Hello",
    text: String = "Hello\nWorld", html: String = "<p>Hello</p>"
) throws -> OutgoingMail {
    let from = try #require(Mailbox(parsing: "Demo <no-reply@mail.example.com>"))
    let to = try #require(MailAddress(to))
    return OutgoingMail(
        message: MailMessage(
            id: id, from: from, to: to, subject: subject, text: text, html: html, queuedAt: 1_700_000_000))
}

extension MailTransport {
    /// Sends with as much time as the transport's own limits allow.
    func send(_ mail: OutgoingMail) async -> DeliveryOutcome {
        await send(mail, before: .now + .seconds(300))
    }
}

/// A transport to a test server with limits fit for tests.
func transport(
    _ server: MailServer, scheme: String = "smtp", userInfo: String = "", query: String = "", sessions: Int = 1
) throws -> SMTPTransport {
    var limits = SMTPTransport.Limits()
    limits.connect = .seconds(5)
    limits.response = .seconds(5)
    limits.total = .seconds(6)
    let url = try SMTPURL(parsing: "\(scheme)://\(userInfo)localhost:\(server.port)\(query)")
    return SMTPTransport(url: url, sessions: sessions, limits: limits)
}
