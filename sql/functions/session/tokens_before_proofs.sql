-- Refresh and lookups as older binaries call them. They bring no proof, so they are refused by a family that is bound
-- to a key.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.rotate_refresh_token(
    p_realm uuid, p_client uuid, p_session uuid, p_generation integer, p_hash bytea, p_successor_hashes bytea[],
    p_lifetime integer, p_source text, p_server_key bytea, p_mark bigint,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_scope text[] DEFAULT NULL, p_resource text[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT auth_time double precision, OUT token_salt bytea, OUT current_hash bytea, OUT db_now double precision,
    OUT expires_at double precision, OUT refresh_expires_at double precision, OUT email text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.outcome, t.reason, t.user_id, t.scope, t.resource, t.amr, t.auth_time, t.token_salt, t.current_hash,
           t.db_now, t.expires_at, t.refresh_expires_at, t.email, t.limit_ord, t.retry_after, t.granted
      INTO outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
           expires_at, refresh_expires_at, email, limit_ord, retry_after, granted
      FROM postern.rotate_session(
               p_realm, p_client, p_session, p_generation, p_hash, p_successor_hashes, p_lifetime, p_source,
               p_server_key, p_mark, NULL, p_keys, p_wanted, p_permits, p_per, p_burst, p_scope, p_resource) AS t;
END
$$;
COMMENT ON FUNCTION postern.rotate_refresh_token IS 'rotate_session without proofs';
GRANT EXECUTE ON FUNCTION postern.rotate_refresh_token TO postern_app;

CREATE OR REPLACE FUNCTION postern.rotate_unless_busy(
    p_realm uuid, p_client uuid, p_session uuid, p_generation integer, p_hash bytea, p_successor_hashes bytea[],
    p_lifetime integer, p_source text, p_server_key bytea, p_mark bigint,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_scope text[] DEFAULT NULL, p_resource text[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT auth_time double precision, OUT token_salt bytea, OUT current_hash bytea, OUT db_now double precision,
    OUT expires_at double precision, OUT refresh_expires_at double precision, OUT email text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.outcome, t.reason, t.user_id, t.scope, t.resource, t.amr, t.auth_time, t.token_salt, t.current_hash,
           t.db_now, t.expires_at, t.refresh_expires_at, t.email, t.limit_ord, t.retry_after, t.granted
      INTO outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
           expires_at, refresh_expires_at, email, limit_ord, retry_after, granted
      FROM postern.rotate_session_unless_busy(
               p_realm, p_client, p_session, p_generation, p_hash, p_successor_hashes, p_lifetime, p_source,
               p_server_key, p_mark, NULL, p_keys, p_wanted, p_permits, p_per, p_burst, p_scope, p_resource) AS t;
END
$$;
COMMENT ON FUNCTION postern.rotate_unless_busy IS 'rotate_session_unless_busy without proofs';
GRANT EXECUTE ON FUNCTION postern.rotate_unless_busy TO postern_app;

-- These binaries wait for the row up to their own lock timeout, and do not name the line of the key file
-- they use.
CREATE OR REPLACE FUNCTION postern.refresh(
    p_realm uuid, p_client uuid, p_session uuid, p_generation integer, p_hash bytea, p_successor_hashes bytea[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_scope text[] DEFAULT NULL, p_resource text[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT scope text[], OUT resource text[], OUT amr text[],
    OUT auth_time double precision, OUT token_salt bytea, OUT current_hash bytea, OUT db_now double precision,
    OUT expires_at double precision, OUT refresh_expires_at double precision, OUT email text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session FOR NO KEY UPDATE;
    SELECT t.outcome, t.reason, t.user_id, t.scope, t.resource, t.amr, t.auth_time, t.token_salt, t.current_hash,
           t.db_now, t.expires_at, t.refresh_expires_at, t.email, t.limit_ord, t.retry_after, t.granted
      INTO outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
           expires_at, refresh_expires_at, email, limit_ord, retry_after, granted
      FROM postern.rotate_session(
               p_realm, p_client, p_session, p_generation, p_hash, p_successor_hashes, p_refresh_lifetime, p_source,
               NULL, NULL, NULL, p_keys, p_wanted, p_permits, p_per, p_burst, p_scope, p_resource) AS t;
END
$$;
COMMENT ON FUNCTION postern.refresh IS 'rotate_session of version 0';
GRANT EXECUTE ON FUNCTION postern.refresh TO postern_app;

CREATE OR REPLACE FUNCTION postern.introspect(p_realm uuid, p_session uuid, p_jti bytea)
RETURNS TABLE (active boolean, user_id uuid, client_id text, client uuid, scope text[], resource text[], amr text[],
    auth_time double precision, token_salt bytea, created_at double precision, email text, email_verified boolean,
    first_name text, last_name text, db_now double precision,
    expires_at double precision, refresh_expires_at double precision, current_hash bytea)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT s.active, s.user_id, s.client_id, s.client, s.scope, s.resource, s.amr, s.auth_time, s.token_salt,
           s.created_at, s.email, s.email_verified, s.first_name, s.last_name, s.db_now, s.expires_at,
           s.refresh_expires_at, s.current_hash
      FROM postern.live_session(p_realm, p_session, p_jti) AS s
$$;
COMMENT ON FUNCTION postern.introspect IS 'live_session of older binaries';
GRANT EXECUTE ON FUNCTION postern.introspect TO postern_app;

RESET ROLE;
