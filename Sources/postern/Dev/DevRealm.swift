import Foundation

/// The demo realm of `postern dev`, put in place with the same functions an administrator uses. Safe to run at every
/// start.
enum DevRealm {
    static let clientID = "demo-app"
    static let apiClientID = "demo-api"
    /// Of `demo-app`.
    static let rpID = "localhost"
    static let email = "ada@example.com"

    /// - Parameters:
    ///   - secretFile: keeps the secret of `demo-api`, which the database cannot tell again.
    /// - Returns: that secret.
    static func provision(_ cluster: DevCluster, origin: String, secretFile: URL) throws -> String {
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
            SELECT admin.put_web_origin('demo', '\(clientID)', '\(origin)');
            SELECT admin.grant_permission('demo', '\(clientID)', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic',
                                          'gt:urn:cocoar:passkey', 'gt:refresh_token', 'scp:profile', 'scp:email');
            SELECT admin.put_client('demo', '\(apiClientID)', 'confidential', 'Demo API');
            SELECT admin.grant_permission('demo', '\(apiClientID)', 'ept:introspection', 'ept:revocation');
            SELECT admin.put_user('demo', '\(email)', 'Ada', 'Lovelace', email_verified => true);
            -- Messages to phones and devices stay in memory, as mails do: /dev/outbox.
            INSERT INTO postern.channel (realm_id, channel, name, provider)
            SELECT r.id, c.channel, 'dev', 'outbox'
              FROM postern.realm AS r, unnest('{sms,voice,whatsapp,push}'::text[]) AS c (channel)
             WHERE r.slug = 'demo' ON CONFLICT DO NOTHING;
            """)
        if let kept = try? String(contentsOf: secretFile, encoding: .utf8) {
            return kept.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let secret = try cluster.sql("SELECT admin.rotate_client_secret('demo', '\(apiClientID)')")
        try PrivateFile.write(secret + "\n", to: secretFile)
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
