\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.put_user('a', 'dora@example.com') \g /dev/null
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.close_for_strangers(address text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format($q$INSERT INTO postern.code_guard (realm_id, address_key, consecutive, locked_until)
                              VALUES (pg_temp.realm(), %L, 100, now() + interval '24 hours')
        ON CONFLICT (realm_id, address_key) DO UPDATE SET consecutive = 100, locked_until = excluded.locked_until
            RETURNING 1$q$, address)) $$;
CREATE FUNCTION pg_temp.devices() RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql($q$SELECT coalesce(string_agg(consecutive || ' ' || coalesce(locked_until > now(), false),
                                                     ',' ORDER BY device = pg_temp.uu('phone') DESC), 'none')
                                                         FROM postern.device_guard$q$) $$;

-- Whose a handle is, the worker decides.
SELECT is(pg_temp.ask('mine', 'ada@example.com', '1', hint => 'ada@example.com'), 'sent', 'a hint that fits');
SELECT is(pg_temp.sql($$SELECT device = pg_temp.uu('phone') FROM postern.sign_in_request WHERE id = pg_temp.b16('mine')$$),
          'true', 'makes the handle that device''s');
SELECT is(pg_temp.ask('eves', 'ada@example.com', '2', hint => 'bob@example.com'), 'sent', 'one of another account');
SELECT is(pg_temp.sql($$SELECT device IS NULL FROM postern.sign_in_request WHERE id = pg_temp.b16('eves')$$), 'true',
          'makes it nobody''s');
SELECT is(pg_temp.ask('none', 'nobody@example.com', '3', hint => 'ada@example.com'), 'ignored',
          'one for an unknown address');

-- Strangers close an account for strangers.
SELECT is(pg_temp.close_for_strangers('ada@example.com'), '1', 'strangers close the codes');
SELECT is(pg_temp.redeem('ada@example.com', 'eves', '2'), 'refused attempts', 'their handles are refused');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '1'), 'refused locked', 'and the address');
SELECT is(pg_temp.redeem('ada@example.com', 'mine', '9'), 'refused wrong', 'the device may err');
SELECT is(pg_temp.devices(), '1 false', 'which counts for itself');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'ada@example.com'$$), '100',
          'and for nobody else');
SELECT is(pg_temp.ask('stranger', 'ada@example.com', '4'), 'closed', 'strangers'' requests send no mail');
SELECT is(pg_temp.ask('eves2', 'ada@example.com', '4', hint => 'bob@example.com'), 'closed',
          'nor do those whose hint does not fit');
SELECT is(pg_temp.ask('mine2', 'ada@example.com', '4', hint => 'ada@example.com'), 'sent', 'the device''s do');
SELECT is(pg_temp.redeem('ada@example.com', 'mine', '1'), 'ok', 'and its owner is in');
SELECT is(pg_temp.devices(), '0 false', 'a success of the device ends its own row');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until > now()) FROM postern.code_guard
                      WHERE address_key = 'ada@example.com'$$), '100 true', 'and not that of strangers');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code WHERE address_key = 'ada@example.com'$$), '0',
          'all codes of the address are spent');

-- A device has a hundred of its own.
SELECT is(pg_temp.ask('d1', 'ada@example.com', '1', hint => 'ada@example.com'), 'sent', 'a code');
SELECT is(pg_temp.sql($$UPDATE postern.device_guard SET consecutive = 99 RETURNING 1$$), '1', 'ninety-nine');
SELECT is(pg_temp.redeem('ada@example.com', 'd1', '9'), 'refused lockout', 'the hundredth');
SELECT is(pg_temp.redeem('ada@example.com', 'd1', '1'), 'refused attempts', 'closes the codes for this device');
SELECT is(pg_temp.ask('d2', 'ada@example.com', '1', hint => 'ada@example.com'), 'closed', 'which is sent no more');
SELECT is(pg_temp.ask('t1', 'ada@example.com', '1', hint => 'ada@example.com', device => 'tablet'), 'sent',
          'another device is');
