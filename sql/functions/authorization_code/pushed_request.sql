-- Pushed authorization requests (RFC 9126).
SET LOCAL ROLE postern_owner;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('authorize', 'source', 1200, interval '1 minute', 400, 'enforce'),
    ('par', 'source', 600, interval '1 minute', 200, 'enforce'),
    ('par', 'client', 6000, interval '1 minute', 6000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- What one source may keep unopened for one client: anybody can push in the name of a public client.
CREATE OR REPLACE FUNCTION postern.unopened_bytes() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 65536;
COMMENT ON FUNCTION postern.unopened_bytes IS
    'How many bytes of requests that were not opened one source may have stored for one client';
GRANT EXECUTE ON FUNCTION postern.unopened_bytes TO postern_app;

-- A request that waits longer than this to be opened gives way when its source needs the room. Else a stranger who asks
-- a web application to push, and opens nothing, would shut out all its users, who have the application's address.
CREATE OR REPLACE FUNCTION postern.unopened_grace() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN interval '20 seconds';
COMMENT ON FUNCTION postern.unopened_grace IS
    'How long a pushed request that was not opened keeps its room when its source pushes more';
GRANT EXECUTE ON FUNCTION postern.unopened_grace TO postern_app;

-- Outcomes: stored, rate_limited, full (retry_after: when the oldest unopened request gives way). Requests of one
-- source and client are stored one after another, so that their bytes can be counted.
CREATE OR REPLACE FUNCTION postern.push_request(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits, p_id_hash bytea, p_client uuid,
    p_source text, p_sealed bytea, p_lifetime integer,
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_kept record;
    v_lifetime interval := make_interval(secs => p_lifetime);
    v_excess bigint;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(postern.lock_of_pushed_requests(p_realm, p_client, p_source));
    SELECT coalesce(sum(octet_length(p.sealed)), 0) AS bytes, min(p.expires_at) AS until INTO v_kept
      FROM postern.pushed_request AS p
     WHERE p.realm_id = p_realm AND p.client = p_client AND p.source = p_source AND p.opened_at IS NULL
       AND p.expires_at > now();
    v_excess := v_kept.bytes + octet_length(p_sealed) - postern.unopened_bytes();
    IF v_excess > 0 THEN
        WITH waiting AS (
            SELECT p.id_hash, octet_length(p.sealed) AS bytes,
                   sum(octet_length(p.sealed)) OVER (ORDER BY p.expires_at, p.id_hash) AS bytes_so_far
              FROM postern.pushed_request AS p
             WHERE p.realm_id = p_realm AND p.client = p_client AND p.source = p_source AND p.opened_at IS NULL
               AND p.expires_at > now() AND p.expires_at < now() + v_lifetime - postern.unopened_grace()),
        gone AS (
            DELETE FROM postern.pushed_request AS p USING waiting AS w
             WHERE p.realm_id = p_realm AND p.id_hash = w.id_hash AND p.opened_at IS NULL
               AND w.bytes_so_far - w.bytes < v_excess
            RETURNING octet_length(p.sealed) AS bytes)
        SELECT v_excess - coalesce(sum(g.bytes), 0) INTO v_excess FROM gone AS g;
    END IF;
    IF v_excess > 0 THEN
        outcome := 'full';
        retry_after := greatest(
            extract(epoch FROM v_kept.until - now() - v_lifetime + postern.unopened_grace())::float8, 1);
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm, p_proof);
    outcome := 'stored';
    INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, sealed, expires_at, ends_at)
    VALUES (p_realm, p_id_hash, p_client, p_source, p_sealed, now() + make_interval(secs => p_lifetime),
            now() + make_interval(secs => p_lifetime));
END
$$;
COMMENT ON FUNCTION postern.push_request IS 'Stores an authorization request for a short time';
GRANT EXECUTE ON FUNCTION postern.push_request TO postern_app;

-- The sealed request; NULL when it is unknown, another client's, answered, or neither in time nor opened in time. Once
-- opened in time it may be read again while a sign-in for it is under way, answered or not: the page says who is
-- signed in. p_is_under_way: a page asks, which was shown for this request. Only the first call writes the row, so that
-- further calls do not wait for each other.
CREATE OR REPLACE FUNCTION postern.open_pushed_request(
    p_realm uuid, p_id_hash bytea, p_client uuid, p_is_under_way boolean) RETURNS bytea
LANGUAGE plpgsql
AS $$
DECLARE
    v_sealed bytea;
    v_is_open boolean;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT p.sealed, p.opened_at IS NOT NULL INTO v_sealed, v_is_open
      FROM postern.pushed_request AS p
     WHERE p.realm_id = p_realm AND p.id_hash = p_id_hash AND p.client = p_client
       AND (p.used_at IS NULL AND p.expires_at > now()
            OR p_is_under_way AND p.opened_at IS NOT NULL AND p.ends_at > now());
    IF NOT v_is_open THEN
        UPDATE postern.pushed_request AS p
           SET opened_at = now(),
               ends_at = now() + (SELECT r.sign_in_lifetime FROM postern.realm AS r WHERE r.id = p_realm)
         WHERE p.realm_id = p_realm AND p.id_hash = p_id_hash AND p.opened_at IS NULL;
    END IF;
    RETURN v_sealed;
END
$$;
COMMENT ON FUNCTION postern.open_pushed_request IS
    'Reads a pushed request of a client, within its lifetime or while a sign-in for it goes on';
GRANT EXECUTE ON FUNCTION postern.open_pushed_request TO postern_app;

-- An error response answers a request as well. False when it was answered before.
CREATE OR REPLACE FUNCTION postern.use_pushed_request(p_realm uuid, p_id_hash bytea) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.pushed_request AS p SET used_at = now()
     WHERE p.realm_id = p_realm AND p.id_hash = p_id_hash AND p.used_at IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.use_pushed_request IS 'Uses up a pushed request that is answered by an error';
GRANT EXECUTE ON FUNCTION postern.use_pushed_request TO postern_app;

RESET ROLE;
