import ArgumentParser
import Foundation
import Grants
import Persistence

/// `postern keys rotate`.
struct KeysRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Publish a realm's next signing key, and switch to it after the overlap.",
        discussion: """
            The next key is in the JWKS at once and signs from ten minutes later, when everybody who honours the \
            JWKS's max-age has seen it. The former key stays published until its last token has expired. While a next \
            key is waiting there is no other: --now lets it sign at once. Another algorithm becomes the realm's, \
            unless clients ask for it themselves. \
            Reads POSTERN_DATABASE_URL and POSTERN_SECRET_KEY_FILE; needs no running server.
            """)

    @Option(name: .long, help: "The realm's slug.")
    var realm: String

    @Option(name: .long, help: "ES256, RS256 or EdDSA; the realm's present one when not given.")
    var alg: String?

    @Flag(name: .long, help: "Sign with the next key at once.")
    var now = false

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    @Option(name: .long, help: "The database cluster, when there are several; the first one when not given.")
    var cluster: String?

    func validate() throws {
        if let alg, SigningAlgorithm(rawValue: alg) == nil {
            throw ValidationError("--alg is ES256, RS256 or EdDSA, not \(alg)")
        }
    }

    func run() async throws {
        let settings = try await Settings(file: config, cluster: cluster)
        let conninfo = try settings.databaseURL()
        let keyring = try settings.keyring()
        try await Preflight.checkSchema(conninfo: conninfo)
        let (slug, wanted, now) = (realm, alg.flatMap(SigningAlgorithm.init), now)
        let key: SealedSigningKey?
        do {
            key = try await OneOffDatabase.use(conninfo) { database in
                guard let realm = try await Realm.named(slug, in: ConfigurationStore(database)) else {
                    throw CommandFailure(
                        "realm \(slug) does not exist or is disabled: SELECT slug, enabled FROM admin.realms shows them"
                    )
                }
                let algorithm = wanted ?? realm.signingAlgorithm ?? .es256
                // A key of an algorithm that only clients ask for stays theirs.
                let clientsOnly = realm.clients.values.contains { $0.signingAlgorithm == algorithm }
                return try await SigningKeys(store: SigningKeyStore(database), keyring: keyring).rotate(
                    realm: realm.id, algorithm, .commanded(now: now, forRealm: !clientsOnly),
                    source: "postern keys rotate")
            }
        } catch let error as TokenError {
            throw CommandFailure(error.reason)
        } catch let error as StoreError {
            throw CommandFailure("database: \(error)")
        }
        guard let key else { throw CommandFailure("no key was made") }
        let when = Date(timeIntervalSince1970: key.activatesAt).formatted(.iso8601)
        say("Key \(key.kid) (\(key.alg)) of realm \(slug) is published and signs \(now ? "now" : "from \(when)").")
    }
}
