import Crypto
import Encoding
import Foundation

/// The realms of `postern dev`, put in place with the same functions an administrator uses. Safe to run at every start.
struct DevRealm {
    static let clientID = "demo-app"
    static let apiClientID = "demo-api"
    /// A web site that signs in by the pages; `http://localhost:8081/callback` is its redirect URI.
    static let webClientID = "demo-web"
    /// An app on Cotter's wire, with a loopback redirect.
    static let cotterClientID = "demo-cotter"
    /// A backend that proves phone numbers on Prove's calls, for the app `demo-app`.
    static let proveClientID = "demo-prove"
    /// The app of `examples/spa`, at ``appHost``.
    static let spaClientID = "demo-spa"
    /// Nothing is sent to these, in the form that Prove's samples have: one takes this code, the other passes at once.
    static let codeNumber = "2001004014"
    static let code = "123406"
    static let passNumber = "2001004018"
    /// Of realm `demo`, and RP-ID of `demo-app`.
    static let host = "localhost"
    /// Of realm `garden`.
    static let gardenHost = "garden.localhost"
    /// Of the demo app.
    static let appHost = "app.localhost"
    static let email = "ada@example.com"
    static let phone = "+14155550123"
    static let gardenEmail = "bob@example.com"

    /// The port of every origin.
    let port: Int
    var origin: String { "http://\(Self.host):\(port)" }
    var gardenOrigin: String { "http://\(Self.gardenHost):\(port)" }
    var appOrigin: String { "http://\(Self.appHost):\(port)" }

    /// The secrets of the confidential clients.
    struct Secrets {
        let api: String
        let web: String
        let prove: String
    }

    /// All or nothing: a start that was broken off leaves no realm that the next one would not know for its own.
    /// - Parameter folder: keeps the secrets, which the database cannot tell again.
    func provision(_ database: DevDatabase, secretsIn folder: URL) async throws -> Secrets {
        try await database.rows("BEGIN;" + realms + clients + outbox + "COMMIT")
        return Secrets(
            api: try await Self.secret(of: Self.apiClientID, database, in: folder),
            web: try await Self.secret(of: Self.webClientID, database, in: folder),
            prove: try await Self.secret(of: Self.proveClientID, database, in: folder))
    }

    private var realms: String {
        """
        SELECT admin.put_realm('demo', primary_domain => '\(Self.host)', display_name => 'Postern Demo',
                               public_origin => '\(origin)');
        SELECT admin.put_realm('garden', primary_domain => '\(Self.gardenHost)', display_name => 'Stadtgarten',
                               public_origin => '\(gardenOrigin)');
        SELECT admin.set_branding('garden', product_name => 'Stadtgarten', accent => '#2e7d32',
                                  accent_dark => '#81c784');
        SELECT admin.set_hosted(r, enabled => true, methods => '{passkey,email-code,magic-link,phone-code}',
                                default_locale => l)
          FROM (VALUES ('demo', NULL), ('garden', 'de')) AS t (r, l);
        SELECT admin.set_phone_policy('demo', regions => '{AT,DE,US}', default_region => 'US');
        SELECT admin.set_phone_policy('garden', regions => '{AT,DE}', default_region => 'DE');
        SELECT admin.set_possession('demo', true);
        SELECT admin.set_native_grants(r, enabled => true),
               -- A developer asks for many codes from one machine, adds and removes devices, and asks them often.
               admin.set_code_policy(r, resend_cooldown => interval '0'),
               admin.set_approvals(r, true, public_clients => true, probation => interval '0')
          FROM unnest(ARRAY['demo', 'garden']) AS r;
        SELECT admin.set_rate_limit(r, p, d, 1000, interval '1 minute')
          FROM unnest(ARRAY['demo', 'garden']) AS r,
               unnest(ARRAY['native-otp', 'magic-link', 'phone-otp', 'approval']) AS p,
               unnest(ARRAY['target', 'target-total']) AS d;
        SELECT admin.set_rate_limit(r, 'phone-otp', 'prefix', 1000, interval '1 minute')
          FROM unnest(ARRAY['demo', 'garden']) AS r;
        SELECT admin.put_user('demo', '\(Self.email)', 'Ada', 'Lovelace', email_verified => true,
                              phone => '\(Self.phone)');
        SELECT admin.put_user('garden', '\(Self.gardenEmail)', 'Bob', 'Gärtner', email_verified => true);

        """
    }

