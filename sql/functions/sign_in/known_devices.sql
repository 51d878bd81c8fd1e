-- Known devices: requests that brought an ID token of the account they ask for are counted apart from strangers
-- (decision 25).
SET LOCAL ROLE postern_owner;

-- Whether a worker may send a mail for a request. p_user is the account of the address, NULL when there is none. A
-- request without a hint was admitted when it was recorded. A request with a hint took a permit of the hint's session
-- then. Here, where users may be read, it is checked whether the hint belongs to the account. In both cases the request
-- takes the permits of a stranger at the address, so that a later 429 does not reveal whether the hint was right. A
-- request whose hint is wrong is admitted only if these permits were available. A request keeps its device when it is
-- repeated without a hint, or with another hint. The caller holds the lock of the address, so two workers never wait
-- for each other's permits.
CREATE OR REPLACE FUNCTION postern.admit_request(
    p_realm uuid, p_policy text, p_request bytea, p_user uuid, OUT admitted boolean, OUT device uuid)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_request record;
    v_fits boolean;
    v_refused boolean;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.address_key, a.source, a.hint_user, a.hint_session, a.device INTO v_request
      FROM postern.sign_in_request AS a WHERE a.realm_id = p_realm AND a.id = p_request;
    device := v_request.device;
    admitted := true;
    IF v_request.hint_user IS NULL THEN
        RETURN;
    END IF;
    v_fits := coalesce(v_request.hint_user = p_user AND postern.knows_device(p_realm, p_user, v_request.hint_session),
                       false);
    IF v_fits THEN
        device := v_request.hint_session;
        UPDATE postern.sign_in_request AS a SET device = v_request.hint_session
         WHERE a.realm_id = p_realm AND a.id = p_request AND a.device IS DISTINCT FROM v_request.hint_session;
    END IF;
    SELECT t.limit_ord IS NOT NULL INTO v_refused
      FROM (SELECT array_agg(CASE l.dimension
                                  WHEN 'target' THEN format('%s|target|%s|%s', p_policy, v_request.address_key,
                                                            v_request.source)
                                  ELSE format('%s|target-total|%s', p_policy, v_request.address_key) END
                                      ORDER BY l.dimension) AS keys,
                   array_agg(CASE WHEN l.mode = 'enforce' THEN 1 ELSE -1 END ORDER BY l.dimension) AS wanted,
                   array_agg(l.permits ORDER BY l.dimension) AS permits,
                   array_agg(extract(epoch FROM l.per)::float8 ORDER BY l.dimension) AS per,
                   array_agg(l.burst ORDER BY l.dimension) AS burst
              FROM postern.effective_rate_limits(p_realm) AS l
             WHERE l.policy = p_policy AND l.dimension IN ('target', 'target-total')) AS w,
           postern.take_realm_permits(p_realm, ROW(w.keys, w.wanted, w.permits, w.per, w.burst)::postern.permits) AS t;
    admitted := v_fits OR NOT coalesce(v_refused, false);
END
$$;
COMMENT ON FUNCTION postern.admit_request IS
    'Whether a recorded request may send a mail, and the known device it came from; decided by the worker, never '
    'shown to the caller';
GRANT EXECUTE ON FUNCTION postern.admit_request TO postern_app;

-- Rows of sessions go with time, so an account that was secured knows devices only while their sessions are kept.
CREATE OR REPLACE FUNCTION postern.knows_device(p_realm uuid, p_user uuid, p_session uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT u.known_since IS NULL
        OR EXISTS (SELECT FROM postern.session AS s
                    WHERE s.realm_id = p_realm AND s.id = p_session AND s.created_at > u.known_since)
        OR EXISTS (SELECT FROM postern.browser_session AS b
                    WHERE b.realm_id = p_realm AND b.id = p_session AND b.created_at > u.known_since)
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user
$$;
COMMENT ON FUNCTION postern.knows_device IS 'Whether the device of a session of an account still is a known one';
GRANT EXECUTE ON FUNCTION postern.knows_device TO postern_app;

RESET ROLE;
