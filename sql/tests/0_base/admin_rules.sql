\ir ../helpers/setup.psql
BEGIN;
SELECT no_plan();
CREATE FUNCTION pg_temp.realm_setting(n text) RETURNS text
    LANGUAGE sql AS $$ SELECT to_jsonb(r) ->> n FROM admin.realms AS r WHERE r.slug = 'acme' $$;

-- The arguments, their order and their defaults are public: administrators call these functions by hand.
SELECT is(pg_get_function_arguments(oid), v.args, v.name || ' has the published arguments') FROM (VALUES
    ('put_realm', 'slug text, primary_domain text DEFAULT NULL::text, display_name text DEFAULT NULL::text, '
                  'public_origin text DEFAULT NULL::text, domains text[] DEFAULT NULL::text[], enabled boolean DEFAULT '
                  'NULL::boolean, signing_alg text DEFAULT NULL::text'),
    ('set_native_grants', 'realm text, enabled boolean DEFAULT NULL::boolean, access_token_lifetime interval DEFAULT '
                          'NULL::interval, refresh_token_lifetime interval DEFAULT NULL::interval, '
                          'refresh_retry_window interval DEFAULT NULL::interval, session_lifetime interval DEFAULT '
                          'NULL::interval'),
    ('set_code_policy', 'realm text, otp_lifetime interval DEFAULT NULL::interval, otp_attempts integer DEFAULT '
                        'NULL::integer, otp_digits integer DEFAULT NULL::integer, magic_link_lifetime interval DEFAULT '
                        'NULL::interval, resend_cooldown interval DEFAULT NULL::interval, ceremony_lifetime interval '
                        'DEFAULT NULL::interval'),
    ('put_client', 'realm text, client_id text, client_type text DEFAULT NULL::text, display_name text DEFAULT '
                   'NULL::text, access_token_type text DEFAULT NULL::text, rp_id text DEFAULT NULL::text, '
                   'access_token_lifetime interval DEFAULT NULL::interval, refresh_token_lifetime interval DEFAULT '
                   'NULL::interval, require_dpop boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean, '
                   'signing_alg text DEFAULT NULL::text, consent text DEFAULT NULL::text, require_pkce boolean DEFAULT '
                   'NULL::boolean, require_par boolean DEFAULT NULL::boolean, home_uri text DEFAULT NULL::text'),
    ('rotate_client_secret', 'realm text, client_id text, overlap interval DEFAULT NULL::interval'),
    ('grant_permission', 'realm text, client_id text, VARIADIC permissions text[]'),
    ('revoke_permission', 'realm text, client_id text, VARIADIC permissions text[]'),
    ('put_scope', 'realm text, scope text, description text DEFAULT NULL::text, resources text[] DEFAULT NULL::text[], '
                  'in_discovery boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean'),
    ('put_ios_app', 'realm text, client_id text, team_id text, bundle_id text'),
    ('put_android_app', 'realm text, client_id text, package_name text, sha256_cert_fingerprints text[], sms_hash '
                        'text DEFAULT NULL::text'),
    ('put_web_origin', 'realm text, client_id text, origin text'),
    ('put_app', 'realm text, slug text, display_name text DEFAULT NULL::text, subdomain text DEFAULT NULL::text, '
                'registration text DEFAULT NULL::text, client_ids text[] DEFAULT NULL::text[], native_grants_enabled '
                'boolean DEFAULT NULL::boolean'),
    ('set_registration_fields',
     'realm text, firstname text DEFAULT NULL::text, lastname text DEFAULT NULL::text, app text DEFAULT NULL::text'),
    ('put_user', 'realm text, email text DEFAULT NULL::text, first_name text DEFAULT NULL::text, '
                 'last_name text DEFAULT NULL::text, '
                 'email_verified boolean DEFAULT NULL::boolean, enabled boolean DEFAULT NULL::boolean, id uuid DEFAULT '
                 'NULL::uuid, new_email text DEFAULT NULL::text, phone text DEFAULT NULL::text'),
    ('delete_user', 'realm text, email text'), ('set_user_enabled', 'realm text, email text, enabled boolean'),
        ('sign_out_everywhere', 'realm text, email text'),
    ('unlock_codes', 'realm text, email text'), ('end_session', 'realm text, id uuid'),
        ('delete_passkey', 'realm text, id uuid'), ('delete_service_account', 'realm text, name text'),
    ('put_service_account', 'realm text, name text, client_id text'),
    ('set_rate_limit', 'realm text, policy text, dimension text, permits integer DEFAULT NULL::integer, per interval '
                       'DEFAULT NULL::interval, burst integer DEFAULT NULL::integer, mode text DEFAULT NULL::text'),
    ('rotate_signing_key', 'realm text, alg text DEFAULT NULL::text')) AS v (name, args)
    LEFT JOIN pg_proc ON pronamespace = 'admin'::regnamespace AND proname = v.name;

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
    ARRAY['authorize source 1200/60 400', 'magic-link app 30000/3600 30000', 'magic-link client 6000/3600 6000', 'magic-link source 3000/3600 500',
          'magic-link target 5/3600 5', 'magic-link target-total 10/3600 10',
          'native-otp app 30000/3600 30000', 'native-otp client 6000/3600 6000', 'native-otp registrations 120/3600 30',
              'native-otp source 3000/3600 500', 'native-otp target 5/3600 5', 'native-otp target-total 10/3600 10',
          'par client 6000/60 6000', 'par source 600/60 200', 'passkey-begin source 1200/300 300',
          'phone-otp app 15000/3600 15000', 'phone-otp client 3000/3600 3000', 'phone-otp country 300/3600 300',
          'phone-otp prefix 25/3600 25', 'phone-otp source 300/3600 100', 'phone-otp spend 10000/86400 10000',
          'phone-otp target 5/3600 5', 'phone-otp target-total 10/3600 10', 'refused source 600/60 200', 'token failures 5/600 5',
              'token source 600/60 200', 'token wrong-codes 3000/3600 1000'], 'the default limits');
