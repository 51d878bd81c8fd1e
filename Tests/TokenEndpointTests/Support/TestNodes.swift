import Grants
import HTTPTypes
import HostedPages
import Logging
import Persistence
import TestSupport
import Testing
@testable import TokenEndpoint

/// Two nodes on one database, composed as `postern serve` composes them, without listeners.
struct TestNodes: Sendable {
    static let shared = Task { try await TestNodes() }

    let database: MigratedDatabase
    let one: Application
    let two: Application

    private init() async throws {
        let database = try await MigratedDatabase()
        func node() throws -> Application {
            var configuration = ServerConfiguration(listen: ListenAddress(host: "127.0.0.1", port: 0))
            configuration.trustedProxies = [CIDR("10.0.0.0/8")].compactMap(\.self)
            configuration.uniformDeadline = UniformDeadline(.zero)
            return try Server.compose(
                configuration, database: database.database,
                keyring: .fixture(),
                parts: ServerParts(
                    pages: HostedPages.init, postLogoutToken: { _, _ in "not sent" },
                    postEvent: { _, _ in .failed("not sent") }), logger: quiet)
        }
        self.database = database
        (one, two) = (try node(), try node())
    }

    /// Makes a realm with a confidential client `SLUG-api` that may act for itself. - Returns: its secret.
    func realm(_ slug: String, also sql: String = "") async throws -> String {
        let rows = try await database.administer(
            """
            SELECT admin.put_realm('\(slug)', '\(slug).example');
            SELECT admin.set_native_grants('\(slug)', true);
            SELECT admin.put_client('\(slug)', '\(slug)-app');
            SELECT admin.grant_permission('\(slug)', '\(slug)-app', 'gt:urn:cocoar:otp', 'gt:refresh_token');
            SELECT admin.put_client('\(slug)', '\(slug)-api', 'confidential');
            SELECT admin.put_service_account('\(slug)', 'nightly', '\(slug)-api');
            SELECT admin.grant_permission('\(slug)', '\(slug)-api', 'gt:client_credentials', 'ept:introspection',
                                          'ept:revocation');
            \(sql)
            SELECT 'secret ' || admin.rotate_client_secret('\(slug)', '\(slug)-api');
            """)
        // Nothing here tells the nodes of a change, as the listening connection would.
        for node in [one, two] { node.realms.clusters[0].invalidate() }
        return String(try #require(rows.last?.split(separator: " ").last))
    }
}

extension Application {
    func answer(_ request: Request, from address: String = ResponderFixture.stranger) async -> Answer {
        await responder.respond(to: request, from: IPAddress(address))
    }
}
