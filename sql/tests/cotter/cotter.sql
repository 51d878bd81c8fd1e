-- Cotter's web wire: the permission, codes that name a proven address, and accounts of whoever proves one.
\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SELECT admin.put_client('a', 'cotter', access_token_type => 'jwt') \g /dev/null
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'cotter', 'cap:cotter', 'gt:refresh_token')$$),
               'needs the permission "gt:authorization_code" \| Give it that first', 'it needs the code grant');
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'cotter', 'cap:cotter', 'gt:authorization_code')$$),
               'needs the permission "gt:refresh_token"', 'and refresh tokens');
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'app', 'cap:cotter', 'gt:refresh_token')$$),
               'needs access_token_type "jwt"', 'and JWTs');
SELECT is(pg_temp.refusal($$SELECT admin.grant_permission('a', 'cotter', 'cap:cotter', 'gt:refresh_token',
          'gt:authorization_code', 'scp:email')$$), 'accepted', 'with all of it it is granted');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'cotter', access_token_type => 'reference')$$),
               'needs access_token_type "jwt" \| ', 'the token type stays');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'cotter', require_dpop => true)$$),
               'needs require_dpop "false" \| Give it that', 'no proofs are wanted of a wire that has none');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'cotter', 'confidential')$$),
               'holds "cap:cotter" \| Revoke', 'the client stays public');
SELECT matches(pg_temp.refusal(format($$SELECT admin.revoke_permission('a', 'cotter', %L)$$, p)), 'needs the permission',
               p || ' stays') FROM unnest(ARRAY['gt:authorization_code', 'gt:refresh_token']) AS p;
SELECT admin.put_client('a', 'events', 'confidential') \g /dev/null
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'events', 'cap:cotter')$$),
               'needs the permission "gt:urn:openid:params:grant-type:ciba"',
               'a confidential client holds it for its events');
SELECT is(pg_temp.refusal($$SELECT admin.grant_permission('a', 'events', 'cap:cotter',
          'gt:urn:openid:params:grant-type:ciba')$$), 'accepted', 'which are requests for approval');
SELECT is(pg_temp.refusal(format($$SELECT admin.put_redirect_uri('a', 'cotter', %L)$$, uri)) = 'accepted', allowed, uri)
  FROM (VALUES ('yourapp://', true), ('com.example.app:redirect_uri_path', true), ('http://127.0.0.1:5000', true),
               ('http://localhost:8080', true), ('javascript:alert(1)//', false), ('intent://x', false),
               ('ms-msdt:x', false), ('search-ms:x', false), ('shell:x', false), ('chrome-extension://x', false),
               ('feed:javascript:x', false), ('x.javascript:x', false), ('yourapp:javascript:x', false),
               ('com.example.app://JavaScript:x', false), ('moz-extension://x', false), ('res://x', false),
               ('itms-apps://x', false), ('android-app://x', false), ('ms-settings:x', false)) AS u (uri, allowed);
SELECT is(postern.speaks_cotter(k), k.client_id = 'cotter', k.client_id)
  FROM postern.client AS k WHERE k.realm_id = pg_temp.realm() AND k.client_id IN ('app', 'cotter', 'events');
SELECT is(postern.speaks_cotter(NULL), false, 'no client');

-- What the permission alone allows goes with it.
SELECT admin.put_client('a', 'former', access_token_type => 'jwt'),
       admin.grant_permission('a', 'former', 'cap:cotter', 'gt:refresh_token', 'gt:authorization_code'),
       admin.put_redirect_uri('a', 'former', uri) FROM unnest('{yourapp://,com.example.app:cb}'::text[]) AS uri \g /dev/null
SELECT admin.put_logout_uri('a', 'former', 'yourapp://bye', 'post-logout'),
       admin.revoke_permission('a', 'former', 'scp:email') \g /dev/null
SELECT is((SELECT count(*) FROM admin.redirect_uris WHERE client_id = 'former'), 2::bigint, 'URIs stay with the permission');
SELECT is(admin.revoke_permission('a', 'former', 'cap:cotter'), '{gt:authorization_code,gt:refresh_token}', 'it is revoked');
SELECT is((SELECT string_agg(uri, ',') FROM admin.redirect_uris WHERE client_id = 'former'), 'com.example.app:cb',
          'with the URIs whose scheme has no dot');
SELECT is((SELECT count(*) FROM admin.logout_uris WHERE client_id = 'former'), 0::bigint, 'of both kinds');
SELECT is((SELECT string_agg(event, ',' ORDER BY event) FROM postern.audit_event WHERE event LIKE '%uri_deleted'),
          'logout_uri_deleted,redirect_uri_deleted', 'which is audited');

-- Codes.
CREATE FUNCTION pg_temp.prove(cookie text, address text, value text, method text DEFAULT 'OTP') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM pg_temp.browse(cookie, address);
    UPDATE postern.browser_session SET proofs = jsonb_build_object('email', jsonb_build_object(
               'value', value, 'method', method)) WHERE cookie_hash = pg_temp.h(cookie);
