-- A receiver that refuses the events of some users does not keep the others' waiting.
\ir ../helpers/fixture.psql
\ir ../helpers/webhooks.psql
SELECT no_plan();
SET LOCAL ROLE admin_login;
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x') \g /dev/null
RESET ROLE;
-- Refuses all users but one, whose event comes behind those of thirty others.
CREATE FUNCTION pg_temp.queue(users integer[]) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.audit_event SET xid = '3';
    UPDATE postern.webhook_cursor SET xid = '4', id = 0;
    INSERT INTO postern.audit_event (realm_id, event, user_id)
    SELECT pg_temp.realm(), 'sign_in', md5('u' || n)::uuid FROM unnest(users) AS n;
    SELECT pg_temp.committed('10');
    SELECT postern.collect_events(500);
$$;
CREATE FUNCTION pg_temp.refused(number integer) RETURNS boolean LANGUAGE sql AS $$
    SELECT subject <> md5('u99')::uuid::text FROM taken WHERE event_id = number $$;
-- One second of two servers: what is due is sent, and all but user 99 fails. Returns what was sent.
CREATE FUNCTION pg_temp.second() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_subjects text[];
BEGIN
    PERFORM pg_temp.later('1 second'), pg_temp.forget();
    PERFORM pg_temp.take(64);
    v_subjects := ARRAY(SELECT subject FROM taken);
    PERFORM pg_temp.settle(event_id, CASE subject WHEN md5('u99')::uuid::text THEN 'delivered' ELSE 'failed' END, 60)
       FROM taken;
    RETURN v_subjects;
END
$$;
-- Returns after how many seconds the event of user 99 was sent; NULL: not within ten minutes.
CREATE FUNCTION pg_temp.seconds_of_waiting() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 0..600 LOOP
        IF md5('u99')::uuid::text = ANY (pg_temp.second()) THEN
            RETURN n;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

SELECT pg_temp.queue(ARRAY(SELECT generate_series(1, 8)) || 99) \g /dev/null
SELECT ok(pg_temp.seconds_of_waiting() <= 2, 'behind eight refused users a ninth waits two seconds at most');
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject;
UPDATE postern.webhook SET failures = 0, resume_at = NULL;
SELECT pg_temp.queue(ARRAY(SELECT generate_series(1, 30)) || 99) \g /dev/null
SELECT ok(pg_temp.seconds_of_waiting() <= 8, 'behind thirty refused users another waits a few seconds');

-- Thirty users fail again and again; all of their tries are due. Whose event never failed comes first.
UPDATE postern.webhook_subject SET failures = 1;
SELECT pg_temp.queue(ARRAY[99]) \g /dev/null
SELECT pg_temp.later('1 day'), pg_temp.forget() \g /dev/null
SELECT pg_temp.take(1) \g /dev/null
SELECT is((SELECT subject FROM taken), md5('u99')::uuid::text, 'a subject that never failed goes first');
SELECT pg_temp.settle(event_id) FROM taken \g /dev/null
SELECT pg_temp.forget(), pg_temp.take(64) \g /dev/null
SELECT is((SELECT count(*)::int FROM taken), 2, 'those that failed have a quarter of the places');
SELECT is((SELECT count(*)::int FROM postern.take_events(64, 8, '{}')), 0, 'on all servers together');
SELECT is((SELECT max(pg_temp.settle(event_id, 'failed', 60)) FROM taken), 0,
          'and their failures say nothing of the others');
SELECT is(pg_temp.sql($$SELECT resume_at FROM admin.webhooks WHERE realm = 'a'$$), NULL, 'so nothing pauses');
SELECT * FROM finish();
ROLLBACK;
