-- What a person sees of their own sign-ins, and how they end one.
SET LOCAL ROLE postern_owner;

-- A session is alive by the same rule as a token: not ended, not expired, and under the user's present security stamp.
CREATE OR REPLACE FUNCTION postern.live_sessions(p_realm uuid, p_user uuid)
RETURNS TABLE (id uuid, client_id text, user_agent text, created_at double precision, last_used_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT s.id, s.client_id, s.user_agent::text, date_part('epoch', s.created_at),
           date_part('epoch', s.last_used_at)
      FROM postern.session AS s, postern.user_account AS u
     WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
       AND (s.refresh_expires_at IS NULL OR s.refresh_expires_at > now())
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = s.security_stamp
     ORDER BY s.created_at DESC, s.id;
END
$$;
COMMENT ON FUNCTION postern.live_sessions IS 'The live sessions of a user, newest first';
GRANT EXECUTE ON FUNCTION postern.live_sessions TO postern_app;

-- Refresh family and reference access tokens end with the row. p_by: the session that asked, which may be the same.
CREATE OR REPLACE FUNCTION postern.end_own_session(p_realm uuid, p_user uuid, p_session uuid, p_by uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_client uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.session AS s SET revoked_at = now()
      FROM postern.user_account AS u
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.user_id = p_user AND s.revoked_at IS NULL
       AND s.expires_at > now()
       AND (s.refresh_expires_at IS NULL OR s.refresh_expires_at > now())
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = s.security_stamp
    RETURNING s.client INTO v_client;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'session_revoked', v_client, p_user, p_session, p_source,
            jsonb_build_object('reason', 'signed_out', 'by_session', p_by));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.end_own_session IS 'Ends a live session of the user; false when there is none of that id';
GRANT EXECUTE ON FUNCTION postern.end_own_session TO postern_app;

-- Signs out everywhere: sessions, codes, links and handles end, and the security stamp changes. With p_keep the calling
-- session stays alive under the new stamp, and each session and browser session that ended has an audit row of its
-- own: an event about all of them would be false. NULL when the calling session is not alive; nothing is done then.
CREATE OR REPLACE FUNCTION postern.end_own_sessions(p_realm uuid, p_user uuid, p_by uuid, p_keep boolean, p_source text)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_stamp uuid := gen_random_uuid();
    v_caller record;
    v_ended uuid[];
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    -- The user's row first, as admin.sign_out_everywhere does.
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user AND u.enabled FOR NO KEY UPDATE;
    SELECT s.client, s.security_stamp INTO v_caller
      FROM postern.session AS s JOIN postern.user_account AS u ON u.realm_id = s.realm_id AND u.id = s.user_id
     WHERE s.realm_id = p_realm AND s.id = p_by AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
       AND u.enabled AND u.security_stamp = s.security_stamp
       FOR NO KEY UPDATE OF s;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE postern.user_account AS u SET security_stamp = v_stamp WHERE u.realm_id = p_realm AND u.id = p_user;
    v_ended := postern.end_access_except(p_realm, p_user, CASE WHEN p_keep THEN p_by END);
    IF p_keep THEN
        UPDATE postern.session AS s SET security_stamp = v_stamp WHERE s.realm_id = p_realm AND s.id = p_by;
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
        SELECT p_realm, 'session_revoked', x.client, p_user, x.id, p_source,
               jsonb_build_object('reason', 'signed_out', 'by_session', p_by)
          FROM (SELECT s.id, s.client FROM postern.session AS s
                 WHERE s.realm_id = p_realm AND s.id = ANY (v_ended) AND s.expires_at > now()
                UNION ALL
                SELECT b.id, NULL FROM postern.browser_session AS b
                 WHERE b.realm_id = p_realm AND b.user_id = p_user AND b.security_stamp = v_caller.security_stamp
                   AND b.ended_at IS NULL AND b.expires_at > now() AND b.idle_expires_at > now()) AS x;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'user_signed_out', v_caller.client, p_user, p_by, p_source,
            jsonb_build_object('sessions', cardinality(v_ended), 'kept_current', p_keep));
    RETURN cardinality(v_ended);
END
$$;
COMMENT ON FUNCTION postern.end_own_sessions IS
    'Ends all sessions of a user, or all but the calling one; returns how many';
GRANT EXECUTE ON FUNCTION postern.end_own_sessions TO postern_app;

RESET ROLE;
