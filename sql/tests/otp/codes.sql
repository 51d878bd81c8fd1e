\ir ../helpers/fixture.psql
SELECT no_plan();
SET LOCAL ROLE app_login;

-- Requests: recorded without a look at who is known, decided afterwards.
SELECT is(pg_temp.ask('h1', 'ada@example.com', '111111'), 'sent', 'a known address is sent a code');
SELECT is(pg_temp.sql($$SELECT recipient || ' ' || state || ' ' || (payload IS NOT NULL) FROM postern.message_outbox$$),
          'Ada@example.com queued true', 'to the stored address');
SELECT is(pg_temp.ask('h2', 'ADA@example.com', '222222'), 'sent', 'every request is sent its own code');
SELECT is(pg_temp.ask('h3', 'nobody@example.com', '333333'), 'ignored', 'an unknown address is sent nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '2', 'two mails in all');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.sign_in_request WHERE pending$$), '0', 'all three are decided');
SELECT is(postern.decide_code(pg_temp.realm(), pg_temp.b16('h1'), gen_random_uuid(), pg_temp.b16('x'), pg_temp.h('x'),
                              gen_random_uuid(), '\x01', 'otp'), 'ignored', 'and none is decided twice');
SELECT is(pg_temp.redeem('ada@example.com', 'h2', '111111'), 'refused wrong',
          'a handle opens no other request''s code');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '111111'), 'ok',
          'the first request''s code is good, whoever asked since');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '111111'), 'refused unknown', 'a code works once');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '111111'), 'refused unknown', 'a code works once, by address too');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
                      WHERE event IN ('sign_in', 'otp_requested')$$), 'otp_requested,otp_requested,sign_in',
                          'all is in the audit log');
SELECT is(pg_temp.sql($$SELECT encode(server_key, 'hex') FROM postern.session$$), '01020304',
          'the session knows the key it stands on');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '0', 'a success leaves no code, of any request');
SELECT is(pg_temp.ask('c' || n, 'ada@example.com', n::text), 'sent', 'request ' || n) FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.sql($$UPDATE postern.login_code
                      SET created_at = now() - (CASE id WHEN pg_temp.uu('1c1') THEN '50 s' WHEN pg_temp.uu('2c2')
                                                THEN '40 s' WHEN pg_temp.uu('3c3') THEN '30 s' WHEN pg_temp.uu('4c4')
                                                    THEN '20 s' ELSE '10 s' END::interval) RETURNING 1$$), '1',
                                                        'one after the other');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '2'), 'refused wrong', 'by address the three newest are compared');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'ada@example.com'$$), '3',
          'each of which counts one');
SELECT is(pg_temp.redeem('ada@example.com', 'c1', '1'), 'ok', 'but no request pushes another one''s code out');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '0', 'its success kills all of them');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'ada@example.com'$$), '0',
          'and ends the row');
SELECT is(string_agg(pg_temp.ask('many' || n, 'ada@example.com', n::text), ',' ORDER BY n),
          repeat('sent,', 32) || 'limited', 'whatever the limits: 32 live codes that strangers asked for')
  FROM generate_series(1, 33) AS n;
SELECT is(pg_temp.redeem('ada@example.com', 'many1', '1'), 'ok', 'and none of them is pushed out');

-- The same handle again.
SELECT is(pg_temp.ask('r1', 'bob@example.com', '1'), 'sent', 'a request');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '9'), 'refused wrong', 'a wrong try');
SELECT is(pg_temp.ask('r1', 'bob@example.com', '2', NULL, true), 'ignored',
          'a resend within the cooldown sends nothing');
SELECT is(pg_temp.ask('r2', 'bob@example.com', 'x'), 'sent', 'another request knows no cooldown');
SELECT is(pg_temp.sql($$WITH c AS (UPDATE postern.login_code SET created_at = created_at - interval '61 s')
                      UPDATE postern.sign_in_request SET last_send_at = last_send_at - interval '61 s' RETURNING 1$$), '1',
          'after it');
SELECT is(pg_temp.ask('r1', 'bob@example.com', '2', NULL, true), 'sent', 'a resend makes another code');
SELECT is(pg_temp.sql($$SELECT attempts || ' ' || cardinality(code_ids) FROM postern.sign_in_request
                      WHERE id = pg_temp.b16('r1')$$), '1 2', 'for the same handle, its tries kept');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '9'), 'refused wrong', 'a wrong try is compared with both,');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'bob@example.com'$$), '3',
          'and counts two');
SELECT is(pg_temp.sql($$WITH c AS (UPDATE postern.login_code SET created_at = created_at - interval '61 s')
                      UPDATE postern.sign_in_request SET last_send_at = last_send_at - interval '61 s' RETURNING 1$$), '1',
          'after another');
SELECT is(pg_temp.ask('r1', 'bob@example.com', '3', NULL, true), 'sent', 'a third code');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '1'), 'refused wrong', 'replaces the first,');
SELECT is((SELECT handle FROM postern.record_sent_request(
               pg_temp.caller(NULL, client => NULL), NULL, pg_temp.request('r1', 'ada@example.com', resend => true), NULL)),
          pg_temp.b16('fresh r1'), 'another address does not get the handle');