    private var clients: String {
        """
        SELECT admin.put_client(r, '\(Self.clientID)', 'public', n, rp_id => h),
               admin.put_web_origin(r, '\(Self.clientID)', o),
               admin.put_web_origin(r, '\(Self.clientID)', 'http://localhost:*'),
               admin.put_redirect_uri(r, '\(Self.clientID)', 'http://localhost'),
               admin.put_redirect_uri(r, '\(Self.clientID)', 'http://127.0.0.1'),
               admin.grant_permission(r, '\(Self.clientID)', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic',
                   'gt:urn:cocoar:passkey', 'gt:authorization_code', 'gt:refresh_token', 'scp:profile', 'scp:email',
                   'scp:phone', 'gt:urn:openid:params:grant-type:ciba', 'gt:urn:postern:device')
          FROM (VALUES ('demo', 'Demo App', '\(Self.host)', '\(origin)'),
                       ('garden', 'Garten-App', '\(Self.gardenHost)', '\(gardenOrigin)')) AS t (r, n, h, o);
        SELECT admin.grant_permission('demo', '\(Self.clientID)', 'gt:urn:postern:possession');

        SELECT admin.put_client('demo', '\(Self.spaClientID)', 'public', 'Demo SPA', rp_id => '\(Self.appHost)');
        SELECT admin.put_web_origin('demo', '\(Self.spaClientID)', '\(appOrigin)');
        SELECT admin.put_redirect_uri('demo', '\(Self.spaClientID)', '\(appOrigin)/');
        SELECT admin.put_logout_uri('demo', '\(Self.spaClientID)', '\(appOrigin)/', 'post-logout');
        SELECT admin.grant_permission('demo', '\(Self.spaClientID)', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic',
            'gt:urn:cocoar:passkey', 'gt:authorization_code', 'gt:refresh_token', 'gt:urn:postern:device',
            'scp:profile', 'scp:email');

        SELECT admin.put_client('demo', '\(Self.apiClientID)', 'confidential', 'Demo API');
        SELECT admin.grant_permission('demo', '\(Self.apiClientID)', 'ept:introspection', 'ept:revocation');

        SELECT admin.put_client('demo', '\(Self.webClientID)', 'confidential', 'Demo Web');
        SELECT admin.grant_permission('demo', '\(Self.webClientID)', 'gt:authorization_code', 'gt:refresh_token',
                                      'scp:profile', 'scp:email', 'scp:phone');
        SELECT admin.put_redirect_uri('demo', '\(Self.webClientID)', 'http://localhost:8081/callback');
        SELECT admin.put_logout_uri('demo', '\(Self.webClientID)', 'http://localhost:8081/', 'post-logout');

        SELECT admin.put_client('demo', '\(Self.cotterClientID)', 'public', 'Demo Cotter', access_token_type => 'jwt');
        SELECT admin.grant_permission('demo', '\(Self.cotterClientID)', 'cap:cotter', 'gt:authorization_code',
                                      'gt:refresh_token', 'scp:profile', 'scp:email', 'scp:phone');
        SELECT admin.put_redirect_uri('demo', '\(Self.cotterClientID)', u)
          FROM unnest(ARRAY['http://localhost', 'http://127.0.0.1', 'yourapp://']) AS u;

        SELECT admin.put_client('demo', '\(Self.proveClientID)', 'confidential', 'Demo Prove');
        SELECT admin.put_service_account('demo', '\(Self.proveClientID)', '\(Self.proveClientID)');
        SELECT admin.grant_permission('demo', '\(Self.proveClientID)', 'gt:client_credentials', 'ept:possession',
                                      'cap:assert-possession');
        SELECT admin.put_possession_client('demo', '\(Self.proveClientID)', phone_change => true,
                                           login_client => '\(Self.clientID)');
        SELECT admin.put_web_origin('demo', '\(Self.proveClientID)', o)
          FROM unnest(ARRAY['\(origin)', 'http://localhost:*']) AS o;
        SELECT admin.put_test_number('demo', n, '\(Self.proveClientID)', o, c, now() + interval '29 days')
          FROM (VALUES ('+1\(Self.codeNumber)', 'code', '\(Self.code)'), ('+1\(Self.passNumber)', 'pass', NULL))
               AS t (n, o, c);

        """
    }

    /// Messages to phones and devices stay in memory, as mails do: /dev/outbox. No administrator can give a realm this
    /// provider, so it also shows which realms are of `postern dev`.
    private var outbox: String {
        """
        INSERT INTO postern.channel (realm_id, channel, name, provider)
        SELECT r.id, c.channel, 'dev', 'outbox'
          FROM postern.realm AS r, unnest(postern.channels_with_providers()) AS c (channel)
         WHERE r.slug IN ('demo', 'garden') ON CONFLICT DO NOTHING;

        """
    }

    /// The one of the file if it still is the client's; the file may be of another database.
    private static func secret(of client: String, _ database: DevDatabase, in folder: URL) async throws -> String {
        let file = folder.appending(path: "\(client).secret")
        let hash = try await database.rows(
            """
            SELECT encode(c.secret_hash, 'hex') FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id
             WHERE r.slug = 'demo' AND c.client_id = '\(client)'
            """
        ).first?.first
        if let kept = try? String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines),
            Hex.encode(Array(SHA256.hash(data: Data(kept.utf8)))) == hash
        {
            return kept
        }
        let secret = try await database.rows("SELECT admin.rotate_client_secret('demo', '\(client)')").first?.first
        guard let secret else { throw CommandFailure("database: client \(client) got no secret") }
        try PrivateFile.write(secret + "\n", to: file)
        return secret
    }
}

/// Files only their owner may read.
enum PrivateFile {
    static func write(_ text: String, to file: URL) throws {
        guard
            FileManager.default.createFile(
                atPath: file.path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        else { throw CommandFailure("\(file.path) cannot be written") }
    }
}
