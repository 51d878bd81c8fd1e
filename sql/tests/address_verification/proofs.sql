\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
-- An address is proven without an account: by a code, or by a browser whose user has proven it.
SELECT no_plan();
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null
CREATE FUNCTION pg_temp.begins(
    id text, address text DEFAULT 'who@example.com', code text DEFAULT '111111', resend boolean DEFAULT false,
    cookie text DEFAULT NULL, max_age integer DEFAULT NULL, client text DEFAULT 'app', budget text[] DEFAULT '{}')
RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.begin_address_verification(
        pg_temp.caller(NULL, client => pg_temp.client(client)),
        ROW(budget, array_remove(ARRAY[cardinality(budget)], 0), array_remove(ARRAY[cardinality(budget)], 0),
            CASE WHEN budget <> '{}' THEN '{3600}'::float8[] ELSE '{}' END,
            array_remove(ARRAY[cardinality(budget)], 0)),
        pg_temp.request(id, address, channel => CASE WHEN address LIKE '+%' THEN 'sms' END, resend => resend,
                        locale => 'de', sends => 2), NULL,
        '\xaa', pg_temp.b16('salt'), pg_temp.h(code), pg_temp.h(cookie), 'a.example', max_age, gen_random_uuid(),
        '\x01') $$;
CREATE FUNCTION pg_temp.asked(code text, VARIADIC more jsonb[] DEFAULT '{}') RETURNS postern.code_request
LANGUAGE sql AS $$
    SELECT pg_temp.wanted(code, VARIADIC more || '{"scope":["openid","verify:email"]}'::jsonb) $$;
CREATE FUNCTION pg_temp.proves(
    id text, code text, address text DEFAULT 'who@example.com', client text DEFAULT 'app', pushed jsonb DEFAULT '{}')
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason) FROM postern.prove_address(
        pg_temp.realm(), pg_temp.client(client), pg_temp.uu(id), address, ARRAY[pg_temp.h(code)], pg_temp.uu('sub'),
        '{otp}', 'urn:postern:acr:1', pg_temp.asked('code of ' || id, pushed), '192.0.2.1', NULL,
        NULL) $$;
CREATE FUNCTION pg_temp.shares(cookie text, id text, address text DEFAULT 'ada@example.com', max_age integer DEFAULT NULL)
RETURNS text LANGUAGE sql AS $$
    SELECT postern.share_address(pg_temp.realm(), pg_temp.client(), pg_temp.uu(id), pg_temp.h(cookie), 'a.example',
        address, max_age, '\xaa', pg_temp.uu('sub'), 'urn:postern:acr:1', pg_temp.asked('code of ' || id), '192.0.2.1') $$;
CREATE FUNCTION pg_temp.redeems(
    id text, session text, client text DEFAULT 'app', uri text DEFAULT 'https://app.example/cb',
    challenge text DEFAULT left(encode(pg_temp.h('challenge'), 'hex'), 43), resource text[] DEFAULT NULL)
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason, subject = pg_temp.uu('sub'), kind, nonce) FROM postern.redeem_address_code(
        pg_temp.caller('gt:authorization_code', client => pg_temp.client(client)), NULL, pg_temp.uu(session),
        pg_temp.b16('s'), pg_temp.h('code of ' || id), uri, challenge, resource) $$;
CREATE FUNCTION pg_temp.is_live(session text) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM postern.introspect_address(pg_temp.realm(), pg_temp.uu(session))) $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begins('p1'), 'sent', 'a code is sent to any address');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', channel, recipient, purpose, locale), ',')
                          FROM postern.message_outbox$$), 'email who@example.com verify de', 'as a message for a proof');
