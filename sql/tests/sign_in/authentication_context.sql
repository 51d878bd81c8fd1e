\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT is(concat_ws(' ', postern.acr_level(v.amr), postern.acr_of(v.amr)), concat_ws(' ', v.level, v.acr),
          format('%s is %s', v.amr, v.acr))
  FROM (VALUES ('{otp}'::text[], 1, 'urn:postern:acr:1'), ('{otp,sms}', 1, 'urn:postern:acr:1'),
               ('{otp,tel}', 1, 'urn:postern:acr:1'), ('{otp,mfa}', 2, 'urn:postern:acr:2'),
               ('{otp,sms,mfa}', 2, 'urn:postern:acr:2'), ('{hwk,user,mfa}', 3, 'phr'), ('{swk,user,mfa}', 3, 'phr'),
               ('{otp,swk,user,mfa}', 3, 'phr'), ('{}', 1, 'urn:postern:acr:1')) AS v (amr, level, acr);
SELECT is(postern.level_of_acr(v.acr), v.level, format('%s stands for %s', v.acr, v.level))
  FROM (VALUES ('urn:postern:acr:1', 1), ('urn:postern:acr:2', 2), ('phr', 3), ('phrh', NULL), ('PHR', NULL), ('', NULL),
               (NULL, NULL)) AS v (acr, level);
SELECT is(string_agg(concat(postern.meets_acr(b, a)::integer), '' ORDER BY n), '11010', 'a browser meets what it proved')
  FROM jsonb_populate_record(NULL::postern.browser_session, '{"amr":["otp","mfa"],"email_proved_at":"2026-01-01"}') AS b,
       unnest('{urn:postern:acr:1,urn:postern:acr:2,phr,urn:postern:acr:email,urn:postern:acr:phone}'::text[])
           WITH ORDINALITY AS x (a, n);

-- A sign-in by code as the server makes it: acr and level as NewSession says them.
CREATE FUNCTION pg_temp.sign_in_for(code text, acr text, level integer, handle text DEFAULT NULL,
                                    address text DEFAULT 'ada@example.com', amr text[] DEFAULT '{otp}',
                                    factor uuid DEFAULT NULL, step bigint DEFAULT NULL)
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason, compared) FROM postern.redeem_code(
        pg_temp.caller('gt:urn:cocoar:otp', user_agent => 'agent'), pg_temp.no_permits(),
        pg_temp.opens(pg_temp.uu('s' || code), amr => amr, acr => acr, level => level), address,
        CASE WHEN handle IS NOT NULL THEN pg_temp.b16(handle) END, ARRAY[pg_temp.h(code)], ROW(5, 600, 5),
        ROW(3000, 3600, 1000), ROW(factor, step, NULL)) $$;
CREATE FUNCTION pg_temp.acr(code text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(s.acr, 'none') || ' ' || s.user_agent FROM postern.session AS s WHERE s.id = pg_temp.uu('s' || code) $$;
CREATE FUNCTION pg_temp.tries(handle text) RETURNS integer LANGUAGE sql SECURITY DEFINER AS $$
    SELECT a.attempts FROM postern.sign_in_request AS a WHERE a.id = pg_temp.b16(handle) $$;
CREATE FUNCTION pg_temp.failures() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT concat(g.failures_tat > now(), g.consecutive) FROM postern.code_guard AS g
     WHERE g.address_key = 'ada@example.com' $$;
SET LOCAL ROLE app_login;

SELECT is(pg_temp.ask('h', 'ada@example.com', '1'), 'sent', 'a code is sent');
SELECT is(pg_temp.sign_in_for('2', NULL, 2, 'h'), 'refused wrong 1', 'a wrong code is wrong whatever is asked for');
SELECT is(pg_temp.tries('h'), 1, 'and a try');
SELECT is(pg_temp.sign_in_for('1', NULL, 2, 'h'), 'unmet 0', 'a right code of an account without a second factor');
SELECT is(pg_temp.tries('h'), 1, 'is no try');
SELECT is(pg_temp.sign_in_for('1', NULL, 2), 'unmet 0', 'nor by the address alone');
SELECT is(pg_temp.failures(), 'f1', 'where it counts no failure');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.session$$), '0', 'no session is opened');
SELECT is(pg_temp.sign_in_for('1', 'urn:postern:acr:1', 1, 'h'), 'ok 0', 'the code is alive');
SELECT is(pg_temp.acr('1'), 'urn:postern:acr:1 agent', 'the session says what was asked for');
SELECT pg_temp.ask('i', 'ada@example.com', '3') \g /dev/null
SELECT is(pg_temp.redeem('ada@example.com', 'i', '3'), 'ok', 'a statement that asks for nothing is not refused');
RESET ROLE;

-- With a second factor.
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, sealed_seed, last_step_at)
SELECT u.realm_id, u.id, pg_temp.uu('f'), pg_temp.uu('s1'), '\x0102', now() - interval '1 hour' FROM postern.user_account AS u
 WHERE u.realm_id = pg_temp.realm() AND u.address_key = 'ada@example.com' \g /dev/null
SET LOCAL ROLE app_login;
SELECT pg_temp.ask('j', 'ada@example.com', '4') \g /dev/null
SELECT is(pg_temp.sign_in_for('4', NULL, 2, 'j'), 'second_factor 0', 'an account with a second factor is asked for it');
SELECT is(pg_temp.sign_in_for('4', 'urn:postern:acr:2', 2, 'j', amr => '{otp,mfa}', factor => pg_temp.uu('f'),
                              step => floor(date_part('epoch', now()) / 30)::bigint), 'ok 0', 'and signs in with both');
SELECT is(pg_temp.acr('4'), 'urn:postern:acr:2 agent', 'which the session says');
RESET ROLE;
SELECT is(acr, 'urn:postern:acr:2', 'and so does the list of administrators') FROM admin.sessions
 WHERE id = pg_temp.uu('s4');
SET LOCAL ROLE app_login;
SELECT is(string_agg(concat_ws(' ', amr, acr), ', ' ORDER BY acr),
          '{otp} urn:postern:acr:1, {otp,mfa} urn:postern:acr:2, {otp}', 'and the list of its user')
  FROM postern.listed_sessions(pg_temp.realm(), pg_temp.sub('ada@example.com'));
SELECT is(acr, 'urn:postern:acr:2', 'and a lookup')
  FROM postern.live_session(pg_temp.realm(), pg_temp.uu('s4'), '');
SELECT * FROM finish();
ROLLBACK;
