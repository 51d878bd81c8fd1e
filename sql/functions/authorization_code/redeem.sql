-- The grant authorization_code (RFC 6749 section 4.1.3), the whole of it in one call.
SET LOCAL ROLE postern_owner;

-- One conditional UPDATE consumes the code, and its row is the verdict; a redemption that does not match leaves the
-- code as it is. p_redirect_uri NULL: none was sent. p_challenge: what the verifier hashes to; NULL: none was sent.
-- p_resource: narrows; NULL: all. p_new: the session to open; its scope is the code's.
-- Outcomes: ok, refused (reason is for logs only), invalid_target (the code stays), rate_limited.
-- A used code that its client presents again with the right verifier ends the session that it opened (RFC 6749
-- section 4.1.2). The same session again is no reuse: it is this call, repeated because its answer was lost.
CREATE OR REPLACE FUNCTION postern.redeem_authorization_code(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_code_hash bytea,
    p_redirect_uri text, p_challenge text, p_resource text[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision, OUT has_refresh_token boolean, OUT scope text[], OUT resource text[],
    OUT amr text[], OUT acr text, OUT nonce text, OUT auth_time double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_client uuid := p_caller.client;
    v_key bytea := (p_caller.proof).key;
    v_may_refresh boolean;
    v_code record;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    db_now := v.db_now;
    granted := v.granted;
    IF v.outcome IS NOT NULL THEN
        outcome := v.outcome;
        limit_ord := v.limit_ord;
        retry_after := v.retry_after;
        RETURN;
    END IF;
    outcome := 'refused';
    -- A sign-out at this moment ends the browser session before this statement, or finds the session that it opens.
    PERFORM FROM postern.authorization_code AS a
      JOIN postern.browser_session AS b ON b.realm_id = v_realm AND b.id = a.browser_session
     WHERE a.realm_id = v_realm AND a.code_hash = p_code_hash AND a.client = v_client AND a.used_at IS NULL
       FOR SHARE OF b;
    UPDATE postern.authorization_code AS a
       SET used_at = now(), session = p_new.id
      FROM postern.user_account AS u, postern.browser_session AS b, postern.client AS k, postern.realm AS r
     WHERE a.realm_id = v_realm AND a.code_hash = p_code_hash AND a.client = v_client AND a.used_at IS NULL
       AND (a.jkt IS NULL OR a.jkt = v_key)
       AND a.expires_at > now() AND a.code_challenge IS NOT DISTINCT FROM p_challenge
       AND (a.redirect_uri = p_redirect_uri OR p_redirect_uri IS NULL AND a.code_challenge IS NOT NULL)
       AND coalesce(p_resource <@ a.resource, true)
       AND b.realm_id = v_realm AND b.id = a.browser_session AND b.ended_at IS NULL
       AND u.realm_id = v_realm AND u.id = a.user_id AND u.enabled AND u.security_stamp = a.security_stamp
       AND k.realm_id = v_realm AND k.id = v_client AND k.enabled AND p_caller.permission = ANY (k.permissions)
       AND r.id = v_realm AND r.enabled AND postern.is_switched_on(r, p_caller.permission, p_caller.app)
    RETURNING a.user_id, a.security_stamp, a.browser_session, b.factor, a.auth_time, a.nonce, a.acr, a.scope, a.amr,
              CASE WHEN p_resource IS NULL THEN a.resource
                   ELSE ARRAY(SELECT x FROM unnest(a.resource) AS x WHERE x = ANY (p_resource)) END,
              k.client_id, now() + r.session_lifetime, 'gt:refresh_token' = ANY (k.permissions)
         INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.browser_session, v_candidate.factor,
              v_candidate.auth_time, nonce, acr, scope, amr, resource, v_candidate.client_id,
              v_candidate.session_end, v_may_refresh;
    IF FOUND THEN
        v_candidate.detail := jsonb_build_object('browser_session', v_candidate.browser_session);
        p_new.scope := scope;
        p_new.resource := resource;
        p_new.amr := amr;
        p_new.acr := acr;
        has_refresh_token := v_may_refresh AND 'offline_access' = ANY (scope);
        IF NOT has_refresh_token THEN
            p_new.refresh_hash := NULL;
        END IF;
        v := postern.sign_in(p_caller, p_new, v_candidate, v);
        outcome := v.outcome;
        user_id := v.user_id;
        auth_time := v.auth_time;
        session_expires_at := v.session_expires_at;
        RETURN;
    END IF;

    PERFORM postern.require_client(p_caller);
    SELECT a.client, a.jkt, a.used_at, a.session, a.user_id, a.nonce, a.expires_at > now() AS live, a.resource,
           a.code_challenge IS NOT DISTINCT FROM p_challenge AS verified,
           a.redirect_uri = p_redirect_uri OR p_redirect_uri IS NULL AND a.code_challenge IS NOT NULL AS redirected
      INTO v_code
      FROM postern.authorization_code AS a WHERE a.realm_id = v_realm AND a.code_hash = p_code_hash
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        reason := 'unknown';
    ELSIF v_code.client <> v_client THEN
        reason := 'client';
    ELSIF v_code.jkt <> coalesce(v_key, '') THEN
        reason := 'key';
    ELSIF NOT v_code.verified THEN
        reason := 'verifier';
    ELSIF v_code.session = p_new.id THEN
        SELECT 'ok', s.user_id, s.scope, s.resource, s.amr, s.acr, v_code.nonce, date_part('epoch', s.auth_time),
               date_part('epoch', s.expires_at), s.current_hash IS NOT NULL
          INTO outcome, user_id, scope, resource, amr, acr, nonce, auth_time, session_expires_at, has_refresh_token
          FROM postern.session AS s WHERE s.realm_id = v_realm AND s.id = p_new.id AND s.revoked_at IS NULL;
        outcome := coalesce(outcome, 'refused');
        reason := 'repeated';
    ELSIF v_code.used_at IS NOT NULL THEN
        reason := 'used';
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = v_realm AND s.id = v_code.session AND s.revoked_at IS NULL;
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
            VALUES (v_realm, 'authorization_code_reused', v_client, v_code.user_id, v_code.session, p_caller.source);
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
