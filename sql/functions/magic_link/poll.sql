-- urn:cocoar:magic without the token: the device that asked for a link polls for its confirmation.
SET LOCAL ROLE postern_owner;

-- Outcomes beside those of each sign-in: pending, slow_down, denied.
CREATE OR REPLACE FUNCTION postern.poll_link(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_handle bytea,
    p_second postern.second_factor_proof)
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
    v_polled := postern.poll_approval(p_caller, 'magic', p_handle);
    IF v_polled.outcome = 'refused' THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, v_polled.reason);
    ELSIF v_polled.outcome <> 'approved' THEN
        PERFORM postern.require_client(p_caller);
        v.outcome := v_polled.outcome;
        RETURN v;
    END IF;
    SELECT u.id, u.security_stamp, u.has_totp, s.client_id, s.session_end, v_polled.address_key, v_polled.device,
           '{"link": "confirmed"}'
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
           v_candidate.session_end, v_candidate.address_key, v_candidate.device, v_candidate.detail
      FROM postern.user_account AS u,
           postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s
     WHERE u.realm_id = v_realm AND u.id = v_polled.user_id AND u.enabled
       AND postern.has_identifier(v_realm, u.id, v_polled.address_key) AND u.security_stamp = v_polled.security_stamp;
    IF NOT FOUND THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'disabled');
    END IF;
    v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    ELSIF NOT postern.use_approval(v_realm, p_handle) THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'expired');
    END IF;
    PERFORM postern.confirm_identifier(v_realm, v_candidate.user_id, v_candidate.address_key);
    RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
END
$$;
COMMENT ON FUNCTION postern.poll_link IS
    'The state of a link, for the device that requested it; after a confirmation it opens the session, once';
GRANT EXECUTE ON FUNCTION postern.poll_link TO postern_app;

RESET ROLE;
