\ir ../helpers/fixture.psql
SELECT no_plan();
-- One instant for the whole test; the code of a step is named by the step's number.
CREATE FUNCTION pg_temp.step() RETURNS bigint
    LANGUAGE sql AS $$ SELECT floor(date_part('epoch', now()) / 30)::bigint $$;
CREATE FUNCTION pg_temp.factor(address text DEFAULT 'ada@example.com') RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT f.id FROM postern.totp_factor AS f JOIN postern.user_account AS u ON u.realm_id = f.realm_id
        AND u.id = f.user_id WHERE u.realm_id = pg_temp.realm() AND u.address_key = address $$;
CREATE FUNCTION pg_temp.user_of(address text) RETURNS uuid
    LANGUAGE sql SECURITY DEFINER
        AS $$ SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm() AND address_key = address $$;
-- Both calls of a redemption as the server makes them: the second one only when the first one asks for it and there is
-- something to present.
CREATE FUNCTION pg_temp.both(address text, handle text, code text, step bigint DEFAULT NULL, recovery text DEFAULT NULL,
                             factor uuid DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason) FROM postern.redeem_code(
        pg_temp.caller('gt:urn:cocoar:otp'), pg_temp.no_permits(),
        pg_temp.opens(gen_random_uuid(), amr => CASE WHEN factor IS NULL THEN '{otp}'::text[] ELSE '{otp,mfa}' END),
        address, CASE WHEN handle IS NOT NULL THEN pg_temp.b16(handle) END, ARRAY[pg_temp.h(code)], ROW(5, 600, 5),
        ROW(3000, 3600, 1000),
        ROW(factor, step, CASE WHEN recovery IS NOT NULL THEN ARRAY[pg_temp.h('old key'), pg_temp.h(recovery)] END)) $$;
CREATE FUNCTION pg_temp.enrol(session text, ceremony text, factor text, step bigint DEFAULT pg_temp.step() - 2,
                              expires interval DEFAULT '5 minutes') RETURNS text LANGUAGE sql AS $$
    SELECT postern.enrol_totp(pg_temp.realm(), pg_temp.uu(session), pg_temp.b16(ceremony),
                              date_part('epoch', now() + expires), pg_temp.uu(factor), '\x0102', step,
        ARRAY(SELECT uuid_send(pg_temp.uu('key')) || pg_temp.h('r' || n || factor) FROM generate_series(1, 10) AS n), '192.0.2.1') $$;
CREATE FUNCTION pg_temp.use(step bigint, recovery text DEFAULT NULL, factor uuid DEFAULT pg_temp.factor())
    RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.use_second_factor(pg_temp.realm(), pg_temp.user_of('ada@example.com'),
                                     ROW(factor, step, CASE WHEN recovery IS NOT NULL THEN ARRAY[pg_temp.h(recovery)] END),
                                     pg_temp.client(), NULL, '192.0.2.1') $$;
SELECT pg_temp.sign_in('ada'), pg_temp.sign_in('other'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
SET LOCAL ROLE app_login;

-- Enrolment.
SELECT is(pg_temp.sql($$SELECT string_agg(has_totp::text, ',') FROM postern.user_account$$), 'false,false,false',
          'nobody has a second factor');
SELECT is(pg_temp.enrol('nobody', 'c0', 'f0'), 'signed_out', 'a session that is not there enrols nothing');
SELECT is(pg_temp.enrol('ada', 'c1', 'f1', expires => '0'), 'ceremony', 'nor does an expired ceremony');
SELECT is(pg_temp.enrol('ada', 'c1', 'f1'), 'enrolled', 'a proven seed is stored');
SELECT is(pg_temp.enrol('ada', 'c1', 'f2'), 'ceremony', 'once');
SELECT is(pg_temp.sql($$SELECT string_agg(address_key || has_totp, ',' ORDER BY address_key,
                                          realm_id = pg_temp.realm() DESC) FROM postern.user_account$$),
                                              'ada@example.comtrue,ada@example.comfalse,bob@example.comfalse',
                                                  'the account says so, in its realm only');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.recovery_code$$), '10', 'with ten recovery codes');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event WHERE event LIKE 'totp%'
                      AND user_id IS NOT NULL AND session_id = pg_temp.uu('ada') AND source IS NOT NULL$$),
                          'totp_enrolled', 'audited');
