\ir ../helpers/fixture.psql
SELECT no_plan();
-- A session changes what lets its user in only while it lives: the function holds the account first, and then reads the
-- session (postern.hold_session_owner; held_account.sh has the races). The next such function must not forget it.
CREATE TEMP VIEW fn AS
SELECT p.oid, p.proname AS name, coalesce(p.prosrc, '') || coalesce(pg_get_function_sqlbody(p.oid), '') AS body,
       coalesce(p.proargnames, '{}') AS arguments, has_function_privilege('postern_app', p.oid, 'EXECUTE') AS is_apps
  FROM pg_proc AS p WHERE p.pronamespace = 'postern'::regnamespace AND p.prokind = 'f';
-- What writes the tables, itself or by what it calls.
CREATE FUNCTION pg_temp.writers() RETURNS TABLE (name name) LANGUAGE sql AS $$
    WITH RECURSIVE w (name) AS (
        SELECT f.name FROM fn AS f
         WHERE f.body ~ '(INSERT INTO|UPDATE|DELETE FROM) postern\.(passkey|totp_factor|recovery_code|device_key|user_identifier|consent)\M'
        UNION
        SELECT f.name FROM w JOIN fn AS f ON f.body ~ ('postern\.' || w.name || '\M') AND f.body !~ 'hold_session_owner')
    SELECT w.name FROM w $$;
-- Calls of a server that name a session or a user, and open no session by a factor.
CREATE FUNCTION pg_temp.careless() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT DISTINCT f.name::text FROM fn AS f
     WHERE f.is_apps AND f.arguments && '{p_session,p_user,p_cookie_hash,p_by}' AND NOT f.arguments && '{p_token_salt,p_new}'
       AND f.body !~ 'hold_session_owner' AND f.name IN (SELECT w.name FROM pg_temp.writers() AS w)
       AND f.name::text NOT IN (
           -- Steps of statements in which a factor was proven.
           'confirm_identifier', 'prove_identifier', 'release_number', 'use_second_factor', 'use_held_number',
           -- Steps of those that hold the account, or of an administrator's.
           'give_consent', 'revoke_consent') $$;
SELECT is_empty('SELECT pg_temp.careless()', 'every function that changes an account for a session holds the account first');
SELECT cmp_ok((SELECT count(*)::int FROM fn WHERE body ~ 'hold_session_owner' AND is_apps), '>=', 15, 'such functions are found');
CREATE FUNCTION postern.careless(p_realm uuid, p_session uuid) RETURNS void LANGUAGE sql
    AS $$ DELETE FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = (postern.session_owner(p_realm, p_session)).id $$;
GRANT EXECUTE ON FUNCTION postern.careless TO postern_app;
SELECT results_eq('SELECT pg_temp.careless()', ARRAY['careless'], 'a careless addition is found');
-- Sessions of clients and of browsers.
SELECT pg_temp.sign_in('ada') \g /dev/null
\ir ../helpers/browsers.psql
SELECT pg_temp.browse('jar') \g /dev/null
CREATE FUNCTION pg_temp.held(session uuid) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT id FROM postern.hold_session_owner(pg_temp.realm(), session) $$;
SELECT is(pg_temp.held(pg_temp.uu('ada')), pg_temp.sub('ada@example.com'), 'a session of a client');
SELECT is(pg_temp.held(pg_temp.uu('jar')), pg_temp.sub('ada@example.com'), 'a session of a browser');
SELECT is(pg_temp.held(pg_temp.uu('none')), NULL, 'no session');
SELECT admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.held(n), NULL, 'a session that has ended') FROM unnest(ARRAY[pg_temp.uu('ada'), pg_temp.uu('jar')]) AS n;
SELECT * FROM finish();
ROLLBACK;
