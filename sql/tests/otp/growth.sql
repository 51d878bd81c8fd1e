\ir ../helpers/fixture.psql
-- What a sign-in and a sign-out cost does not grow with the addresses at which strangers have tried codes, also by
-- plans that were made when there were few, and while the tables have no statistics.
SELECT no_plan();
\ir ../helpers/growth_calls.psql
CREATE FUNCTION pg_temp.tried(first integer, last integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO postern.code_guard (realm_id, address_key, consecutive)
    SELECT pg_temp.realm(), 'user' || n || '@example.com', 1 FROM generate_series(first, last) AS n;
    INSERT INTO postern.login_code (realm_id, address_key, id, expires_at, salt, mac)
    SELECT pg_temp.realm(), 'user' || n || '@example.com', gen_random_uuid(), now() + interval '10 minutes',
           pg_temp.b16('s'), pg_temp.h('m') FROM generate_series(first, last) AS n $$;
CREATE FUNCTION pg_temp.calls() RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY[
    format('postern.forget_wrong_codes(%L, ''ada@example.com'', %L, NULL)', pg_temp.realm(),
           pg_temp.sub('ada@example.com')),
    format('postern.end_access_except(%L, %L, NULL)', pg_temp.realm(), pg_temp.sub('ada@example.com'))] $$;
INSERT INTO postern.code_guard (realm_id, address_key, consecutive) VALUES (pg_temp.realm(), 'ada@example.com', 3);
SELECT pg_temp.tried(1, 100) \g /dev/null
SELECT pg_temp.counts(100, pg_temp.calls()) \g /dev/null
SELECT pg_temp.tried(101, 20000) \g /dev/null
SELECT pg_temp.counts(20000, pg_temp.calls()) \g /dev/null
SELECT pg_temp.stays_flat(pg_temp.calls(), 12);
SELECT * FROM finish();
ROLLBACK;
