\ir helpers/fixture.psql
SELECT no_plan();
SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:magic'), admin.grant_permission('a', 'second', 'gt:urn:cocoar:magic') \g /dev/null
-- A person by address; nobody's is a fixed one.
CREATE FUNCTION pg_temp.person(address text, r uuid DEFAULT pg_temp.realm()) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT coalesce((SELECT id FROM postern.user_account WHERE email_key = address AND realm_id = r), pg_temp.uu('nobody')) $$;
-- Asks for a link; the handle is named, and so is the token. Decides it and returns the outcome.
CREATE FUNCTION pg_temp.link(handle text, address text, token text, client uuid DEFAULT NULL, source text DEFAULT '192.0.2.1', resend boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asked record;
    decided record;
BEGIN
    SELECT * INTO asked FROM postern.request_link(pg_temp.realm(), pg_temp.b16(CASE WHEN resend THEN 'fresh ' ELSE '' END || handle), CASE WHEN resend THEN pg_temp.b16(handle) END,
        address, lower(address COLLATE "C"), client, source, 900, '{}', '{}', '{}', '{}', '{}');
    ASSERT asked.outcome = 'accepted';
    SELECT * INTO decided FROM postern.decide_link(pg_temp.realm(), asked.handle);
    IF decided.outcome = 'send' THEN
        PERFORM postern.add_link(pg_temp.realm(), asked.handle, decided.user_id, pg_temp.h(token), gen_random_uuid(), '\x01');
    END IF;
    RETURN decided.outcome;
END
$$;
CREATE FUNCTION pg_temp.open(address text, token text, client text DEFAULT 'app', session text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason) FROM postern.redeem_magic(pg_temp.realm(), pg_temp.client(client), 'gt:urn:cocoar:magic', pg_temp.person(address), pg_temp.h(token),
        coalesce(pg_temp.uu(session), gen_random_uuid()), pg_temp.b16('s'), pg_temp.h('t0'), '{openid}', '{}', '{otp}', 900, 1209600, '192.0.2.1', '{}', '{}', '{}', '{}', '{}') $$;
CREATE FUNCTION pg_temp.poll(handle text, client text DEFAULT 'app') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason) FROM postern.poll_magic(pg_temp.realm(), pg_temp.client(client), 'gt:urn:cocoar:magic', pg_temp.b16(handle),
        gen_random_uuid(), pg_temp.b16('s'), pg_temp.h('t0'), '{openid}', '{}', '{otp}', 900, 1209600, '192.0.2.1', '{}', '{}', '{}', '{}', '{}') $$;
-- Answers the page; the number is that of a named handle, else a wrong one.
CREATE FUNCTION pg_temp.answer(address text, token text, handle text) RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.confirm_link(pg_temp.realm(), pg_temp.person(address), pg_temp.h(token),
        CASE WHEN handle IS NOT NULL THEN postern.match_number(pg_temp.b16(handle)) END, '192.0.2.1', '{}', '{}', '{}', '{}', '{}') $$;
