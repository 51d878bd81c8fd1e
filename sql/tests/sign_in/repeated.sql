\ir ../helpers/fixture.psql
-- A request whose answer was lost is sent again: it gets the session that it opened, for a minute.
SELECT no_plan();
\ir ../helpers/links.psql
\ir ../helpers/approvals.psql
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null
-- What a request opens, by its name: id and hash of it are derived from the request.
CREATE FUNCTION pg_temp.from_request(
    name text, is_repeatable boolean DEFAULT true, amr text[] DEFAULT '{otp}', scope text[] DEFAULT '{openid}',
    hash text DEFAULT NULL, salt text DEFAULT 's') RETURNS postern.new_session LANGUAGE sql AS $$
    SELECT jsonb_populate_record(
        pg_temp.opens(pg_temp.uu(name), pg_temp.h(coalesce(hash, name || 0)), amr, is_repeatable => is_repeatable),
        jsonb_build_object('scope', scope, 'token_salt', '\x' || encode(pg_temp.b16(salt), 'hex'))) $$;
-- What is answered, and whether the session is one from before.
CREATE FUNCTION pg_temp.given(v postern.sign_in_result) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', v.outcome, v.reason, 'again ' || v.repeated::text) $$;
CREATE FUNCTION pg_temp.types(name text, new postern.new_session DEFAULT NULL, client text DEFAULT 'app',
                              handle boolean DEFAULT true, second postern.second_factor_proof DEFAULT NULL)
RETURNS postern.sign_in_result LANGUAGE sql AS $$
    SELECT postern.redeem_code(
        pg_temp.caller('gt:urn:cocoar:otp', client => pg_temp.client(client)), NULL,
        CASE WHEN (new).id IS NULL THEN pg_temp.from_request(name) ELSE new END, 'ada@example.com',
        CASE WHEN handle THEN pg_temp.b16(name) END, ARRAY[pg_temp.h('1')], ROW(5, 600, 5), ROW(3000, 3600, 1000),
        second) $$;