SELECT is(pg_temp.enrol('other', 'c2', 'f2'), 'step_up', 'a session that proved one factor does not replace it');
SELECT is(postern.remove_totp(pg_temp.realm(), pg_temp.uu('other'), '192.0.2.1'), 'step_up', 'nor remove it');
SELECT is(pg_temp.factor(), pg_temp.uu('f1'), 'it stays');
SELECT is(pg_temp.enrol('ada', 'c3', 'f3'), 'enrolled', 'the session that enrolled it does');
SELECT is(pg_temp.sql($$SELECT count(*) || ' '
                      || bool_and(mac IN (SELECT pg_temp.h('r' || n || 'f3') FROM generate_series(1, 10) AS n))
                          FROM postern.recovery_code$$), '10 true', 'and the codes of before are gone');
SELECT is(pg_temp.sql($$UPDATE postern.session SET amr = '{otp,mfa}' WHERE id = pg_temp.uu('other') RETURNING 1$$), '1',
          'a session that proved both');
SELECT is(pg_temp.enrol('other', 'c4', 'f4'), 'enrolled', 'does too');
SELECT is(pg_temp.alive('ada') AND pg_temp.alive('other'), true, 'enrolling ends no session');

-- With the code by mail: nothing is consumed without both.
SELECT is(pg_temp.ask('h1', 'ada@example.com', '1'), 'sent', 'a code');
SELECT is(pg_temp.both('ada@example.com', 'h1', '9'), 'refused wrong', 'a wrong code is a wrong code');
SELECT is(pg_temp.both('ada@example.com', 'h1', '9', pg_temp.step(), factor => pg_temp.factor()), 'refused wrong',
          'whatever the second factor');
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.sign_in_request WHERE id = pg_temp.b16('h1')$$), '2',
          'and is counted');
SELECT results_eq($$SELECT outcome, factor, sealed_seed, last_step_at, db_now, user_id, auth_time, session_expires_at
                  FROM postern.redeem_code(
                      pg_temp.caller('gt:urn:cocoar:otp', source => NULL), pg_temp.no_permits(),
                      pg_temp.opens(pg_temp.uu('never'), refresh_hash => NULL), 'ada@example.com',
                      pg_temp.b16('h1'), ARRAY[pg_temp.h('1')], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL)$$,
    $$VALUES ('second_factor', pg_temp.uu('f4'), '\x0370646b00000000000000020102'::bytea, (pg_temp.step() - 2) * 30::float8,
              date_part('epoch', now()), NULL::uuid, NULL::float8, NULL::float8)$$,
                  'the right one asks for the second factor, and says nothing of the account');
SELECT is(pg_temp.both('ada@example.com', 'h1', '1'), 'second_factor', 'as often as one likes')
  FROM generate_series(1, 6);
SELECT is(pg_temp.both('ada@example.com', NULL, '1'), 'second_factor', 'by address too: ' || n)
  FROM generate_series(1, 6) AS n;
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.sign_in_request WHERE id = pg_temp.b16('h1')$$), '2',
          'no try of the handle is used');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '1', 'the code is live');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.session WHERE id = pg_temp.uu('never')$$), '0',
          'nobody is signed in');
SELECT is(pg_temp.both('ada@example.com', 'h1', '1', NULL, factor => pg_temp.factor()), 'second_factor_wrong',
          'a wrong second factor');
SELECT is(pg_temp.both('ada@example.com', 'h1', '1', pg_temp.step(), factor => pg_temp.uu('f1')), 'second_factor_wrong',
          'one of an earlier seed');
SELECT is(pg_temp.sql($$SELECT wrong_1_at = now() AND wrong_2_at IS NULL FROM postern.totp_factor$$), 'true',
          'the first is counted, the other is of nothing');
SELECT is(pg_temp.sql($$SELECT attempts || ' ' || (SELECT count(*) FROM postern.login_code) FROM postern.sign_in_request
                      WHERE id = pg_temp.b16('h1')$$), '2 1', 'the code is live, its tries as before');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = 'ada@example.com'$$), '2',
          'only wrong codes count towards the hundred');
SELECT is(pg_temp.both('ada@example.com', 'h1', '1', pg_temp.step(), factor => pg_temp.factor()), 'ok', 'both right');
SELECT is(pg_temp.sql($$SELECT string_agg(amr::text, ' ') FROM postern.session WHERE auth_time = now()
                      AND id NOT IN (pg_temp.uu('ada'), pg_temp.uu('other'), pg_temp.uu('bob'))$$), '{otp,mfa}',
                          'and the session says so');
