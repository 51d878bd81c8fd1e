-- Provisioning: people.
SET LOCAL ROLE postern_owner;

DROP FUNCTION IF EXISTS admin.put_user(text, text, text, text, boolean, boolean);
CREATE OR REPLACE FUNCTION admin.put_user(realm text, email text, first_name text DEFAULT NULL, last_name text DEFAULT NULL,
    email_verified boolean DEFAULT NULL, enabled boolean DEFAULT NULL, id uuid DEFAULT NULL, new_email text DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_created boolean := false;
    v_changed boolean := false;
    v_taken text;
BEGIN
    PERFORM postern.check_email('email', email);
    IF new_email IS NOT NULL THEN
        PERFORM postern.check_email('new_email', new_email);
    END IF;
    IF first_name <> '' THEN
        PERFORM postern.check_text('first_name', first_name, 100);
    END IF;
    IF last_name <> '' THEN
        PERFORM postern.check_text('last_name', last_name, 100);
    END IF;
    v_id := postern.find_user(v_realm, email);
    IF new_email IS NOT NULL THEN
        -- When the call is repeated after the change, the user is found by the new address.
        v_id := coalesce(v_id, postern.find_user(v_realm, new_email));
        IF v_id IS NULL THEN
            PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(email)),
                'new_email changes the address of a user who exists. A new user is put with email alone.');
        END IF;
    END IF;
    IF id <> v_id THEN
        PERFORM postern.refuse(format('id "%s" is not that of the user %s', id, postern.shown(email)),
            'id counts only when a user is created, and stays: leave it out, or delete the user first.');
    END IF;
    IF new_email IS NOT NULL THEN
        v_changed := postern.change_address(v_realm, v_id, new_email, coalesce(email_verified, false));
        -- change_address has already stored whether the new address is confirmed.
        email_verified := CASE WHEN NOT v_changed THEN email_verified END;
    END IF;
    -- A concurrent registration by code may commit between the two statements.
    LOOP
        UPDATE postern.user_account AS u
           SET first_name = CASE WHEN first_name = '' THEN NULL ELSE coalesce(first_name, u.first_name) END,
               last_name = CASE WHEN last_name = '' THEN NULL ELSE coalesce(last_name, u.last_name) END,
               email_verified = coalesce(email_verified, u.email_verified), enabled = coalesce(enabled, u.enabled)
         WHERE u.realm_id = v_realm AND u.id = coalesce(v_id, postern.find_user(v_realm, email))
        RETURNING u.id INTO v_id;
        EXIT WHEN FOUND;
        IF postern.is_test_identity(id) THEN
            PERFORM postern.refuse(format('id "%s" is a UUID of version 8', id),
                'Version 8 marks test identities. Give a UUID of another version; NULL draws one at random.');
        END IF;
        SELECT u.email INTO v_taken FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = id;
        IF FOUND THEN
            PERFORM postern.refuse(format('id "%s" is that of the user %s', id, postern.shown(v_taken)),
                'An id belongs to one user. To change the address of that user, put it by its present address with new_email.');
        END IF;
        INSERT INTO postern.user_account AS u (realm_id, id, email, first_name, last_name, email_verified, enabled)
        VALUES (v_realm, coalesce(id, gen_random_uuid()), email, NULLIF(first_name, ''), NULLIF(last_name, ''),
                coalesce(email_verified, true), coalesce(enabled, true))
            ON CONFLICT DO NOTHING
        RETURNING u.id INTO v_id;
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
COMMENT ON FUNCTION admin.put_user(text, text, text, text, boolean, boolean, uuid, text) IS
'Creates or updates a user and returns the id. The address identifies (ASCII letters in any case). NULL leaves a setting as it is; a name '''' removes it.
email_verified, enabled: default true. Without a verified address nobody is sent a code.
id: of a new user, so that an import keeps the sub of its tokens; NULL draws one. It never changes.
new_email: the address the user has from now on. It counts as unverified unless email_verified is true. Sessions, codes and links end; both mailboxes
are told.
Example: SELECT admin.put_user(''acme'', ''ada@example.com'', ''Ada'', ''Lovelace'');
Example: SELECT admin.put_user(''acme'', ''ada@example.com'', new_email => ''ada@new.example'', email_verified => true);';

-- True when the mailbox changed. When only the spelling of the same address changed, the spelling is stored.
CREATE OR REPLACE FUNCTION postern.change_address(p_realm uuid, p_user uuid, p_email text, p_verified boolean) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_key text := lower(p_email COLLATE "C") COLLATE "default";
    v_old record;
BEGIN
    SELECT u.email, u.email_key, u.email_verified INTO v_old
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user FOR NO KEY UPDATE;
    IF v_old.email = p_email THEN
        RETURN false;
    END IF;
    IF v_old.email_key = v_key THEN
        UPDATE postern.user_account AS u SET email = p_email WHERE u.realm_id = p_realm AND u.id = p_user;
        RETURN false;
    END IF;
    IF postern.is_test_identity(p_user) THEN
        PERFORM postern.refuse(format('email %s is a test identity', postern.shown(v_old.email)),
            'Delete it with admin.delete_test_identity and put one with the other address.');
    END IF;
    -- Before the change, since codes are found by the address.
    PERFORM postern.end_access(p_realm, p_user);
    BEGIN
        UPDATE postern.user_account AS u SET email = p_email, email_verified = p_verified
         WHERE u.realm_id = p_realm AND u.id = p_user;
    EXCEPTION WHEN unique_violation THEN
        PERFORM postern.refuse(format('new_email %s is the address of another user', postern.shown(p_email)),
            'An address belongs to one user of a realm: choose another, or delete that user first.');
    END;
    -- Requests made for either address before this change do not apply to the changed account.
    DELETE FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.email_key IN (v_old.email_key, v_key);
    DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.email_key IN (v_old.email_key, v_key);
    PERFORM postern.admin_audit(p_realm, 'address_changed', user_id => p_user, detail => jsonb_build_object('email_verified', p_verified));
    IF v_old.email_verified THEN
        PERFORM postern.queue_notice(p_realm, p_user, 'address-changed', p_recipient => v_old.email);
    END IF;
    PERFORM postern.queue_notice(p_realm, p_user, 'address-changed', p_recipient => p_email);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.change_address(uuid, uuid, text, boolean) IS
    'Gives a user another address: ends what the former one opened and tells both mailboxes';

-- Without the column's own collation the index would be walked through all users of the realm.
CREATE OR REPLACE FUNCTION postern.find_user(p_realm uuid, p_email text) RETURNS uuid
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (SELECT u.id FROM postern.user_account AS u
             WHERE u.realm_id = p_realm AND u.email_key = lower(p_email COLLATE "C") COLLATE "default");
END
$$;
COMMENT ON FUNCTION postern.find_user(uuid, text) IS 'User by address; NULL when there is none';

CREATE OR REPLACE FUNCTION postern.check_email(argument text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value IS NULL OR NOT postern.is_email(value) THEN
        PERFORM postern.refuse(format('%s %s is not an address', argument, postern.shown(value)),
            'Allowed is one plain mailbox such as ada@example.com: no name, comment, list or quotes; '
            'international domains in their xn-- form.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_email(text, text) IS 'Refuses what is no address';
REVOKE ALL ON FUNCTION postern.change_address(uuid, uuid, text, boolean), postern.find_user(uuid, text),
    postern.check_email(text, text) FROM PUBLIC;

-- The one place where all access of a user ends: sessions, codes, links, and handles whose link was confirmed.
-- (Ceremonies of an enrolment belong to a session and end with it; those of a sign-in belong to no account.) The caller
-- or a trigger changes the security stamp. A new stamp ends links and confirmed handles too, so that none survives a
-- change of the row made in another way.
CREATE OR REPLACE FUNCTION postern.end_access(p_realm uuid, p_user uuid) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    v_ended integer;
BEGIN
    PERFORM postern.lock_links(p_realm, p_user);
    DELETE FROM postern.login_code AS c USING postern.user_account AS u
     WHERE u.realm_id = p_realm AND u.id = p_user AND c.realm_id = p_realm AND c.email_key = u.email_key;
    UPDATE postern.auth_session AS a SET expires_at = '-infinity'
     WHERE a.realm_id = p_realm AND a.confirmed_user = p_user
       AND a.id IN (SELECT l.handle FROM postern.login_link AS l WHERE l.realm_id = p_realm AND l.user_id = p_user);
    UPDATE postern.login_link AS l SET ended = 'superseded'
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL;
    UPDATE postern.session AS s SET revoked_at = now() WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL;
    GET DIAGNOSTICS v_ended = ROW_COUNT;
    RETURN v_ended;
END
$$;
COMMENT ON FUNCTION postern.end_access(uuid, uuid) IS
    'Ends the sessions, codes, links and confirmed handles of a user; returns how many sessions there were';
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