END
$$;
CREATE FUNCTION pg_temp.identity(code text, session text, challenge text DEFAULT left(encode(pg_temp.h('challenge'), 'hex'), 43))
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason, kind, method, CASE outcome WHEN 'ok' THEN value END) FROM postern.redeem_identity_code(
        pg_temp.caller('gt:authorization_code'), NULL, pg_temp.opens(pg_temp.uu(session), pg_temp.h(session || 0)),
        pg_temp.h(code), 'https://app.example/cb', challenge) $$;
SELECT pg_temp.prove('c', 'ada@example.com', 'ADA@example.com') \g /dev/null
SET ROLE postern_app;
SELECT is(pg_temp.answered('c', pg_temp.wanted('one', '{"proof": "email"}')), 'issued', 'a browser that proved an address');
SELECT is(pg_temp.answered('c', pg_temp.wanted('phone', '{"proof": "phone"}')), 'acr', 'and no number');
SELECT is(pg_temp.answered('c', pg_temp.wanted('plain')), 'issued', 'a code without a proof');
RESET ROLE;
SELECT is((SELECT expires_at - created_at FROM postern.authorization_code WHERE code_hash = pg_temp.h(c)), l, c)
  FROM (VALUES ('one', interval '5 minutes'), ('plain', interval '60 seconds')) AS x (c, l);
SET ROLE postern_app;
SELECT is(pg_temp.identity('one', 's1', 'wrong'), 'refused verifier', 'a wrong verifier');
SELECT is(pg_temp.identity('plain', 's1'), 'refused unknown', 'a code without a proof names nobody');
SELECT is(pg_temp.identity('one', 's1'), 'ok email OTP Ada@example.com', 'the address as the account has it');
SELECT is(pg_temp.identity('one', 's1'), 'ok repeated email OTP Ada@example.com', 'a lost answer is given again');
SELECT is((SELECT concat_ws(' ', value, method) FROM postern.session_proof(pg_temp.realm(), pg_temp.uu('s1'))),
          'ADA@example.com OTP', 'the session remembers it');
SELECT is(pg_temp.identity('one', 's2'), 'refused used', 'it is used once');
RESET ROLE;
SELECT isnt((SELECT revoked_at FROM postern.session WHERE id = pg_temp.uu('s1')), NULL, 'a second use ends the session');
SET ROLE postern_app;
SELECT is(pg_temp.answered('c', pg_temp.wanted('two', '{"proof": "email"}')), 'issued', 'one more');
RESET ROLE;
UPDATE postern.browser_session SET proofs = '{"email": {"value": "former@example.com", "method": "OTP"}}';
UPDATE postern.authorization_code SET proof = '{"kind": "email", "value": "former@example.com", "method": "OTP"}'
 WHERE code_hash = pg_temp.h('two');
SET ROLE postern_app;
SELECT is(pg_temp.identity('two', 's3'), 'refused unknown', 'an address that the account gave up is nobody''s');
SELECT is(pg_temp.answered('c', pg_temp.wanted('three', '{"proof": "email"}')), 'acr', 'and has to be proven again');
RESET ROLE;

-- Accounts.
CREATE FUNCTION pg_temp.claim(address text) RETURNS uuid LANGUAGE sql AS $$
    SELECT postern.claim_user(pg_temp.realm(), address, '192.0.2.7') $$;
SELECT postern.claim_user(pg_temp.realm(), 'new@example.com', '192.0.2.7') AS claimed \gset
SELECT is(pg_temp.claim('NEW@example.com'), :'claimed', 'one account for one address');
SELECT is(pg_temp.claim('ada@example.com'), NULL, 'none where somebody has proven it');
SELECT results_eq(format($$SELECT kind, proven_key FROM postern.user_identifier WHERE user_id = %L$$, :'claimed'),
                  $$VALUES ('email', NULL::text)$$, 'nothing is proven');
UPDATE postern.user_account SET unproven_until = now() - interval '1 second' WHERE unproven_until IS NOT NULL;
SELECT postern.claim_user(pg_temp.realm(), '+4366012345678', '192.0.2.7') AS phone \gset
UPDATE postern.user_account SET unproven_until = now() - interval '1 second' WHERE id = :'phone';
SELECT postern.prove_identifier(pg_temp.realm(), :'phone', 'phone', '+4366012345678') \g /dev/null
SELECT is((SELECT unproven_until FROM postern.user_account WHERE id = :'phone'), NULL, 'a proof keeps it');
DO $$ BEGIN FOR i IN 1..20 LOOP PERFORM postern.sweep(100000); END LOOP; END $$;
SELECT results_eq(format($$SELECT id FROM postern.user_account WHERE id IN (%L, %L)$$, :'claimed', :'phone'),
                  format($$VALUES (%L::uuid)$$, :'phone'), 'an account without a proof goes, the other stays');
SELECT * FROM finish();
ROLLBACK;