SELECT is(pg_temp.both('ada@example.com', 'h1', '1', pg_temp.step() + 1, factor => pg_temp.factor()), 'refused unknown',
          'the code went with it');
SELECT is(pg_temp.ask('h2', 'ada@example.com', '2'), 'sent', 'with the next code');
SELECT is(pg_temp.both('ada@example.com', NULL, '2', pg_temp.step(), factor => pg_temp.factor()), 'second_factor_wrong',
          'the same step is refused');
SELECT is(pg_temp.both('ada@example.com', NULL, '2', pg_temp.step() + 1, factor => pg_temp.factor()), 'ok',
          'the next one is good, by address');
SELECT is(pg_temp.sql($$SELECT failures_tat <= now() FROM postern.code_guard WHERE address_key = 'ada@example.com'$$),
          'true', 'which used none of the address''s budget');
SELECT is(pg_temp.ask('b1', 'bob@example.com', '1'), 'sent', 'an account without');
SELECT is(pg_temp.both('bob@example.com', 'b1', '1'), 'ok', 'needs one call');
SELECT is(pg_temp.ask('b2', 'bob@example.com', '2'), 'sent',
          'and should it have lost its second factor between two calls');
SELECT is(pg_temp.both('bob@example.com', 'b2', '2', pg_temp.step(), factor => pg_temp.uu('f1')), 'second_factor_gone',
          'nobody is signed in with a claim to two');
SELECT is(pg_temp.both('bob@example.com', 'b2', '2'), 'ok', 'and nothing is consumed');

-- Steps, by the database clock; the server decides which of three neighbours it is, this only bounds it.
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_1_at = NULL, wrong_2_at = NULL,
                      last_step_at = to_timestamp((pg_temp.step() - 10) * 30) RETURNING 1$$), '1', 'some steps later');
SELECT is(pg_temp.use(pg_temp.step() + v.n), v.good, v.title)
  FROM (VALUES (-10, false, 'a used step is refused'), (-11, false, 'and any before it'),
        (-4, false, 'a step of two minutes ago'), (2, false, 'one of the future')) AS v (n, good, title);
SELECT is(pg_temp.sql($$SELECT wrong_4_at = now() AND wrong_5_at IS NULL FROM postern.totp_factor$$), 'true',
          'each counted');
SELECT is(pg_temp.use(pg_temp.step()), true, 'the present one is good');
SELECT is(pg_temp.sql($$SELECT (wrong_4_at = now()) || ' ' || wrong_in_a_row || ' ' || (last_used_at = now())
                      FROM postern.totp_factor$$), 'true 0 true',
                          'which keeps the wrong tries of the last minutes, and ends those in a row');

-- Five wrong tries in ten minutes.
SELECT is(pg_temp.use(NULL), false, 'the fifth wrong try');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'second_factor_locked'
                      AND user_id = pg_temp.user_of('ada@example.com')$$), '1', 'is audited');
SELECT is(pg_temp.use(pg_temp.step() + 1), false, 'then even the right one is refused');
SELECT is(pg_temp.use(NULL, 'r1f4'), false, 'and a recovery code');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.recovery_code$$), '10', 'which is not spent');
SELECT is(pg_temp.use(NULL), false, 'refused tries are not counted');
SELECT is(pg_temp.sql($$SELECT wrong_in_a_row || ' '
                      || (SELECT count(*) FROM postern.audit_event WHERE event = 'second_factor_locked')
                          FROM postern.totp_factor$$), '1 1', 'nor audited again');
SELECT is(pg_temp.enrol('other', 'c5', 'f5'), 'enrolled', 'a new seed');
SELECT is(pg_temp.use(pg_temp.step() + 1), false, 'is no way around');
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_5_at = wrong_5_at - interval '10 minutes',
                      wrong_4_at = wrong_4_at - interval '9 minutes' RETURNING 1$$), '1',
                          'ten minutes after the first of them');
SELECT is(pg_temp.use(NULL), false, 'there is one try');
SELECT is(pg_temp.use(pg_temp.step() + 1), false, 'and no other');
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_5_at = now() - interval '10 minutes' RETURNING 1$$), '1',
          'when the last ten minutes saw four');
SELECT is(pg_temp.use(pg_temp.step() + 1), true, 'the right one is good');

-- Recovery codes.
SELECT is(pg_temp.use(NULL, 'r1f5'), true, 'a recovery code is good');
SELECT is(pg_temp.sql($$SELECT detail FROM postern.audit_event WHERE event = 'recovery_code_used'$$), '{"left": 9}',
          'audited with how many are left');
