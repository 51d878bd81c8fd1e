import ArgumentParser
import Delivery
import Persistence

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
            examination.skip("roles", "clock", "connections", "signing keys and lines of the key file", because: "see database and schema")
        }
        await examineSMTP(settings, &examination)
        if examination.failures > 0 {
            throw CommandFailure("\(examination.failures) of \(examination.checks) checks failed")
        }
    }

    private func examineDatabase(_ settings: Settings, _ examination: inout Examination) async {
        await examination.check("roles") { try await Preflight.checkRole(conninfo: try settings.databaseURL()) }
        await examination.check("clock") {
            let reading = try await Preflight.checkClock(conninfo: try settings.databaseURL())
            return "differs from the database's by \(Int(abs(reading.difference))) s"
        }
        await examination.check("connections") {
            let maximum = try await Preflight.checkConnections(
                conninfo: try settings.databaseURL(), connections: settings.databaseConnections)
            return "a process needs \(settings.databaseConnections + 1), the database allows \(maximum)"
        }
        await examination.check("signing keys and lines of the key file") {
            let keyring = try settings.keyring()
            let use = try await Preflight.checkKeys(conninfo: try settings.databaseURL(), keyring: keyring)
            for sentence in KeyLines.sentences(use, keyring: keyring) { say("      \(sentence)") }
        }
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

/// Counts checks and says what came of each.
struct Examination {
    private(set) var checks = 0
    private(set) var failures = 0

    /// - Parameter body: throws the reason of a failure; what it returns is said, too.
    /// - Returns: whether all is well.
    @discardableResult
    mutating func check(_ name: String, _ body: () async throws -> String) async -> Bool {
        do {
            let finding = try await body()
            checks += 1
            say("ok    \(name)" + (finding.isEmpty ? "" : ": \(finding)"))
            return true
        } catch {
            fail(name, "\(error)")
            return false
        }
    }

    @discardableResult
    mutating func check(_ name: String, _ body: () async throws -> Void) async -> Bool {
        await check(name) {
            try await body()
            return ""
        }
    }

    mutating func fail(_ name: String, _ reason: String) {
        checks += 1
        failures += 1
        say("FAIL  \(name): \(reason)")
    }

    func skip(_ names: String..., because reason: String) {
        say("skip  \(names.joined(separator: ", ")): \(reason)")
    }
}
