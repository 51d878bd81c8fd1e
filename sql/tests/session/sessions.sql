\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT pg_temp.sign_in('s'), pg_temp.sign_in('t'), pg_temp.sign_in('v'), pg_temp.sign_in('w'),
       pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('s', 0), 'rotated t', 'a refresh token is rotated');
SELECT is(pg_temp.rotate('s', 0), 'retried t', 'a lost answer is given again');
SELECT is(pg_temp.rotate('s', 0), 'retried t', 'and again');
SELECT is(pg_temp.sql($$UPDATE postern.session SET rotated_at = now() - interval '119 s' WHERE id = pg_temp.uu('s')
                      RETURNING 1$$), '1', '119 s later');
SELECT is(pg_temp.rotate('s', 0), 'retried t', 'still');
SELECT is(pg_temp.sql($$SELECT generation FROM postern.session WHERE id = pg_temp.uu('s')$$), '1',
          'without another rotation');
SELECT results_eq($$SELECT user_id IS NOT NULL, scope, resource, amr, auth_time = db_now, token_salt,
                  expires_at - db_now, refresh_expires_at - db_now, email
                      FROM postern.rotate_session(
                               pg_temp.realm(), pg_temp.client(), pg_temp.uu('s'), 1, pg_temp.h('s1'),
                               ARRAY[pg_temp.h('s2')], 86400, NULL, NULL, NULL, NULL, NULL)$$,
    $$VALUES (true, '{openid,email}'::text[], '{https://api}'::text[], '{otp}'::text[], true, pg_temp.b16('s'),
              31536000::float8, 86400::float8, 'Ada@example.com')$$, 'the answer has what the tokens need');
SELECT ok(pg_temp.alive('s'), 'the family lives');
SELECT is(pg_temp.rotate('s', 0), 'reuse', 'the predecessor after its successor was used');
SELECT ok(NOT pg_temp.alive('s'), 'ends the family, access tokens included');
SELECT is(pg_temp.rotate('s', 2), 'refused revoked', 'the live token too');
SELECT is(pg_temp.rotate('s', 0), 'refused revoked', 'a second reuse');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'refresh_token_reuse'$$), '1',
          'is audited once');
SELECT is(pg_temp.rotate('t', 0), 'rotated t', 'another family');
SELECT is(pg_temp.sql($$UPDATE postern.session SET rotated_at = now() - interval '121 s' WHERE id = pg_temp.uu('t')
                      RETURNING 1$$), '1', '121 s later');
SELECT is(pg_temp.rotate('t', 0), 'reuse', 'a repeat ends it');
SELECT is(pg_temp.rotate('v', 0, 'second'), 'refused client', 'another client is refused');
SELECT is(pg_temp.rotate('v', 0, 'app', 'forged'), 'refused mismatch', 'a token that is not the one');
SELECT is(pg_temp.rotate('v', 7), 'refused mismatch', 'a generation that is not there yet');
SELECT is(pg_temp.rotate('unknown', 0), 'refused unknown', 'a session that is not there');
SELECT is(pg_temp.rotate('v', 0), 'rotated t', 'none of which did any harm');
SELECT is(pg_temp.rotate('v', 0, 'app', 'v0', 'another successor'), 'reuse',
          'a retry that would get another successor is none');
SELECT is(pg_temp.sql($$UPDATE postern.session SET refresh_expires_at = now() WHERE id = pg_temp.uu('w') RETURNING 1$$),
          '1', 'idle too long');
SELECT is(pg_temp.rotate('w', 0), 'refused expired', 'is refused');
SELECT is(pg_temp.sql($$UPDATE postern.session SET refresh_expires_at = now() + interval '1 s',
                      expires_at = now() + interval '1 hour' WHERE id = pg_temp.uu('w') RETURNING 1$$), '1',
                          'a second before');
SELECT is(pg_temp.rotate('w', 0), 'rotated t', 'it is good');
SELECT is(pg_temp.sql($$SELECT refresh_expires_at = expires_at FROM postern.session WHERE id = pg_temp.uu('w')$$),
          'true', 'but never beyond the end of the session');
SELECT is(pg_temp.sql($$UPDATE postern.session SET expires_at = now() WHERE id = pg_temp.uu('w') RETURNING 1$$), '1',
          'at the absolute end');
SELECT is(pg_temp.rotate('w', 1), 'refused expired', 'nothing is');
SELECT ok(NOT pg_temp.alive('w'), 'not even an access token');

-- Retry window 0: no second chance.
RESET ROLE;
SELECT admin.set_native_grants('a', refresh_retry_window => '0'), pg_temp.sign_in('z') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('z', 0), 'rotated t', 'with a retry window of 0');
SELECT is(pg_temp.rotate('z', 0), 'reuse', 'a repeat in the same instant is reuse');
RESET ROLE;
SELECT admin.set_native_grants('a', refresh_retry_window => '120 s') \g /dev/null

-- Disabled people, clients and realms.
SELECT pg_temp.sign_in('e1') \g /dev/null
SELECT is(admin.sign_out_everywhere('a', 'ada@example.com') > 0, true, 'signed out everywhere');
SET LOCAL ROLE app_login;
SELECT ok(NOT pg_temp.alive('e1'), 'access tokens are dead at once');
SELECT is(pg_temp.rotate('e1', 0), 'refused revoked', 'and so is the refresh token');
SELECT ok(pg_temp.alive('bob'), 'nobody else''s');
RESET ROLE;
UPDATE postern.user_account SET security_stamp = gen_random_uuid() WHERE email = 'bob@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('bob', 0), 'refused disabled', 'a new stamp alone does it');
SELECT ok(NOT pg_temp.alive('bob'), 'for access tokens too');
RESET ROLE;
SELECT pg_temp.sign_in('e2') \g /dev/null
SELECT set_config('test.stamp', security_stamp::text, true) FROM postern.user_account
 WHERE address_key = 'ada@example.com' AND realm_id = pg_temp.realm() \g /dev/null
