-- Cotter's events: requests for approval under a number, as the client that made them reads them.
SET LOCAL ROLE postern_owner;

-- An event of the client: the one of p_event_id, or without that the newest undecided one for a hint. No row: there is
-- none. updated_at: of the answer.
CREATE OR REPLACE FUNCTION postern.approval_event(p_realm uuid, p_client uuid, p_event_id integer, p_hint text)
RETURNS TABLE (id uuid, event_id integer, hint text, event text, ip text, created_at double precision,
               updated_at double precision, expires_at double precision, is_new boolean, is_approved boolean,
               is_redeemed boolean)
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_event postern.device_request;
BEGIN
    -- Two statements: the plan of one that decides between two indexes at run time uses neither.
    IF p_hint IS NULL THEN
        SELECT t.* INTO v_event FROM postern.device_request AS t
         WHERE t.realm_id = p_realm AND t.event_id = p_event_id AND t.client = p_client AND t.kind = 'approval'
           AND t.expires_at > now() - interval '24 hours';
    ELSE
        SELECT t.* INTO v_event FROM postern.device_request AS t
         WHERE t.realm_id = p_realm AND t.client = p_client AND t.kind = 'approval' AND t.event_id IS NOT NULL
           AND lower(t.hint COLLATE "C") = lower(p_hint COLLATE "C") AND t.created_at > postern.approvals_since()
           AND t.state = 'open' AND t.expires_at > now()
         ORDER BY t.created_at DESC LIMIT 1;
    END IF;
    IF FOUND THEN
        RETURN QUERY SELECT
            v_event.id, v_event.event_id::integer, coalesce(v_event.hint::text, ''), v_event.event::text,
            v_event.detail ->> 'ip',
            date_part('epoch', v_event.created_at),
            date_part('epoch', coalesce(v_event.decided_at, v_event.created_at)),
            date_part('epoch', v_event.expires_at), v_event.state = 'open' AND v_event.expires_at > now(),
            v_event.state IN ('passed', 'redeemed'), v_event.state = 'redeemed' OR v_event.expires_at <= now();
    END IF;
END
$$;
COMMENT ON FUNCTION postern.approval_event IS
    'A request for approval as Cotter''s wire shows it to its client: by number, or the newest undecided of a hint';
GRANT EXECUTE ON FUNCTION postern.approval_event TO postern_app;

RESET ROLE;
