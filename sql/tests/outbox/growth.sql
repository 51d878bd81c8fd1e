\ir ../helpers/fixture.psql
-- What it costs to take messages and to record how they went does not grow with those that wait, also by plans that
-- were made when few did: after an hour without a mail server they leave at the usual speed.
SELECT no_plan();
SET plan_cache_mode = force_generic_plan;
\ir ../helpers/growth_calls.psql
SELECT set_config('session_replication_role', 'replica', true) \g /dev/null
CREATE FUNCTION pg_temp.waits(channel text, first integer, last integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO postern.mail_outbox (realm_id, id, channel, recipient, template, purpose, payload, expires_at)
    SELECT pg_temp.realm(), pg_temp.uu(channel || n), channel, 'user' || n, 'otp', 'sign-in', '\x01',
           now() + interval '10 minutes' FROM generate_series(first, last) AS n $$;
CREATE TEMP TABLE read (call text, waiting integer, pages integer);
CREATE FUNCTION pg_temp.counts(waiting integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_mail text := format('%L, %L', pg_temp.realm(), pg_temp.uu('email5'));
    v_sms text := format('%L, %L', pg_temp.realm(), pg_temp.uu('sms5'));
    v_call text;
BEGIN
    FOREACH v_call IN ARRAY ARRAY[
        '(SELECT count(*) FROM postern.take_messages(''{email,sms}'', ''{4,4}'','
            || ' ARRAY[pg_temp.other(), pg_temp.other()], ''1 minute'', 8, ''{}'', ''{}'', ''{}''))',
        format('postern.outbox_sent(%s)', v_mail),
        format('postern.outbox_failed(%s, ''timeout'', ''1 minute'', false)', v_mail),
        format('postern.outbox_refused(%s, ''550'')', v_mail),
        format('postern.message_sent(%s, ''main'', ''x'')', v_sms),
        format('postern.message_failed(%s, ''timeout'', ''1 minute'', false, ''main'', false, true, true)', v_sms)]
    LOOP
        PERFORM pg_temp.pages(v_call);
        INSERT INTO read VALUES (v_call, waiting, pg_temp.pages(v_call));
    END LOOP;
END
$$;
SELECT pg_temp.waits('email', 1, 100), pg_temp.waits('sms', 1, 100) \g /dev/null
SELECT pg_temp.counts(200) \g /dev/null
SELECT pg_temp.waits('email', 101, 10000), pg_temp.waits('sms', 101, 10000) \g /dev/null
SELECT pg_temp.counts(20000) \g /dev/null
SELECT cmp_ok(many.pages, '<=', few.pages + CASE WHEN few.call LIKE '%take%' THEN 150 ELSE 20 END, format(
           '%s reads %s pages while few messages wait, %s while many do', few.call, few.pages, many.pages))
  FROM read AS few JOIN read AS many USING (call) WHERE few.waiting = 200 AND many.waiting = 20000;
SELECT * FROM finish();
ROLLBACK;
