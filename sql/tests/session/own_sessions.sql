\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT pg_temp.sign_in('s1'), pg_temp.sign_in('s2'), pg_temp.sign_in('s3'),
       pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
UPDATE postern.session SET created_at = now() - interval '1 hour' WHERE id = pg_temp.uu('s1');
CREATE FUNCTION pg_temp.who(address text) RETURNS uuid LANGUAGE sql STABLE
    SECURITY DEFINER AS $$ SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm()
        AND address_key = address $$;
CREATE FUNCTION pg_temp.ended(target text, r uuid DEFAULT pg_temp.realm()) RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.end_own_session(r, pg_temp.who('ada@example.com'), pg_temp.uu(target), pg_temp.uu('s1'),
                                   '192.0.2.1') $$;
SET LOCAL ROLE app_login;
SELECT is((SELECT count(*)::int FROM postern.live_sessions(pg_temp.realm(), pg_temp.who('ada@example.com'))), 3,
          'one''s own sessions');
SELECT is((SELECT (array_agg(id))[3] FROM postern.live_sessions(pg_temp.realm(), pg_temp.who('ada@example.com'))),
          pg_temp.uu('s1'), 'newest first');
SELECT is((SELECT count(*)::int FROM postern.live_sessions(pg_temp.other(), pg_temp.who('ada@example.com'))), 0,
          'none in another realm');
SELECT ok(NOT pg_temp.ended('bob'), 'nobody else''s is ended');
SELECT ok(NOT pg_temp.ended('s2', pg_temp.other()), 'nor through another realm');
SELECT ok(pg_temp.alive('bob') AND pg_temp.alive('s2'), 'they live');
SELECT ok(pg_temp.ended('s2'), 'an own one is');
SELECT ok(NOT pg_temp.alive('s2') AND pg_temp.rotate('s2', 0) = 'refused revoked', 'access and refresh token are dead');
SELECT ok(NOT pg_temp.ended('s2'), 'once');
SELECT is(pg_temp.sql($$SELECT string_agg(detail ->> 'reason', ',') FROM postern.audit_event
                      WHERE event = 'session_revoked' AND session_id = pg_temp.uu('s2')
                        AND user_id = pg_temp.who('ada@example.com')$$), 'signed_out', 'and audited once');
SELECT is(pg_temp.sql($$UPDATE postern.session SET refresh_expires_at = now() WHERE id = pg_temp.uu('s3')
                      RETURNING 1$$), '1', 'one that ran out');
SELECT is((SELECT array_agg(id) FROM postern.live_sessions(pg_temp.realm(), pg_temp.who('ada@example.com'))),
          ARRAY[pg_temp.uu('s1')], 'is not listed');
SELECT ok(NOT pg_temp.ended('s3'), 'and cannot be ended');
RESET ROLE;
-- All at once.
SELECT pg_temp.sign_in('s4'), pg_temp.sign_in('s5') \g /dev/null
CREATE FUNCTION pg_temp.stamp() RETURNS uuid
    LANGUAGE sql AS $$ SELECT security_stamp FROM postern.user_account WHERE id = pg_temp.who('ada@example.com') $$;
SELECT set_config('test.stamp', pg_temp.stamp()::text, true) \g /dev/null
CREATE FUNCTION pg_temp.all_ended(by text, keep boolean, r uuid DEFAULT pg_temp.realm()) RETURNS integer
    LANGUAGE sql AS $$
    SELECT postern.end_own_sessions(r, pg_temp.who('ada@example.com'), pg_temp.uu(by), keep, '192.0.2.1') $$;
SET LOCAL ROLE app_login;
SELECT pg_temp.ask('h', 'ada@example.com', '123456') \g /dev/null
SELECT is(pg_temp.all_ended('bob', true), NULL, 'nobody ends another person''s sessions');
SELECT is(pg_temp.all_ended('s2', true), NULL, 'nor by a session that ended');
SELECT is(pg_temp.all_ended('s1', true, pg_temp.other()), NULL, 'nor in another realm');
SELECT ok(pg_temp.alive('s4') AND pg_temp.alive('s5'), 'nothing was done');
SELECT cmp_ok(pg_temp.all_ended('s1', true), '>=', 2, 'all but the one that asks');
SELECT ok(pg_temp.alive('s1') AND NOT pg_temp.alive('s4') AND NOT pg_temp.alive('s5') AND pg_temp.alive('bob'),
          'that one lives, and nobody else''s ended');
SELECT is(pg_temp.rotate('s1', 0), 'rotated t', 'and can be refreshed');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.login_code WHERE realm_id = pg_temp.realm()
                      AND address_key = 'ada@example.com'$$), '0', 'codes are gone too');
SELECT isnt(pg_temp.sql('SELECT pg_temp.stamp()::text'), current_setting('test.stamp'), 'under a new stamp');
SELECT is(pg_temp.sql($$SELECT detail::text FROM postern.audit_event WHERE event = 'user_signed_out'
                      AND session_id = pg_temp.uu('s1')$$)::jsonb -> 'kept_current', 'true'::jsonb, 'it is audited');
SELECT is(pg_temp.all_ended('s1', false), 1, 'the last one too, when asked');
SELECT ok(NOT pg_temp.alive('s1') AND pg_temp.rotate('s1', 1) = 'refused revoked', 'it is dead');
RESET ROLE;
UPDATE postern.user_account SET security_stamp = gen_random_uuid() WHERE id = pg_temp.who('ada@example.com');
SET LOCAL ROLE app_login;
SELECT is_empty($$SELECT id FROM postern.live_sessions(pg_temp.realm(), pg_temp.who('ada@example.com'))$$,
                'a new stamp leaves none');
SELECT * FROM finish();
ROLLBACK;
