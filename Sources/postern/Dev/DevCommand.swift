import ArgumentParser
import Delivery
import Foundation
import Logging
import Persistence
import TokenEndpoint

/// `postern dev`.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Run everything on this machine: a private PostgreSQL, a demo realm, a dev outbox.",
        discussion: """
            Creates and starts a private PostgreSQL cluster in .postern/ of the working directory, migrates it, \
            provisions realm `demo` on localhost, and serves. Mail goes to /dev/outbox instead of out. Data survives \
            restarts. Not for production.
            """)

    @Option(name: .long, help: "The port to serve on.")
    var port = 8080

    @Flag(name: .long, help: "Delete the data of earlier runs first.")
    var reset = false

    func validate() throws {
        guard (1...65535).contains(port) else { throw ValidationError("--port is from 1 to 65535, not \(port)") }
    }

    func run() async throws {
        let root = URL(filePath: FileManager.default.currentDirectoryPath).appending(path: ".postern")
        if reset { try Self.reset(root) }
        let cluster = try DevCluster(root: root)
        let postgres = try cluster.start()
        defer { if let postgres { cluster.stop(postgres) } }

        say("Migrating its database …")
        try await Migrator(conninfo: cluster.conninfo(user: "postgres")).migrate(progress: { _ in })
        let origin = "http://localhost:\(port)"
        let secrets = try DevRealm.provision(cluster, origin: origin, secretsIn: root)

        let outbox = DevOutbox()
        let routes =
            DevOutboxRoutes(outbox: outbox).routes
            + DevPasskeyRoutes(clientID: DevRealm.clientID, rpID: DevRealm.rpID, email: DevRealm.email).routes
        var configuration = ServerConfiguration(listen: ListenAddress(host: "127.0.0.1", port: port))
        configuration.shutdownGrace = .seconds(5)
        try await ServerRun(
            configuration: configuration, clusters: [("home", cluster.conninfo(user: "postern_dev"))],
            connections: 8,
            keyring: try Self.keyring(root), mailSender: try Self.sender(), transport: outbox,
            secrets: SecretFiles(folder: nil), memory: outbox, extraRoutes: routes,
            logger: .postern(level: .notice, json: false), onStarted: { Self.greet(origin: origin, secrets, cluster) }
        ).run()
    }

    private static func reset(_ root: URL) throws {
        if let cluster = try? DevCluster(root: root) {
            try cluster.stopIfRunning()
            try FileManager.default.removeItem(at: cluster.directory)
        }
        if FileManager.default.fileExists(atPath: root.path) { try FileManager.default.removeItem(at: root) }
    }

    private static func keyring(_ root: URL) throws -> Keyring {
        let file = root.appending(path: "secret.key")
        if !FileManager.default.fileExists(atPath: file.path) {
            try PrivateFile.write(Keyring.generateLine() + "\n", to: file)
        }
        return try Keyring(contentsOf: file.path)
    }

    private static func sender() throws -> Mailbox {
        guard let sender = Mailbox(parsing: "postern@localhost.example") else { throw CommandFailure("no sender") }
        return sender
    }

    /// How this process was called, relative to the working directory if it is below it.
    private static var ownPath: String {
        let path = ProcessInfo.processInfo.arguments.first ?? "postern"
        let here = FileManager.default.currentDirectoryPath + "/"
        return path.hasPrefix(here) ? String(path.dropFirst(here.count)) : path
    }

    private static func greet(origin: String, _ secrets: DevRealm.Secrets, _ cluster: DevCluster) {
        let secret = secrets.api
        let postern = ownPath
        let app = "--url \(origin) --client \(DevRealm.clientID) --email \(DevRealm.email)"
        say(
            """

            Postern serves realm "demo" on \(origin)
              public client        \(DevRealm.clientID)
              confidential client  \(DevRealm.apiClientID), secret \(secret)
              web site             \(DevRealm.webClientID), secret \(secrets.web), \
            redirect http://localhost:8081/callback
              Cotter's wire        \(DevRealm.cotterClientID)  (API key; any port of http://localhost, yourapp://)
              Prove's calls        \(DevRealm.proveClientID), secret \(secrets.prove); numbers \(DevRealm.codeNumber) \
            (code \(DevRealm.code)), \(DevRealm.passNumber) (passes)
              user                 \(DevRealm.email), \(DevRealm.phone)
              mails, messages      \(origin)/dev/outbox  (phones of AT, DE and US)
              passkeys             \(origin)/dev/passkey  (in a browser)
              administration       psql -v SHOW_CONTEXT=never -h \(cluster.socketDirectory.path) -U postgres postern
                                   (its manual: SELECT name, summary FROM admin.help;)

            Try it in another terminal:

              curl -s \(origin)/api/account/native/otp/request -H 'Content-Type: application/json' \\
                -d '{"Email":"\(DevRealm.email)"}'; echo

              CODE=$(curl -s \(origin)/dev/outbox.json | grep -o '"code":"[0-9]*"' | head -1 | grep -o '[0-9]*')
              TOKENS=$(curl -s \(origin)/connect/token -d grant_type=urn:cocoar:otp -d client_id=\(DevRealm.clientID) \\
                -d username=\(DevRealm.email) -d otp_code=$CODE \
            --data-urlencode 'scope=openid offline_access profile email')
              echo "$TOKENS"
              ACCESS=$(echo "$TOKENS" | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
              REFRESH=$(echo "$TOKENS" | sed 's/.*"refresh_token":"\\([^"]*\\)".*/\\1/')

              curl -s \(origin)/connect/userinfo -H "Authorization: Bearer $ACCESS"; echo
              curl -s \(origin)/connect/token -d grant_type=refresh_token \
            -d client_id=\(DevRealm.clientID) -d refresh_token=$REFRESH; echo
              curl -s \(origin)/connect/introspect -u \(DevRealm.apiClientID):\(secret) -d token=$ACCESS; echo
              curl -s -o /dev/null -w '%{http_code}\\n' \(origin)/connect/revoke \
            -d client_id=\(DevRealm.clientID) -d token=$ACCESS
              curl -s \(origin)/connect/introspect -u \(DevRealm.apiClientID):\(secret) -d token=$ACCESS; echo

            Or let a headless app do it, which prints every request and answer:

              postern=\(postern)
              $postern try otp \(app)
              $postern try magic \(app)
              $postern try passkey \(app)
              $postern try approval \(app)
              $postern try hosted \(app)
              $postern try possession --url \(origin) --client \(DevRealm.proveClientID) \\
                --secret-file .postern/\(DevRealm.proveClientID).secret --phone \(DevRealm.codeNumber) \
            --otp \(DevRealm.code)

            Ctrl-C stops everything; the data stays in .postern/ (--reset starts over).

            """)
    }
}
