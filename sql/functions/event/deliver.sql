-- Events on their way: which are due, and how a try went.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    -- What was refused or given up stays to be seen.
    ('webhook_delivery', 't.created_at < now() - interval ''10 days''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- The first events of subjects that are due, on a lease of 30 seconds; webhooks take turns. p_busy: the webhook of each
-- call that this server makes just now; a webhook gets p_share calls of one server. Subjects whose last try failed come
-- after the others, and have a quarter of one server's calls on all servers together: a receiver that refuses some
-- users does not keep the others waiting. Without the settings a plan that was made while the queue was empty would
-- read all of it.
CREATE OR REPLACE FUNCTION postern.take_events(p_limit integer, p_share integer, p_busy uuid[])
RETURNS TABLE (realm_id uuid, realm text, webhook uuid, name text, url text, audience text,
               secret_name text, subject text, lease uuid, event_id bigint, event text, type text, jti text,
               txn text, at double precision, user_id uuid, session_id uuid, client_id text, source text,
               detail jsonb, address text, test_identity boolean, attempts integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_lease uuid := gen_random_uuid();
    v_taken postern.webhook_subject[];
    v_events bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH due AS (
        SELECT s.realm_id, s.webhook, s.subject
          FROM postern.webhook AS w JOIN postern.realm AS r ON r.id = w.realm_id
         CROSS JOIN LATERAL (SELECT count(*)::integer AS calls FROM unnest(p_busy) AS b WHERE b = w.id) AS busy
         CROSS JOIN LATERAL (
            SELECT count(*)::integer AS calls FROM postern.webhook_subject AS z
             WHERE z.realm_id = w.realm_id AND z.webhook = w.id AND z.failures > 0 AND z.lease IS NOT NULL
               AND z.due_at > now()) AS retried
         CROSS JOIN LATERAL (
            -- Calls under way count as turns, so that a free place goes to the webhook with the fewest calls.
            SELECT x.realm_id, x.webhook, x.subject,
                   busy.calls + row_number() OVER (ORDER BY x.failures > 0, x.due_at) AS turn
              FROM (SELECT a.* FROM (
                        SELECT y.* FROM postern.webhook_subject AS y
                         WHERE y.realm_id = w.realm_id AND y.webhook = w.id AND y.due_at <= now() AND y.failures = 0
                         ORDER BY y.due_at LIMIT greatest(p_share - busy.calls, 0)
                           FOR NO KEY UPDATE SKIP LOCKED) AS a
                    UNION ALL
                    SELECT b.* FROM (
                        SELECT y.* FROM postern.webhook_subject AS y
                         WHERE y.realm_id = w.realm_id AND y.webhook = w.id AND y.due_at <= now() AND y.failures > 0
                         ORDER BY y.due_at LIMIT greatest(greatest(p_share / 4, 1) - retried.calls, 0)
                           FOR NO KEY UPDATE SKIP LOCKED) AS b) AS x) AS s
         WHERE w.enabled AND r.enabled AND coalesce(w.resume_at <= now(), true) AND s.turn <= p_share
           AND w.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         ORDER BY s.turn, random() LIMIT p_limit),
    taken AS (
        UPDATE postern.webhook_subject AS s SET due_at = now() + interval '30 seconds', lease = v_lease
          FROM due AS d
         WHERE s.realm_id = d.realm_id AND s.webhook = d.webhook AND s.subject = d.subject
        RETURNING s)
    SELECT coalesce(array_agg(t.s), '{}') INTO v_taken FROM taken AS t;
    IF cardinality(v_taken) = 0 THEN
        RETURN;
    END IF;
    -- A statement of its own: it sees what was queued until the rows were locked. OFFSET 0: the function runs once for
    -- each row that was taken, not for each that there is.
    v_events := ARRAY(SELECT n.event FROM unnest(v_taken) WITH ORDINALITY AS t
                       CROSS JOIN LATERAL (
                          SELECT postern.next_event(t.realm_id, t.webhook, t.subject) AS event OFFSET 0) AS n
                       ORDER BY t.ordinality);
    DELETE FROM postern.webhook_subject AS s USING unnest(v_taken) WITH ORDINALITY AS t
     WHERE s.realm_id = t.realm_id AND s.webhook = t.webhook AND s.subject = t.subject
       AND v_events[t.ordinality] IS NULL;
    RETURN QUERY
    SELECT t.realm_id, r.slug, t.webhook, w.name, w.url, w.audience, w.secret_name, t.subject, t.lease, a.id, a.event,
           e.type,
           a.id || '.' || (date_part('epoch', a.at) * 1000000)::bigint,
           a.xid || '.' || (date_part('epoch', a.at) * 1000000)::bigint, date_part('epoch', a.at), a.user_id,
           a.session_id, c.client_id, a.source, coalesce(a.detail, '{}'),
           CASE WHEN e.type LIKE '%/identifier-changed' THEN postern.event_address(a) END,
           coalesce(postern.is_test_identity(a.user_id), false), d.attempts
      FROM unnest(v_taken) WITH ORDINALITY AS t
      JOIN postern.realm AS r ON r.id = t.realm_id
      JOIN postern.webhook AS w ON w.realm_id = t.realm_id AND w.id = t.webhook
      -- OFFSET 0: each row by its whole key, whatever the statistics say.
     CROSS JOIN LATERAL (SELECT x.* FROM postern.webhook_delivery AS x
                          WHERE x.realm_id = t.realm_id AND x.webhook = t.webhook AND x.event = v_events[t.ordinality]
                         OFFSET 0) AS d
      JOIN postern.audit_event AS a ON a.realm_id = d.realm_id AND a.id = d.event
      JOIN postern.event_type AS e ON e.event = a.event
      LEFT JOIN postern.client AS c ON c.realm_id = a.realm_id AND c.id = a.client;
END
$$;
COMMENT ON FUNCTION postern.take_events IS 'Events that are due, for one server: of each subject the first';
GRANT EXECUTE ON FUNCTION postern.take_events TO postern_app;

-- An event that was tried for 72 hours, or that the audit log has no longer, is passed over. The realm is not compared
-- by =: the primary key looks as good as the index of the subject while PostgreSQL knows nothing of the table.
CREATE OR REPLACE FUNCTION postern.next_event(p_realm uuid, p_webhook uuid, p_subject text) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT d.event FROM postern.webhook_delivery AS d
         WHERE d.subject = p_subject AND d.webhook = p_webhook AND d.realm_id IS NOT DISTINCT FROM p_realm
           AND d.set_aside_at IS NULL AND d.created_at >= now() - postern.delivery_time()
           AND EXISTS (SELECT FROM postern.audit_event AS a WHERE a.realm_id = d.realm_id AND a.id = d.event)
         ORDER BY d.xid, d.event LIMIT 1);
END
$$;
COMMENT ON FUNCTION postern.next_event IS 'The event of a subject that is to be sent next; NULL: none';

-- The audit log holds no address: it is looked up, and missing once it is gone.
CREATE OR REPLACE FUNCTION postern.event_address(p_event postern.audit_event) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT CASE p_event.event
        WHEN 'address_changed' THEN (SELECT u.email FROM postern.user_account AS u
                                      WHERE u.realm_id = p_event.realm_id AND u.id = p_event.user_id)
        WHEN 'identifier_added' THEN (SELECT i.value FROM postern.user_identifier AS i
                                       WHERE i.realm_id = p_event.realm_id AND i.user_id = p_event.user_id
                                         AND i.id::text = p_event.detail ->> 'identifier') END
$$;
COMMENT ON FUNCTION postern.event_address IS 'The address that an event is about, while the user has it';

-- Records that events arrived; the arrays have an entry for each. Returns for how many the lease still held. Rows are
-- locked in one order by every server.
CREATE OR REPLACE FUNCTION postern.settle_delivered(
    p_realms uuid[], p_webhooks uuid[], p_subjects text[], p_leases uuid[], p_events bigint[])
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off
AS $$
DECLARE
    v_held postern.webhook_subject[];
    v_next bigint[];
BEGIN
    -- What a crash loses is sent again.
    PERFORM set_config('synchronous_commit', 'off', true);
    v_held := ARRAY(
        SELECT s.held
          FROM (SELECT x.* FROM unnest(p_realms, p_webhooks, p_subjects, p_leases)
                                    AS x (realm_id, webhook, subject, lease) ORDER BY 1, 2, 3) AS e
         CROSS JOIN LATERAL (SELECT x AS held FROM postern.webhook_subject AS x
                              WHERE x.realm_id = e.realm_id AND x.webhook = e.webhook AND x.subject = e.subject
                                AND x.lease = e.lease FOR NO KEY UPDATE) AS s);
    DELETE FROM postern.webhook_delivery AS d
     USING unnest(p_realms, p_webhooks, p_subjects, p_leases, p_events) AS e (realm_id, webhook, subject, lease, event),
           unnest(v_held) AS s
     WHERE s.lease = e.lease AND s.subject = e.subject AND s.webhook = e.webhook
       AND d.realm_id = e.realm_id AND d.webhook = e.webhook AND d.event = e.event;
    -- Statements of their own, which see what was queued until the rows were locked.
    v_next := ARRAY(SELECT postern.next_event(s.realm_id, s.webhook, s.subject)
                      FROM unnest(v_held) WITH ORDINALITY AS s ORDER BY s.ordinality);
    DELETE FROM postern.webhook_subject AS s USING unnest(v_held) WITH ORDINALITY AS h
     WHERE s.realm_id = h.realm_id AND s.webhook = h.webhook AND s.subject = h.subject AND v_next[h.ordinality] IS NULL;
    UPDATE postern.webhook_subject AS s SET lease = NULL, due_at = now(), failures = 0
      FROM unnest(v_held) WITH ORDINALITY AS h
     WHERE s.realm_id = h.realm_id AND s.webhook = h.webhook AND s.subject = h.subject
       AND v_next[h.ordinality] IS NOT NULL;
    -- At most once in ten seconds while all is well: the row is one for all subjects.
    UPDATE postern.webhook AS w SET failures = 0, resume_at = NULL, delivered_at = now()
      FROM (SELECT x.realm_id, x.id FROM postern.webhook AS x
             WHERE (x.realm_id, x.id) IN (SELECT h.realm_id, h.webhook FROM unnest(v_held) AS h)
               AND (x.failures > 0 OR coalesce(x.delivered_at < now() - interval '10 seconds', true))
             ORDER BY x.realm_id, x.id FOR NO KEY UPDATE) AS f
     WHERE w.realm_id = f.realm_id AND w.id = f.id;
    RETURN cardinality(v_held);
END
$$;
COMMENT ON FUNCTION postern.settle_delivered IS 'Records that events arrived';
GRANT EXECUTE ON FUNCTION postern.settle_delivered TO postern_app;

-- Records a try that failed. p_outcome: refused (for good, p_error is the receiver's code); failed (it is tried again
-- after p_wait seconds, p_error is a class of failure). Returns for how many subjects in a row the first try failed;
-- NULL when the lease has ended meanwhile, or the webhook is gone. A subject that failed before says nothing new of the
-- receiver, so the webhook pauses only while every call for others fails, too; and for two seconds at most, because a
-- subject that never failed may be one that the receiver takes.
CREATE OR REPLACE FUNCTION postern.settle_event(
    p_realm uuid, p_webhook uuid, p_subject text, p_lease uuid, p_event bigint, p_outcome text, p_error text,
    p_wait integer)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_failures integer := 0;
    v_before integer;
BEGIN
    -- What a crash loses is sent again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT s.failures INTO v_before FROM postern.webhook_subject AS s
     WHERE s.realm_id = p_realm AND s.webhook = p_webhook AND s.subject = p_subject AND s.lease = p_lease
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE postern.webhook_delivery AS d
       SET attempts = d.attempts + 1, tried_at = now(), last_error = left(p_error, 100),
           set_aside_at = CASE WHEN p_outcome = 'refused' THEN now() END
     WHERE d.realm_id = p_realm AND d.webhook = p_webhook AND d.event = p_event;
    IF postern.next_event(p_realm, p_webhook, p_subject) IS NULL THEN
        DELETE FROM postern.webhook_subject AS s
         WHERE s.realm_id = p_realm AND s.webhook = p_webhook AND s.subject = p_subject;
    ELSE
        UPDATE postern.webhook_subject AS s
           SET lease = NULL, failures = CASE WHEN p_outcome = 'failed' THEN s.failures + 1 ELSE 0 END,
               due_at = now() + make_interval(secs => CASE WHEN p_outcome = 'failed' THEN p_wait ELSE 0 END)
         WHERE s.realm_id = p_realm AND s.webhook = p_webhook AND s.subject = p_subject;
    END IF;
    IF p_outcome = 'failed' THEN
        -- Calls that were under way when a pause began say nothing new.
        UPDATE postern.webhook AS w
           SET failures = f.failures, failed_at = now(), last_error = left(p_error, 100),
               resume_at = CASE WHEN f.failures > w.failures AND f.failures >= 5
                                THEN now() + make_interval(secs => CASE f.failures WHEN 5 THEN 1 ELSE 2 END)
                                ELSE w.resume_at END
          FROM (SELECT x.id, x.failures + CASE WHEN v_before > 0 OR x.resume_at > now() THEN 0 ELSE 1 END AS failures
                  FROM postern.webhook AS x WHERE x.realm_id = p_realm AND x.id = p_webhook FOR NO KEY UPDATE) AS f
         WHERE w.realm_id = p_realm AND w.id = f.id
        RETURNING w.failures INTO v_failures;
    ELSE
        -- At most once in ten seconds while all is well: the row is one for all subjects.
        UPDATE postern.webhook AS w
           SET failures = 0, resume_at = NULL, delivered_at = now()
         WHERE w.realm_id = p_realm AND w.id = p_webhook
           AND (w.failures > 0 OR coalesce(w.delivered_at < now() - interval '10 seconds', true));
    END IF;
    RETURN v_failures;
END
$$;
COMMENT ON FUNCTION postern.settle_event IS 'Records how the sending of an event went';
GRANT EXECUTE ON FUNCTION postern.settle_event TO postern_app;

RESET ROLE;
