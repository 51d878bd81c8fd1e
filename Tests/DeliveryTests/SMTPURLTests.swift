import Testing

@testable import Delivery

@Suite("POSTERN_SMTP_URL")
struct SMTPURLTests {
    struct Valid: Sendable {
        let text: String
        let host: String
        let port: Int
        let security: SMTPURL.Security
        var credentials: [String] = []
        var caFile: String?
        var heloName: String?
    }

    @Test(arguments: [
        Valid(text: "smtp://localhost:1025", host: "localhost", port: 1025, security: .optional),
        Valid(text: "smtp://localhost", host: "localhost", port: 25, security: .optional),
        Valid(text: "SMTP://127.0.0.1:25/", host: "127.0.0.1", port: 25, security: .optional),
        Valid(text: "smtp://[::1]:2525", host: "::1", port: 2525, security: .optional),
        Valid(text: "smtp://Mail.Example.com", host: "mail.example.com", port: 25, security: .required),
        Valid(text: "smtp://127.example.com", host: "127.example.com", port: 25, security: .required),
        Valid(text: "smtp://mail_relay:25?starttls=off", host: "mail_relay", port: 25, security: .off),
        Valid(text: "smtp://10.0.0.1:25?starttls=optional", host: "10.0.0.1", port: 25, security: .optional),
        Valid(
            text: "smtp://u:p@localhost", host: "localhost", port: 587, security: .required, credentials: ["u", "p"]),
        Valid(
            text: "smtp://u:p@localhost:25?starttls=off", host: "localhost", port: 25, security: .off,
            credentials: ["u", "p"]),
        Valid(text: "smtps://u@h.example", host: "h.example", port: 465, security: .implicit, credentials: ["u", ""]),
        Valid(
            text: "smtps://ada%40example.com:p%3Aa%2F%25%C3%A9@h:4465", host: "h", port: 4465, security: .implicit,
            credentials: ["ada@example.com", "p:a/%é"]),
        Valid(text: "smtp://u@x:p@ss@h", host: "h", port: 587, security: .required, credentials: ["u@x", "p@ss"]),
        Valid(text: "smtp://u:p+q@h", host: "h", port: 587, security: .required, credentials: ["u", "p+q"]),
        Valid(
            text: "smtp://h?cafile=/etc/ssl/my%20ca.pem&helo=mx1.example.com&starttls=required", host: "h", port: 25,
            security: .required, caFile: "/etc/ssl/my ca.pem", heloName: "mx1.example.com"),
    ])
    func valid(_ expected: Valid) throws {
        let url = try SMTPURL(parsing: expected.text)
        #expect(url.host == expected.host)
        #expect(url.port == expected.port)
        #expect(url.security == expected.security)
        #expect(url.credentials.map { [$0.username, $0.password] } ?? [] == expected.credentials)
        #expect(url.caFile == expected.caFile)
        #expect(url.heloName == expected.heloName)
    }

    @Test(arguments: [
        "", "localhost:25", "http://localhost", "smtp:/localhost", "smtp://", "smtp://:25", "smtp://h:0",
        "smtp://h:65536",
        "smtp://h:+25", "smtp://h:25x", "smtp://h:", "smtp://@h", "smtp://u:%zz@h", "smtp://u:%4@h", "smtp://u:%ff@h",
        "smtp://u:%0d%0a@h", "smtp://u%00:p@h", "smtp://h/path", "smtp://h#f", "smtp://h?starttls=maybe",
        "smtp://h?starttls",
        "smtp://h?starttls=", "smtp://h?starttls=off&starttls=required", "smtp://h?tls=off", "smtps://h?starttls=off",
        "smtp://h h", "smtp://h\r\n", "smtp://[::1", "smtp://[h]:25", "smtp://[::1]25", "smtp://-h",
        "smtp://h?helo=a%20b",
        "smtp://h?helo=a%0d%0aMAIL", "smtp://ho$t", "smtp://h?cafile=a%00b", "smtp://u:secret@h:99999",
    ])
    func refused(_ text: String) throws {
        let error = try #require(throws: SMTPURLError.self) { try SMTPURL(parsing: text) }
        #expect(!error.description.isEmpty)
        #expect(!error.description.contains("secret"))
    }

    @Test func `nothing that prints a URL prints its password`() throws {
        let url = try SMTPURL(parsing: "smtp://ada:secret@h")
        var dumped = ""
        dump([url], to: &dumped)
        for text in [url.description, url.debugDescription, "\(Optional(url) as Any)", dumped, String(reflecting: url)]
        {
            #expect(!text.contains("secret") && !text.contains("ada"))
        }
    }

    @Test(
        "weak settings are allowed and named",
        arguments: [
            ("smtp://h?starttls=off", 1), ("smtp://u:p@h?starttls=optional", 1), ("smtp://localhost?starttls=off", 0),
            ("smtp://h", 0), ("smtps://h", 0),
        ])
    func warnings(_ text: String, _ count: Int) throws {
        #expect(try SMTPURL(parsing: text).warnings.count == count)
    }
}
