-- client_credentials: a client acts as its service account. No row is written for a token: the account's salt proves
-- it.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:client_credentials', 'Act for itself, as its service account')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('revoked_service_token', 't.expires_at < now()'),
    ('service_account_use', 't.at < now() - interval ''1 year''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

CREATE OR REPLACE FUNCTION postern.client_credentials(
    p_caller postern.caller, p_permits postern.permits,
    OUT outcome text, OUT account uuid, OUT token_salt bytea, OUT created_at double precision,
    OUT db_now double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
BEGIN
    SELECT t.outcome, t.db_now, t.limit_ord, t.retry_after, t.granted
      INTO outcome, db_now, limit_ord, retry_after, granted
      FROM postern.admit(p_caller, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    -- A token of the second in which the account got its salt is dated with the next one (tokens_since).
    SELECT a.id, a.token_salt, date_part('epoch', a.created_at), greatest(db_now, date_part('epoch', a.tokens_since))
      INTO account, token_salt, created_at, db_now
      FROM postern.service_account AS a, postern.client AS k, postern.realm AS r
     WHERE a.realm_id = v_realm AND a.client = p_caller.client
       AND k.realm_id = v_realm AND k.id = p_caller.client AND k.enabled AND p_caller.permission = ANY (k.permissions)
       AND r.id = v_realm AND r.enabled;
    IF NOT FOUND THEN
        PERFORM postern.require_client(p_caller);
        outcome := 'refused';
        RETURN;
    END IF;
    outcome := 'ok';
    -- A service asks for a token every few minutes for years: the audit log says once an hour from where.
    IF NOT EXISTS (SELECT FROM postern.service_account_use AS u
                    WHERE u.realm_id = v_realm AND u.account = client_credentials.account AND u.source = p_caller.source
                      AND u.at > now() - interval '1 hour') THEN
        INSERT INTO postern.service_account_use AS u (realm_id, account, source, at)
        VALUES (v_realm, client_credentials.account, p_caller.source, now())
            ON CONFLICT (realm_id, account, source) DO UPDATE SET at = now() WHERE u.at <= now() - interval '1 hour';
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
            VALUES (v_realm, 'service_account_used', p_caller.client, p_caller.source,
                    jsonb_build_object('service_account', client_credentials.account));
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.client_credentials IS
    'The service account of a client that may act for itself, with what its tokens are made from';
GRANT EXECUTE ON FUNCTION postern.client_credentials TO postern_app;

-- since: a token with an earlier iat is dead. References are proved by the salt as well; a JWT has only the time.
CREATE OR REPLACE FUNCTION postern.live_service_account(p_realm uuid, p_account uuid, p_jti bytea)
RETURNS TABLE (client uuid, client_id text, token_salt bytea, created_at double precision, db_now double precision,
               since double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT k.id, k.client_id, a.token_salt, date_part('epoch', a.created_at), date_part('epoch', now()),
           date_part('epoch', a.tokens_since)
      FROM postern.service_account AS a JOIN postern.client AS k ON k.realm_id = a.realm_id AND k.id = a.client
     WHERE a.realm_id = p_realm AND a.id = p_account AND k.enabled AND 'gt:client_credentials' = ANY (k.permissions)
       AND NOT EXISTS (SELECT FROM postern.revoked_service_token AS t WHERE t.realm_id = p_realm AND t.jti = p_jti);
END
$$;
COMMENT ON FUNCTION postern.live_service_account IS
    'The service account behind an access token, when it may still act and the token was not revoked; else no row';
GRANT EXECUTE ON FUNCTION postern.live_service_account TO postern_app;

CREATE OR REPLACE FUNCTION postern.live_service_account_by_proof(
    p_realm uuid, p_proof postern.proof_use, p_account uuid, p_jti bytea)
RETURNS TABLE (client uuid, client_id text, token_salt bytea, created_at double precision, db_now double precision,
               since double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM postern.use_proof(p_realm, p_proof);
    RETURN QUERY SELECT a.* FROM postern.live_service_account(p_realm, p_account, p_jti) AS a;
END
$$;
COMMENT ON FUNCTION postern.live_service_account_by_proof IS
    'live_service_account for a statement that comes with a proof, which is used up';
GRANT EXECUTE ON FUNCTION postern.live_service_account_by_proof TO postern_app;

CREATE OR REPLACE FUNCTION postern.revoke_service_token(
    p_realm uuid, p_client uuid, p_account uuid, p_jti bytea, p_expires double precision)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.revoked_service_token (realm_id, jti, account, expires_at)
    SELECT p_realm, p_jti, a.id, to_timestamp(p_expires)
      FROM postern.service_account AS a WHERE a.realm_id = p_realm AND a.id = p_account AND a.client = p_client
           AND to_timestamp(p_expires) > now()
        ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.revoke_service_token IS
    'Revokes one access token of this client''s service account; false when it is foreign, expired or already revoked';
GRANT EXECUTE ON FUNCTION postern.revoke_service_token TO postern_app;

RESET ROLE;
