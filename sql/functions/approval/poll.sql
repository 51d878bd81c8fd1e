-- urn:openid:params:grant-type:ciba: the client polls for an approval, which opens its session once.
SET LOCAL ROLE postern_owner;

-- Outcomes: approved, pending, slow_down, denied, expired, refused (reason is for logs only), busy (another transaction
-- holds the row: call again). p_expires: the end that the client's handle names, of a row that is gone.
-- The row is locked to the end of the transaction: polls go one after another, and an answer comes before or after.
CREATE OR REPLACE FUNCTION postern.poll_authentication(
    p_caller postern.caller, p_id uuid, p_expires double precision,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT security_stamp uuid, OUT decided_at timestamptz,
    OUT decided_by uuid, OUT cotter boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_asked postern.device_request;
    v_early boolean;
BEGIN
    SELECT t.* INTO v_asked FROM postern.device_request AS t
     WHERE t.realm_id = p_caller.realm AND t.id = p_id AND t.kind = 'approval' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM postern.device_request AS t WHERE t.realm_id = p_caller.realm
                                                                       AND t.id = p_id) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- A quarter of a second is the network's, which may delay one poll more than the next.
    v_early := coalesce(now() < v_asked.polled_at + make_interval(secs => v_asked.poll_interval - 0.25), false);
    reason := CASE WHEN v_asked.client <> p_caller.client THEN 'client'
                   WHEN v_asked.jkt <> coalesce((p_caller.proof).key, '') THEN 'key' END;
    outcome := CASE WHEN reason IS NOT NULL THEN 'refused'
                    WHEN v_asked.id IS NULL AND to_timestamp(p_expires) > now() THEN 'refused'
                    WHEN v_asked.id IS NULL OR v_asked.expires_at <= now() THEN 'expired'
                    WHEN v_asked.state = 'redeemed' THEN 'refused'
                    WHEN v_asked.state = 'passed' THEN 'approved'
                    WHEN v_asked.state = 'failed' THEN 'denied'
                    WHEN v_early THEN 'slow_down' ELSE 'pending' END;
    IF outcome = 'approved' THEN
        user_id := v_asked.user_id;
        security_stamp := v_asked.security_stamp;
        decided_at := v_asked.decided_at;
        decided_by := v_asked.decided_by;
        cotter := v_asked.event_id IS NOT NULL;
    ELSIF outcome IN ('slow_down', 'pending') THEN
        UPDATE postern.device_request AS t
           SET polled_at = CASE WHEN v_early THEN t.polled_at ELSE now() END,
               poll_interval = CASE WHEN v_early THEN least(t.poll_interval + 5, 60) ELSE t.poll_interval END
         WHERE t.realm_id = p_caller.realm AND t.id = p_id;
    ELSIF outcome = 'refused' THEN
        reason := coalesce(reason, v_asked.state::text, 'unknown');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.poll_authentication IS 'Where a request for approval stands, for the client that polls';
GRANT EXECUTE ON FUNCTION postern.poll_authentication TO postern_app;

CREATE OR REPLACE FUNCTION postern.use_authentication(p_realm uuid, p_id uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM FROM postern.move_device_request(p_realm, p_id, '{passed}', 'redeemed');
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.use_authentication IS 'Uses up an approval; false when it was used before or has expired';
GRANT EXECUTE ON FUNCTION postern.use_authentication TO postern_app;

-- Outcomes beside those of each sign-in: pending, slow_down, denied, expired. auth_time: when the approval was given.
CREATE OR REPLACE FUNCTION postern.redeem_authentication(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_id uuid,
    p_expires double precision, p_second postern.second_factor_proof)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_polled record;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    v_polled := postern.poll_authentication(p_caller, p_id, p_expires);
    IF v_polled.outcome = 'refused' THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, v_polled.reason);
    ELSIF v_polled.outcome <> 'approved' THEN
        PERFORM postern.require_client(p_caller);
        v.outcome := v_polled.outcome;
        RETURN v;
    END IF;
    SELECT u.id, u.security_stamp, u.has_totp, k.client_id, now() + r.session_lifetime, v_polled.decided_at,
           v_polled.decided_by, jsonb_build_object('approval_id', p_id, 'approved_by', v_polled.decided_by)
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
           v_candidate.session_end, v_candidate.auth_time, v_candidate.factor, v_candidate.detail
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE u.realm_id = v_realm AND u.id = v_polled.user_id AND u.enabled
       AND u.security_stamp = v_polled.security_stamp
       AND k.realm_id = v_realm AND k.id = p_caller.client AND k.enabled
       AND p_caller.permission = ANY (k.permissions)
       AND r.id = v_realm AND r.enabled AND r.approvals_enabled;
    IF NOT FOUND THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'disabled');
    END IF;
    v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    ELSIF NOT postern.use_authentication(v_realm, p_id) THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'redeemed');
    END IF;
    v := postern.sign_in(p_caller, p_new, v_candidate, v);
    IF v_polled.cotter THEN
        UPDATE postern.session AS s SET cotter = true WHERE s.realm_id = v_realm AND s.id = p_new.id;
    END IF;
    RETURN v;
END
$$;
COMMENT ON FUNCTION postern.redeem_authentication IS
    'The state of a request for approval; after an approval it opens the session of the client, once';
GRANT EXECUTE ON FUNCTION postern.redeem_authentication TO postern_app;

RESET ROLE;
