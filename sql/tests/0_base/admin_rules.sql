\ir ../helpers/setup.psql
BEGIN;
SELECT no_plan();
CREATE FUNCTION pg_temp.realm_setting(n text) RETURNS text
    LANGUAGE sql AS $$ SELECT to_jsonb(r) ->> n FROM admin.realms AS r WHERE r.slug = 'acme' $$;

-- Everything below is done by a login member of postern_admin, which has no other right.
SET LOCAL ROLE admin_login;
SELECT isnt(admin.put_realm('acme', 'id.acme.example'), NULL, 'a realm is made');
SELECT is(admin.put_realm('acme', 'id.acme.example'), (SELECT id FROM admin.realms WHERE slug = 'acme'),
          'and made again: the same one');
SELECT is(pg_temp.realm_setting(v.name), v.value, 'a new realm has ' || v.name || ' ' || v.value) FROM (VALUES
    ('display_name', 'acme'), ('public_origin', 'https://id.acme.example'), ('domains', '["id.acme.example"]'),
        ('enabled', 'true'), ('native_grants_enabled', 'false'),
    ('access_token_lifetime', '00:15:00'), ('refresh_token_lifetime', '14 days'), ('refresh_retry_window', '00:02:00'),
        ('session_lifetime', '365 days'),
    ('otp_lifetime', '00:10:00'), ('otp_attempts', '5'), ('otp_digits', '6'), ('magic_link_lifetime', '00:15:00'),
        ('resend_cooldown', '00:01:00'), ('ceremony_lifetime', '00:05:00')) AS v (name, value);
SELECT results_eq($$SELECT scope FROM admin.scopes WHERE realm = 'acme' ORDER BY 1$$,
                  ARRAY['email', 'offline_access', 'openid', 'profile'], 'and the four scopes');
SELECT lives_ok($$SELECT admin.put_realm('acme', display_name => 'Acme',
                                         domains => ARRAY['login.acme.example', 'id.acme.example'])$$,
                                             'settings are changed');
SELECT is(pg_temp.realm_setting('domains'), '["id.acme.example", "login.acme.example"]', 'domains as given');
SELECT lives_ok($$SELECT admin.put_realm('acme', domains => '{}')$$, 'all other domains are dropped');
SELECT is(pg_temp.realm_setting('domains') || pg_temp.realm_setting('display_name'), '["id.acme.example"]Acme',
          'the primary domain stays, and so does what was not given');
SELECT lives_ok($$SELECT admin.put_realm('other', public_origin => 'https://other.example:8443')$$,
                'a realm without primary domain');
SELECT lives_ok($$SELECT admin.put_realm('local', 'localhost', public_origin => 'http://localhost:8080')$$,
                'http is for localhost');
SELECT lives_ok($$SELECT admin.set_native_grants('acme', true, '60 minutes', '365 days', '0', '3650 days')$$,
                'the upper bounds');
SELECT lives_ok($$SELECT admin.set_native_grants('acme', NULL, '1 minute', '1 day', '600 s', '1 day')$$,
                'the other bounds');
SELECT is(pg_temp.realm_setting('native_grants_enabled') || pg_temp.realm_setting('access_token_lifetime')
          || pg_temp.realm_setting('refresh_retry_window'), 'true00:01:0000:10:00',
              'are stored, and NULL leaves as is');
SELECT lives_ok($$SELECT admin.set_code_policy('acme', '1 minute', 10, 8, '60 minutes', '0', '30 seconds')$$,
                'code policy at its bounds');
SELECT isnt(admin.put_client('acme', 'app', rp_id => 'acme.example'), NULL, 'a client is made');
SELECT is(admin.put_client('acme', 'app', display_name => 'App'),
          (SELECT id FROM admin.clients WHERE client_id = 'app'), 'and put again');
SELECT results_eq($$SELECT client_type || access_token_type || rp_id || require_dpop || enabled || display_name
                  FROM admin.clients WHERE client_id = 'app'$$, ARRAY['publicreferenceacme.examplefalsetrueApp'],
                       'with its defaults');
