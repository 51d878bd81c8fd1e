@testable import Delivery
import Persistence
import Testing

@Suite("Redaction")
struct DeliveryRedactionTests {
    private static let word = "correcthorse"

    @Test func `no code, link or password of this module can be printed`() throws {
        let url = try SMTPURL(parsing: "smtp://mailer:\(Self.word)@127.0.0.1:25?starttls=off")
        let from = try #require(Mailbox(parsing: "Postern <a@mail.example>"))
        let to = try #require(MailAddress("b@mail.example"))
        let message = MailMessage(
            id: "1", from: from, to: to, subject: Self.word, text: Self.word, html: Self.word, queuedAt: 0)
        let secrets: [Any] = [
            url, try #require(url.credentials), message,
            OutgoingMail(message: message, code: Self.word, link: Self.word),
            SMTPTransport(url: url),
        ]
        for secret in secrets {
            var text = "\(secret)" + String(reflecting: secret) + String(reflecting: [secret])
            dump([secret], to: &text)
            #expect(!text.contains(Self.word), "\(type(of: secret))")
        }
    }
}
