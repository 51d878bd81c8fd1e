\ir ../helpers/fixture.psql
SELECT no_plan();
-- One request with its mark; `how` is the function.
CREATE FUNCTION pg_temp.request(how text, name text, generation int, mark bigint, scope text[] DEFAULT NULL,
                                server_key bytea DEFAULT '\x01020304') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer record;
BEGIN
    EXECUTE format('SELECT outcome, reason, current_hash FROM postern.%I('
                   '$1, $2, $3, $4, $5, $6, 86400, NULL, $7, $8, NULL, NULL, $9)', how) INTO answer
      USING pg_temp.realm(), pg_temp.client(), pg_temp.uu(name), generation, pg_temp.h(name || generation),
          ARRAY[pg_temp.h(name || generation + 1)],
            server_key, mark, scope;
    RETURN concat_ws(' ', answer.outcome, NULLIF(answer.reason, answer.outcome),
                     answer.current_hash = pg_temp.h(name || generation + 1));
END
$$;
SELECT admin.set_native_grants('a', refresh_retry_window => '0') \g /dev/null
SELECT pg_temp.sign_in(n) FROM unnest('{a,b,c,d,e,f,g,h}'::text[]) AS n \g /dev/null
SET LOCAL ROLE app_login;

SELECT is(pg_temp.request('rotate_session', 'a', 0, 42), 'rotated t', 'with a retry window of 0');
SELECT is(pg_temp.request('rotate_session', 'a', 0, 42), 'retried t',
          'the same request gets the successor again');
SELECT is(pg_temp.request('rotate_session_unless_busy', 'a', 0, 42), 'retried t', 'whichever way it comes');
SELECT ok(pg_temp.alive('a'), 'and the family lives');
SELECT is(pg_temp.request('rotate_session', 'a', 0, 43), 'reuse', 'another request with the same token is reuse');
SELECT is(pg_temp.request('rotate_session', 'a', 0, 42), 'refused revoked',
          'after which the first one is refused, too');

SELECT is(pg_temp.request('rotate_session', 'b', 0, 1), 'rotated t', 'another family');
SELECT is(pg_temp.request('rotate_session', 'b', 1, 2), 'rotated t', 'whose successor was used');
SELECT is(pg_temp.request('rotate_session', 'b', 0, 1), 'reuse', 'a mark two generations old counts nothing');
SELECT is(pg_temp.request('rotate_session', 'c', 0, NULL), 'rotated t', 'without a mark');
SELECT is(pg_temp.request('rotate_session', 'c', 0, NULL), 'reuse', 'nothing equals nothing');

SELECT is(pg_temp.request('rotate_session', 'd', 0, 5, '{openid,wide}'), 'invalid_scope',
          'a wider scope is refused');
SELECT is(pg_temp.request('rotate_session', 'd', 0, 6), 'rotated t', 'and consumes nothing');
SELECT is(pg_temp.request('rotate_session', 'd', 0, 6, '{wide}'), 'invalid_scope',
          'a repetition with a wider scope is refused alike');
SELECT ok(pg_temp.alive('d'), 'which is no reuse');
SELECT is(pg_temp.request('rotate_session', 'd', 0, 7, '{wide}'), 'reuse', 'reuse with a wider scope is reuse');
SELECT ok(NOT pg_temp.alive('d'), 'and ends the family');

SELECT is(pg_temp.request('rotate_session_unless_busy', 'e', 0, 1, NULL, '\x0a0b0c0d'), 'rotated t',
          'a free row is rotated without waiting');
SELECT is(pg_temp.sql($$SELECT encode(server_key, 'hex') || ' ' || rotation_mark FROM postern.session
                      WHERE id = pg_temp.uu('e')$$), '0a0b0c0d 1', 'key and mark are those of the rotation');
SELECT is(pg_temp.request('rotate_session_unless_busy', 'nobody', 0, 1), 'refused unknown', 'no row is not a busy row');

SELECT results_eq($$SELECT config_version FROM postern.realm_versions() WHERE realm_id = pg_temp.realm()$$,
    $$SELECT (postern.realm_config(pg_temp.realm()) ->> 'config_version')::bigint$$,
        'the version of a realm is that of its document');
SELECT is((SELECT count(*) || ':' || sum(config_version) FROM postern.realm_versions()), postern.config_stamp(),
          'and the stamp is made of all');
SELECT * FROM finish();
ROLLBACK;
