-- What a trusted device sees: the requests for approval that it may answer.
SET LOCAL ROLE postern_owner;

-- The device is the key whose proof came with the statement. Outcomes: listed, unknown (no trusted device's key),
-- rate_limited. approvals: a list, oldest first; empty on probation. quiet_until: until when those of strangers
-- at least are not shown.
CREATE OR REPLACE FUNCTION postern.approval_inbox(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits,
    OUT outcome text, OUT user_id uuid, OUT probation_until double precision, OUT quiet_until double precision,
    OUT approvals jsonb, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_device postern.device_key;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm, p_proof);
    SELECT d.* INTO v_device FROM postern.device_by_key(p_realm, p_proof.key) AS d;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    outcome := 'listed';
    user_id := v_device.user_id;
    approvals := '[]';
    IF NOT postern.device_may_approve(v_device) THEN
        probation_until := date_part('epoch', v_device.probation_until);
        RETURN;
    END IF;
    SELECT date_part('epoch', max(g.quiet_until)) INTO quiet_until
      FROM postern.approval_guard AS g
     WHERE g.realm_id = p_realm AND g.user_id = v_device.user_id AND g.quiet_until > now();
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'id', t.id, 'event', t.event, 'client_id', k.client_id, 'client_name', k.display_name,
               'binding_message', t.binding_message,
               'source', CASE WHEN t.detail ? 'shows_source' THEN t.source END,
               'created_at', date_part('epoch', t.created_at), 'expires_at', date_part('epoch', t.expires_at),
               'match_required', t.match_number IS NOT NULL, 'challenge', encode(t.challenge, 'hex')))
               ORDER BY t.created_at, t.id), '[]')
      INTO approvals
      -- The requests of the user first (OFFSET 0): a client may have asked very many people.
      FROM (SELECT t.* FROM postern.device_request AS t
             WHERE t.realm_id = p_realm AND t.user_id = v_device.user_id AND t.kind = 'approval' AND t.is_shown
               AND t.created_at > postern.approvals_since() AND t.state = 'open' AND t.expires_at > now()
            OFFSET 0) AS t
      JOIN postern.client AS k ON k.realm_id = t.realm_id AND k.id = t.client AND k.enabled;
END
$$;
COMMENT ON FUNCTION postern.approval_inbox IS 'The requests for approval that a trusted device may answer';
GRANT EXECUTE ON FUNCTION postern.approval_inbox TO postern_app;

RESET ROLE;
