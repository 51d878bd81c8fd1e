-- The end of a browser session.
SET LOCAL ROLE postern_owner;

-- The sessions that were opened through it and cannot outlive the browser end with it: those without offline_access.
-- Each has an audit row of its own, for receivers of events that know its client's sid. False when it had ended before.
-- p_reason: replaced, signed_out or ended.
CREATE OR REPLACE FUNCTION postern.end_browser_session(p_realm uuid, p_session uuid, p_reason text, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_user uuid;
    v_ended integer;
BEGIN
    UPDATE postern.browser_session AS b SET ended_at = now()
     WHERE b.realm_id = p_realm AND b.id = p_session AND b.ended_at IS NULL
    RETURNING b.user_id INTO v_user;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH ended AS (
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = p_realm AND s.browser_session = p_session AND s.revoked_at IS NULL
           AND 'offline_access' <> ALL (s.scope)
        RETURNING s.id, s.client, s.user_id, s.expires_at > now() AS was_alive),
    told AS (
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
        SELECT p_realm, 'session_revoked', e.client, e.user_id, e.id, p_source,
               jsonb_build_object('reason', p_reason, 'browser_session', p_session)
          FROM ended AS e WHERE e.was_alive)
    SELECT count(*) INTO v_ended FROM ended;
    INSERT INTO postern.audit_event (realm_id, event, user_id, session_id, source, detail)
    VALUES (p_realm, 'signed_out', v_user, p_session, p_source,
            jsonb_build_object('reason', p_reason, 'sessions', v_ended));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.end_browser_session IS
    'Ends a browser session and the sessions opened through it that lack offline_access; false when it had ended';
GRANT EXECUTE ON FUNCTION postern.end_browser_session TO postern_app;

-- Live sessions of both kinds, newest first. browser: a browser session; client_id is NULL then. acr NULL: what
-- amr says. is_bound: its refresh tokens are bound to a key.
CREATE OR REPLACE FUNCTION postern.listed_sessions(p_realm uuid, p_user uuid)
RETURNS TABLE (id uuid, browser boolean, client_id text, user_agent text, created_at double precision,
               last_used_at double precision, amr text[], acr text, is_bound boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT x.* FROM (
        SELECT s.id, false AS browser, s.client_id, s.user_agent::text, date_part('epoch', s.created_at) AS created_at,
               date_part('epoch', s.last_used_at), s.amr, s.acr::text, s.jkt IS NOT NULL
          FROM postern.session AS s, postern.user_account AS u
         WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
           AND (s.refresh_expires_at IS NULL OR s.refresh_expires_at > now())
           AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = s.security_stamp
        UNION ALL
        SELECT b.id, true, NULL, b.user_agent::text, date_part('epoch', b.created_at),
               date_part('epoch', b.last_used_at), b.amr, NULL, false
          FROM postern.browser_session AS b, postern.user_account AS u, postern.realm AS r
         WHERE b.realm_id = p_realm AND b.user_id = p_user AND b.ended_at IS NULL AND b.expires_at > now()
           AND b.idle_expires_at > now() AND r.id = p_realm AND r.sso_idle > interval '0'
           AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = b.security_stamp) AS x
     ORDER BY x.created_at DESC, x.id;
END
$$;
COMMENT ON FUNCTION postern.listed_sessions IS 'The live sessions and browser sessions of a user, newest first';
GRANT EXECUTE ON FUNCTION postern.listed_sessions TO postern_app;

-- p_by: the session that asked.
CREATE OR REPLACE FUNCTION postern.end_any_own_session(
    p_realm uuid, p_user uuid, p_session uuid, p_by uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF EXISTS (SELECT FROM postern.browser_session AS b, postern.user_account AS u
                WHERE b.realm_id = p_realm AND b.id = p_session AND b.user_id = p_user AND b.ended_at IS NULL
                  AND b.expires_at > now() AND b.idle_expires_at > now()
                  AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = b.security_stamp) THEN
        RETURN postern.end_browser_session(p_realm, p_session, 'ended', p_source);
    END IF;
    RETURN postern.end_own_session(p_realm, p_user, p_session, p_by, p_source);
END
$$;
COMMENT ON FUNCTION postern.end_any_own_session IS
    'Ends a live session or browser session of the user; false when there is none of that id';
GRANT EXECUTE ON FUNCTION postern.end_any_own_session TO postern_app;

CREATE OR REPLACE VIEW admin.browser_sessions AS
SELECT r.slug AS realm, b.id, u.email, b.host, b.amr, b.auth_time, b.created_at, b.last_used_at, b.idle_expires_at,
       b.expires_at, b.ended_at,
       b.ended_at IS NULL AND b.expires_at > now() AND b.idle_expires_at > now() AND u.enabled
           AND u.security_stamp = b.security_stamp AS active,
       b.user_agent
  FROM postern.browser_session AS b JOIN postern.realm AS r ON r.id = b.realm_id
  JOIN postern.user_account AS u ON u.realm_id = b.realm_id AND u.id = b.user_id;
COMMENT ON VIEW admin.browser_sessions IS 'Browsers that signed in on pages, and whether they still are';

RESET ROLE;
