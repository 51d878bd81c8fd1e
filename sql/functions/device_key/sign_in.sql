-- urn:postern:device: a trusted device signs itself in.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:postern:device', 'Sign in by a trusted device')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

-- The device is that of the proof. p_nonce: a packed proof whose id is the nonce's: it signs in once. Exception PD002
-- when it did before: the client is given another one, and nothing of this statement stays.
CREATE OR REPLACE FUNCTION postern.redeem_device(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_nonce bytea,
    p_second postern.second_factor_proof)
RETURNS postern.sign_in_result
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_fault text;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    SELECT u.id, u.security_stamp, u.has_totp, s.client_id, s.session_end, coalesce(u.address_key, ''), d.id,
           jsonb_build_object('device', d.id),
           CASE WHEN d.client IS DISTINCT FROM p_caller.client THEN 'client'
                WHEN NOT postern.device_may_approve(d) THEN 'probation'
                WHEN s.client_id IS NULL OR NOT r.approvals_enabled THEN 'disabled' END
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
           v_candidate.session_end, v_candidate.address_key, v_candidate.factor, v_candidate.detail, v_fault
      FROM postern.device_by_key(v_realm, (p_caller.proof).key) AS d
      JOIN postern.user_account AS u ON u.realm_id = v_realm AND u.id = d.user_id
      JOIN postern.realm AS r ON r.id = v_realm
      LEFT JOIN postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s ON true;
    IF NOT FOUND OR v_fault IS NOT NULL THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, coalesce(v_fault, 'unknown'));
    END IF;
    v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    ELSIF postern.mark_proof(v_realm, p_nonce) <> 'fresh' THEN
        RAISE EXCEPTION 'the nonce signed in before' USING ERRCODE = 'PD002';
    END IF;
    PERFORM postern.note_device_use(v_realm, v_candidate.factor);
    RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
END
$$;
COMMENT ON FUNCTION postern.redeem_device IS
    'A trusted device signs in the user whose it is: uses up proof and nonce and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_device TO postern_app;

RESET ROLE;
