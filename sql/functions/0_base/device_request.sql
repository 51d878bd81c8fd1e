-- The life of a device request: which state leads to which, and the one statement that changes it.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.may_follow(
    p_state postern.device_request_state, p_next postern.device_request_state) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_state
    WHEN 'open' THEN p_next IN ('sent', 'passed', 'required', 'failed')
    WHEN 'sent' THEN p_next IN ('sent', 'linked', 'passed', 'failed')
    WHEN 'linked' THEN p_next IN ('sent', 'passed', 'failed')
    WHEN 'required' THEN p_next IN ('passed', 'failed')
    WHEN 'passed' THEN p_next IN ('redeemed', 'failed')
    ELSE false END;
COMMENT ON FUNCTION postern.may_follow IS
    'Whether a device request may go from one state to another: back only from linked, by a new message';

-- p_from: the states that it may be in. The caller that gets a row has won; every other one gets none.
CREATE OR REPLACE FUNCTION postern.move_device_request(
    p_realm uuid, p_id uuid, p_from postern.device_request_state[], p_to postern.device_request_state,
    p_reason text DEFAULT NULL)
RETURNS SETOF postern.device_request
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    UPDATE postern.device_request AS t
       SET state = p_to, reason = coalesce(p_reason, t.reason),
           ended_at = CASE WHEN p_to IN ('passed', 'failed', 'redeemed')
                           THEN coalesce(t.ended_at, clock_timestamp()) END
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.state = ANY (p_from) AND postern.may_follow(t.state, p_to)
       AND t.expires_at > now()
    RETURNING t.*
$$;
COMMENT ON FUNCTION postern.move_device_request IS
    'Changes the state of a live device request, for one of any number of callers at once';

CREATE OR REPLACE FUNCTION postern.state_of(t postern.device_request) RETURNS postern.device_request_state
LANGUAGE sql STABLE
RETURN CASE WHEN t.state NOT IN ('passed', 'failed', 'redeemed') AND t.expires_at <= now() THEN 'failed'
            ELSE t.state END;
COMMENT ON FUNCTION postern.state_of IS
    'The state of a device request: one that expired before it passed has failed, whatever its column says';

RESET ROLE;
