-- What a person sees of their own sign-ins, and how they end one.
SET LOCAL ROLE postern_owner;

-- Alive means what it means for a token: not ended, not run out, and of the person's present security stamp.
CREATE OR REPLACE FUNCTION postern.own_sessions(p_realm uuid, p_user uuid)
RETURNS TABLE (id uuid, client_id text, created_at double precision, last_used_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT s.id, s.client_id, date_part('epoch', s.created_at), date_part('epoch', s.last_used_at)
      FROM postern.session AS s, postern.user_account AS u
     WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
       AND (s.refresh_expires_at IS NULL OR s.refresh_expires_at > now())
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = s.security_stamp
     ORDER BY s.created_at DESC, s.id;
END
$$;
COMMENT ON FUNCTION postern.own_sessions(uuid, uuid) IS 'The live sessions of a user, newest first';

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
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
       AND (s.refresh_expires_at IS NULL OR s.refresh_expires_at > now())
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.security_stamp = s.security_stamp
    RETURNING s.client INTO v_client;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'session_revoked', v_client, p_user, p_session, p_source, jsonb_build_object('reason', 'signed_out', 'by_session', p_by));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.end_own_session(uuid, uuid, uuid, uuid, text) IS
    'Ends a live session of the user; false when there is none of that id';

REVOKE ALL ON FUNCTION postern.own_sessions(uuid, uuid), postern.end_own_session(uuid, uuid, uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.own_sessions(uuid, uuid), postern.end_own_session(uuid, uuid, uuid, uuid, text) TO postern_app;

RESET ROLE;
