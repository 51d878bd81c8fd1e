-- A trusted device goes.
SET LOCAL ROLE postern_owner;

-- The key of a proven phone stays one; it has no user any more. Returns whose device it was; NULL: there was none.
CREATE OR REPLACE FUNCTION postern.forget_device(p_realm uuid, p_id uuid) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user uuid;
BEGIN
    SELECT d.user_id INTO v_user FROM postern.device_key AS d
     WHERE d.realm_id = p_realm AND d.id = p_id AND d.user_id IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    DELETE FROM postern.device_key AS d WHERE d.realm_id = p_realm AND d.id = p_id AND d.phone IS NULL;
    UPDATE postern.device_key AS d
       SET user_id = NULL, client = NULL, added_at = NULL, probation_until = NULL, added_by = NULL,
           display_name = NULL, push_handle = NULL
     WHERE d.realm_id = p_realm AND d.id = p_id;
    PERFORM postern.wake(p_realm, 'user', v_user);
    RETURN v_user;
END
$$;
COMMENT ON FUNCTION postern.forget_device IS 'A key is no trusted device any more; says whose it was';

-- Removes a user's device, with notice and audit: it is no trusted device any more, and proves none of the user's
-- numbers. p_by_itself: by its own key; the next device may take its place without probation. True exactly once.
CREATE OR REPLACE FUNCTION postern.remove_device(
    p_realm uuid, p_session uuid, p_user uuid, p_id uuid, p_source text, p_by_itself boolean DEFAULT false)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_device postern.device_key;
    v_client uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT d.* INTO v_device FROM postern.device_key AS d WHERE d.realm_id = p_realm AND d.id = p_id FOR UPDATE;
    IF v_device.user_id IS DISTINCT FROM p_user AND postern.phone_of_user(v_device, p_user) IS NULL THEN
        RETURN false;
    END IF;
    v_client := v_device.phone_client;
    IF postern.phone_of_user(v_device, p_user) IS NOT NULL THEN
        PERFORM postern.unbind_phone(p_realm, p_id, 'owner', p_user => p_user);
    END IF;
    IF v_device.user_id = p_user THEN
        v_client := v_device.client;
        PERFORM postern.forget_device(p_realm, p_id);
        UPDATE postern.user_account AS u SET device_removed_at = now()
         WHERE u.realm_id = p_realm AND u.id = p_user AND NOT p_by_itself;
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
        VALUES (p_realm, 'device_removed', v_client, p_user, p_session, p_source, jsonb_build_object('device', p_id));
    END IF;
    PERFORM postern.queue_notice(p_realm, p_user, 'device-removed', postern.app_named(p_realm, v_client));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.remove_device IS 'Removes a user''s device, and tells the user';

CREATE OR REPLACE FUNCTION postern.remove_own_device(p_realm uuid, p_session uuid, p_id uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    RETURN v_user.id IS NOT NULL AND postern.remove_device(p_realm, p_session, v_user.id, p_id, p_source);
END
$$;
COMMENT ON FUNCTION postern.remove_own_device IS 'Removes a device of the session''s user; true exactly once';
GRANT EXECUTE ON FUNCTION postern.remove_own_device TO postern_app;

RESET ROLE;
