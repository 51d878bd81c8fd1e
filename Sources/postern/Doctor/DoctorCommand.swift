import ArgumentParser
import Delivery
import Persistence
import TokenEndpoint

/// `postern doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: """
            Check configuration, key file, database, schema, clock, connections, SMTP, channels and webhooks; exit \
            1 with the reasons.
            """,
        discussion: """
            Reads the same configuration as `postern serve` and changes nothing.
            --send TO sends one message: a mail to an address, or a text message with the code 000000 to an E.164 number
            by each provider of --channel (default sms) in --realm.
            """)

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    @Option(name: .long, help: "The database cluster, when there are several; the first one when not given.")
    var cluster: String?

    @Option(name: .long, help: "Send one message to this mail address or E.164 number.")
    var send: String?

    @Option(name: .long, help: "With --send to a number: the realm whose providers are tried.")
    var realm: String?

    @Option(name: .long, help: "With --send to a number: \(Self.channels).")
    var channel = "sms"

    private static let channels = Channel.phones.map(\.rawValue).joined(separator: " or ")

    func validate() throws {
        guard let send, !send.contains("@") else { return }
        guard send.wholeMatch(of: /\+[1-9][0-9]{6,14}/) != nil else {
            throw ValidationError("--send is \"\(send)\": it must be a mail address or a number such as +4915112345678")
        }
        guard realm != nil else { throw ValidationError("--send to a number needs --realm") }
        guard Channel(rawValue: channel)?.reaches == .phone else {
            throw ValidationError("--channel is \"\(channel)\": it must be \(Self.channels)")
        }
    }

    func run() async throws {
        var examination = Examination()
        let settings: Settings
        do {
            settings = try await Settings(file: config, cluster: cluster)
        } catch {
            say("FAIL  configuration: \(error)")
            throw CommandFailure("nothing else was checked: see configuration")
        }
        say("ok    configuration")
        for name in settings.unknownNames { say("WARN  configuration: \(Settings.unknown(name))") }
        await examination.check("key file") { _ = try settings.keyring() }
        if settings.secretsDirectory != nil {
            await examination.check("folder of secrets") { _ = try settings.secretFiles() }
        }
        let isReachable = await examination.check("database and schema") {
            try await Preflight.checkSchema(conninfo: try settings.databaseURL())
        }
        if isReachable {
            await examineDatabase(settings, &examination)
        } else {
            // They would wait for a database that was found missing just now.
            examination.skip(
                "roles", "clock", "connections", "signing keys and lines of the key file", "channels", "webhooks",
                because: "see database and schema")
        }
        if settings.clusters.count > 1 {
            await examination.check("hosts of all clusters") { () async throws -> Void in
                let faults = try await ClusterHosts.faults(in: try settings.databaseURLs())
                guard faults.isEmpty else { throw CommandFailure(faults.joined(separator: "; ")) }
            }
        }
        await examineSMTP(settings, &examination)
        if isReachable {
            await examineChannels(settings, &examination)
            await examineWebhooks(settings, &examination)
        }
        await noteForwardedHeaders(settings)
        if examination.failures > 0 {
            throw CommandFailure("\(examination.failures) of \(examination.checks) checks failed")
        }
    }

    private func examineDatabase(_ settings: Settings, _ examination: inout Examination) async {
        await examination.check("roles") { try await Preflight.checkRole(conninfo: try settings.databaseURL()) }
        if let warning = try? await Preflight.collationWarning(conninfo: try settings.databaseURL()) {
            say("WARN  collation: \(warning)")
        }
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
        await examination.check("RS256 keys of realms with pages") { () async throws -> Void in
            try await Self.checkPageKeys(try settings.databaseURL())
        }
    }

    /// A server that runs here counts what it could not trust. None may run: then there is nothing to say.
    private func noteForwardedHeaders(_ settings: Settings) async {
        guard let listen = settings.server.operationsListen else { return }
        for (metric, finding) in [
            (
                "postern_untrusted_forwarded_total",
                "carried X-Forwarded-For from a peer that POSTERN_TRUSTED_PROXIES does not list"
            ),
            (
                "postern_missing_api_key_total",
                "to /api/v0/verify/get_identity had no header API_KEY_ID: nginx drops headers with underscores unless "
                    + "underscores_in_headers is on"
            ),
        ] {
            guard let count = await OperationsListener.value(of: metric, at: listen), count > 0 else { continue }
            say("WARN  proxy: \(count == 1 ? "1 request" : "\(Int(count)) requests") \(finding)")
        }
    }

    private func examineSMTP(_ settings: Settings, _ examination: inout Examination) async {
        let url: SMTPURL
        do {
            url = try settings.parsedSMTPURL()
        } catch {
            return examination.fail("SMTP", "\(error)")
        }
        for warning in url.warnings + [url.greetingWarning()].compactMap(\.self) {
            say("WARN  SMTP: \(warning)")
        }
        await examination.check("SMTP") {
            _ = try settings.mailSender()
            let outcome = await SMTPTransport(url: url).probe()
            guard outcome == .accepted else { throw CommandFailure("\(url): \(outcome.sentence)") }
            return "\(url)"
        }
        guard let send, let to = MailAddress(send), let from = settings.mailFrom.flatMap({ Mailbox(parsing: $0) })
        else { return }
        await examination.check("mail to \(send)") { () async throws -> Void in
            let outcome = await SMTPTransport(url: url).send(
                Self.testMail(from: from, to: to), before: .now + .seconds(60))
            guard outcome == .accepted else { throw CommandFailure(outcome.sentence) }
        }
    }
}
