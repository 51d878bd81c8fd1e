-- What a person sees, changes and deletes of the own account.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.own_account(p_realm uuid, p_user uuid)
RETURNS TABLE (email text, email_verified boolean, phone text, first_name text, last_name text,
               created_at double precision, has_totp boolean, passkeys integer, sessions integer)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT u.email, u.email_verified,
           (SELECT i.value FROM postern.user_identifier AS i
             WHERE i.realm_id = p_realm AND i.user_id = u.id AND i.primary_kind = 'phone'
               AND i.proven_key IS NOT NULL),
           u.first_name, u.last_name, date_part('epoch', u.created_at), u.has_totp,
           (SELECT count(*)::integer FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = u.id),
           (SELECT count(*)::integer FROM postern.live_sessions(p_realm, u.id))
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user AND u.enabled;
END
$$;
COMMENT ON FUNCTION postern.own_account IS 'A user''s own data; no row if no enabled user has this id';
GRANT EXECUTE ON FUNCTION postern.own_account TO postern_app;

-- p_set_first, p_set_last: which name to change; NULL removes it. False when the user is gone.
CREATE OR REPLACE FUNCTION postern.set_own_names(
    p_realm uuid, p_user uuid, p_session uuid, p_set_first boolean, p_first_name text, p_set_last boolean,
    p_last_name text, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF (postern.hold_session_owner(p_realm, p_session)).id IS DISTINCT FROM p_user THEN
        RETURN false;
    END IF;
    UPDATE postern.user_account AS u
       SET first_name = CASE WHEN p_set_first THEN p_first_name ELSE u.first_name END,
           last_name = CASE WHEN p_set_last THEN p_last_name ELSE u.last_name END
     WHERE u.realm_id = p_realm AND u.id = p_user AND u.enabled;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
    SELECT p_realm, 'names_changed', s.client, p_user, p_session, p_source
      FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.set_own_names IS 'Changes a user''s names; the audit log does not hold them';
GRANT EXECUTE ON FUNCTION postern.set_own_names TO postern_app;

-- Outcome: deleted; step_up (the sign-in is older than p_max_age seconds); signed_out (the session is not alive).
-- A test identity is emptied and its fixed code keeps working, because app-store reviewers try deletion, and more than
-- once.
CREATE OR REPLACE FUNCTION postern.delete_own_account(
    p_realm uuid, p_user uuid, p_session uuid, p_max_age integer, p_source text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user record;
    v_addresses text[] := ARRAY(SELECT i.value FROM postern.user_identifier AS i
                                 WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = 'email'
                                   AND i.proven_key IS NOT NULL ORDER BY NOT i.is_primary, i.added_at);
    v_address text;
    v_locale text;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF (postern.hold_session_owner(p_realm, p_session)).id IS DISTINCT FROM p_user THEN
        RETURN 'signed_out';
    END IF;
    SELECT u.locale INTO v_locale FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user
       FOR UPDATE;
    SELECT s.client, s.auth_time INTO v_user
      FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session;
    IF v_user.auth_time < now() - make_interval(secs => p_max_age) THEN
        RETURN 'step_up';
    END IF;
    IF postern.is_test_identity(p_user) THEN
        DELETE FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = p_user;
        DELETE FROM postern.totp_factor AS f WHERE f.realm_id = p_realm AND f.user_id = p_user;
        UPDATE postern.user_account AS u SET first_name = NULL, last_name = NULL, security_stamp = gen_random_uuid()
         WHERE u.realm_id = p_realm AND u.id = p_user;
        PERFORM postern.end_access(p_realm, p_user);
    ELSE
        DELETE FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user;
        -- A device of the user that waits for requests is one no more.
        PERFORM postern.wake(p_realm, 'user', p_user);
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
    VALUES (p_realm, CASE WHEN postern.is_test_identity(p_user) THEN 'test_identity_emptied' ELSE 'account_deleted' END,
            v_user.client, p_user, p_session, p_source);
    -- After the deletion, which takes the mail of the addresses with it.
    FOREACH v_address IN ARRAY v_addresses LOOP
        PERFORM postern.queue_notice(p_realm, p_user, 'account-deleted', p_recipient => v_address,
                                     p_locale => v_locale);
    END LOOP;
    RETURN 'deleted';
END
$$;
COMMENT ON FUNCTION postern.delete_own_account IS
    'Deletes the account of a session that is fresh enough, with all it has, and tells its addresses';
GRANT EXECUTE ON FUNCTION postern.delete_own_account TO postern_app;

RESET ROLE;