SELECT is(pg_temp.redeem('ada@example.com', 't1', '1'), 'ok', 'and signs in');
SELECT is(pg_temp.devices(), '100 true', 'which opens nothing for the first');
SELECT lives_ok($$SELECT postern.forget_wrong_codes(pg_temp.realm(), 'ada@example.com', pg_temp.sub('ada@example.com'),
                                                    pg_temp.uu('phone'))$$, 'a link of that device does');
SELECT is(pg_temp.devices(), '0 false', 'open again');
SELECT lives_ok($$SELECT postern.forget_wrong_codes(pg_temp.realm(), 'ada@example.com', pg_temp.sub('ada@example.com'),
                                                    NULL)$$, 'a passkey opens it for strangers');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || (locked_until IS NULL) FROM postern.code_guard
                      WHERE address_key = 'ada@example.com'$$), '0 true', 'open for everybody');

-- An administrator.
SELECT is(pg_temp.close_for_strangers('ada@example.com'), '1', 'closed for strangers');
SELECT is(pg_temp.sql($$UPDATE postern.device_guard SET consecutive = 100, locked_until = now() + interval '1 day'
                      RETURNING 1$$), '1', 'and for the device');
RESET ROLE;
SELECT is(postern.unlock_codes(pg_temp.realm(), pg_temp.sub('ada@example.com'), '{ada@example.com}'), true, 'are unlocked');
SELECT is(postern.unlock_codes(pg_temp.realm(), pg_temp.sub('ada@example.com'), '{ada@example.com}'), false, 'once');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.devices(), '0 false', 'the device');
SELECT is(pg_temp.ask('u1', 'ada@example.com', '1'), 'sent', 'and strangers');

-- A resend does not lose the device.
SELECT is(pg_temp.ask('r1', 'ada@example.com', '1', hint => 'ada@example.com'), 'sent', 'a code for the device');
SELECT is(pg_temp.sql($$WITH c AS (UPDATE postern.login_code SET created_at = created_at - interval '61 s')
                      UPDATE postern.sign_in_request SET last_send_at = last_send_at - interval '61 s' RETURNING 1$$), '1',
          'a minute later');
SELECT is(pg_temp.ask('r1', 'ada@example.com', '2', resend => true), 'sent', 'resent without a hint');
SELECT is(pg_temp.sql($$SELECT device = pg_temp.uu('phone') FROM postern.sign_in_request WHERE id = pg_temp.b16('r1')$$),
          'true', 'is the device''s still');
SELECT is(pg_temp.sql($$WITH c AS (UPDATE postern.login_code SET created_at = created_at - interval '61 s')
                      UPDATE postern.sign_in_request SET last_send_at = last_send_at - interval '61 s' RETURNING 1$$), '1',
          'another minute later');
SELECT is(pg_temp.ask('r1', 'ada@example.com', '3', resend => true, hint => 'bob@example.com', source => '203.0.113.1'),
          'sent', 'nor with another''s hint');
SELECT is(pg_temp.sql($$SELECT device = pg_temp.uu('phone') FROM postern.sign_in_request WHERE id = pg_temp.b16('r1')$$),
          'true', 'it is');
SELECT is(pg_temp.sql($$DELETE FROM postern.login_code RETURNING 1$$), '1', 'put away');
SELECT is(string_agg(pg_temp.ask('own' || n, 'ada@example.com', n::text, hint => 'ada@example.com'), ','),
          repeat('sent,', 11) || 'sent', 'a dozen requests of the device') FROM generate_series(1, 12) AS n;
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code WHERE device IS NOT NULL$$), '8', 'leave eight codes');
SELECT is(pg_temp.ask('s1', 'ada@example.com', 's'), 'sent', 'which are no stranger''s');
SELECT is(pg_temp.redeem('ada@example.com', 's1', 's'), 'ok', 'whose code is untouched');