SELECT admin.set_user_enabled('a', 'ada@example.com', false),
       admin.set_user_enabled('a', 'ada@example.com', true) \g /dev/null
SELECT isnt(security_stamp::text, current_setting('test.stamp'), 'disabling and enabling changes the stamp')
  FROM postern.user_account WHERE address_key = 'ada@example.com' AND realm_id = pg_temp.realm();
SET LOCAL ROLE app_login;
SELECT ok(NOT pg_temp.alive('e2'), 'enabling again revives nothing');
RESET ROLE;
-- Without the trigger that changes the stamp.
SELECT pg_temp.sign_in('e5') \g /dev/null
SET LOCAL session_replication_role = replica;
UPDATE postern.user_account SET enabled = false WHERE address_key = 'ada@example.com';
SET LOCAL ROLE app_login;
SELECT ok(NOT pg_temp.alive('e5') AND pg_temp.rotate('e5', 0) = 'refused disabled', 'a disabled account is dead by itself');
RESET ROLE;
UPDATE postern.user_account SET enabled = true WHERE address_key = 'ada@example.com';
SET LOCAL session_replication_role = origin;
SELECT pg_temp.sign_in('e3'), admin.revoke_permission('a', 'app', 'gt:refresh_token') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('e3', 0), 'client_fault permission', 'a client that may no longer refresh');
RESET ROLE;
SELECT admin.grant_permission('a', 'app', 'gt:refresh_token'),
       admin.put_client('a', 'app', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('e3', 0), 'client_fault client', 'a disabled client');
RESET ROLE;
SELECT admin.put_client('a', 'app', enabled => true), admin.put_realm('a', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('e3', 0), 'client_fault realm', 'a disabled realm');
RESET ROLE;
SELECT admin.put_realm('a', enabled => true), admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('e3', 0), 'rotated t',
          'switching native grants off does not stop the refresh of sessions that exist');

-- Introspection and revocation.
SELECT results_eq($$SELECT active, client_id, client, scope, resource, amr, auth_time = db_now, created_at = db_now,
                  token_salt, email, email_verified, first_name
                      FROM postern.live_session(pg_temp.realm(), pg_temp.uu('e3'), pg_temp.b16('j'))$$,
    $$VALUES (true, 'app', pg_temp.client(), '{openid,email}'::text[], '{https://api}'::text[], '{otp}'::text[], true,
              true, pg_temp.b16('s'), 'Ada@example.com', true, NULL::text)$$, 'introspection');
SELECT results_eq($$SELECT active, user_id, db_now IS NOT NULL
                  FROM postern.live_session(pg_temp.realm(), pg_temp.uu('nothing'), pg_temp.b16('j'))$$, $$
                       VALUES (false, NULL::uuid, true)$$, 'of nothing is one row that says so');
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE probe AS SELECT active FROM postern.live_session($1, $2, $3);
SELECT is(pg_temp.sql('SELECT 1'), '1', 'plans are generic');
SELECT set_config('postern.realm', '', true) \g /dev/null
SELECT results_eq($$EXECUTE probe(pg_temp.realm(), pg_temp.uu('e3'), pg_temp.b16('j'))$$, ARRAY[true],
                  '4.3 (f): the realm is set before the rows are read');
SELECT results_eq($$EXECUTE probe(pg_temp.other(), pg_temp.uu('e3'), pg_temp.b16('j'))$$, ARRAY[false],
                  'and the plan serves another realm');
RESET plan_cache_mode;
SELECT ok(NOT postern.revoke_access_token(pg_temp.realm(), pg_temp.client('second'), pg_temp.uu('e3'), pg_temp.b16('j'),
                                          date_part('epoch', now()) + 900), 'a foreign client revokes nothing');
SELECT ok(NOT postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e3'), pg_temp.b16('j'),
                                          date_part('epoch', now())), 'nor can an expired token be revoked');
SELECT ok(postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e3'), pg_temp.b16('j'),
                                      date_part('epoch', now()) + 900), 'its own client revokes one token');
SELECT ok(NOT postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e3'), pg_temp.b16('j'),
                                          date_part('epoch', now()) + 900), 'once');
SELECT ok(NOT pg_temp.alive('e3') AND pg_temp.alive('e3', 'another'), 'that one and no other');
SELECT is((SELECT count(*)::int FROM generate_series(1, 63) AS n
           WHERE postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e3'), pg_temp.b16('j' || n),
                                             date_part('epoch', now()) + 900)), 63, 'many more');
SELECT ok(pg_temp.alive('e3', 'another'), 'up to 64 at a time');
SELECT ok(postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e3'), pg_temp.b16('last'),
                                      date_part('epoch', now()) + 900) AND NOT pg_temp.alive('e3', 'another'),
                                          'the next one ends the session');
RESET ROLE;
SELECT pg_temp.sign_in('e4') \g /dev/null
SET LOCAL ROLE app_login;
SELECT ok(NOT postern.revoke_session(pg_temp.realm(), pg_temp.client('second'), pg_temp.uu('e4'), 'revoked'),
          'a foreign client ends no session');
SELECT ok(postern.revoke_session(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e4'), 'revoked'), 'its own does');
SELECT ok(NOT postern.revoke_session(pg_temp.realm(), pg_temp.client(), pg_temp.uu('e4'), 'revoked'), 'once');
SELECT ok(NOT pg_temp.alive('e4'), 'and everything of it is dead');
SELECT * FROM finish();
ROLLBACK;
