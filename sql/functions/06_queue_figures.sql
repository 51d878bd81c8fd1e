-- Lengths and ages of the queues, for the metrics. SECURITY DEFINER, since the app role sees one realm at a time.
SET LOCAL ROLE postern_owner;

-- Per queue: the p_top realms whose oldest entry waits longest, and (realm NULL) all realms: what is queued, and the greatest age in
-- seconds of what is due. mail: what no sender has taken yet; it is due unless it waits for another try. requests: undecided requests.
CREATE OR REPLACE FUNCTION postern.queue_figures(p_top integer)
RETURNS TABLE (queue text, realm text, queued bigint, oldest double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    WITH figure AS (
        SELECT 'mail' AS queue, m.realm_id, count(*) AS queued,
               min(m.created_at) FILTER (WHERE m.not_before <= now()) AS since
          FROM postern.mail_outbox AS m WHERE m.state = 'queued' GROUP BY m.realm_id
         UNION ALL
        SELECT 'requests', a.realm_id, count(*), min(a.created_at) FROM postern.auth_session AS a WHERE a.pending GROUP BY a.realm_id),
    placed AS (
        SELECT f.queue, f.realm_id, f.queued, date_part('epoch', now() - f.since) AS oldest,
               row_number() OVER (PARTITION BY f.queue ORDER BY f.since NULLS LAST, f.queued DESC, f.realm_id) AS place
          FROM figure AS f)
    SELECT p.queue, r.slug, p.queued, coalesce(p.oldest, 0)
      FROM placed AS p JOIN postern.realm AS r ON r.id = p.realm_id WHERE p.place <= p_top
     UNION ALL
    SELECT q.queue, NULL, coalesce(sum(p.queued), 0)::bigint, coalesce(max(p.oldest), 0)
      FROM (VALUES ('mail'), ('requests')) AS q (queue) LEFT JOIN placed AS p USING (queue) GROUP BY q.queue
$$;
COMMENT ON FUNCTION postern.queue_figures(integer) IS 'Length and oldest entry of the mail queue and of the undecided requests, per realm';

REVOKE ALL ON FUNCTION postern.queue_figures(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.queue_figures(integer) TO postern_app;

RESET ROLE;
