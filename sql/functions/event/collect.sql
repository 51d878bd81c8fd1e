-- From the audit log to the events of each webhook. SECURITY DEFINER throughout this folder: the worker serves every
-- realm, and the app role has no rights to these tables.
SET LOCAL ROLE postern_owner;

-- Events of one subject are sent one after another. An event that names no user is a subject of its own.
CREATE OR REPLACE FUNCTION postern.event_subject(p_event postern.audit_event) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(p_event.user_id::text, p_event.detail ->> 'correlation_id', p_event.session_id::text,
                'event-' || p_event.id);
COMMENT ON FUNCTION postern.event_subject IS 'Whom an event is about: the user, else a transaction, else itself';

-- True after this database was restored from a dump into another cluster, whose transactions count from a lower number:
-- the audit log then has rows of the future. All of them are finished.
CREATE OR REPLACE FUNCTION postern.is_of_another_cluster(p_cursor postern.webhook_cursor) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT coalesce((SELECT a.xid >= pg_snapshot_xmax(pg_current_snapshot()) AND a.id > p_cursor.replay_after
                       FROM postern.audit_event AS a WHERE a.realm_id = p_cursor.realm_id
                      ORDER BY a.xid DESC, a.id DESC LIMIT 1), false)
$$;
COMMENT ON FUNCTION postern.is_of_another_cluster IS
    'Whether the audit log has rows, not read yet, of a cluster from which the database was restored';

-- What a webhook may read now: the rows behind the cursor of transactions that are older than every running one, so
-- that no row can still come in between.
CREATE OR REPLACE FUNCTION postern.events_to_collect(p_cursor postern.webhook_cursor, p_limit integer)
RETURNS SETOF postern.audit_event
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_end xid8 := CASE WHEN postern.is_of_another_cluster(p_cursor) THEN '18446744073709551615'::xid8
                       ELSE pg_snapshot_xmin(pg_current_snapshot()) END;
BEGIN
    RETURN QUERY
    SELECT a.* FROM postern.audit_event AS a
     WHERE a.realm_id = p_cursor.realm_id AND (a.xid, a.id) > (p_cursor.xid, p_cursor.id) AND a.xid < v_end
     ORDER BY a.xid, a.id LIMIT p_limit;
END
$$;
COMMENT ON FUNCTION postern.events_to_collect IS 'The next rows of the audit log for a webhook';

