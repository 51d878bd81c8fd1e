\ir helpers/fixture.psql
SELECT no_plan();
SET LOCAL ROLE app_login;

-- Requests: recorded without a look at who is known, decided afterwards.
SELECT is(pg_temp.ask('h1', 'ada@example.com', '111111'), 'sent', 'a known address is sent a code');
SELECT is(pg_temp.sql($$SELECT recipient || ' ' || state || ' ' || (payload IS NOT NULL) FROM postern.mail_outbox$$), 'Ada@example.com queued true', 'OT-23: to the stored address');
SELECT is(pg_temp.ask('h2', 'ADA@example.com', '222222'), 'cooldown', 'within the cooldown there is no second mail');
SELECT is(pg_temp.ask('h3', 'nobody@example.com', '333333'), 'ignored', 'OT-24: an unknown address is sent nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.mail_outbox$$), '1', 'one mail in all');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.auth_session WHERE pending$$), '0', 'all three are decided');
SELECT is(postern.decide_otp(pg_temp.realm(), pg_temp.b16('h1'), gen_random_uuid(), pg_temp.b16('x'), pg_temp.h('x'), gen_random_uuid(), '\x01', 'otp'), 'ignored', 'and none is decided twice');
SELECT is(pg_temp.redeem('ada@example.com', 'h2', '111111'), 'ok', 'the handle of the second request opens the code already sent');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '111111'), 'refused unknown', 'OT-04: once');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '111111'), 'refused unknown', 'OT-04: in either form');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event WHERE event IN ('sign_in', 'otp_requested')$$), 'otp_requested,sign_in', 'both are in the audit log');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '0', 'a success leaves no code');
SELECT is(pg_temp.ask('c1', 'ada@example.com', '1'), 'sent', 'the cooldown lasts only while a code is live');
SELECT is(pg_temp.ask('c1x', 'ada@example.com', '2', pg_temp.client()), 'cooldown', 'a request that names a client opens a code for any client');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET created_at = created_at - interval '61 s' RETURNING 1$$), '1', 'it passes');
SELECT is(pg_temp.ask('c2', 'ada@example.com', '2', pg_temp.client()), 'sent', 'then a request that names a client gets a code of its own');
SELECT is(pg_temp.ask('c2x', 'ada@example.com', '2'), 'sent', 'a code of one client is no cooldown for those who cannot redeem it');
SELECT is(pg_temp.sql($$DELETE FROM postern.login_code WHERE id IN (SELECT unnest(code_ids) FROM postern.auth_session WHERE id = pg_temp.b16('c2x')) RETURNING 1$$), '1', 'put away again');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET created_at = created_at - interval '61 s' RETURNING 1$$), '1', 'after the cooldown');
SELECT is(pg_temp.ask('c3', 'ada@example.com', '3'), 'sent', 'a new code is sent');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET created_at = created_at - interval '61 s' RETURNING 1$$), '1', 'after another');
SELECT is(pg_temp.ask('c4', 'ada@example.com', '4'), 'sent', 'a fourth one');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '3', 'the three newest live');
SELECT is(pg_temp.redeem('ada@example.com', 'c1', '1'), 'refused wrong', 'the fourth newest is dead');
SELECT is(pg_temp.redeem('ada@example.com', 'c4', '3'), 'refused disabled', 'a handle opens its own code only');
SELECT is(pg_temp.redeem('ada@example.com', 'c3', '3'), 'ok', 'an older live code is good');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '0', 'and its success kills all of them');

-- The same handle again.
SELECT is(pg_temp.ask('r1', 'bob@example.com', '1'), 'sent', 'a request');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '9'), 'refused wrong', 'a wrong try');
SELECT is(pg_temp.ask('r1', 'bob@example.com', '2', NULL, true), 'cooldown', 'resent within the cooldown');
SELECT is(pg_temp.sql($$SELECT attempts || ' ' || cardinality(code_ids) FROM postern.auth_session WHERE id = pg_temp.b16('r1')$$), '1 1', 'its tries are kept, its code is not listed twice');
SELECT is((SELECT handle FROM postern.request_code(pg_temp.realm(), pg_temp.b16('new'), pg_temp.b16('r1'), 'otp', 'ada@example.com', 'ada@example.com', NULL, NULL, NULL, 600, '{}', '{}', '{}', '{}', '{}')), pg_temp.b16('new'), 'another address does not get the handle');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '1'), 'ok', 'and it still opens the code');

