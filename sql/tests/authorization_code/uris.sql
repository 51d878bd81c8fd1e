\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.put_client('a', 'web', 'confidential') \g /dev/null
CREATE FUNCTION pg_temp.put(uri text, client text DEFAULT 'app') RETURNS boolean LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT admin.put_redirect_uri(''a'', %L, %L)', client, uri)) = 'accepted' $$;
SELECT ok(pg_temp.put(uri), uri) FROM unnest(ARRAY[
    'https://app.example/cb', 'https://app.example:8443/cb?tenant=1', 'https://app.example', 'https://192.0.2.1/cb',
    'http://127.0.0.1/cb', 'http://[::1]:8080/cb', 'http://localhost', 'http://localhost:8081/callback',
    'http://app.localhost:8080', 'http://app.localhost/cb',
    'com.example.app:/cb', 'com.example.app://cb', 'com.example.app:cb', 'https://app.example/a%2fb']) AS uri;
SELECT ok(NOT pg_temp.put(uri), left(coalesce(to_json(uri)::text, 'NULL'), 60)) FROM unnest(ARRAY[
    NULL, '', 'https://app.example/cb#f', 'https://ada@app.example/cb', 'https://*.example/cb', 'https://app.example/*',
    'javascript:alert(1)', 'data:text/html,x', 'intent://x', 'file:///etc/passwd', 'http://example.com/cb',
    'https://x.example/../y', 'https://x.example/a/./b', 'https://x.example/%2e%2E/y', 'https://x.example/a b',
    E'https://x.example/a\rb', 'https://bücher.example/', 'HTTPS://app.example/cb', 'https://APP.example/cb',
    'https://app.example\cb', 'https://app.example:0/', 'https://app.example:65536/', 'https://app.example:80x/',
    'https://app.example?x=1', 'https:///cb', 'https://app.example/%zz', 'yourapp://', 'COM.example.app:/cb',
    'com.example.app:', 'http://127.0.0.1@evil.example/', 'http://127.1/cb',
    'http://app.localhost.example:8080', 'http://xlocalhost/', 'http://app.localhost./', 'http://.localhost/',
    'http://app.127.0.0.1/', 'http://app.localhost@evil.example/', 'https://a/' || repeat('x', 2000)]) AS uri;
SELECT ok(NOT pg_temp.put('com.example.app:/cb', 'web'), 'a private-use scheme for a confidential client');
SELECT matches(pg_temp.refusal($$SELECT admin.put_redirect_uri('a', 'app', 'https://x.example/../y')$$),
               '^22023 uri .* has dot segments \| Allowed are https://', 'the refusal names the argument and says what is allowed');
SELECT bag_has($$SELECT uri FROM admin.redirect_uris WHERE realm = 'a'$$, $$VALUES ('http://localhost')$$, 'the view');
SELECT ok(pg_temp.put('http://localhost'), 'it can be put again');
SELECT admin.delete_redirect_uri('a', 'app', 'http://localhost'), admin.delete_redirect_uri('a', 'app', 'x') \g /dev/null
SELECT is_empty($$SELECT uri FROM admin.redirect_uris WHERE uri = 'http://localhost'$$, 'and taken away');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'app', 'confidential')$$), 'private-use scheme',
               'a client with such a URI stays public');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'app', require_pkce => false)$$), 'require_pkce false',
               'a public client needs PKCE');
SELECT is(pg_temp.refusal($$SELECT admin.put_client('a', 'web', require_pkce => false, require_par => true,
          consent => 'explicit', home_uri => 'https://app.example/')$$), 'accepted', 'a confidential one may not');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'web', 'public')$$), 'require_pkce false',
               'nor become public then');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'web', home_uri => 'javascript:x')$$), 'home_uri',
               'home_uri is a web address');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'web', consent => 'Explicit')$$), 'implicit, explicit, systematic',
               'consent is one of three');
-- Pages.
SELECT matches(pg_temp.refusal($$SELECT admin.set_hosted('a', methods => '{sms}')$$), 'passkey, email-code', 'methods');
SELECT matches(pg_temp.refusal($$SELECT admin.set_hosted('a', sso_idle => '5 minutes')$$), 'sso_idle', 'sso_idle');
SELECT matches(pg_temp.refusal($$SELECT admin.set_hosted('a', code_lifetime => '10 s')$$), 'code_lifetime', 'code_lifetime');
SELECT matches(pg_temp.refusal($$SELECT admin.set_hosted('a', sso_idle => '2 hours', app => 'x')$$), 'are the realm', 'of the realm');
SELECT matches(pg_temp.refusal($$SELECT admin.set_hosted('a', true, app => 'x')$$), 'app "x" does not exist', 'app');
SELECT is(pg_temp.refusal($$SELECT admin.set_hosted('a', true, sso_idle => '0', default_locale => 'pt-BR')$$), 'accepted', 'on');
SELECT is(pg_temp.refusal($$SELECT admin.set_hosted('a', true)$$), 'accepted', 'twice');
SELECT bag_has($$SELECT scope FROM admin.scopes WHERE realm = 'a'$$, $$VALUES ('phone'), ('verify:email'), ('verify:phone')$$,
               'scopes came with it');
SELECT is((SELECT count(*)::int FROM postern.signing_key_request WHERE realm_id = pg_temp.realm() AND alg = 'RS256'
           AND NOT for_realm), 1, 'and the wish for an RS256 key that is not the realm''s');
UPDATE postern.signing_key_request SET alg = 'EdDSA' WHERE alg = 'RS256';
INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private)
VALUES (pg_temp.realm(), 'own', 'ES256', '{}', '\x00');
SELECT admin.rotate_signing_key('a', 'RS256') \g /dev/null
SELECT is((SELECT for_realm FROM postern.signing_key_request WHERE realm_id = pg_temp.realm() AND alg = 'RS256'), false,
          'its rotation does not make it the realm''s');
SET LOCAL ROLE app_login;
SELECT is(postern.realm_config(pg_temp.realm()) -> 'hosted' ->> 'sso_idle', '0', 'servers read it');
SELECT is(postern.realm_config(pg_temp.realm()) #> '{clients,0,redirect_uris}' ? 'https://app.example/cb', true, 'URIs too');
SELECT throws_ok($$SELECT admin.set_hosted('a', true)$$, '42501', NULL, 'the app role may not change it');
SELECT * FROM finish();
ROLLBACK;
