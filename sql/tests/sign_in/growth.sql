\ir ../helpers/fixture.psql
-- What it costs to take and to decide a request does not grow with those that wait, also by plans that were made when
-- few did: strangers who ask for codes by the thousand make no code dearer.
SELECT no_plan();
SET plan_cache_mode = force_generic_plan;
\ir ../helpers/growth_calls.psql
CREATE FUNCTION pg_temp.waits(first integer, last integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO postern.auth_session (realm_id, id, kind, email, email_key, source, expires_at)
    SELECT pg_temp.realm(), pg_temp.b16(n::text), CASE n % 2 WHEN 0 THEN 'otp' ELSE 'magic' END,
           'user' || n || '@example.com', 'user' || n || '@example.com', '192.0.2.1', now() + interval '10 minutes'
      FROM generate_series(first, last) AS n $$;
CREATE TEMP TABLE read (call text, waiting integer, pages integer);
CREATE FUNCTION pg_temp.counts(waiting integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_call text;
BEGIN
    FOREACH v_call IN ARRAY ARRAY[
        '(SELECT count(*) FROM postern.take_undecided(8, NULL))',
        format('postern.decide_code(%L, %L, gen_random_uuid(), %L, %L, gen_random_uuid(), %L, ''otp'')',
               pg_temp.realm(), pg_temp.b16('20'), pg_temp.b16('x'), pg_temp.h('x'), pg_temp.b16('p')),
        format('(postern.decide_link_request(%L, %L)).outcome', pg_temp.realm(), pg_temp.b16('21'))]
    LOOP
        PERFORM pg_temp.pages(v_call);
        INSERT INTO read VALUES (v_call, waiting, pg_temp.pages(v_call));
    END LOOP;
END
$$;
SELECT pg_temp.waits(1, 200) \g /dev/null
SELECT pg_temp.counts(200) \g /dev/null
SELECT pg_temp.waits(201, 20000) \g /dev/null
SELECT pg_temp.counts(20000) \g /dev/null
SELECT cmp_ok(many.pages, '<=', few.pages + 20, format(
           '%s reads %s pages while few requests wait, %s while many do', few.call, few.pages, many.pages))
  FROM read AS few JOIN read AS many USING (call) WHERE few.waiting = 200 AND many.waiting = 20000;
SELECT * FROM finish();
ROLLBACK;
