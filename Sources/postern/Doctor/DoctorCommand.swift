import ArgumentParser
import Delivery
import Persistence
import TokenEndpoint

/// `postern doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract:
            "Check configuration, key file, database, schema, clock, connections and SMTP; exit 1 with the reasons.",
        discussion: "Reads the same configuration as `postern serve` and changes nothing.")

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let settings = try await Settings(file: config)
        var examination = Examination()
        say("ok    configuration")
        await examination.check("key file") { _ = try settings.keyring() }
        let isReachable = await examination.check("database and schema") {
            try await Preflight.checkSchema(conninfo: try settings.databaseURL())
        }
        if isReachable {
            await examineDatabase(settings, &examination)
        } else {
            // They would wait for a database that was found missing just now.
            examination.skip(
                "roles", "clock", "connections", "signing keys and lines of the key file",
                because: "see database and schema")
        }
        await examineSMTP(settings, &examination)
        await noteForwardedHeaders(settings)
        if examination.failures > 0 {
            throw CommandFailure("\(examination.failures) of \(examination.checks) checks failed")
        }
    }

    private func examineDatabase(_ settings: Settings, _ examination: inout Examination) async {
        await examination.check("roles") { try await Preflight.checkRole(conninfo: try settings.databaseURL()) }
        await examination.check("clock") {
            let reading = try await Preflight.checkClock(conninfo: try settings.databaseURL())
            return "differs from the database's by \(Int(abs(reading.difference).rounded())) s"
        }
        await examination.check("connections") {
            let maximum = try await Preflight.checkConnections(
                conninfo: try settings.databaseURL(), connections: settings.databaseConnections)
            return "a process needs \(settings.databaseConnections + 1), the database allows \(maximum)"
        }
        await examination.check("signing keys and lines of the key file") { () async throws -> Void in
            let keyring = try settings.keyring()
            let use = try await Preflight.checkKeys(conninfo: try settings.databaseURL(), keyring: keyring)
            for sentence in KeyLines.sentences(use, keyring: keyring) { say("      \(sentence)") }
        }
    }

    /// A server that runs here counts what it could not trust. None may run: then there is nothing to say.
    private func noteForwardedHeaders(_ settings: Settings) async {
        guard let listen = settings.server.operationsListen,
            let count = await OperationsListener.value(of: "postern_untrusted_forwarded_total", at: listen), count > 0
        else { return }
        let requests = count == 1 ? "1 request" : "\(Int(count)) requests"
        say(
            "WARN  proxy: \(requests) carried X-Forwarded-For from a peer that POSTERN_TRUSTED_PROXIES does not list")
    }

    private func examineSMTP(_ settings: Settings, _ examination: inout Examination) async {
        guard let smtpURL = settings.smtpURL else {
            return examination.fail("SMTP", "POSTERN_SMTP_URL is not set")
        }
        let url: SMTPURL
        do {
            url = try settings.parsedSMTPURL(smtpURL)
        } catch {
            return examination.fail("SMTP", "\(error)")
        }
        for warning in url.warnings { say("WARN  SMTP: \(warning)") }
        await examination.check("SMTP") {
            guard settings.mailFrom.flatMap({ Mailbox(parsing: $0) }) != nil else {
                throw CommandFailure("POSTERN_MAIL_FROM is not set to an address")
            }
            let outcome = await SMTPTransport(url: url).probe()
            guard outcome == .accepted else { throw CommandFailure("\(url): \(outcome)") }
            return "\(url)"
        }
    }
}