CREATE FUNCTION pg_temp.sign_ins(name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT (SELECT count(*) FROM postern.session WHERE id = pg_temp.uu(name)) || ' '
           || (SELECT count(*) FROM postern.audit_event WHERE event = 'sign_in' AND session_id = pg_temp.uu(name)) $$;
CREATE FUNCTION pg_temp.tries(name text) RETURNS integer LANGUAGE sql SECURITY DEFINER AS $$
    SELECT attempts FROM postern.sign_in_request WHERE id = pg_temp.b16(name) $$;
SET LOCAL ROLE app_login;

-- A code by its handle.
SELECT pg_temp.ask('c', 'ada@example.com', '1') \g /dev/null
SELECT is(pg_temp.given(pg_temp.types('c')), 'ok', 'a code signs in');
SELECT is(pg_temp.given(pg_temp.types('c')), 'ok again {otp}', 'the same request gets the session again');
SELECT is(pg_temp.given(pg_temp.types('c')), 'ok again {otp}', 'as often as it comes');
SELECT is(pg_temp.sign_ins('c'), '1 1', 'it is one session, and one sign-in in the audit log');
SELECT is(pg_temp.tries('c'), 0, 'a right code is no try');
SELECT is(concat_ws(' ', v.user_id = pg_temp.sub('ada@example.com'), v.auth_time = date_part('epoch', now()),
                    v.session_expires_at = (SELECT expires_at FROM postern.live_session(pg_temp.realm(), pg_temp.uu('c'), '')),
                    v.compared), 't t t 0', 'whose it is, since when, and until when')
  FROM pg_temp.types('c') AS v;
SELECT is(pg_temp.after($$UPDATE postern.sign_in_request SET attempts = 1 WHERE id = pg_temp.b16('c')$$,
                        format('pg_temp.given(pg_temp.types(%L, %L)) || pg_temp.tries(%1$L)', 'c', new)), 'refused unknown2',
          'what is another request gets nothing: ' || what)
  FROM (VALUES ('another scope', pg_temp.from_request('c', scope => '{openid,email}')),
               ('another refresh token', pg_temp.from_request('c', hash => 'other')),
               ('no refresh token', ROW(pg_temp.uu('c'), pg_temp.b16('s'), NULL, '{openid}', '{}', '{otp}', 900, 1209600,
                                        '\x01020304', NULL, NULL, true, NULL)::postern.new_session),
               ('another salt', pg_temp.from_request('c', salt => 'other')),
               ('another id', pg_temp.from_request('d', hash => 'c0')),
               ('one that cannot be repeated', pg_temp.from_request('c', is_repeatable => false)),
               ('one that does not say so', pg_temp.from_request('c', is_repeatable => NULL))) AS v (what, new);
SELECT is(pg_temp.after($$UPDATE postern.sign_in_request SET attempts = 5 WHERE id = pg_temp.b16('c')$$,
                        $$pg_temp.given(pg_temp.types('c')) || pg_temp.tries('c')$$), 'ok again {otp}5',
          'the same request needs no try');
SELECT pg_temp.permit('second', 'gt:urn:cocoar:otp') \g /dev/null
SELECT is(pg_temp.given(pg_temp.types('c', client => 'second')), 'refused unknown', 'another client gets nothing');
SELECT is(pg_temp.after(change, $$pg_temp.given(pg_temp.types('c'))$$), 'refused unknown', change)
  FROM unnest(ARRAY[
      $$UPDATE postern.session SET created_at = created_at - interval '61 seconds' WHERE id = pg_temp.uu('c')$$,
      $$UPDATE postern.session SET generation = 1, current_hash = pg_temp.h('c1') WHERE id = pg_temp.uu('c')$$,
      $$UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('c')$$,
      $$UPDATE postern.session SET expires_at = now() WHERE id = pg_temp.uu('c')$$,
      $$UPDATE postern.user_account SET security_stamp = gen_random_uuid() WHERE address_key = 'ada@example.com'$$,
      $$UPDATE postern.user_account SET enabled = false WHERE address_key = 'ada@example.com'$$,
      -- Whatever the stamp.
      $$WITH u AS (UPDATE postern.user_account SET enabled = false WHERE address_key = 'ada@example.com'
                   RETURNING realm_id, security_stamp)
        UPDATE postern.session AS s SET security_stamp = u.security_stamp FROM u
         WHERE s.realm_id = u.realm_id AND s.id = pg_temp.uu('c')$$]) AS change;
SELECT is(pg_temp.after($$UPDATE postern.session SET created_at = created_at - interval '59 seconds'
                           WHERE id = pg_temp.uu('c')$$, $$pg_temp.given(pg_temp.types('c'))$$), 'ok again {otp}',
          'within a minute it does');
SELECT is(pg_temp.after(change, $$pg_temp.given(pg_temp.types('c'))$$), pg_temp.closed_by(change), change)
  FROM pg_temp.closing('gt:urn:cocoar:otp', 'native_grants_enabled') AS change;

-- By the address alone a server derives nothing: the code may be one of several.
SELECT pg_temp.ask('e', 'ada@example.com', '1') \g /dev/null
SELECT is(pg_temp.given(pg_temp.types('e', pg_temp.from_request('e', NULL), handle => false)), 'ok', 'by the address alone');
SELECT is(pg_temp.given(pg_temp.types('e', pg_temp.from_request('e', NULL), handle => false)), 'refused unknown',
          'a request is not repeated');

-- A second factor is spent once.
RESET ROLE;
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, sealed_seed, last_step_at)
SELECT u.realm_id, u.id, pg_temp.uu('f'), pg_temp.uu('c'), '\x0102', now() - interval '1 hour'
  FROM postern.user_account AS u WHERE u.realm_id = pg_temp.realm() AND u.address_key = 'ada@example.com';
