-- urn:postern:device: a trusted device signs itself in.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:postern:device', 'Sign in by a trusted device')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

-- The device is that of the proof. p_nonce: a packed proof whose id is the nonce's: it signs in once. Exception PD002
-- when it did before: the client is given another one, and nothing of this statement stays. Outcomes: ok, refused
-- (reason is for logs only), busy, rate_limited, and those of a second factor.
CREATE OR REPLACE FUNCTION postern.redeem_device(
    p_realm uuid, p_client uuid, p_permission text, p_nonce bytea, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_device record;
    v_opened record;
BEGIN
    db_now := date_part('epoch', now());
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    outcome := 'refused';
    SELECT d.id, u.id AS owner, u.security_stamp, u.has_totp, coalesce(u.address_key, '') AS address_key, k.client_id,
           now() + r.session_lifetime AS session_end,
           CASE WHEN d.client IS DISTINCT FROM p_client THEN 'client'
                WHEN NOT postern.device_may_approve(d) THEN 'probation'
                WHEN NOT (k.enabled AND p_permission = ANY (k.permissions) AND r.enabled AND r.approvals_enabled
                          AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled))
                THEN 'disabled' END AS fault
      INTO v_device
      FROM postern.device_by_key(p_realm, postern.proof_key()) AS d
      JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = d.user_id
      JOIN postern.client AS k ON k.realm_id = p_realm AND k.id = p_client
      JOIN postern.realm AS r ON r.id = p_realm;
    IF NOT FOUND OR v_device.fault IS NOT NULL THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        reason := coalesce(v_device.fault, 'unknown');
        RETURN;
    END IF;
    IF NOT postern.try_hold_user(p_realm, v_device.owner) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    IF v_device.has_totp OR p_factor IS NOT NULL OR postern.falls_short(p_amr) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_device.owner, v_device.has_totp, p_factor, p_totp_step,
                                           p_recovery, p_client, p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
    END IF;
    IF postern.mark_proof(p_realm, p_nonce) <> 'fresh' THEN
        RAISE EXCEPTION 'the nonce signed in before' USING ERRCODE = 'PD002';
    END IF;
    PERFORM postern.note_device_use(p_realm, v_device.id);
    user_id := v_device.owner;
    v_opened := postern.open_session(
        p_realm, p_client, v_device.client_id, user_id, v_device.security_stamp, v_device.session_end,
        ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
            p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
        jsonb_build_object('device', v_device.id), v_device.address_key, NULL);
    outcome := 'ok';
    session_expires_at := v_opened.expires_at;
END
$$;
COMMENT ON FUNCTION postern.redeem_device IS
    'A trusted device signs in the user whose it is: uses up proof and nonce and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_device TO postern_app;

RESET ROLE;
