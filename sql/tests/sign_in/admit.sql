\ir ../helpers/fixture.psql
-- How a statement begins: realm, permits, then the proof.
SELECT no_plan();
CREATE FUNCTION pg_temp.proof(id text, mark int) RETURNS postern.proof_use LANGUAGE sql AS $$
    SELECT pg_temp.handed(pg_temp.h('key') || pg_temp.h(id) || int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint)
                          || int8send(mark) || '\x03') $$;
CREATE FUNCTION pg_temp.begins(proof postern.proof_use, wanted int DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', coalesce(outcome, 'begun'), limit_ord, granted) FROM postern.admit(
        pg_temp.caller('gt:urn:cocoar:otp', user_agent => 'agent', proof => proof),
        ROW('{k}', ARRAY[wanted], '{2}', '{60}', '{2}')::postern.permits) $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begins(NULL), 'begun {1}', 'a statement takes its permits');
SELECT is(current_setting('postern.realm')::uuid, pg_temp.realm(), 'and is of its realm');
SELECT is(pg_temp.begins(pg_temp.proof('1', 7)), 'begun {1}', 'a statement with a proof uses it up');
SELECT throws_ok($$SELECT postern.admit(pg_temp.caller('gt:urn:cocoar:otp', proof => pg_temp.proof('1', 8)),
                                        pg_temp.no_permits())$$, 'PD001', NULL, 'no other statement has that proof');
SELECT is(pg_temp.begins(pg_temp.proof('2', 7)), 'rate_limited 1 {0}', 'a statement without permits is refused');
SELECT is((SELECT outcome FROM postern.admit(pg_temp.caller('gt:urn:cocoar:otp', proof => pg_temp.proof('2', 8)),
                                             pg_temp.no_permits())), NULL, 'and has used up no proof');
SELECT is((SELECT concat_ws(' ', outcome, db_now = date_part('epoch', now()), compared)
             FROM postern.admit(pg_temp.caller('gt:urn:cocoar:otp'), pg_temp.no_permits())), 't 0',
          'one that takes no permits begins, says when, and has compared no code');
SELECT is(postern.falls_short(pg_temp.opens(level => 2)), true, 'a session can ask for more than its methods');
SELECT is(postern.falls_short(pg_temp.opens(amr => '{otp,mfa}', level => 2)), false, 'or for what they are');
SELECT is(postern.falls_short(pg_temp.opens()), false, 'or for nothing');
SELECT * FROM finish();
ROLLBACK;
