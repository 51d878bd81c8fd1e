-- The grant authorization_code (RFC 6749 section 4.1.3), the whole of it in one call.
SET LOCAL ROLE postern_owner;

-- One conditional UPDATE consumes the code, and its row is the verdict; a redemption that does not match leaves the
-- code as it is. p_redirect_uri NULL: none was sent. p_challenge: what the verifier hashes to; NULL: none was sent.
-- p_resource: narrows; NULL: all. p_session and the columns after it: the session to open; its scope is the code's.
-- Outcomes: ok, refused (reason is for logs only), invalid_target (the code stays), rate_limited.
-- A used code that its client presents again with the right verifier ends the session that it opened (RFC 6749
-- section 4.1.2). The same p_session again is no reuse: it is this call, repeated because its answer was lost.
CREATE OR REPLACE FUNCTION postern.redeem_authorization_code(
    p_realm uuid, p_client uuid, p_code_hash bytea, p_redirect_uri text, p_challenge text, p_resource text[],
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_access_lifetime integer, p_refresh_lifetime integer,
    p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision, OUT has_refresh_token boolean, OUT scope text[], OUT resource text[],
    OUT amr text[], OUT acr text, OUT nonce text, OUT auth_time double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_code record;
    v_refresh_hash bytea;
BEGIN
    db_now := date_part('epoch', now());
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    outcome := 'refused';
    -- A sign-out at this moment ends the browser session before this statement, or finds the session that it opens.
    PERFORM FROM postern.authorization_code AS a
      JOIN postern.browser_session AS b ON b.realm_id = p_realm AND b.id = a.browser_session
     WHERE a.realm_id = p_realm AND a.code_hash = p_code_hash AND a.client = p_client AND a.used_at IS NULL
       FOR SHARE OF b;
    UPDATE postern.authorization_code AS a
       SET used_at = now(), session = p_session
      FROM postern.user_account AS u, postern.browser_session AS b, postern.client AS k, postern.realm AS r
     WHERE a.realm_id = p_realm AND a.code_hash = p_code_hash AND a.client = p_client AND a.used_at IS NULL
       AND (a.jkt IS NULL OR a.jkt = postern.proof_key())
       AND a.expires_at > now() AND a.code_challenge IS NOT DISTINCT FROM p_challenge
       AND (a.redirect_uri = p_redirect_uri OR p_redirect_uri IS NULL AND a.code_challenge IS NOT NULL)
       AND coalesce(p_resource <@ a.resource, true)
       AND b.realm_id = p_realm AND b.id = a.browser_session AND b.ended_at IS NULL
       AND u.realm_id = p_realm AND u.id = a.user_id AND u.enabled AND u.security_stamp = a.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND 'gt:authorization_code' = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled
       AND postern.is_switched_on('gt:authorization_code', r.native_grants_enabled, r.hosted_enabled)
    RETURNING a.user_id, a.security_stamp, a.browser_session, a.auth_time, a.nonce, a.acr, a.scope, a.amr,
              CASE WHEN p_resource IS NULL THEN a.resource
                   ELSE ARRAY(SELECT x FROM unnest(a.resource) AS x WHERE x = ANY (p_resource)) END AS resource,
              k.client_id, 'gt:refresh_token' = ANY (k.permissions) AS may_refresh,
              now() + r.session_lifetime AS session_end INTO v_code;
    IF FOUND THEN
        v_refresh_hash := CASE WHEN v_code.may_refresh AND 'offline_access' = ANY (v_code.scope)
                               THEN p_refresh_hash END;
        SELECT o.expires_at INTO session_expires_at
          FROM postern.open_client_session(
                   p_realm, p_client, v_code.client_id, v_code.user_id, v_code.security_stamp, v_code.session_end,
                   ROW(p_session, p_token_salt, v_refresh_hash, v_code.scope, v_code.resource, v_code.amr,
                       p_access_lifetime, p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
                   jsonb_build_object('browser_session', v_code.browser_session), v_code.auth_time,
                   v_code.browser_session, v_code.acr) AS o;
        outcome := 'ok';
        has_refresh_token := v_refresh_hash IS NOT NULL;
        user_id := v_code.user_id;
        scope := v_code.scope;
        resource := v_code.resource;
        amr := v_code.amr;
        acr := v_code.acr;
        nonce := v_code.nonce;
        auth_time := date_part('epoch', v_code.auth_time);
        RETURN;
    END IF;

    PERFORM postern.require_client(p_realm, p_client, 'gt:authorization_code');
    SELECT a.client, a.jkt, a.used_at, a.session, a.user_id, a.nonce, a.expires_at > now() AS live, a.resource,
           a.code_challenge IS NOT DISTINCT FROM p_challenge AS verified,
           a.redirect_uri = p_redirect_uri OR p_redirect_uri IS NULL AND a.code_challenge IS NOT NULL AS redirected
      INTO v_code
      FROM postern.authorization_code AS a WHERE a.realm_id = p_realm AND a.code_hash = p_code_hash
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        reason := 'unknown';
    ELSIF v_code.client <> p_client THEN
        reason := 'client';
    ELSIF v_code.jkt <> coalesce(postern.proof_key(), '') THEN
        reason := 'key';
    ELSIF NOT v_code.verified THEN
        reason := 'verifier';
    ELSIF v_code.session = p_session THEN
        SELECT 'ok', s.user_id, s.scope, s.resource, s.amr, s.acr, v_code.nonce, date_part('epoch', s.auth_time),
               date_part('epoch', s.expires_at), s.current_hash IS NOT NULL
          INTO outcome, user_id, scope, resource, amr, acr, nonce, auth_time, session_expires_at, has_refresh_token
          FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session AND s.revoked_at IS NULL;
        outcome := coalesce(outcome, 'refused');
        reason := 'repeated';
    ELSIF v_code.used_at IS NOT NULL THEN
        reason := 'used';
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = p_realm AND s.id = v_code.session AND s.revoked_at IS NULL;
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
            VALUES (p_realm, 'authorization_code_reused', p_client, v_code.user_id, v_code.session, p_source);
        END IF;
    ELSIF NOT v_code.live THEN
        reason := 'expired';
    ELSIF NOT coalesce(v_code.redirected, false) THEN
        reason := 'redirect_uri';
    ELSIF NOT coalesce(p_resource <@ v_code.resource, true) THEN
        outcome := 'invalid_target';
    ELSE
        reason := 'ended';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.redeem_authorization_code IS
    'Redeems an authorization code: checks, consumes and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_authorization_code TO postern_app;

RESET ROLE;
