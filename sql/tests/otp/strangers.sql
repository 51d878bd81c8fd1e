\ir ../helpers/fixture.psql
SELECT no_plan();
-- What strangers' tries at invented addresses cost others.
SELECT admin.put_app('a', 'jit', 'Jit', 'jit.a.example') \g /dev/null
-- The wrong codes of a try that count for the realm's limit.
CREATE FUNCTION pg_temp.counted(address text, handle text, VARIADIC codes text[]) RETURNS integer LANGUAGE sql AS $$
    SELECT compared FROM postern.redeem_code(
        pg_temp.caller('gt:urn:cocoar:otp'), pg_temp.no_permits(), pg_temp.opens(gen_random_uuid()), address,
        CASE WHEN handle IS NOT NULL THEN pg_temp.b16(handle) END,
        ARRAY(SELECT pg_temp.h(c) FROM unnest(codes) AS c), ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL) $$;
CREATE FUNCTION pg_temp.guards() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(address_key || ' ' || consecutive, ', ' ORDER BY address_key) FROM postern.code_guard $$;
CREATE FUNCTION pg_temp.passes(span interval) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.code_guard SET updated_at = updated_at - span, failures_tat = failures_tat - span,
           locked_until = locked_until - span $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('n', 'invented@example.com', '1', app => 'jit'), 'sent', 'an invented address is sent a code to register with');
SELECT is(pg_temp.ask('a', 'ada@example.com', '1', app => 'jit'), 'sent', 'an account is sent a code');
SELECT is(pg_temp.counted('invented@example.com', 'n', '9') || ' ' || pg_temp.counted('invented@example.com', NULL, '9'), '0 0',
          'wrong codes of nobody do not use up the realm''s limit');
SELECT is(pg_temp.counted('ada@example.com', 'a', '9') || ' ' || pg_temp.counted('ada@example.com', NULL, '9'), '1 1',
          'those of an account do');
SELECT is(pg_temp.guards(), 'ada@example.com 2, invented@example.com 2', 'both count against the address');

SELECT is(pg_temp.counted(repeat('x', 240) || '@example.com', NULL, '9'), 0, 'a try where there is no code');
SELECT is(pg_temp.redeem('ada@example.com', 'a', '1'), 'ok', 'a right code');
RESET ROLE;
SELECT pg_temp.passes('3 minutes'), postern.sweep(100000) \g /dev/null
SELECT is(pg_temp.guards(), 'invented@example.com 2', 'what counts nothing is swept at once, what counts is not');
SELECT pg_temp.passes('11 minutes'), postern.sweep(100000) \g /dev/null
SELECT is(pg_temp.guards(), 'invented@example.com 2', 'nor when the failures are forgotten');
SELECT pg_temp.passes('24 hours'), postern.sweep(100000) \g /dev/null
SELECT is(pg_temp.guards(), NULL, 'but after a day');
SELECT * FROM finish();
ROLLBACK;
