-- Kept for older binaries.
SET LOCAL ROLE postern_owner;

-- Wrong codes of these binaries are not part of the realm's count, and they wait for the lock of the address.
CREATE OR REPLACE FUNCTION postern.redeem_otp(
    p_realm uuid, p_client uuid, p_permission text, p_email_key text, p_handle bytea, p_keyed bytea[], p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_failure_permits integer, p_failure_per double precision, p_failure_burst integer,
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT auth_time double precision, OUT db_now double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[], OUT email text,
    OUT email_verified boolean, OUT refresh_expires_at double precision, OUT session_expires_at double precision,
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_limit record;
    v_device uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.device INTO v_device
      FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.id = p_handle AND a.email_key = p_email_key;
    PERFORM pg_advisory_xact_lock(postern.lock_of_codes(p_realm, p_email_key, v_device));
    SELECT l.permits, extract(epoch FROM l.per)::float8 AS per, l.burst INTO v_limit
      FROM postern.effective_rate_limits(p_realm) AS l
     WHERE l.policy = 'token' AND l.dimension = 'wrong-codes' AND l.mode = 'enforce';
    SELECT t.outcome, t.reason, t.user_id, t.auth_time, t.db_now, t.limit_ord, t.retry_after, t.granted, t.email,
           t.email_verified, t.refresh_expires_at, t.session_expires_at, t.factor, t.sealed_seed, t.last_step_at
      INTO outcome, reason, user_id, auth_time, db_now, limit_ord, retry_after, granted, email, email_verified,
           refresh_expires_at, session_expires_at, factor, sealed_seed, last_step_at
      FROM postern.redeem_code(
               p_realm, p_client, p_permission, p_email_key, p_handle, p_keyed, p_session, p_token_salt, p_refresh_hash,
               p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, NULL, p_keys, p_wanted,
               p_permits, p_per, p_burst, p_failure_permits, p_failure_per, p_failure_burst, v_limit.permits,
               v_limit.per, v_limit.burst, p_factor, p_totp_step, p_recovery) AS t;
    IF outcome = 'busy' THEN
        RAISE lock_not_available;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.redeem_otp IS 'As redeem_code, for older binaries';
GRANT EXECUTE ON FUNCTION postern.redeem_otp TO postern_app;

RESET ROLE;
