\ir ../helpers/fixture.psql
-- What it costs to take messages and to record how they went does not grow with those that wait, also by plans that
-- were made when few did: after an hour without a mail server they leave at the usual speed.
SELECT no_plan();
\ir ../helpers/growth_calls.psql
SELECT set_config('session_replication_role', 'replica', true) \g /dev/null
CREATE FUNCTION pg_temp.waits(channel text, first integer, last integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO postern.message_outbox (realm_id, id, channel, recipient, template, purpose, payload, expires_at)
    SELECT pg_temp.realm(), pg_temp.uu(channel || n), channel, 'user' || n, 'otp', 'sign-in', '\x01',
           now() + interval '10 minutes' FROM generate_series(first, last) AS n $$;
CREATE FUNCTION pg_temp.takes() RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY[
    '(SELECT count(*) FROM postern.take_messages(''{email,sms}'', ''{4,4}'','
        || ' ARRAY[pg_temp.other(), pg_temp.other()], ''1 minute'', 8, ''{}'', ''{}'', ''{}''))'] $$;
CREATE FUNCTION pg_temp.settles() RETURNS text[] LANGUAGE sql AS $$
    SELECT ARRAY[
        format('postern.outbox_sent(%s)', m.mail),
        format('postern.outbox_failed(%s, ''timeout'', ''1 minute'', false)', m.mail),
        format('postern.outbox_refused(%s, ''550'')', m.mail),
        format('postern.message_sent(%s, ''main'', ''x'')', m.sms),
        format('postern.message_failed(%s, ''timeout'', ''1 minute'', false, ''main'', false, true, true)', m.sms)]
      FROM (SELECT format('%L, %L', pg_temp.realm(), pg_temp.uu('email5')) AS mail,
                   format('%L, %L', pg_temp.realm(), pg_temp.uu('sms5')) AS sms) AS m $$;
SELECT pg_temp.waits('email', 1, 100), pg_temp.waits('sms', 1, 100) \g /dev/null
SELECT pg_temp.counts(200, pg_temp.takes() || pg_temp.settles()) \g /dev/null
SELECT pg_temp.waits('email', 101, 10000), pg_temp.waits('sms', 101, 10000) \g /dev/null
SELECT pg_temp.counts(20000, pg_temp.takes() || pg_temp.settles()) \g /dev/null
SELECT pg_temp.stays_flat(pg_temp.takes(), 150);
SELECT pg_temp.stays_flat(pg_temp.settles(), 20);
SELECT * FROM finish();
ROLLBACK;
