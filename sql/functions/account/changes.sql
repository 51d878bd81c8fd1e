-- What the functions of administrators and owners share: who a user is, another address, the end of all access.
SET LOCAL ROLE postern_owner;

-- True when the mailbox changed. When only the spelling of the same address changed, the spelling is stored.
CREATE OR REPLACE FUNCTION postern.change_address(p_realm uuid, p_user uuid, p_email text, p_verified boolean)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_key text := postern.address_key(p_email);
    v_old record;
    v_ended integer;
BEGIN
    SELECT u.email, u.address_key, u.email_verified INTO v_old
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user FOR NO KEY UPDATE;
    IF v_old.email = p_email THEN
        RETURN false;
    END IF;
    IF v_old.address_key = v_key THEN
        UPDATE postern.user_account AS u SET email = p_email WHERE u.realm_id = p_realm AND u.id = p_user;
        RETURN false;
    END IF;
    IF postern.is_test_identity(p_user) THEN
        PERFORM postern.refuse(format('email %s is a test identity', postern.shown(v_old.email)),
            'Delete it with admin.delete_test_identity and put one with the other address.');
    END IF;
    -- Before the change, since codes are found by the address.
    v_ended := postern.end_access(p_realm, p_user);
    BEGIN
        -- The address replaces the former one, also if it was a further address of this user before.
        DELETE FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.key = v_key;
        UPDATE postern.user_account AS u
           SET email = p_email, email_verified = p_verified, security_stamp = gen_random_uuid()
         WHERE u.realm_id = p_realm AND u.id = p_user
           AND postern.identifier_holder(p_realm, v_key, p_user) IS NULL;
        IF NOT FOUND THEN
            RAISE unique_violation;
        END IF;
    EXCEPTION WHEN unique_violation THEN
        PERFORM postern.refuse(format('new_email %s is the address of another user', postern.shown(p_email)),
            'An address belongs to one user of a realm: choose another, or delete that user first.');
    END;
    -- Requests made for either address before this change do not apply to the changed account.
    DELETE FROM postern.sign_in_request AS a WHERE a.realm_id = p_realm AND a.address_key IN (v_old.address_key, v_key);
    DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.address_key IN (v_old.address_key, v_key);
    PERFORM postern.admin_audit(p_realm, 'address_changed', user_id => p_user,
                                detail => jsonb_build_object('email_verified', p_verified));
    PERFORM postern.admin_audit(p_realm, 'user_signed_out', user_id => p_user,
                                detail => jsonb_build_object('reason', 'address_changed', 'sessions', v_ended));
    IF v_old.email_verified THEN
        PERFORM postern.queue_notice(p_realm, p_user, 'address-changed', p_recipient => v_old.email);
    END IF;
    PERFORM postern.queue_notice(p_realm, p_user, 'address-changed', p_recipient => p_email);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.change_address IS
    'Gives a user another address: ends what the former one opened and tells both mailboxes';

-- The one place where all access of a user ends: sessions, codes, links, and handles whose link was confirmed or whose
-- address was proven.
-- (Ceremonies of an enrolment belong to a session and end with it; those of a sign-in belong to no account.) The caller
-- or a trigger changes the security stamp. A new stamp ends links and confirmed handles too, so that none survives a
-- change of the row made in another way. p_kept: a session that goes on; its caller gives it the new stamp.
CREATE OR REPLACE FUNCTION postern.end_access_except(p_realm uuid, p_user uuid, p_kept uuid) RETURNS uuid[]
LANGUAGE plpgsql
AS $$
DECLARE
    v_ended uuid[];
    v_key text;
BEGIN
    PERFORM postern.lock_links(p_realm, p_user);
    -- One address at a time, as postern.forget_wrong_codes does.
    FOR v_key IN SELECT k FROM postern.identifier_keys(p_realm, p_user) AS k LOOP
        DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.address_key = v_key;
        UPDATE postern.sign_in_request AS a SET expires_at = '-infinity', proved_at = NULL
         WHERE a.realm_id = p_realm AND a.address_key = v_key AND a.proved_at IS NOT NULL;
    END LOOP;
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity'
     WHERE a.realm_id = p_realm AND a.confirmed_user = p_user
       AND a.id IN (SELECT l.handle FROM postern.login_link AS l WHERE l.realm_id = p_realm AND l.user_id = p_user);
    UPDATE postern.login_link AS l SET ended = 'superseded'
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL;
    WITH ended AS (
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL AND s.id IS DISTINCT FROM p_kept
        RETURNING s.id)
    SELECT coalesce(array_agg(e.id), '{}') INTO v_ended FROM ended AS e;
    -- Devices that wait for requests look again: those of a disabled user are refused.
    PERFORM postern.wake(p_realm, 'user', p_user);
    RETURN v_ended;
END
$$;
COMMENT ON FUNCTION postern.end_access_except IS
    'Ends the sessions but one, codes, links and confirmed handles of a user; returns the sessions that ended';

CREATE OR REPLACE FUNCTION postern.end_access(p_realm uuid, p_user uuid) RETURNS integer
LANGUAGE sql
AS $$
    SELECT cardinality(postern.end_access_except(p_realm, p_user, NULL))
$$;
COMMENT ON FUNCTION postern.end_access IS
    'Ends the sessions, codes, links and confirmed handles of a user; returns how many sessions there were';

RESET ROLE;
