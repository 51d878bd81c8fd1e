\ir ../helpers/fixture.psql
-- What it costs to take events and to record that they arrived does not grow with the events that wait, also by plans
-- that were made when few did: a receiver that was down for an hour is made up for at the usual speed. Nor does the look
-- for new events grow with the audit log.
SELECT no_plan();
\ir ../helpers/webhooks.psql
\ir ../helpers/growth_calls.psql
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/events', events => '{*}') \g /dev/null

-- So many users with an event each, all of them read.
CREATE FUNCTION pg_temp.waits(first integer, last integer) RETURNS void LANGUAGE sql AS $$
    WITH a AS (INSERT INTO postern.audit_event (realm_id, event, user_id, xid)
               SELECT pg_temp.realm(), 'sign_in', gen_random_uuid(), '100' FROM generate_series(first, last)
               RETURNING id, xid, at, user_id),
         s AS (INSERT INTO postern.webhook_subject (realm_id, webhook, subject, due_at)
               SELECT pg_temp.realm(), pg_temp.hook(), a.user_id, now() - interval '1 minute' FROM a)
    INSERT INTO postern.webhook_delivery (realm_id, webhook, event, xid, event_at, subject)
    SELECT pg_temp.realm(), pg_temp.hook(), a.id, a.xid, a.at, a.user_id FROM a $$;
CREATE FUNCTION pg_temp.takes() RETURNS integer LANGUAGE sql AS $$
    SELECT count(*)::integer FROM postern.take_events(16, 16, '{}') $$;
CREATE FUNCTION pg_temp.holds() RETURNS void LANGUAGE sql AS $$
    DELETE FROM taken;
    INSERT INTO taken SELECT * FROM postern.take_events(16, 16, '{}') $$;
CREATE FUNCTION pg_temp.settles() RETURNS integer LANGUAGE sql AS $$
    SELECT postern.settle_delivered(array_agg(t.realm_id), array_agg(t.webhook), array_agg(t.subject),
                                    array_agg(t.lease), array_agg(t.event_id)) FROM taken AS t $$;
CREATE FUNCTION pg_temp.fails() RETURNS integer LANGUAGE sql AS $$
    SELECT postern.settle_event(t.realm_id, t.webhook, t.subject, t.lease, t.event_id, 'failed', 'why', 60)
      FROM (SELECT * FROM taken ORDER BY event_id LIMIT 1) AS t $$;
CREATE FUNCTION pg_temp.collects() RETURNS integer LANGUAGE sql AS $$
    SELECT is_full::integer FROM postern.collect_events(100) $$;
CREATE FUNCTION pg_temp.calls() RETURNS text[] LANGUAGE sql AS $$
    SELECT '{pg_temp.takes(),pg_temp.settles(),pg_temp.fails(),pg_temp.collects()}'::text[] $$;
SELECT pg_temp.waits(1, 200) \g /dev/null
SELECT pg_temp.holds() \g /dev/null
SELECT pg_temp.counts(200, pg_temp.calls()) \g /dev/null
SELECT pg_temp.waits(201, 20000) \g /dev/null
SELECT pg_temp.holds() \g /dev/null
SELECT pg_temp.counts(20000, pg_temp.calls()) \g /dev/null
SELECT is((SELECT pg_temp.settles()), 16, 'what was taken is settled');
-- Sixteen events, each found by four indexes.
SELECT pg_temp.stays_flat(pg_temp.calls(), 16 * 12);
-- What a look writes to a webhook that has read all there is: its row's version and lock, before and after.
CREATE FUNCTION pg_temp.looks() RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_before text;
BEGIN
    PERFORM pg_temp.committed('100');
    UPDATE postern.webhook_cursor SET xid = '101';
    v_before := (SELECT c.ctid || ' ' || c.xmax FROM postern.webhook_cursor AS c);
    PERFORM postern.collect_events(100);
    RETURN ARRAY[v_before, (SELECT c.ctid || ' ' || c.xmax FROM postern.webhook_cursor AS c)];
END
$$;
SELECT is(l[2], l[1], 'nothing is written while nothing is new') FROM pg_temp.looks() AS l;
SELECT * FROM finish();
ROLLBACK;