CREATE FUNCTION pg_temp.number(address text, token text) RETURNS integer LANGUAGE sql AS $$ SELECT postern.link_number(pg_temp.realm(), pg_temp.person(address), pg_temp.h(token)) $$;
CREATE FUNCTION pg_temp.later(seconds integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE postern.login_link SET created_at = created_at - make_interval(secs => seconds), expires_at = expires_at - make_interval(secs => seconds);
    UPDATE postern.auth_session SET polled_at = polled_at - make_interval(secs => seconds), expires_at = expires_at - make_interval(secs => seconds);
    RETURN seconds || ' s later';
END
$$;
SET LOCAL ROLE app_login;

-- Requests and decisions.
SELECT is(pg_temp.link('h1', 'ada@example.com', 't1'), 'send', 'MG-01: a known address is sent a link');
SELECT is(pg_temp.sql($$SELECT recipient || ' ' || state || ' ' || template FROM postern.mail_outbox$$), 'Ada@example.com queued magic-link', 'MG-16: to the stored address');
SELECT is(pg_temp.link('n1', 'nobody@example.com', 'x'), 'ignored', 'MG-17: an unknown address is sent nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.mail_outbox$$), '1', 'one mail in all');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.auth_session WHERE pending$$), '0', 'both are decided');
SELECT is((SELECT outcome FROM postern.decide_link(pg_temp.realm(), pg_temp.b16('h1'))), 'ignored', 'and none is decided twice');
SELECT is(postern.decide_otp(pg_temp.realm(), pg_temp.b16('h1'), gen_random_uuid(), pg_temp.b16('x'), pg_temp.h('x'), gen_random_uuid(), '\x01', 'otp'), 'ignored', 'nor as a code');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', 'x'), 'refused attempts', 'its handle opens no code');

-- The number.
SELECT ok(bool_and(postern.match_number(pg_temp.b16(n::text)) BETWEEN 10 AND 99) AND count(DISTINCT postern.match_number(pg_temp.b16(n::text))) = 90, 'numbers have two digits, and all of them occur') FROM generate_series(1, 2000) AS n;
SELECT is(postern.match_number('\x000102030405060708090a0b0c0d0e0f'), 23, 'a number known beforehand, the same as the server computes');
SELECT is(pg_temp.number('ada@example.com', 't1'), postern.match_number(pg_temp.b16('h1')), 'the page knows the right one');
SELECT is(pg_temp.number('ada@example.com', 'other'), NULL, 'of no other link');
SELECT is(pg_temp.number('bob@example.com', 't1'), NULL, 'of no other user');

-- By token.
SELECT is(pg_temp.open('bob@example.com', 't1'), 'refused unknown', 'MG-05: another user''s link');
SELECT is(pg_temp.open('ada@example.com', 'wrong'), 'refused unknown', 'MG-03: a wrong token');
SELECT is(pg_temp.open('nobody@example.com', 't1'), 'refused unknown', 'MG-07: a user nobody is');
SELECT is(pg_temp.poll('h1'), 'pending', 'the device that asked waits');
SELECT is(pg_temp.open('ada@example.com', 't1', session => 'in'), 'ok', 'MG-05, MG-22: none of which ended the link');
SELECT is(pg_temp.open('ada@example.com', 't1'), 'refused redeemed', 'MG-04: once');
SELECT is(pg_temp.poll('h1'), 'refused expired', 'and the device that asked gets nothing');
SELECT is(pg_temp.answer('ada@example.com', 't1', 'h1'), 'redeemed', 'nor does the page confirm it');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event WHERE event IN ('sign_in', 'link_requested')$$), 'link_requested,sign_in', 'both are in the audit log');
SELECT is(pg_temp.sql($$SELECT amr::text || (refresh_expires_at IS NOT NULL) FROM postern.session WHERE id = pg_temp.uu('in')$$), '{otp}true', 'a session is open');

-- Cooldown: the same asker gets the link already sent, a stranger one of his own.
SELECT is(pg_temp.link('c1', 'ada@example.com', 'tc1'), 'send', 'the cooldown lasts only while a link is live');
SELECT is(pg_temp.link('c2', 'ada@example.com', 'tc2'), 'cooldown', 'a second request within it sends no mail');
SELECT is(pg_temp.number('ada@example.com', 'tc1'), postern.match_number(pg_temp.b16('c2')), 'the link is now the second handle''s');
SELECT is(pg_temp.link('s1', 'ada@example.com', 'ts1', NULL, '198.51.100.7'), 'send', 'somebody elsewhere is sent another link');
SELECT is(pg_temp.number('ada@example.com', 'tc1'), postern.match_number(pg_temp.b16('c2')), 'and takes nothing away');
SELECT is(pg_temp.link('k1', 'ada@example.com', 'tk1', pg_temp.client()), 'cooldown', 'a request that names a client is content with a link for any');
SELECT is(pg_temp.later(61), '61 s later', 'it passes');
SELECT is(pg_temp.link('k2', 'ada@example.com', 'tk2', pg_temp.client()), 'send', 'then there is a new link');
SELECT is(pg_temp.link('k3', 'ada@example.com', 'tk3'), 'send', 'of one client is no cooldown for those who cannot redeem it');
SELECT is(pg_temp.link('k3', 'ada@example.com', '-', resend => true), 'cooldown', 'the same handle again');
SELECT is(pg_temp.later(61), '61 s later', 'and later');
SELECT is(pg_temp.link('k3', 'ada@example.com', 'tk4', NULL, '203.0.113.9', true), 'send', 'gets a new link');
SELECT is(pg_temp.number('ada@example.com', 'tk4'), pg_temp.number('ada@example.com', 'tk3'), 'with its old number');
SELECT is(pg_temp.open('ada@example.com', 'tk2', 'second'), 'refused client', 'MG-06: a link of another client');
SELECT is(pg_temp.open('ada@example.com', 'tk3', 'second'), 'ok', 'any client for a link that names none');
SELECT is(pg_temp.open('ada@example.com', 'tk2'), 'refused superseded', 'MG-20: a success ends all links of the user');
SELECT is(pg_temp.answer('ada@example.com', 'tk4', 'k3'), 'superseded', 'MG-20: on the page too');