SELECT is(pg_temp.redeem('bob@example.com', 'r1', '2'), 'ok', 'not the second: a mail that comes late is good');

-- Who is not sent a code.
RESET ROLE;
SELECT admin.put_user('a', 'bob@example.com', email_verified => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('u1', 'bob@example.com', '1'), 'ignored', 'an unconfirmed address');
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
SELECT is(pg_temp.ask('t2', 'bob@example.com', '654321'), 'sent', 'and another request''s');
SELECT is(pg_temp.redeem('bob@example.com', 't1', v.code), 'refused wrong', 'wrong: ' || v.code)
  FROM (VALUES ('123457'), ('23456'), ('0123456'), (''), ('１２３４５６')) AS v (code);
SELECT is(pg_temp.redeem('bob@example.com', 't1', '123456'), 'refused attempts',
          'five wrong tries and the handle is spent');
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.sign_in_request WHERE id = pg_temp.b16('t1')$$), '5',
          'five are counted');
SELECT is(pg_temp.redeem('ada@example.com', 't2', '123456'), 'refused attempts', 'address and handle must agree');
SELECT is(pg_temp.redeem('bob@example.com', 'nothing', '123456'), 'refused attempts', 'a handle nobody has');
SELECT is(pg_temp.redeem('bob@example.com', 't2', 'old key', '654321'), 'ok',
          'D17: somebody else''s tries do not count for this handle; codes of an older server key are good');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'bob@example.com'$$), '0',
          'success clears the count');
SELECT is(pg_temp.ask('t3', 'bob@example.com', '7'), 'sent', 'a code');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() RETURNING 1$$), '1',
          'that is ten minutes old');
SELECT is(pg_temp.redeem('bob@example.com', 't3', '7'), 'refused expired', 'is not good any more');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() + interval '1 s' RETURNING 1$$), '1',
          'but a second before');
SELECT is(pg_temp.sql($$UPDATE postern.sign_in_request SET expires_at = now() RETURNING 1$$), '1', 'an expired handle');
SELECT is(pg_temp.redeem('bob@example.com', 't3', '7'), 'refused attempts', 'opens nothing');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '7'), 'ok', 'it is');

-- Which client: any, unless the request named one.
SELECT set_config('test.client', 'second', true) \g /dev/null
SELECT is(pg_temp.ask('k1', 'bob@example.com', '1'), 'sent', 'a request that names no client');
SELECT is(pg_temp.redeem('bob@example.com', 'k1', '1'), 'ok', 'is good for any');
SELECT is(pg_temp.ask('k2', 'bob@example.com', '2', pg_temp.client('app')), 'sent', 'a request that names a client');
SELECT is(pg_temp.redeem('bob@example.com', 'k2', '2'), 'refused client', 'is not good for another');
SELECT set_config('test.client', '', true) \g /dev/null
SELECT is(pg_temp.redeem('bob@example.com', 'k2', '2'), 'ok', 'and untouched by it');

-- By address alone: the failure budget, five at once and then one per two minutes.
SELECT is(pg_temp.redeem('bob@example.com', NULL, 'x' || n), 'refused unknown', 'where there is nothing to compare')
  FROM generate_series(1, 9) AS n;
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (failures_tat <= now()) FROM postern.code_guard
                      WHERE address_key = 'bob@example.com'$$), '0 true', 'nothing is counted');
SELECT is(pg_temp.ask('b1', 'bob@example.com', '42'), 'sent', 'a code');
SELECT is(pg_temp.redeem('bob@example.com', NULL, 'x' || n), 'refused wrong', 'wrong try ' || n || ' by address')
  FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.redeem('bob@example.com', NULL, '42'), 'refused budget', 'then even the right code is refused');
SELECT is(pg_temp.redeem('bob@example.com', 'b1', '42'), 'ok', 'but not by handle');
SELECT is(pg_temp.ask('b2', 'bob@example.com', '43'), 'sent', 'another code');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'refused budget',
          'a success by handle does not refill the budget');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET failures_tat = failures_tat - interval '2 minutes'
                      WHERE address_key = 'bob@example.com' RETURNING 1$$), '1', 'two minutes later');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '44'), 'refused wrong', 'one try');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'refused budget', 'and no more');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET failures_tat = failures_tat - interval '2 minutes'
                      WHERE address_key = 'bob@example.com' RETURNING 1$$), '1', 'two minutes later again');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '43'), 'ok', 'the right code');
SELECT is(pg_temp.ask('b3', 'bob@example.com', '45'), 'sent', 'which gave its permit back:');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '45'), 'ok', 'the next one is good at once');

