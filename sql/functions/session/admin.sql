-- Provisioning: single sessions.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.end_session(realm text, id uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_session record;
BEGIN
    UPDATE postern.session AS s SET revoked_at = now() WHERE s.realm_id = v_realm AND s.id = id AND s.revoked_at IS NULL
    RETURNING s.client, s.user_id INTO v_session;
    IF FOUND THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
        VALUES (v_realm, 'session_revoked', v_session.client, v_session.user_id, id, 'sql:' || session_user,
                jsonb_build_object('reason', 'administrator'));
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM postern.session AS s WHERE s.realm_id = v_realm AND s.id = id) THEN
        PERFORM postern.refuse(format('id %s is not a session of this realm', postern.shown(id::text)),
            'SELECT id FROM admin.sessions WHERE realm = … AND email = … lists them.');
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION admin.end_session IS
'Ends one session at once, with its refresh token and opaque access tokens; the user''s other sessions go on. False when
it had ended before.
Example: SELECT admin.end_session(''acme'', id) FROM admin.sessions
    WHERE realm = ''acme'' AND email = ''ada@example.com'' AND client_id = ''acme-ios'';';

CREATE OR REPLACE VIEW admin.sessions AS
SELECT r.slug AS realm, s.id, u.email, s.client_id, s.scope, s.amr, s.auth_time, s.created_at, s.last_used_at,
       s.refresh_expires_at, s.expires_at, s.revoked_at,
       s.revoked_at IS NULL AND s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true) AND u.enabled
           AND u.security_stamp = s.security_stamp AS active,
       s.user_agent, coalesce(s.acr, postern.acr_of(s.amr)) AS acr,
       rtrim(translate(encode(s.jkt, 'base64'), '+/', '-_'), '=') AS jkt
  FROM postern.session AS s JOIN postern.realm AS r ON r.id = s.realm_id
  JOIN postern.user_account AS u ON u.realm_id = s.realm_id AND u.id = s.user_id;
COMMENT ON VIEW admin.sessions IS 'Sign-ins and whether they are alive';

RESET ROLE;
