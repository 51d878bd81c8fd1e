\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SET LOCAL ROLE app_login;
SELECT is(pg_temp.answered('c1'), 'login', 'an unknown cookie is nobody''s');
SELECT is(pg_temp.browse('c1'), 'continue', 'a browser signs in');
SELECT is(pg_temp.answered('c1'), 'continue', 'and is known');
SELECT results_eq($$SELECT session, email, amr, email_proved_at = auth_time, phone_proved_at
                      FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c1'), 'a.example', NULL)$$,
                  $$VALUES (pg_temp.uu('c1'), 'Ada@example.com', '{otp}'::text[], true, NULL::double precision)$$,
                  'as whom, and by what');
SELECT is(pg_temp.answered('c1', host => 'shop.a.example'), 'login', 'on that host alone');
SELECT is(pg_temp.answered('c1', r => pg_temp.other()), 'login', 'in that realm alone');
SELECT is(pg_temp.alive('c1'), false, 'no session of a client was opened');
-- Another proof.
SELECT is(pg_temp.browse('c2', former => 'c1', amr => '{hwk,user,mfa}', proves => 'passkey'), 'continue',
          'another proof of the same user');
SELECT is(pg_temp.answered('c1'), 'login', 'ends the former cookie');
SELECT is((SELECT session FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c2'), 'a.example', NULL)),
          pg_temp.uu('c1'), 'and keeps the session');
SELECT is((SELECT amr FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c2'), 'a.example', NULL)),
          '{otp,hwk,user,mfa}', 'with all proofs');
-- A request that wants a newer sign-in gets no older proof with it.
CREATE FUNCTION pg_temp.aged(cookie text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format('UPDATE postern.browser_session SET auth_time = now() - interval ''1 hour'',
                                       proven_at = now() - interval ''1 hour'' WHERE cookie_hash = pg_temp.h(%L) RETURNING 1', cookie)) $$;
CREATE FUNCTION pg_temp.methods(cookie text) RETURNS text[] LANGUAGE sql AS $$
    SELECT amr FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h(cookie), 'a.example', NULL) $$;
SELECT pg_temp.aged('c2') \g /dev/null
SELECT is(pg_temp.answered('c2', pg_temp.wanted('n1', '{"acr_values":["phr"],"max_age":60}')), 'login',
          'a passkey of an hour ago is too old');
SELECT is(pg_temp.browse('c20', former => 'c2', request => pg_temp.wanted('n0')), 'issued', 'a code by mail');
SELECT is(pg_temp.answered('c20', pg_temp.wanted('n1', '{"acr_values":["phr"],"max_age":60}')), 'login',
          'makes it no newer');
SELECT is((SELECT amr || array[(auth_time = db_now)::text] FROM postern.continue_browser_session(
               pg_temp.realm(), pg_temp.h('c20'), 'a.example', NULL)), '{otp,hwk,user,mfa,true}',
          'although it is there, and the user too');
SELECT pg_temp.browse('c2', former => 'c20') \g /dev/null
SELECT is(pg_temp.browse('c21', former => 'c2', request => pg_temp.wanted('n1', '{"acr_values":["phr"],"max_age":60}')),
          'acr', 'a code does not make it newer');
SELECT is(pg_temp.methods('c21'), '{otp}', 'the session is as strong as the code');
SELECT pg_temp.browse('c22', former => 'c21', amr => '{hwk,user,mfa}', proves => 'passkey') \g /dev/null
SELECT is(pg_temp.browse('c23', former => 'c22', request => pg_temp.wanted('n2', '{"max_age":60}')), 'issued',
          'within max_age');
SELECT is(pg_temp.methods('c23'), '{otp,hwk,user,mfa}', 'proofs add up');
SELECT is(pg_temp.answered('c23', pg_temp.wanted('n3', '{"login":true}')), 'login', 'prompt=login wants a new one');
SELECT is(pg_temp.answered('c23', pg_temp.wanted('n3', '{"login":true,"proved":true}')), 'issued', 'which was given');
SELECT is(pg_temp.browse('c24', former => 'c23', request => pg_temp.wanted('n4', '{"login":true}')), 'issued',
          'a proof is one');
SELECT is(pg_temp.methods('c24'), '{otp}', 'and stands alone');
SELECT pg_temp.aged('c24') \g /dev/null
SELECT is(pg_temp.answered('c24', pg_temp.wanted('n5', '{"max_age":0,"proved":true}')), 'issued',
          'a page may be read for longer than max_age');
SELECT is(pg_temp.browse('c2', former => 'c24'), 'continue', 'without a request');
SELECT is(pg_temp.browse('c3', 'bob@example.com', former => 'c2'), 'continue', 'another user');
SELECT is(pg_temp.answered('c2'), 'login', 'replaces the session');
SELECT is(pg_temp.sql($$SELECT detail ->> 'reason' FROM postern.audit_event WHERE event = 'signed_out'$$), 'replaced',
          'which is audited');
-- A silent answer is a use.
SELECT pg_temp.sql($$UPDATE postern.browser_session SET last_used_at = now() - interval '2 s', idle_expires_at = now()
                        + interval '9 s' WHERE id = pg_temp.uu('c3') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.answered('c3', pg_temp.wanted()), 'continue', 'a look');
SELECT is(pg_temp.sql($$SELECT (idle_expires_at = now() + interval '9 s')::text FROM postern.browser_session
                         WHERE id = pg_temp.uu('c3')$$), 'true', 'prolongs nothing');
SELECT is(pg_temp.answered('c3', pg_temp.wanted('used')), 'issued', 'a code');
SELECT is(pg_temp.sql($$SELECT (idle_expires_at = now() + interval '30 days' AND last_used_at = now())::text
                          FROM postern.browser_session WHERE id = pg_temp.uu('c3')$$), 'true', 'is a use');
-- The cookie's life is counted from the last use: a browser that has not had it for an hour gets it again.
CREATE FUNCTION pg_temp.is_due(code text) RETURNS boolean LANGUAGE sql AS $$
    SELECT cookie_due FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c3'), 'a.example', pg_temp.wanted(code)) $$;
CREATE FUNCTION pg_temp.cookie_of(age interval) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format('UPDATE postern.browser_session SET last_used_at = now() - interval ''1 minute'',
                                   cookie_set_at = now() - interval %L WHERE id = pg_temp.uu(''c3'') RETURNING 1', age)) $$;
SELECT pg_temp.cookie_of('59 minutes') \g /dev/null
SELECT ok(NOT pg_temp.is_due('due 1'), 'a cookie of less than an hour is not given again');
SELECT pg_temp.cookie_of('61 minutes') \g /dev/null
SELECT ok(NOT pg_temp.is_due(NULL), 'nor is an older one where the session was not used');
SELECT ok(pg_temp.is_due('due 2'), 'where it was, it is');
SELECT pg_temp.sql($$UPDATE postern.browser_session SET last_used_at = now() - interval '1 minute'
                      WHERE id = pg_temp.uu('c3') RETURNING 1$$) \g /dev/null
SELECT ok(NOT pg_temp.is_due('due 3'), 'once');
SELECT is((SELECT expires_at - db_now FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c3'), 'a.example', NULL)),
          extract(epoch FROM interval '180 days')::double precision, 'for as long as the session can live at most');
-- Ends.
SELECT pg_temp.sql($$UPDATE postern.browser_session SET idle_expires_at = now()
                      WHERE id = pg_temp.uu('c3') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.answered('c3'), 'login', 'idle time ends it');
SELECT pg_temp.browse('c4'), pg_temp.sql($$UPDATE postern.browser_session SET expires_at = now()
                                            WHERE id = pg_temp.uu('c4') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.answered('c4'), 'login', 'absolute time ends it');
SELECT pg_temp.browse('c5') \g /dev/null
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.answered('c5'), 'login', 'a sign-out everywhere ends it');
SELECT is(pg_temp.answered('c5', pg_temp.wanted('k')), 'login', 'and no code is stored');
-- The list of a user.
SELECT pg_temp.browse('c6'), pg_temp.sign_in('native') \g /dev/null
CREATE FUNCTION pg_temp.own() RETURNS SETOF record LANGUAGE sql AS $$
    SELECT id, browser, client_id FROM postern.listed_sessions(pg_temp.realm(), pg_temp.sub('ada@example.com')) $$;
SELECT bag_eq('SELECT * FROM pg_temp.own() AS x (id uuid, browser boolean, client_id text)',
              $$VALUES (pg_temp.uu('c6'), true, NULL), (pg_temp.uu('native'), false, 'app')$$,
              'a user sees browsers and apps');
CREATE FUNCTION pg_temp.ended(target text, address text DEFAULT 'ada@example.com') RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.end_any_own_session(pg_temp.realm(), pg_temp.sub(address), pg_temp.uu(target), pg_temp.uu('native'),
                                       '192.0.2.1') $$;
SELECT ok(NOT pg_temp.ended('c6', 'bob@example.com'), 'nobody ends another user''s browser');
SELECT ok(pg_temp.ended('c6') AND NOT pg_temp.ended('c6'), 'a user ends one, once');
SELECT ok(pg_temp.ended('native') AND NOT pg_temp.alive('native'), 'and an app''s');
SELECT is(pg_temp.answered('c6'), 'login', 'it is signed out');
-- What was opened through it.
SELECT pg_temp.browse('c7', request => pg_temp.wanted('stays')) \g /dev/null
SELECT is(pg_temp.answered('c7', pg_temp.wanted('goes', '{"scope":["openid"]}')), 'issued', 'a code without offline_access');
SELECT is(pg_temp.exchange('stays', 's-stays'), 'ok', 'one session with it');
SELECT is(pg_temp.exchange('goes', 's-goes'), 'ok', 'one without');
SELECT ok(pg_temp.ended('c7'), 'the browser signs out');
SELECT ok(pg_temp.alive('s-stays') AND NOT pg_temp.alive('s-goes'), 'only the one without offline_access ends with it');
SELECT ok(NOT has_table_privilege('postern_admin', 'postern.browser_session', 'SELECT'), 'administrators see no cookie');
SELECT * FROM finish();
ROLLBACK;