-- Whoever holds an ID token of another account is bound by the address's permits, whichever way they are asked for.
CREATE FUNCTION pg_temp.left_over(address text, source text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(pg_temp.sql(format($q$SELECT ceil(greatest(extract(epoch FROM tat - now()), 0) / %s)
                                         FROM postern.rate_bucket WHERE key = %L$q$, step, key)), ',')
      FROM (VALUES (720, format('native-otp|target|%s|%s', address, source)),
            (360, format('native-otp|target-total|%s', address))) AS v (step, key) $$;
SELECT is(string_agg(pg_temp.ask('x' || n, 'bob@example.com', n::text, hint => 'ada@example.com',
                                 source => '198.51.100.' || n % 4), ',' ORDER BY n),
                                     repeat('sent,', 10) || 'limited,limited', 'ten mails an hour to one address')
  FROM generate_series(1, 12) AS n;
SELECT is(pg_temp.ask('x13', 'bob@example.com', '1', hint => 'bob@example.com', source => '198.51.100.1'), 'sent',
          'which its owner does not notice');
-- Nobody learns from the permits whether a hint fitted, or whether there is an account.
SELECT is(pg_temp.ask('l' || n, address, 'l', hint => 'dora@example.com', source => '198.51.100.9'), outcome,
          'a hint for ' || address)
  FROM (VALUES (1, 'carol@example.com', 'ignored'), (2, 'dora@example.com', 'sent')) AS v (n, address, outcome);
SELECT is(pg_temp.left_over('carol@example.com', '198.51.100.9'), '1,1',
          'takes the same permits of an unknown address');
SELECT is(pg_temp.left_over('dora@example.com', '198.51.100.9'), '1,1', 'as of the one that it fits');
RESET ROLE;
SELECT admin.set_rate_limit('a', 'native-otp', 'target-total', 10, '60 minutes', 10, 'log-only'),
       admin.set_rate_limit('a', 'native-otp', 'target', 5, '60 minutes', 5, 'log-only') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('w1', 'bob@example.com', '1', hint => 'ada@example.com'), 'sent',
          'a limit that is only watched refuses nothing');

-- The realm's brake: read by every try.
RESET ROLE;
SELECT set_config('test.brake', postern.report_wrong_codes(pg_temp.realm(), 999, 3000, 3600, 1000, true)::text,
                  true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(current_setting('test.brake'), 'false', '999 wrong codes');
SELECT is(pg_temp.ask('b1', 'bob@example.com', '1'), 'sent', 'a code of nobody''s device');
SELECT is(pg_temp.ask('b2', 'ada@example.com', '2', hint => 'ada@example.com'), 'sent', 'a code of a known device');
SELECT is(pg_temp.ask('b3', 'bob@example.com', '3'), 'sent', 'another');
SELECT is(postern.report_wrong_codes(pg_temp.realm(), 2, 3000, 3600, 1000, true), true, 'one more uses up the limit');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '1'), 'refused brake', 'then an address is refused');
SELECT is(pg_temp.redeem('bob@example.com', 'b1', '9'), 'refused wrong', 'a handle of nobody''s device has one try');
SELECT is(pg_temp.redeem('bob@example.com', 'b1', '1'), 'refused attempts', 'and no second');
SELECT is(pg_temp.redeem('bob@example.com', 'b3', '3'), 'ok', 'which may be right');
SELECT is(pg_temp.redeem('ada@example.com', 'b2', '9'), 'refused wrong', 'a known device errs');
SELECT is(pg_temp.redeem('ada@example.com', 'b2', '2'), 'ok', 'and signs in');
SELECT is(postern.report_wrong_codes(pg_temp.realm(), 100000, 3000, 3600, 1000, true), true, 'however many more');
SELECT is(pg_temp.sql($$SELECT tat <= now() + interval '1200 s' FROM postern.rate_bucket
                      WHERE key = 'token|wrong-codes'$$), 'true', 'the bucket is full, not fuller');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'code_brake'$$), '1', 'audited once');
SELECT is(pg_temp.sql($$UPDATE postern.rate_bucket SET tat = tat - interval '2 s' WHERE key = 'token|wrong-codes'
                      RETURNING 1$$), '1', 'as soon as there is a permit');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '1'), 'refused unknown', 'addresses are looked at again');
SELECT is(pg_temp.sql($$UPDATE postern.rate_bucket SET tat = now() + interval '2 hours' WHERE key = 'token|wrong-codes'
                      RETURNING 1$$), '1', 'a bucket that was filled under another limit');
SELECT is(pg_temp.redeem('bob@example.com', NULL, '1'), 'refused unknown', 'brakes nobody');
SELECT * FROM finish();
ROLLBACK;