SELECT is(pg_temp.use(NULL, 'r1f5'), false, 'once');
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_1_at = NULL, wrong_2_at = NULL, wrong_3_at = NULL,
                      wrong_4_at = NULL, wrong_5_at = NULL RETURNING 1$$), '1', 'forgiven');
SELECT is(pg_temp.use(NULL, 'r1f4'), false, 'those of an earlier enrolment are not');
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_1_at = NULL, wrong_2_at = NULL, wrong_3_at = NULL,
                      wrong_4_at = NULL, wrong_5_at = NULL RETURNING 1$$), '1', 'forgiven');
SELECT is(pg_temp.ask('h3', 'ada@example.com', '3'), 'sent', 'a code');
SELECT is(pg_temp.both('ada@example.com', 'h3', '3', NULL, 'r2f5', pg_temp.factor()), 'ok',
          'with a recovery code, under whichever server key');

-- A hundred in a row.
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET wrong_in_a_row = 99,
                      last_step_at = to_timestamp((pg_temp.step() - 10) * 30) RETURNING 1$$), '1',
                          'ninety-nine wrong in a row, days apart');
SELECT is(pg_temp.use(NULL), false, 'the hundredth');
SELECT is(pg_temp.sql($$SELECT (locked_until = now() + interval '24 hours') || ' '
                      || (SELECT count(*) FROM postern.audit_event WHERE event = 'second_factor_locked'
                          AND detail = '{"in_a_row": 100}') FROM postern.totp_factor$$), 'true 1',
                              'closes TOTP for a day');
SELECT is(pg_temp.use(pg_temp.step()), false, 'even the right code');
SELECT is(pg_temp.use(NULL, 'r3f5'), true, 'but a recovery code, which nobody guesses, is good');
SELECT is(pg_temp.sql($$UPDATE postern.totp_factor SET locked_until = now() RETURNING 1$$), '1', 'a day later');
SELECT is(pg_temp.use(pg_temp.step()), true, 'it is open again');
SELECT is(pg_temp.sql($$SELECT wrong_in_a_row || ' ' || (locked_until IS NULL) FROM postern.totp_factor$$), '0 true',
          'and the count begins anew');

-- Removal.
SELECT is(postern.remove_totp(pg_temp.realm(), pg_temp.uu('other'), '192.0.2.1'), 'removed', 'its owner removes it');
SELECT is(postern.remove_totp(pg_temp.realm(), pg_temp.uu('other'), '192.0.2.1'), 'none', 'once');
SELECT is(postern.remove_totp(pg_temp.realm(), pg_temp.uu('nobody'), '192.0.2.1'), 'signed_out',
          'a session that is not there removes nothing');
SELECT is(pg_temp.sql($$SELECT has_totp || ' ' || (SELECT count(*) FROM postern.recovery_code) FROM postern.user_account
                      WHERE address_key = 'ada@example.com' AND realm_id = pg_temp.realm()$$), 'false 0',
                          'with its recovery codes');
SELECT is(pg_temp.alive('ada') AND pg_temp.alive('other'), true, 'and no session ends');
SELECT is(pg_temp.ask('h4', 'ada@example.com', '4'), 'sent', 'from then on');
SELECT is(pg_temp.both('ada@example.com', 'h4', '4'), 'ok', 'a code is enough');

-- By an administrator.
SELECT is(pg_temp.enrol('bob', 'c9', 'f9'), 'enrolled', 'somebody enrols');
RESET ROLE;
SELECT is((SELECT has_totp FROM admin.users WHERE email = 'bob@example.com'), true, 'administrators see it');
SET LOCAL ROLE admin_login;
SELECT is(admin.reset_totp('a', 'BOB@example.com'), true, 'and take it away');
SELECT is(admin.reset_totp('a', 'bob@example.com'), false, 'once');
SELECT matches(pg_temp.refusal($$SELECT admin.reset_totp('a', 'nobody@example.com')$$), '^22023|P0002',
               'nobody''s second factor cannot be reset');
RESET ROLE;
SELECT is((SELECT count(*)::int FROM postern.totp_factor) + (SELECT count(*)::int FROM postern.recovery_code), 0,
          'nothing is left');
SELECT is((SELECT string_agg(event, ',' ORDER BY id) FROM admin.audit_log WHERE event LIKE 'totp%'
           AND source LIKE 'sql:%'), 'totp_removed', 'audited');
SELECT * FROM finish();
ROLLBACK;