SELECT lives_ok($$SELECT admin.put_client('acme', 'api', 'confidential')$$, 'a confidential client');
SELECT is(admin.grant_permission('acme', 'app', 'scp:profile', 'gt:urn:cocoar:otp', 'gt:refresh_token'),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:otp', 'scp:profile'], 'permissions are sorted');
SELECT is(admin.grant_permission('acme', 'app', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:otp', 'ept:introspection'),
          ARRAY['ept:introspection', 'gt:refresh_token', 'gt:urn:cocoar:otp', 'scp:profile'], 'and distinct');
SELECT is(admin.revoke_permission('acme', 'app', 'ept:introspection', 'gt:urn:cocoar:magic'),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:otp', 'scp:profile'], 'and taken back');
SELECT is(admin.grant_permission('acme', 'api', 'ept:introspection', 'ept:revocation', 'ept:token'),
          ARRAY['ept:introspection', 'ept:revocation', 'ept:token'], 'endpoint permissions');
SELECT is(pg_temp.refusal($$SELECT admin.grant_permission('acme', 'api', 'gt:client_credentials')$$),
    '22023 permission "gt:client_credentials" needs a service account, and client_id "api" has none | Call '
    'admin.put_service_account(realm, name, client_id) first.', 'client_credentials needs a service account');
SELECT isnt(admin.put_service_account('acme', 'robot', 'api'), NULL, 'which is made');
SELECT is(admin.put_service_account('acme', 'robot', 'api'), admin.put_service_account('acme', 'robot', 'api'), 'once');
SELECT ok('gt:client_credentials' = ANY (admin.grant_permission('acme', 'api', 'gt:client_credentials')),
          'then it is granted');
SELECT matches(admin.rotate_client_secret('acme', 'api'), '^pcs_[A-Za-z0-9_-]{43}$', 'a secret of 256 bits');
SELECT isnt(admin.rotate_client_secret('acme', 'api'), admin.rotate_client_secret('acme', 'api', '1 hour'),
            'each its own');
SELECT lives_ok($$SELECT admin.put_scope('acme', 'orders:read', 'Read', ARRAY['https://api.acme.example'])$$,
                'a scope');
SELECT lives_ok($$SELECT admin.put_scope('acme', 'orders:read', in_discovery => false)$$, 'a scope again');
SELECT results_eq($$SELECT description || resources[1] || in_discovery || enabled FROM admin.scopes
                  WHERE scope = 'orders:read'$$, ARRAY['Readhttps://api.acme.examplefalsetrue'],
                      'with what was not given left');
SELECT is(admin.put_user('acme', 'Ada@Example.com', 'Ada'),
          admin.put_user('acme', 'ada@example.COM', last_name => 'Lovelace'), 'one user whatever the case');
SELECT results_eq($$SELECT email || first_name || last_name || email_verified || enabled FROM admin.users$$,
                  ARRAY['Ada@Example.comAdaLovelacetruetrue'], 'with the address as first given');
SELECT isnt(admin.put_user('acme', 'mike@example.com'), NULL, 'a plain address');
SELECT throws_like($$SELECT admin.put_user('acme', 'mıke@example.com')$$, '%is not an address',
                   'a Unicode twin could never sign in and is refused');
SELECT throws_like($$SELECT admin.put_user('acme', '-dash@example.com')$$, '%is not an address',
                   'what the server refuses to mail is refused here too');
SELECT throws_like($$SELECT admin.put_realm('evil', 'evil.example', public_origin => 'https://id.acme.example')$$,
                   'public_origin "https://id.acme.example" names a host of realm "acme"', 'one issuer, one realm');
SELECT isnt(admin.put_realm('headless', public_origin => 'https://headless.example'), NULL,
            'a realm without a primary domain');
SELECT results_eq($$SELECT unnest(domains) FROM admin.realms WHERE slug = 'headless'$$, ARRAY['headless.example'],
                  'answers at its own issuer');
SELECT lives_ok($$SELECT admin.set_rate_limit('acme', 'native-otp', 'source', 1000000, '1 minute')$$,
                'a limit at its ceiling');
SELECT results_eq($$SELECT permits, per, burst, mode, is_default FROM admin.rate_limits WHERE realm = 'acme'
                  AND policy = 'native-otp' AND dimension = 'source'$$,
    $$VALUES (1000000, interval '1 minute', 1000000, 'enforce', false)$$, 'burst defaults to permits');
SELECT lives_ok($$SELECT admin.set_rate_limit('acme', 'native-otp', 'source', mode => 'log-only')$$, 'mode alone');
SELECT results_eq($$SELECT permits, burst, mode FROM admin.rate_limits WHERE realm = 'acme' AND policy = 'native-otp'
                  AND dimension = 'source'$$, $$VALUES (1000000, 1000000, 'log-only')$$, 'keeps the rest');
SELECT results_eq($$SELECT policy || ' ' || dimension || ' ' || permits || '/' || extract(epoch FROM per)::int || ' '
                  || burst FROM admin.rate_limits WHERE realm = 'other' ORDER BY 1$$,
    ARRAY['approval client 6000/3600 6000', 'approval source 3000/3600 500', 'approval target 5/3600 5',
          'approval target-total 10/3600 10', 'authorize source 1200/60 400', 'magic-link app 30000/3600 30000', 'magic-link client 6000/3600 6000', 'magic-link source 3000/3600 500',
          'magic-link target 5/3600 5', 'magic-link target-total 10/3600 10',
          'native-otp app 30000/3600 30000', 'native-otp client 6000/3600 6000', 'native-otp registrations 120/3600 30',
              'native-otp source 3000/3600 500', 'native-otp target 5/3600 5', 'native-otp target-total 10/3600 10',
          'par client 6000/60 6000', 'par source 600/60 200', 'passkey-begin source 1200/300 300',
          'phone-otp app 15000/3600 15000', 'phone-otp client 3000/3600 3000', 'phone-otp country 300/3600 300',
          'phone-otp prefix 25/3600 25', 'phone-otp source 300/3600 100', 'phone-otp spend 10000/86400 10000',
          'phone-otp target 5/3600 5', 'phone-otp target-total 10/3600 10', 'possession client 6000/3600 6000', 'possession target 120/60 120', 'refused source 600/60 200', 'token failures 5/600 5',
              'token source 600/60 200', 'token wrong-codes 3000/3600 1000',
              'trusted-device source 1200/300 300', 'trusted-device target 60/60 60'], 'the default limits');
SELECT lives_ok($$SELECT admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'com.acme.app'),
                admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'com.acme.app')$$, 'an iOS app, twice');
SELECT lives_ok($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
    ARRAY['14:6d:E9:83:C5:73:06:50:D8:EE:B9:95:2F:34:FC:64:16:A0:83:42:E6:1D:BE:A8:8A:04:96:B2:3F:CF:44:E5'])$$,
    'an Android app');
