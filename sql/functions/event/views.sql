-- What administrators and the metrics see of webhooks.
SET LOCAL ROLE postern_owner;

-- Ids follow time closely enough to find the oldest event by an index.
CREATE OR REPLACE FUNCTION postern.webhook_lag(p_cursor postern.webhook_cursor) RETURNS interval
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT clock_timestamp() - least(
        (SELECT d.event_at FROM postern.webhook_delivery AS d
          WHERE d.realm_id = p_cursor.realm_id AND d.webhook = p_cursor.webhook AND d.set_aside_at IS NULL
            AND d.created_at >= now() - postern.delivery_time() ORDER BY d.event LIMIT 1),
        (SELECT a.at FROM postern.audit_event AS a
          WHERE a.realm_id = p_cursor.realm_id AND (a.xid, a.id) > (p_cursor.xid, p_cursor.id)
            AND a.xid < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY a.xid, a.id LIMIT 1))
$$;
COMMENT ON FUNCTION postern.webhook_lag IS 'Age of the oldest event that is not delivered; NULL: none';
GRANT EXECUTE ON FUNCTION postern.webhook_lag, postern.oldest_writer, postern.delivery_time TO postern_admin;

CREATE OR REPLACE VIEW admin.webhooks AS
SELECT r.slug AS realm, w.name, w.url, w.events, w.audience, w.secret_name, w.enabled, w.created_at,
       f.pending, f.set_aside, f.given_up, postern.webhook_lag(c) AS lag,
       CASE WHEN n.is_held THEN (SELECT coalesce('process ' || o.pid, 'prepared transaction ' || o.xid)
                                   FROM postern.oldest_writer() AS o) END AS held_by,
       w.failures, w.last_error, w.failed_at, w.resume_at, w.delivered_at
  FROM postern.webhook AS w JOIN postern.realm AS r ON r.id = w.realm_id
  JOIN postern.webhook_cursor AS c ON c.realm_id = w.realm_id AND c.webhook = w.id
 CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE p.is_pending) AS pending, count(p.set_aside_at) AS set_aside,
             count(*) FILTER (WHERE NOT p.is_pending AND p.set_aside_at IS NULL) AS given_up
        FROM (SELECT d.set_aside_at,
                     d.set_aside_at IS NULL AND d.created_at >= now() - postern.delivery_time() AS is_pending
                FROM postern.webhook_delivery AS d WHERE d.realm_id = w.realm_id AND d.webhook = w.id) AS p) AS f
  LEFT JOIN LATERAL (
      SELECT a.xid >= pg_snapshot_xmin(pg_current_snapshot()) AS is_held FROM postern.audit_event AS a
       WHERE a.realm_id = c.realm_id AND (a.xid, a.id) > (c.xid, c.id)
         AND a.xid < pg_snapshot_xmax(pg_current_snapshot())
       ORDER BY a.xid, a.id LIMIT 1) AS n ON true;
COMMENT ON VIEW admin.webhooks IS
    'Receivers of events. lag: age of the oldest event not delivered; held_by: the open transaction that it waits for';

CREATE OR REPLACE VIEW admin.webhook_deliveries AS
SELECT r.slug AS realm, w.name AS webhook, d.event AS audit_id, a.event, a.user_id, d.subject, d.event_at,
       CASE WHEN d.set_aside_at IS NOT NULL THEN 'set aside'
            WHEN d.created_at < now() - postern.delivery_time() THEN 'given up'
            WHEN d.attempts > 0 THEN 'failing' ELSE 'waiting' END AS state,
       d.attempts, d.tried_at, d.last_error, s.due_at
  FROM postern.webhook_delivery AS d JOIN postern.realm AS r ON r.id = d.realm_id
  JOIN postern.webhook AS w ON w.realm_id = d.realm_id AND w.id = d.webhook
  LEFT JOIN postern.audit_event AS a ON a.realm_id = d.realm_id AND a.id = d.event
  LEFT JOIN postern.webhook_subject AS s
         ON s.realm_id = d.realm_id AND s.webhook = d.webhook AND s.subject = d.subject AND d.set_aside_at IS NULL;
COMMENT ON VIEW admin.webhook_deliveries IS
    'Events that a receiver has not accepted: waiting, failing, set aside or given up';

-- For the metrics: the webhooks that are furthest behind, counted up to 10,000. Their names are the administrators'.
CREATE OR REPLACE FUNCTION postern.webhook_figures(p_top integer)
RETURNS TABLE (realm text, name text, lag double precision, pending bigint, set_aside bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT w.slug, w.name, coalesce(date_part('epoch', w.lag), 0), f.pending, f.set_aside
      FROM (SELECT r.slug, x.name, x.realm_id, x.id, postern.webhook_lag(c) AS lag
              FROM postern.webhook AS x JOIN postern.realm AS r ON r.id = x.realm_id AND r.enabled
              JOIN postern.webhook_cursor AS c ON c.realm_id = x.realm_id AND c.webhook = x.id
             WHERE x.enabled AND x.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
             ORDER BY lag DESC NULLS LAST, r.slug, x.name LIMIT p_top) AS w
     CROSS JOIN LATERAL (
          SELECT count(*) FILTER (WHERE p.set_aside_at IS NULL
                                    AND p.created_at >= now() - postern.delivery_time()) AS pending,
                 count(p.set_aside_at) AS set_aside
            FROM (SELECT d.set_aside_at, d.created_at FROM postern.webhook_delivery AS d
                   WHERE d.realm_id = w.realm_id AND d.webhook = w.id LIMIT 10000) AS p) AS f
     ORDER BY w.lag DESC NULLS LAST, w.slug, w.name
$$;
COMMENT ON FUNCTION postern.webhook_figures IS 'Lag in seconds and events not accepted, by webhook';
GRANT EXECUTE ON FUNCTION postern.webhook_figures TO postern_app;

CREATE OR REPLACE FUNCTION postern.webhook_endpoints()
RETURNS TABLE (realm text, name text, url text, secret_name text, last_error text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.slug, w.name, w.url, w.secret_name, CASE WHEN w.failures > 0 THEN w.last_error END
      FROM postern.webhook AS w JOIN postern.realm AS r ON r.id = w.realm_id AND r.enabled
     WHERE w.enabled ORDER BY r.slug, w.name
$$;
COMMENT ON FUNCTION postern.webhook_endpoints IS
    'Where events go, and the class of the last failure while there is one; for postern doctor';
GRANT EXECUTE ON FUNCTION postern.webhook_endpoints TO postern_app;

RESET ROLE;
