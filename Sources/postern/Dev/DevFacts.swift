import Foundation
import Synchronization

/// What there is: what `/dev/index.json` says and the index page shows. No secret is among it.
struct DevFacts: Codable, Sendable {
    struct Realm: Codable, Sendable {
        let realm: String
        let name: String
        let origin: String
        /// All hosts, those of Apps too.
        let hosts: [String]
        var clients: [Client]
        /// The first ones.
        let users: [User]
        let userCount: Int
    }

    struct Client: Codable, Sendable {
        let clientId: String
        let name: String
        let type: String
        /// Of a confidential client of the demo realm, in the folder where `postern dev` runs.
        var secretFile: String?
    }

    struct User: Codable, Sendable {
        let name: String?
        let email: String?
        let phone: String?
    }

    /// A program to paste.
    struct Example: Codable, Sendable {
        let name: String
        /// Where and how.
        let hint: String
        let text: String
    }

    /// Pages and documents, by their URLs.
    struct Links: Codable, Sendable {
        let index: String
        let outbox: String
        let passkey: String
        let demoApp: String
        let discovery: String
        let modules: String
    }

    var realms: [Realm] = []
    let links: Links
    let examples: [Example]
    /// The administrator's command.
    let administration: String

    /// All hosts of realms.
    var hosts: [String] { realms.flatMap(\.hosts) }
}

/// Reads what there is, at most once a second: a realm that an administrator made a moment ago is there, too.
actor DevFactsReader {
    private let database: DevDatabase
    private let constant: DevFacts
    private let secrets: URL
    private var last: (task: Task<DevFacts, any Error>, at: ContinuousClock.Instant)?

    /// - Parameters:
    ///   - constant: what does not change while the process runs.
    ///   - secrets: the folder of the files of secrets.
    init(_ database: DevDatabase, constant: DevFacts, secrets: URL) {
        self.database = database
        self.constant = constant
        self.secrets = secrets
    }

    /// - Throws: ``CommandFailure`` while the database cannot be asked.
    func facts() async throws -> DevFacts {
        if let last, ContinuousClock.now - last.at < .seconds(1) { return try await last.task.value }
        let task = Task { try await read() }
        last = (task, .now)
        return try await task.value
    }

    private func read() async throws -> DevFacts {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        var facts = constant
        let json = try await database.rows(Self.query).first?.first ?? "[]"
        facts.realms = try decoder.decode([DevFacts.Realm].self, from: Data(json.utf8))
        for realm in facts.realms.indices where facts.realms[realm].realm == "demo" {
            for client in facts.realms[realm].clients.indices {
                let file = "\(facts.realms[realm].clients[client].clientId).secret"
                if FileManager.default.fileExists(atPath: secrets.appending(path: file).path) {
                    facts.realms[realm].clients[client].secretFile = "\(secrets.lastPathComponent)/\(file)"
                }
            }
        }
        return facts
    }

    private static let query = """
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'realm', r.slug, 'name', r.display_name, 'origin', r.public_origin,
                   'hosts', (SELECT coalesce(jsonb_agg(d.domain ORDER BY d.app IS NOT NULL, d.domain), '[]')
                               FROM postern.realm_domain AS d WHERE d.realm_id = r.id),
                   'clients', (SELECT coalesce(jsonb_agg(jsonb_build_object('client_id', c.client_id,
                                          'name', c.display_name, 'type', c.client_type) ORDER BY c.client_id), '[]')
                                 FROM admin.clients AS c WHERE c.realm = r.slug AND c.enabled),
                   'users', (SELECT coalesce(jsonb_agg(jsonb_build_object('email', u.email, 'phone', u.phone,
                                        'name', nullif(concat_ws(' ', u.first_name, u.last_name), ''))
                                        ORDER BY u.created_at, u.id), '[]')
                               FROM (SELECT * FROM admin.users AS u WHERE u.realm = r.slug
                                      ORDER BY u.created_at, u.id LIMIT 5) AS u),
                   'user_count', (SELECT count(*) FROM postern.user_account AS u WHERE u.realm_id = r.id))
                   ORDER BY r.created_at, r.slug), '[]')
          FROM admin.realms AS r WHERE r.enabled AND r.deleted_at IS NULL
        """
}
