-- urn:cocoar:magic without the token: the device that asked for a link polls for its confirmation.
SET LOCAL ROLE postern_owner;

-- Outcomes: ok, pending, slow_down, denied, refused, rate_limited, busy, and those of a second factor.
CREATE OR REPLACE FUNCTION postern.poll_link(
    p_realm uuid, p_client uuid, p_permission text, p_handle bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
    p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_polled record;
    v_user record;
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
    v_polled := postern.poll_approval(p_realm, p_client, 'magic', p_handle);
    IF v_polled.outcome <> 'approved' THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        outcome := v_polled.outcome;
        reason := v_polled.reason;
        RETURN;
    END IF;
    SELECT u.id, u.security_stamp, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end
      INTO v_user
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE u.realm_id = p_realm AND u.id = v_polled.user_id AND u.enabled
       AND postern.has_identifier(p_realm, u.id, v_polled.address_key) AND u.security_stamp = v_polled.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled
       AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled);
    IF NOT FOUND THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        reason := 'disabled';
        RETURN;
    END IF;
    IF NOT postern.try_hold_user(p_realm, v_user.id) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- What is refused up to here leaves the confirmation alive.
    IF v_user.has_totp OR p_factor IS NOT NULL OR postern.falls_short(p_amr) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_user.id, v_user.has_totp, p_factor, p_totp_step, p_recovery,
                                           p_client, p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
        outcome := 'refused';
    END IF;
    IF NOT postern.use_approval(p_realm, p_handle) THEN
        reason := 'expired';
        RETURN;
    END IF;
    outcome := 'ok';
    user_id := v_user.id;
    PERFORM postern.confirm_identifier(p_realm, user_id, v_polled.address_key);
    v_opened := postern.open_session(
        p_realm, p_client, v_user.client_id, user_id, v_user.security_stamp, v_user.session_end,
        ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
            p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
        jsonb_build_object('link', 'confirmed'), v_polled.address_key, v_polled.device);
    session_expires_at := v_opened.expires_at;
END
$$;
COMMENT ON FUNCTION postern.poll_link IS
    'The state of a link, for the device that requested it; after a confirmation it opens the session, once';
GRANT EXECUTE ON FUNCTION postern.poll_link TO postern_app;

RESET ROLE;