-- Ten live.
SELECT is(pg_temp.link('m' || n, 'bob@example.com', 'tm' || n, NULL, '192.0.2.' || n), 'send', 'link ' || n) FROM generate_series(1, 11) AS n;
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_link WHERE ended IS NULL AND user_id = pg_temp.person('bob@example.com')$$), '10', 'MG-20: the ten newest live');
SELECT is(pg_temp.open('bob@example.com', 'tm11'), 'ok', 'the newest works');

-- By polling.
SELECT is(pg_temp.link('p1', 'ada@example.com', 'tp1'), 'send', 'a link');
SELECT is(pg_temp.poll('p1'), 'pending', 'the first poll may come at once');
SELECT is(pg_temp.poll('p1'), 'slow_down', 'the second may not');
SELECT is(pg_temp.sql($$SELECT poll_interval FROM postern.auth_session WHERE id = pg_temp.b16('p1')$$), '10', 'and the interval is five seconds longer');
SELECT is(pg_temp.later(9), '9 s later', 'nine seconds');
SELECT is(pg_temp.poll('p1'), 'slow_down', 'are too few');
SELECT is(pg_temp.later(6), '6 s later', 'fifteen in all');
SELECT is(pg_temp.poll('p1'), 'pending', 'are enough');
SELECT is(pg_temp.poll('p1', 'second'), 'slow_down', 'any client polls for a handle that names none');
SELECT is(pg_temp.answer('bob@example.com', 'tp1', 'p1'), 'unknown', 'MG-05: another user''s page');
SELECT is(pg_temp.answer('ada@example.com', 'tp1', 'p1'), 'confirmed', 'the right number');
SELECT is(pg_temp.open('ada@example.com', 'tp1'), 'refused confirmed', 'a confirmed link cannot be redeemed as well');
SELECT is(pg_temp.answer('ada@example.com', 'tp1', 'p1'), 'answered', 'nor confirmed again');
SELECT is(pg_temp.poll('p1'), 'ok', 'the device that asked is signed in');
SELECT is(pg_temp.poll('p1'), 'refused expired', 'once');
SELECT is(pg_temp.poll('n1'), 'pending', 'MG-17: a handle of an unknown address');
SELECT is(pg_temp.poll('n1'), 'slow_down', 'is polled in the same way');
SELECT is(pg_temp.later(901), '901 s later', 'to the end');
SELECT is(pg_temp.poll('n1'), 'refused expired', 'of its time');
SELECT is(pg_temp.poll('never'), 'refused unknown', 'a handle nobody has');

