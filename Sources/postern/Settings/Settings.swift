import Configuration
import Delivery
import Foundation
import Logging
import Persistence
import SystemPackage
import TokenEndpoint

/// The configuration of `serve`, `migrate` and `doctor`: environment variables, or the same names in a file.
struct Settings: Sendable, Redacted {
    /// The first is the one of the variables without a name.
    let clusters: [ClusterSettings]
    let databaseConnections: Int
    let secretKeyFile: String?
    let smtpURL: String?
    let smtpRate: Int
    let mailFrom: String?
    /// The folder with the credentials of providers.
    let secretsDirectory: String?
    let server: ServerConfiguration
    let logLevel: Logger.Level
    let logsJSON: Bool
    /// Names that look like ours and are read by no command, in their order.
    let unknownNames: [String]

    /// Reads the environment and then `file`, where the environment wins.
    /// - Parameter cluster: the cluster to put first.
    /// - Throws: ``CommandFailure`` naming each variable that is wrong and what it may be.
    init(file: String?, cluster: String? = nil) async throws {
        var providers: [any ConfigProvider] = [EnvironmentVariablesProvider()]
        if let file {
            do {
                providers.append(try await EnvironmentVariablesProvider(environmentFilePath: FilePath(file)))
            } catch {
                throw CommandFailure("the configuration file \(file) cannot be read: \(error)")
            }
        }
        let reader = Reader(config: ConfigReader(providers: providers))
        let faults = reader.faults
        for fault in file.map({ SettingsFile.faults(in: Self.text(of: $0), path: $0) }) ?? [] { faults.note(fault) }
        clusters = faults.value { try ClusterSettings.all(reader.string, first: cluster) } ?? []
        databaseConnections = reader.integer("POSTERN_DB_CONNECTIONS", default: 16, in: 1...256)
        secretKeyFile = reader.string("POSTERN_SECRET_KEY_FILE")
        smtpURL = reader.string("POSTERN_SMTP_URL")
        smtpRate = reader.integer("POSTERN_SMTP_RATE", default: 50, in: 1...10_000)
        mailFrom = reader.string("POSTERN_MAIL_FROM")
        secretsDirectory = reader.string("POSTERN_SECRETS_DIR")
        logLevel = reader.parsed(
            "POSTERN_LOG_LEVEL", default: .info, "trace, debug, info, notice, warning, error or critical"
        ) {
            Logger.Level(rawValue: $0)
        }
        logsJSON = reader.parsed("POSTERN_LOG_FORMAT", default: false, "text or json") {
            ["text": false, "json": true][$0]
        }
        server = Self.server(reader)
        try faults.end()
        unknownNames = Self.names(in: file).subtracting(reader.asked.names).sorted()
    }

    /// The names of the environment and of `file` that begin as ours do.
    private static func names(in file: String?) -> Set<String> {
        let lines = (file.map(text) ?? "").split(whereSeparator: \.isNewline).filter { $0.contains("=") }
        let inFile = lines.map { String($0.prefix { $0 != "=" }.filter { !$0.isWhitespace }) }
        return Set(ProcessInfo.processInfo.environment.keys).union(inFile).filter { $0.hasPrefix("POSTERN_") }
    }

