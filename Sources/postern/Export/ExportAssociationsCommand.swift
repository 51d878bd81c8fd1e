import ArgumentParser
import Foundation
import Grants
import Persistence
import TokenEndpoint

/// `postern export associations`.
struct ExportAssociationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "associations",
        abstract: "The association files of one client, for an RP-ID whose host Postern does not serve itself.",
        discussion: """
            apple-app-site-association and assetlinks.json tie apps to the RP-ID, so that they may use its passkeys. \
            On its own hosts Postern serves them, and there they name the apps that may open links of /magic-login \
            too. Elsewhere publish them at https://<RP-ID>/.well-known/, as application/json and without a redirect. \
            Reads POSTERN_DATABASE_URL.
            """)

    @Option(name: .long, help: "The realm's slug.")
    var realm: String

    @Option(name: .long, help: "The client_id.")
    var client: String

    @Option(name: .long, help: "A directory to write the files to; printed when not given.")
    var output: String?

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    @Option(name: .long, help: "The database cluster, when there are several; the first one when not given.")
    var cluster: String?

    func run() async throws {
        let conninfo = try await Settings(file: config, cluster: cluster).databaseURL()
        try await Preflight.checkSchema(conninfo: conninfo)
        let (associations, rpID) = try await associations(conninfo)
        let files = associations.files
        guard !files.isEmpty else {
            throw CommandFailure(
                "nothing is registered for client \(client) of realm \(realm): call admin.put_ios_app or "
                    + "admin.put_android_app first")
        }
        let place = "https://\(rpID)/.well-known/"
        for (name, json) in files {
            if let output {
                say("\(try write(json, name, to: output)) is for \(place)\(name)")
            } else {
                say("# \(place)\(name)\n\(String(decoding: json, as: UTF8.self))")
            }
        }
    }

    private func associations(_ conninfo: String) async throws -> (Associations, rpID: String) {
        let slug = realm
        guard let realm = try await realm(conninfo) else {
            throw CommandFailure(
                "realm \(slug) does not exist or is disabled: SELECT slug, enabled FROM admin.realms shows them")
        }
        guard let registered = realm.clients[client] else {
            throw CommandFailure(
                "realm \(slug) has no client \(client): SELECT client_id FROM admin.clients shows them")
        }
        guard let rpID = realm.rpID(for: registered) else {
            throw CommandFailure(
                "client \(client) has no RP-ID and realm \(slug) no primary domain: "
                    + "set one with admin.put_client(…, rp_id => …)")
        }
        return (Associations(passkeysOf: registered), rpID)
    }

    private func realm(_ conninfo: String) async throws -> Realm? {
        let slug = realm
        do {
            return try await OneOffDatabase.use(conninfo) { database in
                try await Realm.named(slug, in: ConfigurationStore(database))
            }
        } catch let error as StoreError {
            throw CommandFailure("database: \(error)")
        }
    }

    private func write(_ json: [UInt8], _ name: String, to directory: String) throws -> String {
        let folder = URL(filePath: directory)
        let file = folder.appending(path: name)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(json).write(to: file, options: .atomic)
        } catch {
            throw CommandFailure("\(file.path) cannot be written: \(error.localizedDescription)")
        }
        return file.path
    }
}