SET LOCAL ROLE app_login;
SELECT pg_temp.ask('t', 'ada@example.com', '1') \g /dev/null
CREATE FUNCTION pg_temp.both(name text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.given(pg_temp.types(name, pg_temp.from_request(name, amr => '{otp,mfa}'),
        second => ROW(pg_temp.uu('f'), floor(date_part('epoch', now()) / 30)::bigint, NULL))) $$;
SELECT is(pg_temp.both('t'), 'ok', 'a code and TOTP sign in');
SELECT is(pg_temp.both('t'), 'ok again {otp,mfa}', 'the same request needs no other step');
SELECT is(pg_temp.given(pg_temp.types('t')), 'ok again {otp,mfa}', 'nor the second factor, when the answer to it was lost');
SELECT is(pg_temp.sign_ins('t'), '1 1', 'it is one sign-in');
SELECT is(pg_temp.sql($$SELECT concat_ws(' ', wrong_in_a_row, locked_until) FROM postern.totp_factor$$), '0',
          'and no step was tried twice');
RESET ROLE;
DELETE FROM postern.totp_factor;
SET LOCAL ROLE app_login;

-- The other ways to sign in.
CREATE FUNCTION pg_temp.polls_link(name text, client text DEFAULT 'app') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.given(postern.poll_link(
        pg_temp.caller('gt:urn:cocoar:magic', client => pg_temp.client(client)), NULL, pg_temp.from_request(name),
        pg_temp.b16(name), NULL)) $$;
SELECT pg_temp.link('l', 'ada@example.com', 'tl'), pg_temp.answer('ada@example.com', 'tl', 'l') \g /dev/null
SELECT is(pg_temp.polls_link('l'), 'ok', 'a link that was confirmed elsewhere');
SELECT is(pg_temp.polls_link('l'), 'ok again {otp}', 'a poll that is repeated');
SELECT is(pg_temp.polls_link('l', 'second'), 'refused expired', 'by its client');
SELECT is(pg_temp.sign_ins('l'), '1 1', 'is one sign-in');

RESET ROLE;
SELECT pg_temp.device('t1') \g /dev/null
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.polls_approval(request text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.given(postern.redeem_authentication(
        pg_temp.caller('gt:urn:openid:params:grant-type:ciba'), NULL, pg_temp.from_request(request, amr => '{pop,mca}'),
        pg_temp.rid(request), date_part('epoch', now()) + 120, NULL)) $$;
SELECT pg_temp.asks('r1'), pg_temp.answers('t1', 'r1') \g /dev/null
SELECT is(pg_temp.polls_approval('r1'), 'ok', 'an approval');
SELECT is(pg_temp.polls_approval('r1'), 'ok again {pop,mca}', 'a poll that is repeated');
SELECT is(pg_temp.sign_ins('r1'), '1 1', 'is one sign-in');

-- A passkey: its ceremony is spent for the session that it opens.
RESET ROLE;
SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:passkey'),
       admin.grant_permission('a', 'second', 'gt:urn:cocoar:passkey') \g /dev/null
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
VALUES (pg_temp.realm(), pg_temp.uu('pk'), pg_temp.sub('ada@example.com'), 'a.example', '\x01', '\x02', false, false);
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.begins(ceremony text, session text) RETURNS text LANGUAGE sql AS $$
    SELECT a.outcome FROM postern.begin_assertion(
        pg_temp.caller('gt:urn:cocoar:passkey'), NULL, pg_temp.b16(ceremony), date_part('epoch', now()) + 200,
        pg_temp.uu(session), 'a.example', '\x01') AS a $$;
CREATE FUNCTION pg_temp.asserts(session text, count bigint DEFAULT 7, is_repeatable boolean DEFAULT true) RETURNS text
LANGUAGE sql AS $$
    SELECT pg_temp.given(postern.redeem_passkey(
        pg_temp.caller('gt:urn:cocoar:passkey'), pg_temp.from_request(session, is_repeatable, '{hwk,user,mfa}'),
        pg_temp.uu('pk'), count, false)) $$;
SELECT is(pg_temp.begins('k', 'p'), 'spent', 'a ceremony is spent');
SELECT is(pg_temp.asserts('p'), 'ok', 'a passkey');
SELECT is(pg_temp.begins('k', 'p'), 'spent', 'the same request finds its ceremony again');
SELECT is(pg_temp.asserts('p'), 'ok again {hwk,user,mfa}', 'and its session, although the count does not rise');
SELECT is(pg_temp.begins('k', 'q'), 'refused', 'another request does not');
SELECT is(pg_temp.begins('k', NULL), 'refused', 'nor one that cannot be repeated');
SELECT is(pg_temp.begins('n', NULL) || ' ' || pg_temp.begins('n', NULL), 'spent refused',
          'what opens no session that can be named is spent once');
SELECT is(pg_temp.sign_ins('p'), '1 1', 'it is one sign-in');
SELECT pg_temp.sql($$UPDATE postern.spent_ceremony SET spent_at = now() - interval '61 seconds' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.begins('k', 'p'), 'refused', 'after a minute the ceremony is spent for all');

-- Approvals that are refused: what is not yet decided opens nothing, so that the same request is judged anew.
RESET ROLE;
CREATE FUNCTION pg_temp.interval_of(request text) RETURNS integer LANGUAGE sql SECURITY DEFINER AS $$
    SELECT poll_interval FROM postern.device_request WHERE id = pg_temp.rid(request) $$;
SET LOCAL ROLE app_login;
SELECT pg_temp.asks('r4') \g /dev/null
SELECT is(pg_temp.polls_approval('r4'), 'pending', 'a request for approval that is not answered');
SELECT is(pg_temp.polls_approval('r4'), 'slow_down', 'a poll that is repeated at once is one too early');
SELECT is(pg_temp.polls_approval('r4') || ' ' || pg_temp.interval_of('r4'), 'slow_down 15', 'each makes the interval longer');
SELECT pg_temp.asks('r2'), pg_temp.answers('t1', 'r2', 'deny') \g /dev/null
SELECT is(pg_temp.polls_approval('r2') || ', ' || pg_temp.polls_approval('r2'), 'denied, denied',
          'a poll of one that was denied is denied however often');
SELECT pg_temp.asks('r3') \g /dev/null
SELECT pg_temp.passes('121 seconds') \g /dev/null
SELECT is(pg_temp.polls_approval('r3') || ', ' || pg_temp.polls_approval('r3') || ', ' || pg_temp.polls_approval('r2'),
          'expired, expired, expired', 'past its time it is expired');
SELECT is(pg_temp.sign_ins('r2') || ', ' || pg_temp.sign_ins('r3'), '0 0, 0 0', 'none of them signs in');
SELECT * FROM finish();
ROLLBACK;