    private static func text(of file: String) -> String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }

    /// What to say of an unknown name.
    static func unknown(_ name: String) -> String {
        "\(name) is not a setting of this version and was not read: see `postern serve --help`"
    }

    private static func server(_ reader: Reader) -> ServerConfiguration {
        let address = "host:port such as 127.0.0.1:8080"
        var server = ServerConfiguration(
            listen: reader.parsed("POSTERN_LISTEN", default: ListenAddress(host: "127.0.0.1", port: 8080), address) {
                ListenAddress($0)
            },
            operationsListen: reader.parsed(
                "POSTERN_OPS_LISTEN", default: ListenAddress(host: "127.0.0.1", port: 9090), address
            ) { ListenAddress($0) })
        server.trustedProxies = reader.parsed(
            "POSTERN_TRUSTED_PROXIES", default: [], "a comma-separated list of CIDR ranges"
        ) {
            text in
            let ranges = text.split(separator: ",").map { CIDR($0.filter { $0 != " " }) }
            return ranges.contains(nil) ? nil : ranges.compactMap { $0 }
        }
        server.trustsForwardedHost = reader.parsed("POSTERN_TRUST_FORWARDED_HOST", default: false, "on or off") {
            ["on": true, "off": false][$0]
        }
        server.maximumConnections = reader.integer("POSTERN_MAX_CONNECTIONS", default: 10_000, in: 16...1_000_000)
        server.keepAlive = reader.parsed(
            "POSTERN_KEEPALIVE", default: KeepAlive(), "a whole number from 1 to 3600"
        ) { text in Int(text).flatMap { (1...3600).contains($0) ? KeepAlive(seconds: $0) : nil } }
        server.maximumLongPolls = reader.integer("POSTERN_LONG_POLLS", default: 10_000, in: 0...1_000_000)
        server.uniformDeadline = UniformDeadline(
            .milliseconds(reader.integer("POSTERN_UNIFORM_DEADLINE_MS", default: 100, in: 0...5000)))
        server.shutdownDelay = .seconds(reader.integer("POSTERN_SHUTDOWN_DELAY", default: 1, in: 0...300))
        server.shutdownGrace = .seconds(reader.integer("POSTERN_SHUTDOWN_GRACE", default: 10, in: 0...3600))
        server.traces = traces(reader)
        switch (reader.string("POSTERN_TLS_CERT"), reader.string("POSTERN_TLS_KEY")) {
        case (nil, nil): break
        case (let certificate?, let key?): server.tls = (certificate, key)
        default: reader.faults.note("POSTERN_TLS_CERT and POSTERN_TLS_KEY belong together: set both or neither")
        }
        return server
    }

    private static func traces(_ reader: Reader) -> (endpoint: String, ratio: Double)? {
        let ratio = reader.parsed("POSTERN_TRACE_RATIO", default: 0.01, "a number from 0 to 1") { text in
            Double(text).flatMap { (0...1).contains($0) ? $0 : nil }
        }
        let endpoint = reader.parsed(
            "POSTERN_OTLP_ENDPOINT", default: "",
            "https://host[:port][/path], or http:// of this machine, without user, query or fragment"
        ) { text in
            let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) } && !text.contains { "@?#".contains($0) }
            guard isPlain, HTTPCaller.mayCall(text) else { return nil }
            return text.hasSuffix("/") ? String(text.dropLast()) : text
        }
        return endpoint.isEmpty ? nil : (endpoint, ratio)
    }

    /// What the server connects with in the first cluster. - Throws: one line that says what to do.
    func databaseURL() throws -> String { try clusters[0].databaseURL() }

    /// What the server connects with, by cluster. - Throws: one line that says what to do.
    func databaseURLs() throws -> [(cluster: String, conninfo: String)] {
        try clusters.map { ($0.name, try $0.databaseURL()) }
    }

    /// The key file's keys. - Throws: one line that says what to do.
    func keyring() throws -> Keyring {
        guard let secretKeyFile else {
            throw CommandFailure(
                "POSTERN_SECRET_KEY_FILE is not set: make one with "
                    + "`(umask 077; head -c 32 /dev/urandom | base64 > secret.key)`"
            )
        }
        do {
            return try Keyring(contentsOf: secretKeyFile)
        } catch {
            throw CommandFailure("POSTERN_SECRET_KEY_FILE: \(error)")
        }
    }

    /// The credentials of providers and webhooks. - Throws: one line that says why the folder cannot be theirs.
    func secretFiles() throws -> SecretFiles {
        if let secretsDirectory, let fault = SecretFiles.fault(of: secretsDirectory, keyFile: secretKeyFile) {
            throw CommandFailure("POSTERN_SECRETS_DIR is \"\(secretsDirectory)\": it \(fault)")
        }
        return SecretFiles(folder: secretsDirectory)
    }

    /// The sender of mails. - Throws: one line that says what to do.
    func mailSender() throws -> Mailbox {
        guard let mailFrom else {
            throw CommandFailure("POSTERN_MAIL_FROM is not set: it must be the address mails are sent from")
        }
        guard let sender = Mailbox(parsing: mailFrom) else {
            throw CommandFailure(
                "POSTERN_MAIL_FROM is \"\(mailFrom)\": it must be an address such as signin@example.com")
        }
        return sender
    }

    /// Where mails go. - Throws: one line that says what is wrong with the URL.
    func parsedSMTPURL() throws -> SMTPURL {
        guard let smtpURL else {
            throw CommandFailure(
                "POSTERN_SMTP_URL is not set: it must be smtp://[user:pass@]host:port or smtps://host:port")
        }
        do {
            return try SMTPURL(parsing: smtpURL)
        } catch {
            throw CommandFailure("POSTERN_SMTP_URL: \(error)")
        }
    }

    /// The names that were asked for.
    private final class Asked {
        var names: Set<String> = []
    }

    private struct Reader {
        let config: ConfigReader
        let asked = Asked()
        let faults = Faults()

        /// An empty variable counts as unset.
        func string(_ name: String) -> String? {
            asked.names.insert(name)
            let key = ConfigKey(name.lowercased().split(separator: "_").map(String.init))
            return config.string(forKey: key).flatMap { $0.isEmpty ? nil : $0 }
        }

        /// The fallback also stands for what is wrong, which is noted.
        func parsed<Value>(
            _ name: String, default fallback: Value, _ expected: String, _ parse: (String) -> Value?
        ) -> Value {
            guard let text = string(name) else { return fallback }
            guard let value = parse(text) else {
                faults.note("\(name) is \"\(text)\": it must be \(expected)")
                return fallback
            }
            return value
        }

        func integer(_ name: String, default fallback: Int, in range: ClosedRange<Int>) -> Int {
            parsed(name, default: fallback, "a whole number from \(range.lowerBound) to \(range.upperBound)") {
                Int($0).flatMap { range.contains($0) ? $0 : nil }
            }
        }
    }
}

/// Ends a command with one line on stderr and exit code 1.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