-- Reads the audit log for every webhook, p_batch rows of each at most. Returns whether there may be more, and for how
-- many seconds events have waited for a transaction that is still open.
CREATE OR REPLACE FUNCTION postern.collect_events(p_batch integer, OUT is_full boolean, OUT waiting double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_webhook record;
    v_cursor postern.webhook_cursor;
    v_rows postern.audit_event[];
    v_last postern.audit_event;
    v_future xid8;
BEGIN
    -- What a crash loses is read again.
    PERFORM set_config('synchronous_commit', 'off', true);
    is_full := false;
    waiting := 0;
    -- Looked at without a lock first, so that nothing is written while nothing happens.
    FOR v_webhook IN
        SELECT c.realm_id, c.webhook, w.events FROM postern.webhook_cursor AS c
          JOIN postern.webhook AS w ON w.realm_id = c.realm_id AND w.id = c.webhook AND w.enabled
          JOIN postern.realm AS r ON r.id = c.realm_id AND r.enabled
         WHERE c.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
           -- The newest row decides, found by its index: EXISTS would read the whole audit log to find that none is
           -- new.
           AND ((SELECT (a.xid, a.id) > (c.xid, c.id) FROM postern.audit_event AS a
                  WHERE a.realm_id = c.realm_id AND a.xid < pg_snapshot_xmax(pg_current_snapshot())
                  ORDER BY a.xid DESC, a.id DESC LIMIT 1)
                OR postern.is_of_another_cluster(c))
         ORDER BY c.realm_id, c.webhook
    LOOP
        SELECT c.* INTO v_cursor FROM postern.webhook_cursor AS c
         WHERE c.realm_id = v_webhook.realm_id AND c.webhook = v_webhook.webhook FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        v_rows := ARRAY(SELECT a FROM postern.events_to_collect(v_cursor, p_batch) AS a);
        IF cardinality(v_rows) = 0 THEN
            waiting := greatest(waiting, (
                SELECT date_part('epoch', clock_timestamp() - a.at) FROM postern.audit_event AS a
                 WHERE a.realm_id = v_cursor.realm_id AND (a.xid, a.id) > (v_cursor.xid, v_cursor.id)
                   AND a.xid < pg_snapshot_xmax(pg_current_snapshot())
                 ORDER BY a.xid, a.id LIMIT 1));
            CONTINUE;
        END IF;
        PERFORM postern.queue_events(v_cursor, v_webhook.events, v_rows);
        v_last := v_rows[cardinality(v_rows)];
        is_full := is_full OR cardinality(v_rows) = p_batch;
        v_future := pg_snapshot_xmax(pg_current_snapshot());
        IF v_last.xid >= v_future AND cardinality(v_rows) < p_batch THEN
            -- All of the other cluster is read. Its ids are below those of this one, which is read from the start.
            is_full := true;
            UPDATE postern.webhook_cursor AS c
               SET xid = '0', id = 0, replay_until = '18446744073709551615',
                   replay_after = (SELECT max(a.id) FROM postern.audit_event AS a
                                    WHERE a.realm_id = c.realm_id AND a.xid >= v_future)
             WHERE c.realm_id = v_cursor.realm_id AND c.webhook = v_cursor.webhook;
        ELSE
            UPDATE postern.webhook_cursor AS c SET xid = v_last.xid, id = v_last.id
             WHERE c.realm_id = v_cursor.realm_id AND c.webhook = v_cursor.webhook;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.collect_events IS
    'Queues what was audited since the last call for the webhooks that want it';
GRANT EXECUTE ON FUNCTION postern.collect_events TO postern_app;

-- The subjects' rows come first: they are locked until the end of the transaction, so that none is found empty and
-- deleted meanwhile. What was refused for good or given up before is sent anew by a replay. A user_signed_out that kept
-- a session is no event: each session that ended then has a row of its own (postern.end_own_sessions).
CREATE OR REPLACE FUNCTION postern.queue_events(
    p_cursor postern.webhook_cursor, p_events text[], p_rows postern.audit_event[]) RETURNS void
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_wanted postern.audit_event[] := ARRAY(
        SELECT a FROM unnest(p_rows) AS a JOIN postern.event_type AS t ON t.event = a.event
         WHERE (a.event = ANY (p_events) OR '*' = ANY (p_events))
           AND NOT (a.event = 'user_signed_out' AND coalesce(a.detail -> 'kept_current' = 'true', false))
           AND (a.id > p_cursor.replay_after OR a.xid >= p_cursor.replay_until));
BEGIN
    INSERT INTO postern.webhook_subject AS s (realm_id, webhook, subject)
    SELECT DISTINCT p_cursor.realm_id, p_cursor.webhook, postern.event_subject(a)
      FROM unnest(v_wanted) AS a ORDER BY 3
        ON CONFLICT (realm_id, webhook, subject) DO UPDATE SET due_at = s.due_at;
    INSERT INTO postern.webhook_delivery AS d (realm_id, webhook, event, xid, event_at, subject)
    SELECT p_cursor.realm_id, p_cursor.webhook, a.id, a.xid, a.at, postern.event_subject(a) FROM unnest(v_wanted) AS a
        ON CONFLICT (realm_id, webhook, event) DO UPDATE
       SET set_aside_at = NULL, attempts = 0, created_at = now(), last_error = NULL
     WHERE d.set_aside_at IS NOT NULL OR d.created_at < now() - postern.delivery_time();
END
$$;
COMMENT ON FUNCTION postern.queue_events IS 'Queues rows of the audit log for a webhook';

CREATE OR REPLACE FUNCTION postern.delivery_time() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '72 hours';
COMMENT ON FUNCTION postern.delivery_time IS 'How long an event is tried';

-- The oldest transaction that runs in the cluster, in any database, when it has written something: what events wait
-- for. pid is NULL for a prepared transaction.
CREATE OR REPLACE FUNCTION postern.oldest_writer(OUT xid text, OUT pid integer)
LANGUAGE sql
AS $$
    SELECT m.xid::text, l.pid
      FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xid) AS m
      JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
       AND l.transactionid = m.xid::xid
$$;
COMMENT ON FUNCTION postern.oldest_writer IS 'Which open transaction holds back events: its id and its process';
GRANT EXECUTE ON FUNCTION postern.oldest_writer TO postern_app;

RESET ROLE;
