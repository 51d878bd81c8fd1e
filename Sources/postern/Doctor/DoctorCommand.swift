import ArgumentParser
import Delivery
import Persistence

/// `postern doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check configuration, key file, database, schema, clock and SMTP; exit 1 with the reasons.",
        discussion: "Reads the same configuration as `postern serve` and changes nothing.")

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let settings = try await Settings(file: config)
        say("ok    configuration")
        var failures = 0
        func check(_ name: String, _ body: () async throws -> Void) async {
            do {
                try await body()
                say("ok    \(name)")
            } catch {
                failures += 1
                say("FAIL  \(name): \(error)")
            }
        }
        await check("key file") { _ = try settings.keyring() }
        await check("database, roles, schema and clock") {
            try await Preflight.check(conninfo: try settings.databaseURL())
        }
        await check("signing keys and lines of the key file") {
            let keyring = try settings.keyring()
            let use = try await Preflight.checkKeys(conninfo: try settings.databaseURL(), keyring: keyring)
            for sentence in KeyLines.sentences(use, keyring: keyring) { say("      \(sentence)") }
        }
        await check("SMTP") {
            guard let smtpURL = settings.smtpURL else { throw CommandFailure("POSTERN_SMTP_URL is not set") }
            guard settings.mailFrom.flatMap({ Mailbox(parsing: $0) }) != nil else {
                throw CommandFailure("POSTERN_MAIL_FROM is not set to an address")
            }
            let outcome = await SMTPTransport(url: try settings.parsedSMTPURL(smtpURL)).probe()
            guard outcome == .accepted else { throw CommandFailure("\(outcome)") }
        }
        if failures > 0 { throw CommandFailure("\(failures) of 4 checks failed") }
    }
}
