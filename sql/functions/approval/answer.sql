-- A trusted device answers a request for approval.
SET LOCAL ROLE postern_owner;

-- Everything but p_source is what the device signed. Outcomes: decided (by this call, or the same answer by the same
-- device before), number_mismatch (the request is over), already_decided (decision says how), invalid (the device did
-- not sign what it was shown), not_trusted, not_found, rate_limited. Only the first two change anything.
CREATE OR REPLACE FUNCTION postern.answer_approval(
    p_realm uuid, p_approval uuid, p_thumbprint bytea, p_decision text, p_client_id text, p_event text,
    p_binding_message text, p_challenge bytea, p_match_number text, p_source text,
    p_permits postern.permits,
    OUT outcome text, OUT decision text, OUT decided_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_device postern.device_key;
    v_asked postern.device_request;
    v_decision text;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    SELECT d.* INTO v_device FROM postern.device_by_key(p_realm, p_thumbprint) AS d;
    IF NOT FOUND OR NOT postern.device_may_approve(v_device) THEN
        outcome := 'not_trusted';
        RETURN;
    END IF;
    SELECT t.* INTO v_asked FROM postern.approval_shown_to(v_device, p_approval) AS t;
    IF NOT FOUND THEN
        outcome := 'not_found';
        RETURN;
    END IF;
    -- A number is needed to approve only.
    IF ((p_client_id, p_event, p_challenge) IS DISTINCT FROM
           ((SELECT k.client_id FROM postern.client AS k WHERE k.realm_id = p_realm AND k.id = v_asked.client),
            v_asked.event, v_asked.challenge))
       OR p_binding_message IS DISTINCT FROM v_asked.binding_message
       OR p_decision = 'approve' AND v_asked.match_number IS NOT NULL
          AND coalesce(p_match_number COLLATE "C" !~ '\A[0-9]{2}\Z', true) THEN
        outcome := 'invalid';
        RETURN;
    END IF;
    v_decision := CASE WHEN p_decision = 'approve' AND v_asked.match_number <> p_match_number THEN 'number_mismatch'
                       ELSE p_decision END;
    PERFORM FROM postern.move_device_request(
        p_realm, p_approval, '{open}',
        (CASE v_decision WHEN 'approve' THEN 'passed' ELSE 'failed' END)::postern.device_request_state);
    IF FOUND THEN
        PERFORM postern.record_answer(v_asked, v_device, v_decision, p_source);
    END IF;
    -- Read again: another device may have answered first.
    SELECT t.* INTO v_asked FROM postern.approval_shown_to(v_device, p_approval) AS t;
    outcome := CASE WHEN v_asked.decision IS NULL THEN 'not_found'
                    WHEN (v_asked.decision, v_asked.decided_by) IS DISTINCT FROM (v_decision, v_device.id)
                         THEN 'already_decided'
                    WHEN v_decision = 'number_mismatch' THEN 'number_mismatch' ELSE 'decided' END;
    decision := v_asked.decision;
    decided_at := date_part('epoch', v_asked.decided_at);
END
$$;
COMMENT ON FUNCTION postern.answer_approval IS 'Decides a request for approval, once, for a trusted device of its user';
GRANT EXECUTE ON FUNCTION postern.answer_approval TO postern_app;

-- Not by =: the index of the user's requests, of which there may be hundreds, looks as good as that of the one id.
CREATE OR REPLACE FUNCTION postern.approval_shown_to(p_device postern.device_key, p_approval uuid)
RETURNS SETOF postern.device_request
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT t.* FROM postern.device_request AS t
     WHERE t.realm_id = p_device.realm_id AND t.id = p_approval AND t.kind = 'approval' AND t.is_shown
       AND t.user_id IS NOT DISTINCT FROM p_device.user_id AND t.expires_at > now()
       AND (t.state = 'open' OR t.decision IS NOT NULL)
$$;
COMMENT ON FUNCTION postern.approval_shown_to IS
    'A live request for approval that a device was shown, answered or not; no row for any other id';

CREATE OR REPLACE FUNCTION postern.record_answer(
    p_approval postern.device_request, p_device postern.device_key, p_decision text, p_source text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_approval.realm_id;
BEGIN
    UPDATE postern.device_request AS t
       SET decision = p_decision, decided_at = now(), decided_by = p_device.id,
           security_stamp = (SELECT u.security_stamp FROM postern.user_account AS u
                              WHERE u.realm_id = v_realm AND u.id = p_device.user_id),
           -- A moment is left to poll, however late the answer came.
           expires_at = CASE p_decision WHEN 'approve' THEN greatest(t.expires_at, now() + interval '60 seconds')
                                        ELSE t.expires_at END
     WHERE t.realm_id = v_realm AND t.id = p_approval.id;
    UPDATE postern.device_key AS d SET used_at = now() WHERE d.realm_id = v_realm AND d.id = p_device.id;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES (v_realm, CASE p_decision WHEN 'approve' THEN 'approval_approved' WHEN 'deny' THEN 'approval_denied'
                                     WHEN 'report' THEN 'approval_reported' ELSE 'approval_number_mismatch' END,
            p_approval.client, p_device.user_id, p_source,
            jsonb_build_object('approval_id', p_approval.id, 'event', p_approval.event, 'device', p_device.id));
    IF p_decision = 'approve' THEN
        RETURN;
    END IF;
    -- The second denial within an hour ends all requests of its rank and below for a while; a report ends all.
    INSERT INTO postern.approval_guard AS g (realm_id, user_id, rank, refused_at, quiet_until)
    SELECT v_realm, p_device.user_id, r, now(), CASE p_decision WHEN 'report' THEN now() + interval '24 hours' END
      FROM generate_series(0, CASE p_decision WHEN 'report' THEN 2 ELSE postern.rank_of(p_approval) END) AS r
        ON CONFLICT (realm_id, user_id, rank) DO UPDATE
       SET refused_at = now(),
           quiet_until = greatest(g.quiet_until, excluded.quiet_until,
                                  CASE WHEN g.refused_at > now() - interval '1 hour'
                                       THEN now() + interval '15 minutes' END);
    IF p_decision = 'report' THEN
        PERFORM postern.queue_notice(v_realm, p_device.user_id, 'approval-reported',
                                     postern.app_named(v_realm, p_approval.client));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.record_answer IS
    'What an answer to a request for approval leads to: times, audit, and quiet after a denial';

RESET ROLE;