-- A hundred wrong codes in a row: what compares nothing counts nothing.
SELECT is(pg_temp.ask('l1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT is((SELECT count(*)::int FROM generate_series(1, 200) AS n
           WHERE pg_temp.redeem(a.address, 'spent' || n, 'x') LIKE 'refused%'), 200,
               '200 refusals of handles nobody has: ' || a.address)
  FROM (VALUES ('ada@example.com'), ('nobody@example.com')) AS a (address);
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.code_guard WHERE consecutive > 0$$), '0', 'count nothing');
SELECT is((SELECT string_agg(DISTINCT pg_temp.redeem('nobody@example.com', NULL, 'x' || n), ',')
           FROM generate_series(1, 200) AS n), 'refused unknown', 'nor do 200 of an unknown address');
SELECT is(pg_temp.sql($$SELECT string_agg(consecutive || ' ' || (locked_until IS NULL), ',') FROM postern.code_guard
                      WHERE address_key = 'nobody@example.com'$$), '0 true', 'of which as much is written');
SELECT is(pg_temp.ask('l2', 'ada@example.com', '2'), 'sent', 'a second code');
SELECT is(pg_temp.ask('l3', 'ada@example.com', '3'), 'sent', 'a third one');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET consecutive = 98 WHERE address_key = 'ada@example.com'
                      RETURNING 1$$), '1', 'ninety-eight');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '9'), 'refused lockout',
          'another try by address compares two: the three newest would be a hundred and one');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until = now() + interval '24 hours')
                      FROM postern.code_guard WHERE address_key = 'ada@example.com'$$), '100 true',
                          'the hundredth locks for a day');
SELECT is(pg_temp.sql($$SELECT string_agg(detail::text, ',') FROM postern.audit_event WHERE event = 'code_lockout'$$),
          '{"wrong": 100, "known_device": false}', 'audited, without the address');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '1'), 'refused attempts', 'then handles');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '1'), 'refused locked', 'and addresses are refused');
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.sign_in_request WHERE id = pg_temp.b16('l1')$$), '0',
          'which is no try');
SELECT is(pg_temp.ask('l4', 'ada@example.com', '4'), 'closed', 'no mail is sent');
SELECT is(pg_temp.sql($$SELECT locked_until = now() + interval '24 hours' FROM postern.code_guard
                      WHERE address_key = 'ada@example.com'$$), 'true', 'nothing prolongs the lock');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET locked_until = now() WHERE address_key = 'ada@example.com'
                      RETURNING 1$$), '1', 'a day later');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '2'), 'refused wrong', 'the count');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until IS NULL) FROM postern.code_guard
                      WHERE address_key = 'ada@example.com'$$), '1 true', 'starts again');
SELECT is(pg_temp.redeem('ada@example.com', 'l1', '1'), 'ok', 'and the owner is in');
SELECT is(pg_temp.ask('o1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT is(pg_temp.sql($$UPDATE postern.code_guard SET consecutive = 99 WHERE address_key = 'ada@example.com'
                      RETURNING 1$$), '1', 'ninety-nine');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '1'), 'ok', 'the last one may be right');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until IS NULL) FROM postern.code_guard
                      WHERE address_key = 'ada@example.com'$$), '0 true', 'which closes nothing');

-- What changed between the request and the redemption.
SELECT is(pg_temp.ask('d1', 'ada@example.com', '1'), 'sent', 'a code');
RESET ROLE;
SELECT admin.revoke_permission('a', 'app', 'gt:urn:cocoar:otp') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.redeem('ada@example.com', 'd1', '1')$$), 'PC002', 'the permission was taken away');
RESET ROLE;
SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:otp'),
       admin.put_client('a', 'app', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.redeem('ada@example.com', 'd1', '1')$$), 'PC001', 'the client was disabled');
RESET ROLE;
SELECT admin.put_client('a', 'app', enabled => true), admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.redeem('ada@example.com', 'd1', '1')$$), 'PC003', 'native grants were switched off');
RESET ROLE;
SELECT admin.set_native_grants('a', true), admin.set_user_enabled('a', 'ada@example.com', false),
       admin.set_user_enabled('a', 'ada@example.com', true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('ada@example.com', 'd1', '1'), 'refused unknown',
          'a code does not outlive the disabling of its user');

-- The session that came of it.
SELECT is(pg_temp.ask('s1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT results_eq($$SELECT outcome, auth_time = db_now, session_expires_at - db_now, repeated,
                  granted IS NULL FROM postern.redeem_code(
                      pg_temp.caller('gt:urn:cocoar:otp', source => NULL), pg_temp.no_permits(),
                      pg_temp.opens(pg_temp.uu('session'), refresh_hash => NULL), 'ada@example.com',
                      pg_temp.b16('s1'), ARRAY[pg_temp.h('1')], ROW(5, 600, 5), ROW(NULL, NULL, NULL), NULL)$$,
    $$VALUES ('ok', true, 900::float8, NULL::text[], true)$$, 'without offline_access there is no refresh');
SELECT is(pg_temp.sql($$SELECT expires_at - now() FROM postern.session WHERE id = pg_temp.uu('session')$$), '00:15:00',
          'and the session ends with its access token');
SELECT * FROM finish();
ROLLBACK;
