\ir ../helpers/setup.psql
-- 4.3 (e): a transaction that failed leaves no realm behind, nor does one that succeeded.
SELECT plan(4);
SET SESSION AUTHORIZATION app_login;
BEGIN;
SELECT set_config('postern.realm', gen_random_uuid()::text, true) \g /dev/null
ROLLBACK;
SELECT is(postern.current_realm(), NULL, '4.3 (e): after a rollback there is no realm');
SELECT postern.realm_config(gen_random_uuid()) \g /dev/null
SELECT is(postern.current_realm(), NULL, 'nor after a call');
BEGIN;
SELECT set_config('postern.realm', gen_random_uuid()::text, true) \g /dev/null
SAVEPOINT s;
SELECT throws_ok('SELECT 1/0', '22012', NULL, 'an error on the way');
COMMIT;
SELECT is(postern.current_realm(), NULL, 'nor after an error');
SELECT * FROM finish();