SELECT lives_ok($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app', sms_hash => 'FA+9qCX9VSu')$$,
                'and its hash for SMS, with the fingerprints left');
SELECT lives_ok($$SELECT admin.put_web_origin('acme', 'app', 'https://login.acme.example'),
                admin.put_web_origin('acme', 'app', 'https://login.acme.example')$$, 'a web origin, twice');
SELECT lives_ok($$SELECT admin.put_web_origin('acme', 'app', o)
                    FROM unnest('{capacitor://localhost,ionic://localhost}'::text[]) AS o$$,
                'the origins of apps in a web view');
SELECT admin.remove_web_origin('acme', 'app', o) FROM unnest('{capacitor://localhost,ionic://localhost}'::text[]) AS o
    \g /dev/null
SELECT throws_ok(format($$SELECT admin.put_web_origin('acme', 'app', %L)$$, o), '22023', NULL, 'but not ' || o)
  FROM unnest('{capacitor://localhost:80,capacitor://login.acme.example,ionic://localhost/x,file://,tauri://x}'::text[])
       AS o;
SELECT results_eq($$SELECT origins || ios_apps FROM admin.clients WHERE client_id = 'app'$$,
    $$VALUES (ARRAY['android:apk-key-hash:FG3pg8VzBlDY7rmVLzT8ZBagg0LmHb6oigSWsj_PROU', 'https://login.acme.example',
                    'A1B2C3D4E5.com.acme.app'])$$, 'the Android origin is the base64url of the fingerprint');
SELECT lives_ok($$SELECT admin.put_app('acme', 'shop', subdomain => 'shop.id.acme.example',
                                       client_ids => ARRAY['app'])$$, 'an App');
SELECT lives_ok($$SELECT admin.put_app('acme', 'shop', 'Shop', 'shop.id.acme.example', 'ExplicitEndpoint')$$,
                'an App again');
SELECT results_eq($$SELECT display_name || registration || subdomain || native_grants_enabled || client_ids[1]
                  FROM admin.apps$$, ARRAY['ShopExplicitEndpointshop.id.acme.exampletrueapp'],
                       'with what was not given left');
SELECT lives_ok($$SELECT admin.set_registration_fields('acme', 'Required', 'Off'),
                admin.set_registration_fields('acme', lastname => 'Required', app => 'shop')$$, 'registration fields');
SELECT results_eq($$SELECT registration_firstname || registration_lastname FROM admin.apps$$, ARRAY['RequiredRequired'],
                  'an App inherits what it does not say');
SELECT lives_ok($$SELECT admin.rotate_signing_key('acme'), admin.rotate_signing_key('acme', 'RS256'),
                admin.rotate_signing_key('acme', 'RS256')$$, 'key rotation is asked for');

-- What administrators leave behind, and what they do not see.
SELECT is((SELECT string_agg(DISTINCT source, ',') FROM admin.audit_log), 'sql:' || session_user,
          'the audit log names who did it');
