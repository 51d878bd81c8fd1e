import ArgumentParser
import Delivery
import Foundation
import Logging
import NIOCore
import Persistence
import TokenEndpoint

/// `postern dev`.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Run everything on this machine: a private PostgreSQL, a demo realm, a dev outbox.",
        discussion: """
            Creates and starts a private PostgreSQL cluster in .postern/ of the working directory, or takes the one of \
            --database, migrates it, provisions realm `demo` on localhost and realm `garden` on garden.localhost, and \
            serves them, a demo app on app.localhost, and an index page that says what there is and what to try. Mail \
            goes to /dev/outbox instead of out. Data survives restarts. Not for production.
            """)

    @Option(name: .long, help: "The port to serve on.")
    var port = 8080

    @Option(
        name: .long,
        help: """
            The address to listen on. All who reach another one than 127.0.0.1 read every mail; the hosts stay \
            localhost and those below it.
            """)
    var listen = "127.0.0.1"

    @Option(
        name: .long,
        help: """
            A libpq URI of a superuser: use that database instead of a private cluster. It must have no realm but \
            those of `postern dev`. Its secret key stays in .postern/.
            """)
    var database: String?

    @Flag(name: .long, help: "Delete the data of earlier runs first.")
    var reset = false

    func validate() throws {
        guard (1...65535).contains(port) else { throw ValidationError("--port is from 1 to 65535, not \(port)") }
        guard (try? SocketAddress(ipAddress: listen, port: port)) != nil else {
            throw ValidationError("--listen is an address such as 0.0.0.0, not \(listen)")
        }
        guard database == nil || !reset else {
            throw ValidationError("--reset deletes the private cluster: with --database empty that database yourself")
        }
    }

    func run() async throws {
        let address = ListenAddress(host: listen, port: port)
        try await ServerRun.listening(on: [address]) { try await address.checkIsFree() }
        let logger = Logger.postern(level: .notice, json: false)
        if !listen.hasPrefix("127."), listen != "::1" {
            logger.warning("all who reach \(address) read every mail and message at /dev/outbox")
        }
        let root = URL(filePath: FileManager.default.currentDirectoryPath).appending(path: ".postern")
        if reset { try Self.reset(root) }
        if let database {
            try await serve(try await DevDatabase(url: database), root, on: address, logger)
        } else {
            let cluster = try DevCluster(root: root)
            let postgres = try cluster.start()
            defer { if let postgres { cluster.stop(postgres) } }
            try await serve(DevDatabase(cluster), root, on: address, logger)
        }
    }

    private func serve(
        _ database: DevDatabase, _ root: URL, on address: ListenAddress, _ logger: Logger
    ) async throws {
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        say("Migrating its database …")
        try await Migrator(conninfo: database.conninfo).migrate(progress: { _ in })
        let keyring = try Self.keyring(root)
        try await Self.check(keyring, root, opens: database)
        let realm = DevRealm(port: port)
        let secrets = try await realm.provision(database, secretsIn: root)

        let outbox = DevOutbox()
        let facts = DevFactsReader(
            database, constant: DevFacts(realm, administration: database.psql), secrets: root)
        let index = DevIndexPages(facts: facts)
        var configuration = ServerConfiguration(listen: address)
        configuration.shutdownGrace = .seconds(5)
        let greeting = DevGreeting(realm: realm, secrets: secrets, database: database)
        try await ServerRun(
            configuration: configuration, clusters: [("home", database.conninfo)], role: DevDatabase.role,
            connections: 8,
            keyring: keyring, mailSender: try Self.sender(), transport: outbox,
            secrets: SecretFiles(folder: nil), memory: outbox,
            extraRoutes: index.routes + DevOutboxRoutes(outbox: outbox).routes
                + DevPasskeyRoutes(clientID: DevRealm.clientID, rpID: DevRealm.host, email: DevRealm.email).routes,
            elsewhere: DevHosts(realm, index: index, facts: facts).others,
            logger: logger, onStarted: { say(greeting.text) }
        ).run()
    }

    /// - Throws: ``CommandFailure`` when the database's keys were sealed under another secret key.
    private static func check(_ keyring: Keyring, _ root: URL, opens database: DevDatabase) async throws {
        do {
            _ = try await Preflight.checkKeys(conninfo: database.conninfo, keyring: keyring)
        } catch {
            throw CommandFailure(
                "\(root.appending(path: "secret.key").path) is not the key of this database: put that back, or take an "
                    + "empty database (\(error))")
        }
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
}
