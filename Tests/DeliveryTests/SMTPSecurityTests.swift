import Foundation
import Testing

@testable import Delivery

@Suite("SMTP encryption and authentication")
struct SMTPSecurityTests {
    private let files: Certificates.Files

    init() throws {
        files = try Certificates.files.get()
    }

    private var tls: [String] { ["--cert", files.certificate, "--key", files.key] }

    @Test func `STARTTLS with a trusted authority carries the mail encrypted`() async throws {
        try await MailServer.wellBehaved(tls + ["--starttls", "--require-starttls"]) { server in
            let transport = try transport(server, query: "?starttls=required&cafile=\(files.certificate)")
            for number in 0..<2 {
                #expect(try await transport.send(sampleMail(id: "mail-\(number)")) == .accepted)
                let mail = try await server.next("mail")
                #expect(mail.tls == true)
                #expect(mail.connection == 1)
            }
            #expect(await transport.probe() == .accepted)
        }
    }

    @Test("a certificate that nobody vouches for ends the attempt before the mail", arguments: [true, false])
    func untrusted(_ strangersAuthority: Bool) async throws {
        try await MailServer.wellBehaved(tls + ["--starttls"]) { server in
            let option = strangersAuthority ? "&cafile=\(files.stranger)" : ""
            let transport = try transport(server, query: "?starttls=required\(option)")
            #expect(try await transport.send(sampleMail()) == .temporary(.tls))
            #expect(await !server.allEvents().contains { $0.event == "mail" })
        }
    }

    @Test func `a certificate for another name is refused`() async throws {
        try await MailServer.wellBehaved(tls + ["--starttls"]) { server in
            let url = "smtp://127.0.0.1:\(server.port)?starttls=required&cafile=\(files.certificate)"
            let transport = SMTPTransport(url: try SMTPURL(parsing: url))
            #expect(try await transport.send(sampleMail()) == .temporary(.tls))
        }
    }

    @Test func `a missing authority file is a TLS failure, not a mail in the clear`() async throws {
        try await MailServer.wellBehaved(tls + ["--starttls"]) { server in
            let transport = try transport(server, query: "?starttls=required&cafile=/nonexistent.pem")
            #expect(try await transport.send(sampleMail()) == .temporary(.tls))
            #expect(await !server.allEvents().contains { $0.event == "mail" })
        }
    }

    @Test func `optional STARTTLS encrypts when offered, whoever signed the certificate`() async throws {
        try await MailServer.wellBehaved(tls + ["--starttls"]) { server in
            let transport = try transport(server)
            #expect(try await transport.send(sampleMail()) == .accepted)
            #expect(try await server.next("mail").tls == true)
        }
    }

    @Test func `smtps speaks TLS from the first byte and verifies`() async throws {
        try await MailServer.wellBehaved(tls + ["--tls"]) { server in
            let trusting = try transport(server, scheme: "smtps", query: "?cafile=\(files.certificate)")
            #expect(try await trusting.send(sampleMail()) == .accepted)
            #expect(try await server.next("mail").tls == true)
            #expect(try await transport(server, scheme: "smtps").send(sampleMail()) == .temporary(.tls))
        }
    }

    @Test(
        "without STARTTLS where it is required, nothing leaves in the clear",
        arguments: [
            ("no-starttls", ""), ("no-starttls", "ada:secret@"), ("starttls-fails", ""),
            ("starttls-fails", "ada:secret@"),
        ])
    func stripped(_ mode: String, _ userInfo: String) async throws {
        try await MailServer.misbehaving(mode) { server in
            let transport = try transport(server, userInfo: userInfo, query: "?starttls=required")
            #expect(try await transport.send(sampleMail()) == .temporary(.tls))
            let verbs = await server.allEvents().filter { $0.event == "line" }.compactMap { $0.text?.prefix(4) }
            #expect(Set(verbs).isSubset(of: ["EHLO", "HELO", "STAR", "QUIT"]))
        }
    }

    @Test func `credentials alone make STARTTLS required, even on this machine`() async throws {
        try await MailServer.misbehaving("no-starttls") { server in
            let transport = try transport(server, userInfo: "ada:secret@")
            #expect(try await transport.send(sampleMail()) == .temporary(.tls))
            #expect(await !server.allEvents().contains { $0.text?.hasPrefix("AUTH") == true })
        }
    }

    @Test func `AUTH inside TLS with percent-encoded credentials`() async throws {
        let arguments = tls + ["--starttls", "--auth", "ada@example.com:p:a/s@s%"]
        try await MailServer.wellBehaved(arguments) { server in
            let transport = try transport(
                server, userInfo: "ada%40example.com:p%3Aa%2Fs%40s%25@", query: "?cafile=\(files.certificate)")
            #expect(await transport.probe() == .accepted)
            #expect(try await transport.send(sampleMail()) == .accepted)
            #expect(try await server.next("mail").tls == true)
        }
    }

    @Test("wrong or missing credentials keep the mail for later", arguments: ["ada:wrong@", ""])
    func wrongCredentials(_ userInfo: String) async throws {
        try await MailServer.wellBehaved(tls + ["--starttls", "--auth", "ada:secret"]) { server in
            let transport = try transport(
                server, userInfo: userInfo, query: "?starttls=required&cafile=\(files.certificate)")
            #expect(try await transport.send(sampleMail()) == .temporary(.authentication))
            #expect(await !server.allEvents().contains { $0.event == "mail" })
        }
    }
}
