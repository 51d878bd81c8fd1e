-- Provisioning: people.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_user(
    realm text, email text DEFAULT NULL, first_name text DEFAULT NULL, last_name text DEFAULT NULL,
    email_verified boolean DEFAULT NULL, enabled boolean DEFAULT NULL, id uuid DEFAULT NULL,
    new_email text DEFAULT NULL, phone text DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_created boolean := false;
    v_changed boolean := false;
    v_was_enabled boolean;
    v_taken text;
    v_name text;
BEGIN
    IF postern.is_phone(email) AND phone IS NULL THEN
        phone := email;
        email := NULL;
    END IF;
    v_id := postern.user_by_id(v_realm, email);
    IF v_id IS NOT NULL THEN
        email := NULL;
    ELSIF email IS NOT NULL OR phone IS NULL THEN
        PERFORM postern.check_email('email', email);
    END IF;
    IF phone IS NOT NULL THEN
        PERFORM postern.check_phone('phone', phone);
    END IF;
    v_name := coalesce(email, phone, v_id::text);
    IF new_email IS NOT NULL THEN
        PERFORM postern.check_email('new_email', new_email);
    END IF;
    IF first_name <> '' THEN
        PERFORM postern.check_name('first_name', first_name);
    END IF;
    IF last_name <> '' THEN
        PERFORM postern.check_name('last_name', last_name);
    END IF;
    v_id := coalesce(v_id, postern.find_user(v_realm, coalesce(email, phone)));
    IF new_email IS NOT NULL THEN
        -- When the call is repeated after the change, the user is found by the new address.
        v_id := coalesce(v_id, postern.find_user(v_realm, new_email));
        IF v_id IS NULL THEN
            PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(v_name)),
                'new_email changes the address of a user who exists. A new user is put with email alone.');
        END IF;
    END IF;
    IF id <> v_id THEN
        PERFORM postern.refuse(format('id "%s" is not that of the user %s', id, postern.shown(v_name)),
            'id counts only when a user is created, and stays: leave it out, or delete the user first.');
    END IF;
    IF new_email IS NOT NULL THEN
        v_changed := postern.change_address(v_realm, v_id, new_email, coalesce(email_verified, false));
        -- change_address has already stored whether the new address is confirmed.
        email_verified := CASE WHEN NOT v_changed THEN email_verified END;
    END IF;
    -- A concurrent registration by code may commit between the two statements.
    LOOP
        v_id := coalesce(v_id, postern.find_user(v_realm, coalesce(email, phone)));
        SELECT u.enabled INTO v_was_enabled
          FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = v_id FOR NO KEY UPDATE;
        UPDATE postern.user_account AS u
           SET first_name = CASE WHEN first_name = '' THEN NULL ELSE coalesce(first_name, u.first_name) END,
               last_name = CASE WHEN last_name = '' THEN NULL ELSE coalesce(last_name, u.last_name) END,
               email_verified = coalesce(email_verified, u.email_verified), enabled = coalesce(enabled, u.enabled)
         WHERE u.realm_id = v_realm AND u.id = v_id
        RETURNING u.id INTO v_id;
        EXIT WHEN FOUND;
        IF postern.is_test_identity(id) THEN
            PERFORM postern.refuse(format('id "%s" is a UUID of version 8', id),
                'Version 8 marks test identities. Give a UUID of another version; NULL draws one at random.');
        END IF;
        SELECT coalesce(u.email, u.id::text) INTO v_taken
          FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = id;
        IF FOUND THEN
            PERFORM postern.refuse(format('id "%s" is that of the user %s', id, postern.shown(v_taken)),
                'An id belongs to one user. To change the address of that user, put it by its present address with '
                'new_email.');
        END IF;
        INSERT INTO postern.user_account AS u (realm_id, id, email, first_name, last_name, email_verified, enabled)
        VALUES (v_realm, coalesce(id, gen_random_uuid()), email, NULLIF(first_name, ''), NULLIF(last_name, ''),
                email IS NOT NULL AND coalesce(email_verified, true), coalesce(enabled, true))
            ON CONFLICT DO NOTHING
        RETURNING u.id INTO v_id;
        v_created := FOUND;
        EXIT WHEN v_created;
    END LOOP;
    IF phone IS NOT NULL THEN
        PERFORM postern.admin_identifier(v_realm, v_id, 'phone', phone, true, NULL);
    END IF;
    IF NOT enabled THEN
        PERFORM postern.end_access(v_realm, v_id);
    END IF;
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_created THEN 'user_created' ELSE 'user_updated' END,
                                user_id => v_id,
        detail => jsonb_build_object('email_verified', email_verified, 'enabled', enabled));
    IF enabled <> v_was_enabled THEN
        PERFORM postern.admin_audit(v_realm, CASE WHEN enabled THEN 'user_enabled' ELSE 'user_disabled' END,
                                    user_id => v_id);
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_user IS
'Creates or updates a user and returns the id. NULL leaves a setting as it is; a name '''' removes it.
email identifies (ASCII letters in any case): any address of the user. A phone number or the id finds a user too.
phone: E.164. With an address it is added to the user, as proven; without one it identifies the user.
email_verified, enabled: default true. Without a verified address a user is sent no code.
id: of a new user, so that an import keeps the sub of its tokens; NULL draws one. It never changes.
new_email: the address the user has from now on. It counts as unverified unless email_verified is true. Sessions, codes
and links end; both mailboxes are told.
Example: SELECT admin.put_user(''acme'', ''ada@example.com'', ''Ada'', ''Lovelace'');
Example: SELECT admin.put_user(''acme'', phone => ''+4366412345678'', first_name => ''Ada'');
Example: SELECT admin.put_user(''acme'', ''ada@example.com'', new_email => ''ada@new.example'',
    email_verified => true);';

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
    -- A device of the user that waits for requests is one no more.
    PERFORM postern.wake(v_realm, 'user', v_user);
    PERFORM postern.admin_audit(v_realm, 'user_deleted', user_id => v_user);
END
$$;
COMMENT ON FUNCTION admin.delete_user IS
'Deletes a user with sessions, passkeys, codes and mail; tokens die at once. The audit log keeps the bare id.
email: an address, the phone number or the id of the user.
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
    UPDATE postern.user_account AS u SET enabled = enabled
     WHERE u.realm_id = v_realm AND u.id = v_user AND u.enabled <> enabled;
    IF FOUND THEN
        IF NOT enabled THEN
            PERFORM postern.end_access(v_realm, v_user);
        END IF;
        PERFORM postern.admin_audit(v_realm, CASE WHEN enabled THEN 'user_enabled' ELSE 'user_disabled' END,
                                    user_id => v_user);
    END IF;
END
$$;
COMMENT ON FUNCTION admin.set_user_enabled IS
'Disables a user (sessions and tokens die at once, no new sign-in) or enables the user again.
email: an address, the phone number or the id of the user.
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
    UPDATE postern.user_account AS u SET security_stamp = gen_random_uuid()
     WHERE u.realm_id = v_realm AND u.id = v_user;
    v_ended := postern.end_access(v_realm, v_user);
    PERFORM postern.admin_audit(v_realm, 'user_signed_out', user_id => v_user,
                                detail => jsonb_build_object('sessions', v_ended));
    RETURN v_ended;
END
$$;
COMMENT ON FUNCTION admin.sign_out_everywhere IS
'Ends all sessions of a user at once and returns how many there were; the user may sign in again.
email: an address, the phone number or the id of the user.
Example: SELECT admin.sign_out_everywhere(''acme'', ''ada@example.com'');';

CREATE OR REPLACE VIEW admin.users AS
SELECT r.slug AS realm, u.id, u.email, u.first_name, u.last_name, u.email_verified, u.enabled,
       g.locked_until AS codes_locked_until, u.created_at, u.has_totp,
       p.value AS phone,
       greatest(s.newest, (SELECT max(b.created_at) FROM postern.browser_session AS b
                            WHERE b.realm_id = u.realm_id AND b.user_id = u.id)) AS last_sign_in_at,
       (SELECT count(*) FROM postern.passkey AS k WHERE k.realm_id = u.realm_id AND k.user_id = u.id) AS passkeys,
       s.alive AS sessions
  FROM postern.user_account AS u JOIN postern.realm AS r ON r.id = u.realm_id
  LEFT JOIN LATERAL (
      SELECT max(x.locked_until) AS locked_until
        FROM postern.user_identifier AS i
        JOIN postern.code_guard AS x ON x.realm_id = i.realm_id AND x.address_key = i.key AND x.locked_until > now()
       WHERE i.realm_id = u.realm_id AND i.user_id = u.id) AS g ON true
 CROSS JOIN LATERAL (
      SELECT max(x.created_at) AS newest,
             count(*) FILTER (WHERE x.revoked_at IS NULL AND x.expires_at > now()
                                AND coalesce(x.refresh_expires_at > now(), true) AND u.enabled
                                AND u.security_stamp = x.security_stamp) AS alive
        FROM postern.session AS x WHERE x.realm_id = u.realm_id AND x.user_id = u.id) AS s
  LEFT JOIN postern.user_identifier AS p
         ON p.realm_id = u.realm_id AND p.user_id = u.id AND p.primary_kind = 'phone';
COMMENT ON VIEW admin.users IS
'Users of each realm. email and phone: the primary ones, NULL when there is none. last_sign_in_at: of the sessions that
are still kept; admin.audit_log has those of a year. sessions: those alive.';

RESET ROLE;
