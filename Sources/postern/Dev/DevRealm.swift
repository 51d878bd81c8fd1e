import Foundation

/// The demo realm of `postern dev`, put in place with the same functions an administrator uses. Safe to run at every
/// start.
enum DevRealm {
    static let clientID = "demo-app"
    static let apiClientID = "demo-api"
    /// A web site that signs in by the pages; `http://localhost:8081/callback` is its redirect URI.
    static let webClientID = "demo-web"
    /// An app on Cotter's wire, with a loopback redirect.
    static let cotterClientID = "demo-cotter"
    /// A backend that proves phone numbers on Prove's calls, for the app `demo-app`.
    static let proveClientID = "demo-prove"
    /// Nothing is sent to these, in the form that Prove's samples have: one takes this code, the other passes at once.
    static let codeNumber = "2001004014"
    static let code = "123406"
    static let passNumber = "2001004018"
    /// Of `demo-app`.
    static let rpID = "localhost"
    static let email = "ada@example.com"
    static let phone = "+14155550123"

    /// The secrets of the confidential clients.
    struct Secrets {
        let api: String
        let web: String
        let prove: String
    }

    /// - Parameter folder: keeps the secrets, which the database cannot tell again.
    static func provision(_ cluster: DevCluster, origin: String, secretsIn folder: URL) throws -> Secrets {
        try cluster.sql(
            """
            DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postern_dev') THEN
                    CREATE ROLE postern_dev LOGIN IN ROLE postern_app;
                END IF;
            END $$;
            SELECT admin.put_realm('demo', primary_domain => 'localhost', display_name => 'Postern Demo',
                                   public_origin => '\(origin)');
            SELECT admin.set_native_grants('demo', enabled => true);
            -- A developer asks for many codes from one machine.
            SELECT admin.set_code_policy('demo', resend_cooldown => interval '0');
            SELECT admin.set_rate_limit('demo', 'native-otp', 'target', 1000, interval '1 minute');
            SELECT admin.set_rate_limit('demo', 'native-otp', 'target-total', 1000, interval '1 minute');
            SELECT admin.set_rate_limit('demo', 'magic-link', 'target', 1000, interval '1 minute');
            SELECT admin.set_rate_limit('demo', 'magic-link', 'target-total', 1000, interval '1 minute');
            SELECT admin.put_client('demo', '\(clientID)', 'public', 'Demo App', rp_id => '\(rpID)');
            SELECT admin.put_web_origin('demo', '\(clientID)', o)
              FROM unnest(ARRAY['\(origin)', 'http://localhost:*']) AS o;
            SELECT admin.grant_permission('demo', '\(clientID)', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic',
                                          'gt:urn:cocoar:passkey', 'gt:refresh_token', 'scp:profile', 'scp:email');
            SELECT admin.put_client('demo', '\(apiClientID)', 'confidential', 'Demo API');
            SELECT admin.grant_permission('demo', '\(apiClientID)', 'ept:introspection', 'ept:revocation');
            SELECT admin.set_rate_limit('demo', 'phone-otp', 'target', 1000, interval '1 minute');
            SELECT admin.set_rate_limit('demo', 'phone-otp', 'target-total', 1000, interval '1 minute');
            SELECT admin.set_rate_limit('demo', 'phone-otp', 'prefix', 1000, interval '1 minute');
            SELECT admin.set_hosted('demo', enabled => true,
                                    methods => '{passkey,email-code,magic-link,phone-code}');
            SELECT admin.set_phone_policy('demo', regions => '{AT,DE,US}', default_region => 'US');
            SELECT admin.put_client('demo', '\(webClientID)', 'confidential', 'Demo Web');
            SELECT admin.grant_permission('demo', c, 'gt:authorization_code', 'gt:refresh_token', 'scp:profile',
                                          'scp:email', 'scp:phone')
              FROM unnest(ARRAY['\(clientID)', '\(webClientID)']) AS c;
            SELECT admin.put_redirect_uri('demo', '\(webClientID)', 'http://localhost:8081/callback');
            SELECT admin.put_logout_uri('demo', '\(webClientID)', 'http://localhost:8081/', 'post-logout');
            SELECT admin.put_redirect_uri('demo', '\(clientID)', u)
              FROM unnest(ARRAY['http://localhost', 'http://127.0.0.1']) AS u;
            SELECT admin.put_client('demo', '\(cotterClientID)', 'public', 'Demo Cotter', access_token_type => 'jwt');
            SELECT admin.grant_permission('demo', '\(cotterClientID)', 'cap:cotter', 'gt:authorization_code',
                                          'gt:refresh_token', 'scp:profile', 'scp:email', 'scp:phone');
            SELECT admin.put_redirect_uri('demo', '\(cotterClientID)', u)
              FROM unnest(ARRAY['http://localhost', 'http://127.0.0.1', 'yourapp://']) AS u;
            SELECT admin.put_user('demo', '\(email)', 'Ada', 'Lovelace', email_verified => true, phone => '\(phone)');
            -- Approvals: a developer adds and removes devices, and asks often.
            SELECT admin.set_approvals('demo', true, public_clients => true, probation => interval '0');
            SELECT admin.set_rate_limit('demo', 'approval', d, 1000, interval '1 minute')
              FROM unnest(ARRAY['target', 'target-total']) AS d;
            SELECT admin.set_possession('demo', true);
            SELECT admin.grant_permission('demo', '\(clientID)', 'gt:urn:openid:params:grant-type:ciba',
                                          'gt:urn:postern:device', 'gt:urn:postern:possession');
            SELECT admin.put_client('demo', '\(proveClientID)', 'confidential', 'Demo Prove');
            SELECT admin.put_service_account('demo', '\(proveClientID)', '\(proveClientID)');
            SELECT admin.grant_permission('demo', '\(proveClientID)', 'gt:client_credentials', 'ept:possession',
                                          'cap:assert-possession');
            SELECT admin.put_possession_client('demo', '\(proveClientID)', phone_change => true,
                                               login_client => '\(clientID)');
            SELECT admin.put_web_origin('demo', '\(proveClientID)', o)
              FROM unnest(ARRAY['\(origin)', 'http://localhost:*']) AS o;
            SELECT admin.put_test_number('demo', n, '\(proveClientID)', o, c, now() + interval '29 days')
              FROM (VALUES ('+1\(codeNumber)', 'code', '\(code)'), ('+1\(passNumber)', 'pass', NULL)) AS t (n, o, c);
            -- Messages to phones and devices stay in memory, as mails do: /dev/outbox.
            INSERT INTO postern.channel (realm_id, channel, name, provider)
            SELECT r.id, c.channel, 'dev', 'outbox'
              FROM postern.realm AS r, unnest(postern.channels_with_providers()) AS c (channel)
             WHERE r.slug = 'demo' ON CONFLICT DO NOTHING;
            """)
        return Secrets(
            api: try secret(of: apiClientID, cluster, in: folder),
            web: try secret(of: webClientID, cluster, in: folder),
            prove: try secret(of: proveClientID, cluster, in: folder))
    }

    private static func secret(of client: String, _ cluster: DevCluster, in folder: URL) throws -> String {
        let file = folder.appending(path: "\(client).secret")
        if let kept = try? String(contentsOf: file, encoding: .utf8) {
            return kept.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let secret = try cluster.sql("SELECT admin.rotate_client_secret('demo', '\(client)')")
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