-- Who is not sent a code.
RESET ROLE;
SELECT admin.put_user('a', 'bob@example.com', email_verified => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('u1', 'bob@example.com', '1'), 'ignored', 'OT-32: an unconfirmed address');
RESET ROLE;
SELECT admin.put_user('a', 'bob@example.com', email_verified => true, enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('u2', 'bob@example.com', '1'), 'ignored', 'a disabled user');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'bob@example.com', true), admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('u3', 'bob@example.com', '1'), 'ignored', 'anybody while native grants are off');
RESET ROLE;
SELECT admin.set_native_grants('a', true) \g /dev/null
SET LOCAL ROLE app_login;

-- Tries by handle: five, counted before they are compared.
SELECT is(pg_temp.ask('t1', 'bob@example.com', '123456'), 'sent', 'a code');
SELECT is(pg_temp.ask('t2', 'bob@example.com', '-'), 'cooldown', 'with two handles');
SELECT is(pg_temp.redeem('bob@example.com', 't1', v.code), 'refused wrong', 'OT-02: wrong: ' || v.code) FROM (VALUES ('123457'), ('23456'), ('0123456'), (''), ('１２３４５６')) AS v (code);
SELECT is(pg_temp.redeem('bob@example.com', 't1', '123456'), 'refused attempts', 'OT-10: five wrong tries and the handle is spent');
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.auth_session WHERE id = pg_temp.b16('t1')$$), '5', 'OT-12: five are counted');
SELECT is(pg_temp.redeem('ada@example.com', 't2', '123456'), 'refused attempts', 'OT-07: address and handle must agree');
SELECT is(pg_temp.redeem('bob@example.com', 'nothing', '123456'), 'refused attempts', 'OT-35: a handle nobody has');
SELECT is(pg_temp.redeem('bob@example.com', 't2', 'old key', '123456'), 'ok', 'D17: somebody else''s tries do not count for this handle; codes of an older server key are good');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE email_key = 'bob@example.com'$$), '0', 'OT-15: success clears the count');
SELECT is(pg_temp.ask('t3', 'bob@example.com', '7'), 'sent', 'a code');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() RETURNING 1$$), '1', 'that is ten minutes old');
SELECT is(pg_temp.redeem('bob@example.com', 't3', '7'), 'refused expired', 'OT-09: is not good any more');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() + interval '1 s' RETURNING 1$$), '1', 'but a second before');
SELECT is(pg_temp.sql($$UPDATE postern.auth_session SET expires_at = now() RETURNING 1$$), '1', 'an expired handle');
SELECT is(pg_temp.redeem('bob@example.com', 't3', '7'), 'refused attempts', 'opens nothing');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '7'), 'ok', 'it is');

-- Which client: any, unless the request named one.
SELECT set_config('test.client', 'second', true) \g /dev/null
SELECT is(pg_temp.ask('k1', 'bob@example.com', '1'), 'sent', 'a request that names no client');
SELECT is(pg_temp.redeem('bob@example.com', 'k1', '1'), 'ok', 'is good for any');
SELECT is(pg_temp.ask('k2', 'bob@example.com', '2', pg_temp.client('app')), 'sent', 'a request that names a client');
SELECT is(pg_temp.redeem('bob@example.com', 'k2', '2'), 'refused client', 'OT-08: is not good for another');
SELECT set_config('test.client', '', true) \g /dev/null
SELECT is(pg_temp.redeem('bob@example.com', 'k2', '2'), 'ok', 'and untouched by it');

-- By address alone: the failure budget, five at once and then one per two minutes.
SELECT is(pg_temp.ask('b1', 'bob@example.com', '42'), 'sent', 'a code');
SELECT is(pg_temp.redeem('bob@example.com', NULL, 'x' || n), 'refused wrong', 'wrong try ' || n || ' by address') FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.redeem('bob@example.com', NULL, '42'), 'refused budget', 'then even the right code is refused');
SELECT is(pg_temp.redeem('bob@example.com', 'b1', '42'), 'ok', 'but not by handle');
SELECT is(pg_temp.ask('b2', 'bob@example.com', '43'), 'sent', 'another code');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'refused budget', 'a success by handle does not refill the budget');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET failures_tat = failures_tat - interval '2 minutes' WHERE email_key = 'bob@example.com' RETURNING 1$$), '1', 'two minutes later');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '44'), 'refused wrong', 'one try');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'refused budget', 'and no more');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET failures_tat = failures_tat - interval '2 minutes' WHERE email_key = 'bob@example.com' RETURNING 1$$), '1', 'two minutes later again');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'ok', 'the right code');
SELECT is(pg_temp.ask('b3', 'bob@example.com', '45'), 'sent', 'which gave its permit back:');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '45'), 'ok', 'the next one is good at once');