-- A wrong number, and none.
SELECT is(pg_temp.link('w1', 'ada@example.com', 'tw1'), 'send', 'a link');
SELECT is(pg_temp.answer('ada@example.com', 'tw1', NULL), 'denied', 'denied');
SELECT is(pg_temp.poll('w1'), 'denied', 'is what its device is told');
SELECT is(pg_temp.poll('w1'), 'denied', 'as often as it asks');
SELECT is(pg_temp.open('ada@example.com', 'tw1'), 'refused denied', 'the link is dead');
SELECT is(pg_temp.answer('ada@example.com', 'tw1', 'w1'), 'answered', 'the right number comes too late');
SELECT is(pg_temp.link('w1', 'ada@example.com', 'tw2', resend => true), 'send', 'a new request');
SELECT is(pg_temp.number('ada@example.com', 'tw2'), postern.match_number(pg_temp.b16('fresh w1')), 'gets a new handle');

-- Time, people and switches.
SELECT is(pg_temp.later(901), '901 s later', 'fifteen minutes');
SELECT is(pg_temp.open('ada@example.com', 'tw2'), 'refused expired', 'MG-08: is how long a link lives');
SELECT is(pg_temp.answer('ada@example.com', 'tw2', 'fresh w1'), 'expired', 'MG-08: on the page too');
SELECT is(pg_temp.link('d1', 'bob@example.com', 'td1'), 'send', 'a link');
SELECT is(pg_temp.link('d2', 'bob@example.com', 'td2', NULL, '198.51.100.7'), 'send', 'and another');
SELECT is(pg_temp.answer('bob@example.com', 'td2', 'd2'), 'confirmed', 'which is confirmed');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'bob@example.com', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.poll('d2'), 'refused disabled', 'MG-21: a user disabled after the confirmation');
SELECT is(pg_temp.link('d3', 'bob@example.com', 'td3'), 'ignored', 'is sent nothing');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'bob@example.com', true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.link('d4', 'bob@example.com', 'td4'), 'send', 'a link');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'bob@example.com', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.open('bob@example.com', 'td4'), 'refused disabled', 'MG-21: of a user disabled since');
SELECT is(pg_temp.answer('bob@example.com', 'td4', 'd4'), 'unknown', 'MG-21: on the page too');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'bob@example.com', true), admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.open('bob@example.com', 'td4'), 'refused disabled', 'of a realm that has native grants off');
RESET ROLE;
SELECT admin.set_native_grants('a', true), admin.put_user('a', 'bob@example.com', email_verified => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.link('u1', 'bob@example.com', 'tu1'), 'ignored', 'an unconfirmed address is sent nothing');
SELECT is(pg_temp.sql($$INSERT INTO postern.code_guard (realm_id, email_key, consecutive, locked_until) VALUES (pg_temp.realm(), 'bob@example.com', 100, now() + interval '1 hour') RETURNING 1$$), '1', 'codes are locked');
SELECT is(pg_temp.open('bob@example.com', 'td4'), 'ok', 'a link still signs in');
SELECT is(pg_temp.sql($$SELECT email_verified FROM postern.user_account WHERE id = pg_temp.person('bob@example.com')$$), 'true', 'it proves the mailbox');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || coalesce(locked_until::text, '-') FROM postern.code_guard WHERE email_key = 'bob@example.com'$$), '0 -', 'and opens the codes again');

-- Tenancy and the sweeper.
SELECT is((SELECT outcome FROM postern.redeem_magic(pg_temp.other(), pg_temp.client('app', pg_temp.other()), 'gt:urn:cocoar:magic', pg_temp.person('ada@example.com'), pg_temp.h('t1'),
    gen_random_uuid(), pg_temp.b16('s'), NULL, '{}', '{}', '{otp}', 900, 1209600, NULL, '{}', '{}', '{}', '{}', '{}')), 'refused', 'MG-06: a link of another realm');
SELECT is(pg_temp.later(3600), '3600 s later', 'an hour later');
SELECT ok(postern.sweep(100000) > 0, 'the sweeper comes');
SELECT is(pg_temp.sql($$SELECT (SELECT count(*) FROM postern.login_link) || ' ' || (SELECT count(*) FROM postern.auth_session)$$), '0 0', 'and leaves no link and no handle');
SELECT is(pg_temp.link('z1', 'ada@example.com', 'tz1'), 'send', 'a last link');
RESET ROLE;
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.login_link), 0, 'goes with its user');
SELECT * FROM finish();
ROLLBACK;
