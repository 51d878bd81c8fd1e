\ir ../helpers/fixture.psql
SELECT no_plan();
-- The database as it was at the time of the backup. used: rotated since then, ended: signed out since then; the restored
-- rows know nothing of it.
SELECT pg_temp.sign_in('used'), pg_temp.sign_in('ended', 'bob@example.com'), pg_temp.sign_in('idle', 'bob@example.com') \g /dev/null
SELECT pg_temp.ask('handle', 'ada@example.com', '123456') \g /dev/null
UPDATE postern.session SET last_used_at = now() - interval '8 days' WHERE id = pg_temp.uu('idle');
INSERT INTO postern.browser_session (realm_id, id, user_id, security_stamp, idle_expires_at, expires_at, cookie_hash,
                                     host, amr)
SELECT realm_id, pg_temp.uu('b'), id, security_stamp, now() + interval '1 day', now() + interval '1 day',
       pg_temp.h('b'), 'a.example', '{otp}'
  FROM postern.user_account WHERE address_key = 'ada@example.com' AND realm_id = pg_temp.realm();
INSERT INTO postern.authorization_code (realm_id, code_hash, user_id, client, browser_session, security_stamp,
                                        auth_time, expires_at, redirect_uri, acr, scope, resource, amr)
SELECT b.realm_id, pg_temp.h('k'), b.user_id, pg_temp.client(), b.id, b.security_stamp, now(), now() + interval '1 hour',
       'https://a.example/cb', 'phr', '{}', '{}', '{}' FROM postern.browser_session AS b;
INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, expires_at, ends_at, sealed)
VALUES (pg_temp.realm(), pg_temp.h('u'), pg_temp.client(), '192.0.2.1', now() + interval '1 hour',
        now() + interval '1 hour', '\x00');
SELECT cmp_ok((SELECT count(*)::int FROM postern.message_outbox WHERE payload IS NOT NULL AND state = 'queued'), '>=', 1,
              'a mail with a code is queued');

-- What is refused.
SELECT is(pg_temp.refusal($$SELECT admin.after_restore(now() + interval '1 minute')$$) LIKE
          '22023 restored_to "%" is not a moment of the past | %recovery_target_time%', true, 'the future is refused');
SELECT matches(pg_temp.refusal('SELECT admin.after_restore(NULL)'), 'restored_to NULL is not', 'no moment is refused');
SELECT matches(pg_temp.refusal($$SELECT admin.after_restore('-infinity')$$), 'is not a moment', 'nor is infinity');
SELECT matches(pg_temp.refusal($$SELECT admin.after_restore(now() - interval '1 h', NULL)$$),
               'sessions_used_since is NULL', 'sessions_used_since is a moment');
SET application_name = 'postern/1';
SELECT pg_stat_clear_snapshot() \g /dev/null
SELECT matches(pg_temp.refusal($$SELECT admin.after_restore(now() - interval '1 hour')$$),
               '1 connections of servers are open.*Stop every postern serve', 'servers must not run');
SET application_name = 'test';
SELECT pg_stat_clear_snapshot() \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.schema_restore), 0, 'a refused call notes nothing');

-- Sessions that were not used for a week stay.
SET LOCAL ROLE admin_login;
SELECT is(admin.after_restore(now() - interval '1 hour', now() - interval '7 days') - 'single_use' - 'messages',
          '{"sessions": 2, "browser_sessions": 1}', 'sessions end, and are counted');
RESET ROLE;
SELECT is_empty(format('SELECT FROM postern.%I', t), t || ' is empty')
  FROM unnest(postern.tables_void_after_restore()) AS t;
SELECT is((SELECT count(*)::int FROM postern.message_outbox WHERE payload IS NOT NULL), 0, 'no code or link is sent');
SELECT is((SELECT array_agg(noted_by::text) FROM postern.schema_restore), ARRAY['postgres'], 'the restore is noted');
SELECT results_eq($$SELECT realm, detail ->> 'sessions' FROM admin.audit_log WHERE event = 'database_restored'
                     ORDER BY 1$$, $$VALUES ('a', '2'), ('b', '0')$$, 'in the log of every realm');

SET LOCAL ROLE app_login;
-- The app has the successor that it got after the backup; an attacker has the one that was used up since.
SELECT is(pg_temp.rotate('used', 1), 'refused revoked', 'a successor from after the backup is refused');
SELECT is(pg_temp.rotate('used', 0), 'refused revoked', 'and so is a token that was used up since');
SELECT is(pg_temp.rotate('ended', 0), 'refused revoked', 'a family that was ended since does not come back');
SELECT is(pg_temp.rotate('idle', 0), 'rotated t', 'one that was not used for long goes on');
SELECT is(pg_temp.alive('used'), false, 'nor are access tokens good');
SELECT isnt(pg_temp.redeem('ada@example.com', 'handle', '123456'), 'ok', 'a code from before is no code');
RESET ROLE;
SELECT is((SELECT count(*)::int FROM postern.audit_event WHERE event = 'refresh_token_reuse'), 0,
          'nothing is judged as reuse');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('fresh', 'ada@example.com', '654321'), 'sent', 'a new code is made');
SELECT is(pg_temp.redeem('ada@example.com', 'fresh', '654321'), 'ok', 'and good');

-- Ceremonies are in no table. One from before lives for five minutes at most.
CREATE FUNCTION pg_temp.spends(id text, span interval) RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.spend_ceremony(pg_temp.realm(), pg_temp.b16(id), date_part('epoch', clock_timestamp() + span)) $$;
SELECT is(pg_temp.spends('before', '4 minutes 59 seconds'), false, 'a ceremony from before the restore is void');
SELECT is(pg_temp.spends('after', '5 minutes 1 second'), true, 'one from after it is good');
SELECT is(pg_temp.spends('after', '5 minutes 1 second'), false, 'once');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.h('key') || pg_temp.h('id')
              || int8send((extract(epoch FROM clock_timestamp() - interval '61 s') * 1000)::bigint) || '\x0000000000000000'
              || '\x00'), 'old', 'proofs of possession from before are void');
RESET ROLE;

SET LOCAL ROLE admin_login;
SELECT is(admin.after_restore(now() - interval '1 hour') ->> 'sessions', '2', 'without a bound every session ends');
RESET ROLE;

-- A new table of what is used once must be decided about.
SELECT results_eq($$
    SELECT c.relname::text COLLATE "default"
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'expires_at'
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r'
       AND c.relname <> ALL (postern.tables_void_after_restore()) ORDER BY 1$$,
    -- browser_session, session and message_outbox have rules of their own; logout_token may be sent again; those whose names
    -- begin with revoked or spent say what is used up; the others stay.
    ARRAY['browser_session', 'logout_token', 'message_outbox', 'revoked_service_token', 'session', 'spent_assertion',
          'spent_ceremony', 'suppressed_address', 'test_identity', 'test_number', 'undo_link'],
    'every other table that expires may come back');
SELECT * FROM finish();
ROLLBACK;