-- A hundred refusals in a row, known address or not.
SELECT is(pg_temp.ask('l1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET consecutive = 0 WHERE email_key = 'ada@example.com' RETURNING 1$$), '1', 'counted from none');
SELECT is((SELECT count(*)::int FROM generate_series(1, 100) AS n WHERE pg_temp.redeem(a.address, 'spent' || n, 'x') = 'refused attempts'), 100, 'OT-14: a hundred refusals: ' || a.address)
  FROM (VALUES ('ada@example.com'), ('nobody@example.com')) AS a (address);
SELECT is(pg_temp.sql($$SELECT string_agg(DISTINCT (locked_until = now() + interval '24 hours')::text, ',') FROM postern.code_guard WHERE consecutive >= 100$$), 'true', 'lock for a day');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'code_lockout'$$), '2', 'audited once each');
SELECT unalike(pg_temp.sql($$SELECT string_agg(detail::text, ',') FROM postern.audit_event WHERE event = 'code_lockout'$$), '%@%', 'without the address');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '1'), 'refused locked', 'then handles');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '1'), 'refused locked', 'and addresses are refused');
SELECT is(pg_temp.sql($$SELECT locked_until = now() + interval '24 hours' FROM postern.code_guard WHERE email_key = 'ada@example.com'$$), 'true', 'which does not prolong the lock');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET locked_until = now() WHERE email_key = 'ada@example.com' RETURNING 1$$), '1', 'a day later');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '2'), 'refused wrong', 'the count');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until IS NULL) FROM postern.code_guard WHERE email_key = 'ada@example.com'$$), '1 true', 'starts again');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '1'), 'ok', 'OT-16: and the owner is in');

-- What changed between the request and the redemption.
SELECT is(pg_temp.ask('d1', 'ada@example.com', '1'), 'sent', 'a code');
RESET ROLE;
SELECT admin.revoke_permission('a', 'app', 'gt:urn:cocoar:otp') \g /dev/null
SET LOCAL ROLE app_login;
SELECT matches(pg_temp.redeem('ada@example.com', 'd1', '1'), '^refused', 'CA-10: the permission was taken away');
RESET ROLE;
SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:otp'), admin.put_client('a', 'app', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT matches(pg_temp.redeem('ada@example.com', 'd1', '1'), '^refused', 'CA-09: the client was disabled');
RESET ROLE;
SELECT admin.put_client('a', 'app', enabled => true), admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT matches(pg_temp.redeem('ada@example.com', 'd1', '1'), '^refused', 'CA-11: native grants were switched off');
RESET ROLE;
SELECT admin.set_native_grants('a', true), admin.set_user_enabled('a', 'ada@example.com', false), admin.set_user_enabled('a', 'ada@example.com', true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('ada@example.com', 'd1', '1'), 'refused unknown', 'OT-20: a code does not outlive the disabling of its user');

-- The session that came of it.
SELECT is(pg_temp.ask('s1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT results_eq($$SELECT outcome, auth_time = db_now, refresh_expires_at - db_now, email, email_verified, granted IS NULL FROM postern.redeem_otp(pg_temp.realm(), pg_temp.client(), 'gt:urn:cocoar:otp', 'ada@example.com', pg_temp.b16('s1'),
    ARRAY[pg_temp.h('1')], pg_temp.uu('session'), pg_temp.b16('s'), NULL, '{openid}', '{}', '{otp}', 900, 1209600, NULL, '{}', '{}', '{}', '{}', '{}', 5, 600, 5)$$,
    $$VALUES ('ok', true, NULL::float8, 'Ada@example.com', true, true)$$, 'without offline_access there is no refresh');
SELECT is(pg_temp.sql($$SELECT expires_at - now() FROM postern.session WHERE id = pg_temp.uu('session')$$), '00:15:00', 'and the session ends with its access token');
SELECT * FROM finish();
ROLLBACK;