SELECT lives_ok($$SELECT admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'com.acme.app'),
                admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'com.acme.app')$$, 'an iOS app, twice');
SELECT lives_ok($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
    ARRAY['14:6d:E9:83:C5:73:06:50:D8:EE:B9:95:2F:34:FC:64:16:A0:83:42:E6:1D:BE:A8:8A:04:96:B2:3F:CF:44:E5'])$$,
    'an Android app');
SELECT lives_ok($$SELECT admin.put_web_origin('acme', 'app', 'https://login.acme.example'),
                admin.put_web_origin('acme', 'app', 'https://login.acme.example')$$, 'a web origin, twice');
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

-- What is refused: SQLSTATE, message and hint. A realm, client, user and App that exist are named acme, app,
-- ada@example.com and shop.
SELECT matches(pg_temp.refusal(v.statement), '^22023 ' || v.message || '.* \| .*' || v.hint, '' || v.statement)
  FROM (VALUES
    ($$SELECT admin.put_realm(NULL)$$, 'slug NULL', 'lower-case letters'),
    ($$SELECT admin.put_realm('Acme', 'x.example')$$, 'slug "Acme"', '1 to 63 lower-case'),
    ($$SELECT admin.put_realm('new')$$, 'realm "new" is new and has neither primary_domain nor public_origin',
     'Give primary_domain'),
    ($$SELECT admin.put_realm('new', 'https://x.example')$$,
     'primary_domain "https://x.example" is not a bare lower-case host', 'no scheme'),
    ($$SELECT admin.put_realm('new', 'x.example:443')$$, 'primary_domain "x.example:443"', 'port'),
    ($$SELECT admin.put_realm('new', 'X.example')$$, 'primary_domain "X.example"', 'lower case'),
    ($$SELECT admin.put_realm('new', 'x.example.')$$, 'primary_domain "x.example."', 'trailing dot'),
    ($$SELECT admin.put_realm('new', '*.example')$$, 'primary_domain "\*.example"', 'wildcard'),
    ($$SELECT admin.put_realm('new', '')$$, 'primary_domain ""', 'host name'),
    ($$SELECT admin.put_realm('new', 'x.example', domains => ARRAY['y.example:80'])$$, 'domains "y.example:80"',
     'port'),
    ($$SELECT admin.put_realm('new', 'x.example', domains => ARRAY[NULL])$$, 'domains holds NULL', 'list of hosts'),
    ($$SELECT admin.put_realm('new', 'id.acme.example')$$, 'domain "id.acme.example" belongs to realm "acme"',
     'one realm'),
    ($$SELECT admin.put_realm('new', 'x.example', domains => ARRAY['id.acme.example'])$$,
     'domain "id.acme.example" belongs to realm "acme"', 'one realm'),
    ($$SELECT admin.put_realm('new', 'shop.id.acme.example')$$, 'domain "shop.id.acme.example" belongs to realm "acme"',
     'one realm'),
    ($$SELECT admin.put_realm('acme', domains => ARRAY['shop.id.acme.example'])$$,
     'domain "shop.id.acme.example" is the subdomain of App "shop"', 'one realm'),
    ($$SELECT admin.put_realm('new', 'x.example', public_origin => 'https://x.example/')$$,
     'public_origin "https://x.example/"', 'trailing slash'),
    ($$SELECT admin.put_realm('new', 'x.example', public_origin => 'http://x.example')$$,
     'public_origin "http://x.example"', 'http only for localhost'),
    ($$SELECT admin.put_realm('new', 'x.example', public_origin => 'https://x.example:70000')$$, 'public_origin',
     'https://host:port'),
    ($$SELECT admin.put_realm('new', 'x.example', E'a\nb')$$, 'display_name', 'one line'),
    ($$SELECT admin.set_native_grants('nope', true)$$, 'realm "nope" does not exist', 'Realms are: .*acme'),
    ($$SELECT admin.set_native_grants(NULL, true)$$, 'realm NULL does not exist', 'Realms are'),
    ($$SELECT admin.set_native_grants('acme', access_token_lifetime => '59 s')$$,
     'access_token_lifetime "00:00:59" is out of range', 'from 1 minutes to 60 minutes'),
    ($$SELECT admin.set_native_grants('acme', access_token_lifetime => '61 minutes')$$,
     'access_token_lifetime "01:01:00"', '60 minutes'),
    ($$SELECT admin.set_native_grants('acme', access_token_lifetime => '-15 minutes')$$,
     'access_token_lifetime "-00:15:00"', '60 minutes'),
    ($$SELECT admin.set_native_grants('acme', access_token_lifetime => '90.5 s')$$, 'access_token_lifetime',
     'whole seconds'),
    ($$SELECT admin.set_native_grants('acme', refresh_token_lifetime => '23 hours')$$,
     'refresh_token_lifetime "23:00:00"', 'from 1 days to 365 days'),
    ($$SELECT admin.set_native_grants('acme', refresh_token_lifetime => '366 days')$$,
     'refresh_token_lifetime "366 days"', '365 days'),
    ($$SELECT admin.set_native_grants('acme', refresh_retry_window => '601 s')$$, 'refresh_retry_window',
     'from 0 seconds to 10 minutes'),
    ($$SELECT admin.set_native_grants('acme', session_lifetime => '3651 days')$$, 'session_lifetime "3651 days"',
     '3650 days'),
    ($$SELECT admin.set_native_grants('acme', session_lifetime => '1 hour')$$, 'session_lifetime', 'from 1 days'),
    ($$SELECT admin.set_code_policy('acme', otp_lifetime => '11 minutes')$$, 'otp_lifetime "00:11:00"', '10 minutes'),
    ($$SELECT admin.set_code_policy('acme', otp_attempts => 0)$$, 'otp_attempts "0"', '1 to 10'),
    ($$SELECT admin.set_code_policy('acme', otp_attempts => 11)$$, 'otp_attempts "11"', '1 to 10'),
    ($$SELECT admin.set_code_policy('acme', otp_digits => 5)$$, 'otp_digits "5"', '6 to 8'),
    ($$SELECT admin.set_code_policy('acme', otp_digits => 9)$$, 'otp_digits "9"', '6 to 8'),
    ($$SELECT admin.set_code_policy('acme', magic_link_lifetime => '2 hours')$$, 'magic_link_lifetime', '60 minutes'),
    ($$SELECT admin.set_code_policy('acme', resend_cooldown => '11 minutes')$$, 'resend_cooldown', '10 minutes'),
    ($$SELECT admin.set_code_policy('acme', ceremony_lifetime => '1 s')$$, 'ceremony_lifetime', '30 seconds'),
    ($$SELECT admin.put_client('acme', NULL)$$, 'client_id NULL', '1 to 100'),
    ($$SELECT admin.put_client('acme', 'a b')$$, 'client_id "a b"', 'letters, digits'),
    ($$SELECT admin.put_client('acme', 'app', 'Public')$$, 'client_type "Public" is unknown', 'public, confidential'),
    ($$SELECT admin.put_client('acme', 'app', access_token_type => 'JWT')$$, 'access_token_type "JWT" is unknown',
     'reference, jwt'),
    ($$SELECT admin.put_client('acme', 'app', access_token_lifetime => '2 hours')$$, 'access_token_lifetime',
     '60 minutes'),
    ($$SELECT admin.put_client('acme', 'app', refresh_token_lifetime => '1 hour')$$, 'refresh_token_lifetime',
     '365 days'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => '')$$, 'rp_id "" is not a bare DNS host', 'login.example.com'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'https://acme.example')$$,
     'rp_id "https://acme.example" is not a bare DNS host', 'no scheme'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'acme.example:443')$$, 'rp_id "acme.example:443"', 'port'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'acme.example/x')$$, 'rp_id "acme.example/x"', 'path'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => '192.0.2.1')$$, 'rp_id "192.0.2.1"', 'IP address'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => '2001:db8::1')$$, 'rp_id "2001:db8::1"', 'IP address'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => '*.acme.example')$$, 'rp_id "\*.acme.example"', 'wildcard'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'Acme.example')$$, 'rp_id "Acme.example"', 'lower-case'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'com')$$, 'rp_id "com"', 'public suffix'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'co.uk')$$, 'rp_id "co.uk"', 'public suffix'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => 'acme.example.')$$, 'rp_id "acme.example."', 'host'),
    ($$SELECT admin.put_client('acme', 'app', rp_id => '-a.example')$$, 'rp_id "-a.example"', 'host'),
    ($$SELECT admin.put_client('acme', 'api', 'public')$$, 'client_type "public" is not possible',
     'Revoke the permission'),
    ($$SELECT admin.rotate_client_secret('acme', 'app')$$, 'client_id "app" is a public client and has no secret',
     'confidential'),
    ($$SELECT admin.rotate_client_secret('acme', 'nope')$$, 'client_id "nope" does not exist', 'Clients are: api, app'),
    ($$SELECT admin.rotate_client_secret('other', 'app')$$, 'client_id "app" does not exist', 'put_client'),
    ($$SELECT admin.grant_permission('acme', 'app', 'gt:otp')$$, 'permission "gt:otp" is unknown',
     'gt:urn:cocoar:otp, .*gt:refresh_token.*scp:<scope>'),
    ($$SELECT admin.grant_permission('acme', 'app', 'GT:refresh_token')$$, 'permission "GT:refresh_token" is unknown',
     'Allowed'),
    ($$SELECT admin.grant_permission('acme', 'app', 'scp:')$$, 'permission "scp:" is unknown', 'scp:<scope>'),
    ($$SELECT admin.grant_permission('acme', 'app', NULL)$$, 'permission NULL is unknown', 'Allowed'),
    ($$SELECT admin.grant_permission('acme', 'app', 'gt:client_credentials')$$,
     'permission "gt:client_credentials" excludes gt:refresh_token, gt:urn:cocoar:otp', 'use two clients'),
    ($$SELECT admin.grant_permission('acme', 'api', 'gt:urn:cocoar:magic')$$,
     'permission "gt:client_credentials" excludes gt:urn:cocoar:magic', 'use two clients'),
    ($$SELECT admin.put_client('acme', 'bare'); SELECT admin.grant_permission('acme', 'bare',
        'gt:client_credentials')$$, 'permission "gt:client_credentials" needs a confidential client', 'confidential'),
    ($$SELECT admin.revoke_permission('acme', 'app', 'nonsense')$$, 'permission "nonsense" is unknown',
     'admin.permissions'),
    ($$SELECT admin.put_service_account('acme', 'second', 'api')$$,
     'client_id "api" already has the service account "robot"', 'one service account'),
    ($$SELECT admin.put_service_account('acme', 'robot', 'app')$$,
     'service account "robot" belongs to a client that holds "gt:client_credentials"', 'Revoke'),
    ($$SELECT admin.put_service_account('acme', 'a b', 'app')$$, 'name "a b"', 'letters'),
    ($$SELECT admin.put_scope('acme', 'a b')$$, 'scope "a b" is not a scope name', 'RFC 6749'),
    ($$SELECT admin.put_scope('acme', 'a"b')$$, 'scope "a"b"', 'RFC 6749'),
    ($$SELECT admin.put_scope('acme', 'é')$$, 'scope "é"', 'RFC 6749'),
    ($$SELECT admin.put_scope('acme', '')$$, 'scope ""', 'RFC 6749'),
    ($$SELECT admin.put_scope('acme', 'x', resources => ARRAY['api'])$$, 'resources "api"', 'absolute URIs'),
    ($$SELECT admin.put_scope('acme', 'x', resources => ARRAY['https://a/#b'])$$, 'resources "https://a/#b"',
     'fragment'),
    ($$SELECT admin.put_user('acme', 'ada')$$, 'email "ada"', 'mailbox'),
    ($$SELECT admin.put_user('acme', 'ada@localhost')$$, 'email "ada@localhost"', 'mailbox'),
    ($$SELECT admin.put_user('acme', 'a@[127.0.0.1]')$$, 'email', 'mailbox'),
    ($$SELECT admin.put_user('acme', 'a@127.0.0.1')$$, 'email', 'mailbox'),
    ($$SELECT admin.put_user('acme', 'a@x.example,b@x.example')$$, 'email', 'list'),
    ($$SELECT admin.put_user('acme', E'a@x.example\r\nBcc: b@x.example')$$, 'email', 'mailbox'),
    ($$SELECT admin.put_user('acme', '"a"@x.example')$$, 'email', 'quotes'),
    ($$SELECT admin.put_user('acme', 'Ada <a@x.example>')$$, 'email', 'name'),
    ($$SELECT admin.put_user('acme', E'a\u200db@x.example')$$, 'email', 'mailbox'),
    ($$SELECT admin.put_user('acme', repeat('a', 65) || '@x.example')$$, 'email', 'mailbox'),
    ($$SELECT admin.put_user('acme', 'a@x.example', E'A\u202eb')$$, 'first_name', 'control characters'),
    ($$SELECT admin.put_user('acme', 'a@x.example', last_name => repeat('x', 101))$$, 'last_name', '1 to 100'),
    ($$SELECT admin.delete_user('acme', 'nobody@example.com')$$, 'email "nobody@example.com" is not a user',
     'admin.users'),
    ($$SELECT admin.delete_user('other', 'ada@example.com')$$, 'email "ada@example.com" is not a user', 'admin.users'),
    ($$SELECT admin.set_user_enabled('acme', 'ada@example.com', NULL)$$, 'enabled NULL', 'true or false'),
    ($$SELECT admin.set_rate_limit('acme', 'otp', 'source', 1, '1 s')$$, 'policy "otp" is unknown',
     'native-otp, magic-link, passkey-begin, token'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'ip', 1, '1 s')$$, 'dimension "ip" is unknown',
     'target, target-total, source, client, app, failures'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'source', mode => 'off')$$, 'mode "off" is unknown',
     'enforce, log-only'),
    ($$SELECT admin.set_rate_limit('acme', 'native-otp', 'failures', 1, '1 s')$$,
     'dimension "failures" does not exist for policy "native-otp"', 'token'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'target', 1, '1 s')$$,
     'dimension "target" does not exist for policy "token"', 'native-otp, magic-link and phone-otp'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'source', 0, '1 s')$$, 'permits "0"', '1,000,000 per minute'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'source', 1000001, '1 minute')$$, 'permits "1000001"',
     '1,000,000 per minute'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'source', 5, '0')$$, 'per "00:00:00"', 'from 1 seconds'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'source', 5, '1 minute', 0)$$, 'burst "0"', '1 to 1,000,000'),
    ($$SELECT admin.set_rate_limit('acme', 'token', 'client')$$, 'permits and per must be given', 'per =>'),
    ($$SELECT admin.rotate_signing_key('acme', 'HS256')$$, 'alg "HS256" is unknown', 'ES256, RS256, EdDSA'),
    ($$SELECT admin.put_ios_app('acme', 'app', 'a1b2c3d4e5', 'com.acme.app')$$, 'team_id "a1b2c3d4e5"',
     'ten upper-case'),
    ($$SELECT admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'A1B2C3D4E5.com.acme.app')$$,
     'bundle_id "A1B2C3D4E5.com.acme.app" begins with the team id', 'Give it without: com.acme.app'),
    ($$SELECT admin.put_ios_app('acme', 'app', 'A1B2C3D4E5', 'acme')$$, 'bundle_id "acme"', 'dot'),
    ($$SELECT admin.put_android_app('acme', 'app', 'acme', ARRAY['00'])$$, 'package_name "acme"', 'application id'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app', '{}')$$, 'sha256_cert_fingerprints is empty',
     '1 to 20'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
                                    ARRAY['FG3pg8VzBlDY7rmVLzT8ZBagg0LmHb6oigSWsj/PROU='])$$,
                                        'sha256_cert_fingerprints "FG3p.*" is base64', '14:6D:E9:83:.*:44:E5'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
                                    ARRAY['android:apk-key-hash:FG3pg8VzBlDY7rmVLzT8ZBagg0LmHb6oigSWsj_PROU'])$$,
                                        'sha256_cert_fingerprints "android:.*" is base64', '14:6D:E9:83:.*:44:E5'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
                                    ARRAY['146de983c5730650d8eeb9952f34fc6416a08342e61dbea88a0496b23fcf44e5'])$$,
                                        'sha256_cert_fingerprints "146d.*" is hex without colons',
                                            '14:6D:E9:83:.*:44:E5'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app',
                                    ARRAY['14:6D:E9:83:C5:73:06:50:D8:EE:B9:95:2F:34:FC:64:16:A0:83:42'])$$,
                                        'sha256_cert_fingerprints "14:6D.*" is a SHA-1 fingerprint', 'SHA256'),
    ($$SELECT admin.put_android_app('acme', 'app', 'com.acme.app', ARRAY['xyz'])$$,
     'sha256_cert_fingerprints "xyz" is not a SHA-256 fingerprint', 'keytool'),
    ($$SELECT admin.put_web_origin('acme', 'app', 'https://X.acme.example/')$$, 'origin "https://X.acme.example/"',
     'Give it as https://x.acme.example:'),
    ($$SELECT admin.put_web_origin('acme', 'app', 'x.acme.example')$$, 'origin "x.acme.example"',
     'Give it as https://x.acme.example'),
    ($$SELECT admin.put_web_origin('acme', 'app', 'http://x.acme.example')$$, 'origin "http://x.acme.example"',
     'http only for localhost'),
    ($$SELECT admin.put_web_origin('acme', 'app', 'android:apk-key-hash:x')$$, 'origin "android:apk-key-hash:x"',
     'put_android_app'),
    ($$SELECT admin.put_app('acme', 'Shop')$$, 'slug "Shop"', 'lower-case'),
    ($$SELECT admin.put_app('acme', 'shop', subdomain => 'shop')$$,
     'subdomain "shop" is not below the primary domain "id.acme.example"', 'shop.id.acme.example'),
    ($$SELECT admin.put_app('other', 'shop', subdomain => 'shop.other.example')$$,
     'subdomain "shop.other.example" is not below the primary domain NULL', 'primary domain first'),
    ($$SELECT admin.put_app('acme', 'second', subdomain => 'shop.id.acme.example')$$,
     'subdomain "shop.id.acme.example" belongs to App "shop"', 'choose another'),
    ($$SELECT admin.put_app('acme', 'shop', registration => 'off')$$, 'registration "off" is unknown',
     'Off, JitOnOtp, ExplicitEndpoint'),
    ($$SELECT admin.put_app('acme', 'shop', client_ids => ARRAY['nope'])$$, 'client_id "nope" does not exist',
     'Clients are'),
    ($$SELECT admin.set_registration_fields('acme', 'required')$$, 'firstname "required" is unknown',
     'Off, Optional, Required'),
    ($$SELECT admin.set_registration_fields('acme', 'Off', app => 'nope')$$, 'app "nope" is not an App',
     'put_app')) AS v (statement, message, hint);

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
SELECT throws_ok($$SELECT payload FROM postern.mail_outbox$$, '42501', NULL, 'nor the body of a mail');
SELECT throws_ok($$SELECT mac FROM postern.login_code$$, '42501', NULL, 'nor a code');

-- The same rules hold for whoever writes the tables directly.
RESET ROLE;
SELECT throws_ok(v.statement, v.state, NULL, 'integrity: ' || v.statement) FROM (VALUES
    ($$UPDATE postern.client SET rp_id = 'https://x' WHERE client_id = 'app'$$, '23514'),
    ($$UPDATE postern.client SET access_token_lifetime = '2 hours' WHERE client_id = 'app'$$, '23514'),
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
