-- Provisioning: people.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_user(realm text, email text, first_name text DEFAULT NULL, last_name text DEFAULT NULL,
    email_verified boolean DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_created boolean := false;
BEGIN
    IF email IS NULL OR NOT postern.is_email(email) THEN
        PERFORM postern.refuse(format('email %s is not an address', postern.shown(email)),
            'Allowed is one plain mailbox such as ada@example.com: no name, comment, list or quotes; international domains in their xn-- form.');
    END IF;
    IF first_name <> '' THEN
        PERFORM postern.check_text('first_name', first_name, 100);
    END IF;
    IF last_name <> '' THEN
        PERFORM postern.check_text('last_name', last_name, 100);
    END IF;
    -- Whoever registers by a code at this moment may come between the two statements.
    LOOP
        UPDATE postern.user_account AS u
           SET first_name = CASE WHEN first_name = '' THEN NULL ELSE coalesce(first_name, u.first_name) END,
               last_name = CASE WHEN last_name = '' THEN NULL ELSE coalesce(last_name, u.last_name) END,
               email_verified = coalesce(email_verified, u.email_verified), enabled = coalesce(enabled, u.enabled)
         WHERE u.realm_id = v_realm AND u.email_key = lower(email COLLATE "C") COLLATE "default"
        RETURNING u.id INTO v_id;
        EXIT WHEN FOUND;
        INSERT INTO postern.user_account (realm_id, email, first_name, last_name, email_verified, enabled)
        VALUES (v_realm, email, NULLIF(first_name, ''), NULLIF(last_name, ''), coalesce(email_verified, true), coalesce(enabled, true))
            ON CONFLICT DO NOTHING
        RETURNING id INTO v_id;
        v_created := FOUND;
        EXIT WHEN v_created;
    END LOOP;
    IF NOT enabled THEN
        PERFORM postern.end_access(v_realm, v_id);
    END IF;
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_created THEN 'user_created' ELSE 'user_updated' END, user_id => v_id,
        detail => jsonb_build_object('email_verified', email_verified, 'enabled', enabled));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_user(text, text, text, text, boolean, boolean) IS
'Creates or updates a user and returns the id. The address identifies (ASCII letters in any case). NULL leaves a setting as it is; a name '''' removes it.
email_verified, enabled: default true. Without a verified address nobody is sent a code.
Example: SELECT admin.put_user(''acme'', ''ada@example.com'', ''Ada'', ''Lovelace'');';

-- Nothing a person holds works any more: sessions are ended and live codes forgotten. The stamp is changed by the caller or its trigger.
CREATE OR REPLACE FUNCTION postern.end_access(p_realm uuid, p_user uuid) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    v_ended integer;
BEGIN
    DELETE FROM postern.login_code AS c USING postern.user_account AS u
     WHERE u.realm_id = p_realm AND u.id = p_user AND c.realm_id = p_realm AND c.email_key = u.email_key;
    UPDATE postern.session AS s SET revoked_at = now() WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL;
    GET DIAGNOSTICS v_ended = ROW_COUNT;
    RETURN v_ended;
END
$$;
COMMENT ON FUNCTION postern.end_access(uuid, uuid) IS 'Ends the sessions and forgets the codes of a user';
REVOKE ALL ON FUNCTION postern.end_access(uuid, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION admin.delete_user(realm text, email text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
BEGIN
    DELETE FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = v_user;
    PERFORM postern.admin_audit(v_realm, 'user_deleted', user_id => v_user);
END
$$;
COMMENT ON FUNCTION admin.delete_user(text, text) IS
'Deletes a user with sessions, passkeys, codes and mail; tokens die at once. The audit log keeps the bare id.
Example: SELECT admin.delete_user(''acme'', ''ada@example.com'');';

CREATE OR REPLACE FUNCTION admin.set_user_enabled(realm text, email text, enabled boolean)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
BEGIN
    IF enabled IS NULL THEN
        PERFORM postern.refuse('enabled NULL is neither on nor off', 'Allowed is true or false.');
    END IF;
    UPDATE postern.user_account AS u SET enabled = enabled WHERE u.realm_id = v_realm AND u.id = v_user AND u.enabled <> enabled;
    IF FOUND THEN
        IF NOT enabled THEN
            PERFORM postern.end_access(v_realm, v_user);
        END IF;
        PERFORM postern.admin_audit(v_realm, CASE WHEN enabled THEN 'user_enabled' ELSE 'user_disabled' END, user_id => v_user);
    END IF;
END
$$;
COMMENT ON FUNCTION admin.set_user_enabled(text, text, boolean) IS
'Disables a user (sessions and tokens die at once, no new sign-in) or enables the user again.
Example: SELECT admin.set_user_enabled(''acme'', ''ada@example.com'', false);';

CREATE OR REPLACE FUNCTION admin.sign_out_everywhere(realm text, email text)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
    v_ended integer;
BEGIN
    UPDATE postern.user_account AS u SET security_stamp = gen_random_uuid() WHERE u.realm_id = v_realm AND u.id = v_user;
    v_ended := postern.end_access(v_realm, v_user);
    PERFORM postern.admin_audit(v_realm, 'user_signed_out', user_id => v_user, detail => jsonb_build_object('sessions', v_ended));
    RETURN v_ended;
END
$$;
COMMENT ON FUNCTION admin.sign_out_everywhere(text, text) IS
'Ends all sessions of a user at once and returns how many there were; the user may sign in again.
Example: SELECT admin.sign_out_everywhere(''acme'', ''ada@example.com'');';

CREATE OR REPLACE FUNCTION admin.reset_totp(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
BEGIN
    DELETE FROM postern.totp_factor AS f WHERE f.realm_id = v_realm AND f.user_id = v_user;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'totp_removed', user_id => v_user);
    PERFORM postern.queue_notice(v_realm, v_user, 'totp-removed');
    RETURN true;
END
$$;
COMMENT ON FUNCTION admin.reset_totp(text, text) IS
'Removes the second factor of a user who lost the authenticator and the recovery codes; false when there was none. Sessions go on.
Be as sure who is asking as you would be for a new account: from then on a code by mail is enough.
Example: SELECT admin.reset_totp(''acme'', ''ada@example.com'');';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admin FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admin TO postern_admin;

RESET ROLE;