SELECT bag_has($$SELECT DISTINCT event FROM admin.audit_log WHERE realm = 'acme'$$, $$
               VALUES ('realm_created'), ('realm_updated'), ('native_grants_set'), ('code_policy_set'),
                   ('client_created'),
    ('client_updated'), ('client_secret_rotated'), ('permission_granted'), ('permission_revoked'), ('scope_put'),
        ('user_created'), ('user_updated'), ('rate_limit_set'),
    ('service_account_put'), ('signing_key_rotation_requested'), ('ios_app_put'), ('android_app_put'),
        ('web_origin_put'), ('app_put'), ('registration_fields_set')$$, 'every change is in the audit log');
SELECT throws_ok($$SELECT secret_hash FROM postern.client$$, '42501', NULL,
                 'postern_admin cannot read a secret''s hash');
SELECT throws_ok($$SELECT payload FROM postern.message_outbox$$, '42501', NULL, 'nor the body of a mail');
SELECT throws_ok($$SELECT mac FROM postern.login_code$$, '42501', NULL, 'nor a code');

-- The same rules hold for whoever writes the tables directly.
RESET ROLE;
SELECT throws_ok(v.statement, v.state, NULL, 'integrity: ' || v.statement) FROM (VALUES
    ($$UPDATE postern.client SET settings = '[]' WHERE client_id = 'app'$$, '23514'),
    ($$UPDATE postern.client SET settings = '{"No name": 1}' WHERE client_id = 'app'$$, '23514'),
    ($$UPDATE postern.client SET settings = '{"rp_id": null}' WHERE client_id = 'app'$$, '23514'),
    ($$UPDATE postern.client SET settings = jsonb_build_object('a', repeat('a', 20000)) WHERE client_id = 'app'$$,
     '23514'),
    ($$UPDATE postern.client SET settings = '{"require_pkce": false}' WHERE client_id = 'app'$$, '23514'),
    ($$UPDATE postern.client SET permissions = '{gt:client_credentials,gt:refresh_token}' WHERE client_id = 'api'$$,
     '23514'),
    ($$UPDATE postern.client SET permissions = '{zzz}' WHERE client_id = 'api'$$, '23514'),
    ($$UPDATE postern.client SET client_type = 'public' WHERE client_id = 'api'$$, '23514'),
    ($$UPDATE postern.client SET client_id = 'renamed' WHERE client_id = 'app'$$, '22023'),
    ($$DELETE FROM postern.service_account WHERE name = 'robot'$$, '22023'),
    ($$UPDATE postern.realm SET session_lifetime = '4000 days'$$, '23514'),
    ($$UPDATE postern.realm SET refresh_retry_window = '601 s'$$, '23514'),
    ($$UPDATE postern.realm SET otp_lifetime = '11 minutes'$$, '23514'),
    ($$INSERT INTO postern.realm_domain SELECT id, 'id.acme.example' FROM postern.realm WHERE slug = 'other'$$,
     '23505'),
    ($$INSERT INTO postern.realm_domain SELECT id, 'x.example:80' FROM postern.realm WHERE slug = 'other'$$, '23514'),
    ($$INSERT INTO postern.user_account (realm_id, email) SELECT id, 'ADA@example.com' FROM postern.realm
     WHERE slug = 'acme'$$, '23505'),
    ($$INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private) SELECT id, 'k', 'ES256',
     '{"kty":"EC","d":"x"}', '\x00' FROM postern.realm WHERE slug = 'acme'$$, '23514'),
    ($$INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
     SELECT realm_id, id, 'acme.example', '\x01', '\x01', false, true FROM postern.user_account LIMIT 1$$,
            '23514')) AS v (statement, state);
SELECT results_eq($$SELECT octet_length(secret_hash), previous_secret_hash IS NOT NULL,
                  previous_secret_expires_at = now() + interval '1 hour' FROM postern.client WHERE client_id = 'api'$$,
    $$VALUES (32, true, true)$$, 'only hashes are stored; the former one lives as long as was asked for');
SELECT set_config('test.secret', admin.rotate_client_secret('acme', 'api'), true) IS NOT NULL \g /dev/null
SELECT is(secret_hash, sha256(convert_to(current_setting('test.secret'), 'UTF8')),
          'the hash is the SHA-256 of the whole secret') FROM postern.client WHERE client_id = 'api';
SELECT is(previous_secret_hash, NULL, 'and without overlap the former secret is dead at once') FROM postern.client
 WHERE client_id = 'api';
SELECT results_eq($$SELECT alg FROM postern.signing_key_request ORDER BY 1$$, ARRAY['ES256', 'RS256'],
                  'rotations wait for a server');
SELECT * FROM finish();
ROLLBACK;
