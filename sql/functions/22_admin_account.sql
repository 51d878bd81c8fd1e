-- Provisioning: single credentials, sessions and locks of users.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.unlock_codes(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_key text := lower(email COLLATE "C") COLLATE "default";
    v_user uuid;
    v_closed boolean;
BEGIN
    SELECT u.id INTO v_user FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.email_key = v_key;
    -- Codes of an address without a user can be locked too.
    IF v_user IS NULL AND NOT EXISTS (SELECT FROM postern.code_guard AS g WHERE g.realm_id = v_realm AND g.email_key = v_key) THEN
        PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(email)),
            'SELECT email FROM admin.users WHERE realm = … AND codes_locked_until IS NOT NULL lists whose codes are closed.');
    END IF;
    v_closed := postern.unlock_codes(v_realm, v_key);
    PERFORM postern.admin_audit(v_realm, 'codes_unlocked', user_id => v_user, detail => jsonb_build_object('locked', v_closed));
    RETURN v_closed;
END
$$;
COMMENT ON FUNCTION admin.unlock_codes(text, text) IS
'Opens the codes of an address again that too many wrong ones had closed, for strangers and for known devices, and forgets
the wrong tries. True when they were closed.
Example: SELECT admin.unlock_codes(''acme'', ''ada@example.com'');';

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
COMMENT ON FUNCTION admin.end_session(text, uuid) IS
'Ends one session at once, with its refresh token and opaque access tokens; the user''s other sessions go on. False when it had ended before.
Example: SELECT admin.end_session(''acme'', id) FROM admin.sessions WHERE realm = ''acme'' AND email = ''ada@example.com'' AND client_id = ''acme-ios'';';

CREATE OR REPLACE FUNCTION admin.delete_passkey(realm text, id uuid)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_passkey record;
BEGIN
    DELETE FROM postern.passkey AS p WHERE p.realm_id = v_realm AND p.id = id RETURNING p.user_id, p.aaguid INTO v_passkey;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('id %s is not a passkey of this realm', postern.shown(id::text)),
            'SELECT id FROM admin.passkeys WHERE realm = … AND email = … lists them.');
    END IF;
    PERFORM postern.admin_audit(v_realm, 'passkey_deleted', user_id => v_passkey.user_id, detail => jsonb_build_object('passkey', id));
    PERFORM postern.queue_notice(v_realm, v_passkey.user_id, 'passkey-removed',
        jsonb_strip_nulls(jsonb_build_object('aaguid', v_passkey.aaguid)));
END
$$;
COMMENT ON FUNCTION admin.delete_passkey(text, uuid) IS
'Deletes one passkey of a user, who is told by mail. Sessions that it opened go on: see admin.end_session and admin.sign_out_everywhere.
Example: SELECT admin.delete_passkey(''acme'', id) FROM admin.passkeys WHERE realm = ''acme'' AND email = ''ada@example.com'';';

CREATE OR REPLACE FUNCTION admin.delete_service_account(realm text, name text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid;
BEGIN
    -- A trigger refuses while the client may still act for itself.
    DELETE FROM postern.service_account AS s WHERE s.realm_id = v_realm AND s.name = name RETURNING s.client INTO v_client;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('name %s is not a service account of this realm', postern.shown(name)),
            'SELECT name, client_id FROM admin.service_accounts WHERE realm = … lists them.');
    END IF;
    PERFORM postern.admin_audit(v_realm, 'service_account_deleted', client => v_client, detail => jsonb_build_object('name', name));
END
$$;
COMMENT ON FUNCTION admin.delete_service_account(text, text) IS
'Deletes a service account; its tokens die at once. Revoke gt:client_credentials from its client first: a client that acts for itself needs one.
Example: SELECT admin.delete_service_account(''acme'', ''nightly-export'');';

CREATE OR REPLACE VIEW admin.deleted_realms AS
SELECT d.slug, d.realm_id AS id, d.issuer, d.created_at, d.deleted_at, d.deleted_by, d.users, d.clients FROM postern.deleted_realm AS d;
COMMENT ON VIEW admin.deleted_realms IS 'Realms that were deleted: when, by whom and how large they were';
REVOKE ALL ON admin.deleted_realms FROM PUBLIC;
GRANT SELECT ON admin.deleted_realms TO postern_admin;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admin FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admin TO postern_admin;

RESET ROLE;
