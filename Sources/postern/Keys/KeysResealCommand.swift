import ArgumentParser
import Grants
import Persistence

/// `postern keys reseal`.
struct KeysResealCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reseal",
        abstract: "Move everything that an older line of the key file protects to the newest line.",
        discussion: """
            Data keys (which protect signing keys, TOTP seeds, recovery codes and test codes) are sealed anew, in \
            batches, while servers run. Then prints what is left on each line. A session leaves a line with its next \
            refresh or its end: run this again to see. A line may be removed when nothing is left on it. Every node \
            must have the newest line before. \
            Reads POSTERN_DATABASE_URL and POSTERN_SECRET_KEY_FILE; needs no running server.
            """)

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    @Option(name: .long, help: "The database cluster, when there are several; the first one when not given.")
    var cluster: String?

    func run() async throws {
        let settings = try await Settings(file: config, cluster: cluster)
        let conninfo = try settings.databaseURL()
        let keyring = try settings.keyring()
        try await Preflight.checkSchema(conninfo: conninfo)
        let use: KeyLineUse
        do {
            use = try await OneOffDatabase.use(conninfo, statementTimeout: .seconds(60)) { database in
                let resealing = KeyResealing(store: DataKeyStore(database), keyring: keyring)
                // The report below names a missing line together with what depends on it.
                do {
                    let count = try await resealing.resealDataKeys {
                        say("Sealed by line \(keyring.newest.name): \($0) data keys.")
                    }
                    if count == 0 { say("Every data key is sealed by line \(keyring.newest.name).") }
                } catch is KeyringError {
                    say("Not every data key could be opened.")
                }
                return try await KeyLineStore(database).use()
            }
        } catch let error as StoreError {
            throw CommandFailure("database: \(error)")
        }
        for sentence in KeyLines.sentences(use, keyring: keyring) { say(sentence) }
        try KeyLines.requireNothingMissing(use, keyring: keyring)
    }
}
