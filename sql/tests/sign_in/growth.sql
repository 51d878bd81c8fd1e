\ir ../helpers/fixture.psql
-- What it costs to take and to decide a request does not grow with those that wait, also by plans that were made when
-- few did: strangers who ask for codes by the thousand make no code dearer.
SELECT no_plan();
\ir ../helpers/growth_calls.psql
CREATE FUNCTION pg_temp.waits(first integer, last integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, source, expires_at)
    SELECT pg_temp.realm(), pg_temp.b16(n::text), CASE n % 2 WHEN 0 THEN 'otp' ELSE 'magic' END,
           'user' || n || '@example.com', 'user' || n || '@example.com', '192.0.2.1', now() + interval '10 minutes'
      FROM generate_series(first, last) AS n $$;
CREATE FUNCTION pg_temp.calls() RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY[
    '(SELECT count(*) FROM postern.take_undecided(8, NULL))',
    format('postern.decide_code(%L, %L, gen_random_uuid(), %L, %L, gen_random_uuid(), %L, ''otp'')',
           pg_temp.realm(), pg_temp.b16('20'), pg_temp.b16('x'), pg_temp.h('x'), pg_temp.b16('p')),
    format('(postern.decide_link_request(%L, %L)).outcome', pg_temp.realm(), pg_temp.b16('21'))] $$;
SELECT pg_temp.waits(1, 200) \g /dev/null
SELECT pg_temp.counts(200, pg_temp.calls()) \g /dev/null
SELECT pg_temp.waits(201, 20000) \g /dev/null
SELECT pg_temp.counts(20000, pg_temp.calls()) \g /dev/null
SELECT pg_temp.stays_flat(pg_temp.calls(), 20);
SELECT * FROM finish();
ROLLBACK;
