-- Cotter's events: requests for approval under a number, as the client that made them reads them.
SET LOCAL ROLE postern_owner;

-- An event of the client: the one of p_event_id, or without that the newest undecided one for a hint. No row: there is
-- none. updated_at: of the answer.
CREATE OR REPLACE FUNCTION postern.approval_event(p_realm uuid, p_client uuid, p_event_id integer, p_hint text)
RETURNS TABLE (id uuid, event_id integer, hint text, event text, ip text, created_at double precision,
               updated_at double precision, expires_at double precision, is_new boolean, is_approved boolean,
               is_redeemed boolean)
LANGUAGE sql STABLE ROWS 1 SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT t.id, t.event_id, coalesce(t.hint, ''), t.event, t.detail ->> 'ip', date_part('epoch', t.created_at),
           date_part('epoch', coalesce(t.decided_at, t.created_at)), date_part('epoch', t.expires_at),
           t.state = 'open' AND t.expires_at > now(), t.state IN ('passed', 'redeemed'),
           t.state = 'redeemed' OR t.expires_at <= now()
      FROM postern.transaction AS t
     WHERE t.realm_id = p_realm AND t.client = p_client AND t.kind = 'approval' AND t.event_id IS NOT NULL
       AND CASE WHEN p_hint IS NULL THEN t.event_id = p_event_id AND t.expires_at > now() - interval '24 hours'
                ELSE lower(t.hint COLLATE "C") = lower(p_hint COLLATE "C") AND t.state = 'open'
                     AND t.expires_at > now() END
     ORDER BY t.created_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION postern.approval_event IS
    'A request for approval as Cotter''s wire shows it to its client: by number, or the newest undecided of a hint';
GRANT EXECUTE ON FUNCTION postern.approval_event TO postern_app;

RESET ROLE;