SELECT is(pg_temp.proves('p1', '999999'), 'refused wrong', 'a wrong code');
SELECT is(pg_temp.proves('p1', '111111', client => 'second'), 'refused attempts', 'another client');
SELECT is(pg_temp.redeem('who@example.com', NULL, '111111'), 'refused unknown', 'the code signs nobody in');
SELECT is(pg_temp.proves('p1', '111111'), 'issued', 'the right one');
SELECT is(pg_temp.proves('p1', '111111'), 'refused attempts', 'works once');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.user_account WHERE email = ''who@example.com'''), '0', 'no account');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.browser_session'), '0', 'no browser session');
SELECT is(pg_temp.exchange('code of p1', 's1'), 'refused unknown', 'its code opens no session of an account');
SELECT is(pg_temp.redeems('p1', 's1', client => 'second'), 'refused client', 'another client''s');
SELECT is(pg_temp.redeems('p1', 's1', challenge => 'x'), 'refused verifier', 'a wrong verifier');
SELECT is(pg_temp.redeems('p1', 's1', uri => 'https://other.example/'), 'refused redirect_uri', 'another redirect URI');
SELECT is(pg_temp.redeems('p1', 's1', resource => '{other}'), 'invalid_target', 'a resource that it does not hold');
SELECT is(pg_temp.redeems('p1', 's1'), 'ok t email n', 'it is redeemed for the proof');
SELECT is(pg_temp.redeems('p1', 's1'), 'ok t email n', 'the same call again says the same');
SELECT ok(pg_temp.is_live('s1'), 'its access token is alive');
SELECT is(pg_temp.redeems('p1', 's2', challenge => 'x'), 'refused verifier', 'a second use with a wrong verifier');
SELECT ok(pg_temp.is_live('s1'), 'ends nothing');
SELECT is(pg_temp.redeems('p1', 's2'), 'refused used', 'with the right one it is refused');
SELECT ok(NOT pg_temp.is_live('s1'), 'and ends the token');
SELECT is(pg_temp.sql($$SELECT string_agg(event || coalesce(' ' || (detail ->> 'kind'), ''), ',' ORDER BY id) || bool_or(user_id IS NOT NULL)
    FROM postern.audit_event WHERE event IN ('address_proven', 'authorization_code_reused')$$),
    'address_proven email,authorization_code_reusedfalse', 'audited without the address');
-- Messages and tries are bounded.
SELECT is(pg_temp.begins('p2'), 'sent', 'another');
SELECT is(pg_temp.begins('p2', code => '222222', resend => true), 'sent', 'again');
SELECT is(pg_temp.begins('p2', code => '333333', resend => true), 'send_limit', 'no third');
SELECT is(pg_temp.proves('p2', '111111'), 'refused wrong', 'the former code is dead') FROM generate_series(1, 5);
SELECT is(pg_temp.proves('p2', '222222'), 'refused attempts', 'no tries are left');
SELECT is(pg_temp.begins('p2', code => '444444', resend => true), 'sent', 'then a new code gets a proof of its own');
SELECT is(pg_temp.proves('fresh p2', '444444'), 'issued', 'which takes it');
SELECT is(pg_temp.begins('p20', 'twice@example.com'), 'sent', 'a message that waits');
SELECT is(pg_temp.begins('p20', 'twice@example.com', '222222', resend => true), 'sent', 'and the next');
SELECT is(pg_temp.sql($$SELECT string_agg(state, ',' ORDER BY state) FROM postern.message_outbox
                         WHERE recipient = 'twice@example.com'$$), 'dead,queued', 'in its place');
RESET ROLE;
SELECT admin.set_code_policy('a', resend_cooldown => '60 seconds') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begins('p5', 'five@example.com', budget => '{b5}'), 'sent', 'one permit');
SELECT is(pg_temp.begins('p5', 'five@example.com', '222222', resend => true), 'cooldown', 'within the cooldown');
SELECT is(pg_temp.begins('p6', 'five@example.com', budget => '{b5}'), 'rate_limited', 'without a permit');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox WHERE recipient = 'five@example.com'$$), '1', 'nothing is sent');
SELECT is(pg_temp.begins('p5', 'five@example.com', '222222', resend => true, client => 'second', budget => '{b5}'),
          'rate_limited', 'another client''s proof has no cooldown of it');
SELECT is(pg_temp.proves('p5', '111111', 'five@example.com'), 'issued', 'the first code is alive');
SELECT is(pg_temp.begins('p5', 'five@example.com', '222222', resend => true, budget => '{b5}'), 'rate_limited',
          'nor has one that is over');
RESET ROLE;
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null
RESET ROLE;
UPDATE postern.code_guard SET consecutive = 98 WHERE address_key = 'who@example.com';
SET LOCAL ROLE app_login;
SELECT pg_temp.begins('p3') \g /dev/null
SELECT is(pg_temp.proves('p3', '0'), 'refused wrong', 'the ninety-ninth wrong code in a row');
SELECT is(pg_temp.proves('p3', '0'), 'refused lockout', 'the hundredth');
SELECT is(pg_temp.proves('p3', '111111'), 'refused locked', 'closes codes of the address');
-- A pushed request is answered once; a closed client gets no code.
RESET ROLE;
DELETE FROM postern.code_guard;
SELECT pg_temp.begins('p4'), pg_temp.begins('p5') \g /dev/null
INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, expires_at, ends_at, used_at, sealed)
VALUES (pg_temp.realm(), pg_temp.h('used'), pg_temp.client(), '192.0.2.1', now() + interval '1 hour',
        now() + interval '1 hour', now(), '\x01');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.proves('p4', '111111', pushed => jsonb_build_object('pushed', '\x' || encode(pg_temp.h('used'), 'hex'))), 'used',
          'a pushed request that was answered');
RESET ROLE;
SELECT admin.set_hosted('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.proves('p5', '111111'), 'closed', 'pages that were closed');
RESET ROLE;
SELECT admin.set_hosted('a', true) \g /dev/null
-- A browser shares what its user has proven in it.
CREATE FUNCTION pg_temp.browses(cookie text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT pg_temp.browse(cookie, request => NULL) $$;
SELECT pg_temp.browses('c1') \g /dev/null
SELECT is(pg_temp.begins('p6', 'ada@example.com', cookie => 'c1'), 'sent', 'a session of which the address is not known');
UPDATE postern.browser_session AS b
   SET email_proved_at = now() - interval '60 seconds',
       proofs = jsonb_build_object('email', jsonb_build_object('value', upper(i.value), 'method', 'OTP'))
  FROM postern.user_identifier AS i WHERE i.user_id = b.user_id;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begins('p7', 'ada@example.com', cookie => 'c1'), 'known', 'an address that the user has proven');
SELECT is(pg_temp.begins('p7', 'ada@example.com', cookie => 'c1', max_age => 90), 'known', 'within max_age');
SELECT is(pg_temp.begins('p7', 'ada@example.com', cookie => 'c1', max_age => 30), 'sent', 'longer ago');
SELECT is(pg_temp.begins('p8', 'bob@example.com', cookie => 'c1'), 'sent', 'another address');
SELECT is(pg_temp.begins('p9', 'ada@example.com', cookie => 'c2'), 'sent', 'another browser');
SELECT is(pg_temp.shares('c1', 'p10', max_age => 30), 'login', 'too old a proof is not shared');
SELECT is(pg_temp.shares('c1', 'p10', 'bob@example.com'), 'login', 'nor another address');
SELECT is(pg_temp.shares('c1', 'p10'), 'issued', 'the proven one is');
SELECT is(pg_temp.shares('c1', 'p11'), 'issued', 'again');
RESET ROLE;
UPDATE postern.user_identifier AS i SET value = 'ada@new.example'
 WHERE i.realm_id = pg_temp.realm() AND i.proven_key = 'ada@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.shares('c1', 'p14'), 'login', 'not after the account has another address in its place');
RESET ROLE;
UPDATE postern.user_identifier AS i SET value = 'ada@example.com'
 WHERE i.realm_id = pg_temp.realm() AND i.proven_key = 'ada@new.example';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeems('p10', 's10'), 'ok t email n', 'and redeemed');
RESET ROLE;
UPDATE postern.browser_session SET ended_at = now();
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeems('p11', 's11'), 'refused ended', 'not when the browser was signed out meanwhile');
-- Code and token end by the clock of the database.
RESET ROLE;
SELECT pg_temp.begins('p12'), pg_temp.proves('p12', '111111'), pg_temp.begins('p13'), pg_temp.proves('p13', '111111') \g /dev/null
UPDATE postern.address_verification SET expires_at = now() WHERE code_hash = pg_temp.h('code of p12');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeems('p12', 's12'), 'refused expired', 'a code whose time is over');
SELECT is(pg_temp.redeems('p13', 's13'), 'ok t email n', 'one in time');
SELECT ok(pg_temp.is_live('s13'), 'its token is alive');
RESET ROLE;
UPDATE postern.address_verification SET expires_at = now() WHERE session = pg_temp.uu('s13');
SET LOCAL ROLE app_login;
SELECT ok(NOT pg_temp.is_live('s13'), 'until its time is over');
SELECT is(postern.revoke_address_token(pg_temp.realm(), pg_temp.client('second'), pg_temp.uu('s10')), false,
          'another client does not revoke it');
SELECT is(postern.revoke_address_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('s10')), true, 'its own does');
SELECT ok(NOT pg_temp.is_live('s10'), 'then it is dead');
SELECT * FROM finish();
