-- The tokens of a proven address: its authorization code, its access token.
SET LOCAL ROLE postern_owner;

-- As postern.redeem_authorization_code, for a code that proves an address. The tokens live ten minutes, and so does the
-- row. Outcomes: ok, refused (reason is for logs only), invalid_target (the code stays), rate_limited. The same
-- p_session again is this call, repeated because its answer was lost.
CREATE OR REPLACE FUNCTION postern.redeem_address_code(
    p_caller postern.caller, p_permits postern.permits, p_session uuid, p_token_salt bytea, p_code_hash bytea,
    p_redirect_uri text, p_challenge text, p_resource text[],
    OUT outcome text, OUT reason text, OUT subject uuid, OUT kind text, OUT sealed_address bytea,
    OUT db_now double precision, OUT expires_at double precision, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT acr text, OUT nonce text, OUT auth_time double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_client uuid := p_caller.client;
    v_key bytea := (p_caller.proof).key;
    v_proof postern.address_verification;
BEGIN
    SELECT t.outcome, t.db_now, t.limit_ord, t.retry_after, t.granted
      INTO outcome, db_now, limit_ord, retry_after, granted
      FROM postern.admit(p_caller, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'refused';
    UPDATE postern.address_verification AS p
       SET used_at = now(), session = p_session, token_salt = p_token_salt, expires_at = now() + interval '10 minutes',
           resource = CASE WHEN p_resource IS NULL THEN p.resource
                           ELSE ARRAY(SELECT x FROM unnest(p.resource) AS x WHERE x = ANY (p_resource)) END
      FROM postern.client AS k, postern.realm AS r
     WHERE p.realm_id = v_realm AND p.code_hash = p_code_hash AND p.client = v_client AND p.used_at IS NULL
       AND (p.jkt IS NULL OR p.jkt = v_key)
       AND p.expires_at > now() AND p.code_challenge IS NOT DISTINCT FROM p_challenge
       AND (p.redirect_uri = p_redirect_uri OR p_redirect_uri IS NULL AND p.code_challenge IS NOT NULL)
       AND coalesce(p_resource <@ p.resource, true)
       AND (p.browser_session IS NULL
            OR EXISTS (SELECT FROM postern.browser_session AS b
                        WHERE b.realm_id = v_realm AND b.id = p.browser_session AND b.ended_at IS NULL
                          AND (SELECT u.enabled AND u.security_stamp = b.security_stamp
                                 FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = b.user_id)))
       AND k.realm_id = v_realm AND k.id = v_client AND k.enabled AND p_caller.permission = ANY (k.permissions)
       AND r.id = v_realm AND r.enabled AND r.hosted_enabled
    RETURNING p.* INTO v_proof;
    IF FOUND THEN
        outcome := 'ok';
    ELSE
        PERFORM postern.require_client(p_caller);
        SELECT p.* INTO v_proof
          FROM postern.address_verification AS p WHERE p.realm_id = v_realm AND p.code_hash = p_code_hash
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            reason := 'unknown';
        ELSIF v_proof.client <> v_client THEN
            reason := 'client';
        ELSIF v_proof.jkt <> coalesce(v_key, '') THEN
            reason := 'key';
        ELSIF v_proof.code_challenge IS DISTINCT FROM p_challenge THEN
            reason := 'verifier';
        ELSIF v_proof.session = p_session AND v_proof.revoked_at IS NULL THEN
            outcome := 'ok';
        ELSIF v_proof.used_at IS NOT NULL THEN
            reason := 'used';
            UPDATE postern.address_verification AS p SET revoked_at = now()
             WHERE p.realm_id = v_realm AND p.id = v_proof.id AND p.revoked_at IS NULL;
            IF FOUND THEN
                INSERT INTO postern.audit_event (realm_id, event, client, session_id, source)
                VALUES (v_realm, 'authorization_code_reused', v_client, v_proof.session, p_caller.source);
            END IF;
        ELSIF v_proof.expires_at <= now() THEN
            reason := 'expired';
        ELSIF NOT (v_proof.redirect_uri = p_redirect_uri
                   OR p_redirect_uri IS NULL AND v_proof.code_challenge IS NOT NULL) THEN
            reason := 'redirect_uri';
        ELSIF NOT coalesce(p_resource <@ v_proof.resource, true) THEN
            outcome := 'invalid_target';
        ELSE
            reason := 'ended';
        END IF;
    END IF;
    IF outcome = 'ok' THEN
        subject := v_proof.subject;
        kind := v_proof.kind;
        sealed_address := v_proof.sealed_address;
        expires_at := date_part('epoch', v_proof.expires_at);
        scope := v_proof.scope;
        resource := v_proof.resource;
        amr := v_proof.amr;
        acr := v_proof.acr;
        nonce := v_proof.nonce;
        auth_time := date_part('epoch', v_proof.proved_at);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.redeem_address_code IS
    'Redeems the authorization code of a proven address: checks and consumes in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_address_code TO postern_app;

-- No row when the access token of a proof is not alive. Whether the client is enabled the server knows.
CREATE OR REPLACE FUNCTION postern.introspect_address(p_realm uuid, p_session uuid)
RETURNS TABLE (client_id text, client uuid, subject uuid, kind text, sealed_address bytea, amr text[], acr text,
               auth_time double precision, token_salt bytea, db_now double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT c.client_id, p.client, p.subject, p.kind, p.sealed_address::bytea, p.amr, p.acr,
           date_part('epoch', p.proved_at), p.token_salt::bytea, date_part('epoch', now())
      FROM postern.address_verification AS p JOIN postern.client AS c ON c.realm_id = p_realm AND c.id = p.client
     WHERE p.realm_id = p_realm AND p.session = p_session AND p.revoked_at IS NULL AND p.expires_at > now();
END
$$;
COMMENT ON FUNCTION postern.introspect_address IS 'What a live access token of a proven address stands for';
GRANT EXECUTE ON FUNCTION postern.introspect_address TO postern_app;

CREATE OR REPLACE FUNCTION postern.introspect_address_by_proof(
    p_realm uuid, p_proof postern.proof_use, p_session uuid)
RETURNS TABLE (client_id text, client uuid, subject uuid, kind text, sealed_address bytea, amr text[], acr text,
               auth_time double precision, token_salt bytea, db_now double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM postern.use_proof(p_realm, p_proof);
    RETURN QUERY SELECT a.* FROM postern.introspect_address(p_realm, p_session) AS a;
END
$$;
COMMENT ON FUNCTION postern.introspect_address_by_proof IS
    'introspect_address for a statement that comes with a proof, which is used up';
GRANT EXECUTE ON FUNCTION postern.introspect_address_by_proof TO postern_app;

-- False when it is another client's, or has ended.
CREATE OR REPLACE FUNCTION postern.revoke_address_token(p_realm uuid, p_client uuid, p_session uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.address_verification AS p SET revoked_at = now()
     WHERE p.realm_id = p_realm AND p.client = p_client AND p.session = p_session AND p.revoked_at IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.revoke_address_token IS 'Ends the access token of a proven address';
GRANT EXECUTE ON FUNCTION postern.revoke_address_token TO postern_app;

RESET ROLE;
