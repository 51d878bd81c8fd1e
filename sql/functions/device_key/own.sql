-- Trusted devices are added, listed and changed.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('trusted-device', 'source', 1200, interval '5 minutes', 300, 'enforce'),
    ('trusted-device', 'target', 60, interval '1 minute', 60, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- Makes a key a trusted device of a user. p_added_by: the device that adopts it; NULL: a sign-in. Outcomes: added; same
-- (it is one already, and stays as it is); key_in_use (another user's); too_many (ten). The caller holds the user, so
-- their count is exact.
CREATE OR REPLACE FUNCTION postern.put_device(
    p_realm uuid, p_user uuid, p_client uuid, p_thumbprint bytea, p_public_key bytea, p_display_name text,
    p_push_handle bytea, p_added_by uuid, p_session uuid, p_source text,
    OUT outcome text, OUT device postern.device_key)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_others integer;
    v_has_probation boolean;
BEGIN
    SELECT count(*) INTO v_others FROM postern.device_key AS d WHERE d.realm_id = p_realm AND d.user_id = p_user;
    -- Beside others, or soon after others were removed: removing those that can refuse it does not shorten it.
    SELECT r.approval_probation > interval '0'
               AND (v_others > 0 OR coalesce(u.device_removed_at > now() - r.approval_probation, false))
      INTO v_has_probation
      FROM postern.user_account AS u JOIN postern.realm AS r ON r.id = u.realm_id
     WHERE u.realm_id = p_realm AND u.id = p_user;
    INSERT INTO postern.device_key AS d (realm_id, thumbprint, public_key, user_id, client, added_at, probation_until,
                                         added_by, display_name, push_handle)
    SELECT p_realm, p_thumbprint, p_public_key, p_user, p_client, now(),
           CASE WHEN v_has_probation THEN now() + r.approval_probation END,
           p_added_by, p_display_name, p_push_handle
      FROM postern.realm AS r WHERE r.id = p_realm AND v_others < 10
        ON CONFLICT (realm_id, thumbprint) DO UPDATE
       SET user_id = excluded.user_id, client = excluded.client, added_at = excluded.added_at, used_at = now(),
           probation_until = excluded.probation_until, added_by = excluded.added_by,
           display_name = excluded.display_name, push_handle = excluded.push_handle
     WHERE d.user_id IS NULL
    RETURNING d.* INTO device;
    IF device.id IS NULL THEN
        SELECT d.* INTO device
          FROM postern.device_key AS d WHERE d.realm_id = p_realm AND d.thumbprint = p_thumbprint
           AND d.user_id IS NOT NULL;
        outcome := CASE WHEN device.user_id = p_user THEN 'same' WHEN FOUND THEN 'key_in_use' ELSE 'too_many' END;
        RETURN;
    END IF;
    outcome := 'added';
    PERFORM postern.queue_notice(p_realm, p_user, 'device-added',
                                 postern.notice_of_device(p_realm, device.id, p_client, p_source)
                                 || postern.offer_undo(p_realm, p_user, 'device', device.id, NULL, p_source));
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, CASE WHEN p_added_by IS NULL THEN 'device_added' ELSE 'device_adopted' END, p_client, p_user,
            p_session, p_source, jsonb_strip_nulls(jsonb_build_object('device', device.id, 'adopted_by', p_added_by)));
    PERFORM postern.wake(p_realm, 'user', p_user);
END
$$;
COMMENT ON FUNCTION postern.put_device IS
    'Makes a key a trusted device of a user, with notice and audit; says why it cannot be one';

-- What a notice says of a device that was added: its name, through which client, when, and from where.
CREATE OR REPLACE FUNCTION postern.notice_of_device(p_realm uuid, p_device uuid, p_client uuid, p_source text)
RETURNS jsonb
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN postern.app_named(p_realm, p_client)
        || jsonb_strip_nulls(jsonb_build_object(
               'device', (SELECT d.display_name FROM postern.device_key AS d
                           WHERE d.realm_id = p_realm AND d.id = p_device),
               'client', (SELECT c.display_name FROM postern.client AS c
                           WHERE c.realm_id = p_realm AND c.id = p_client),
               'at', floor(date_part('epoch', now())), 'source', p_source));
END
$$;
COMMENT ON FUNCTION postern.notice_of_device IS 'Detail of a notice that a device was added';

-- The key of the proof becomes a trusted device of the user of a live session. Outcomes: those of put_device, and
-- signed_out.
CREATE OR REPLACE FUNCTION postern.add_device(
    p_realm uuid, p_proof postern.proof_use, p_session uuid, p_public_key bytea, p_display_name text,
    p_push_handle bytea, p_source text,
    OUT outcome text, OUT id uuid, OUT probation_until double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_user record;
    v_put record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    PERFORM postern.use_proof(p_realm, p_proof);
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS NULL THEN
        outcome := 'signed_out';
        RETURN;
    END IF;
    SELECT p.* INTO v_put
      FROM postern.put_device(p_realm, v_user.id, v_user.client, p_proof.key, p_public_key, p_display_name,
                              p_push_handle, NULL, p_session, p_source) AS p;
    outcome := v_put.outcome;
    IF outcome IN ('added', 'same') THEN
        id := (v_put.device).id;
        probation_until := CASE WHEN (v_put.device).probation_until > now()
                                THEN date_part('epoch', (v_put.device).probation_until) END;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.add_device IS 'Makes the key of a proof a trusted device of the session''s user';
GRANT EXECUTE ON FUNCTION postern.add_device TO postern_app;

-- The number of a key, if it is a number of this user and was bound since it is.
CREATE OR REPLACE FUNCTION postern.phone_of_user(k postern.device_key, p_user uuid) RETURNS text
LANGUAGE sql STABLE
RETURN (SELECT i.value FROM postern.user_identifier AS i
         WHERE i.realm_id = k.realm_id AND i.proven_key = k.phone AND i.user_id = p_user
           AND i.held_since <= k.phone_at);
COMMENT ON FUNCTION postern.phone_of_user IS 'The number that a key proves, if it is one of a user''s';

-- Trusted devices, and keys that prove one of the user's numbers (phone). Of another user's trusted device that proves
-- such a number only that is shown: is_trusted is false.
CREATE OR REPLACE FUNCTION postern.list_devices(p_realm uuid, p_user uuid, p_id uuid)
RETURNS TABLE (id uuid, display_name text, client_id text, created_at double precision, last_used_at double precision,
               probation_until double precision, is_adopted boolean, is_trusted boolean, phone text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    WITH listed AS (
        SELECT d.id, d.display_name, d.client, d.added_at, d.used_at, d.probation_until,
               d.added_by IS NOT NULL AS adopted, true AS trusted, postern.phone_of_user(d, p_user) AS phone
          FROM postern.device_key AS d
         WHERE d.realm_id = p_realm AND d.user_id = p_user
        UNION ALL
        SELECT d.id, NULL, d.phone_client, d.phone_at, d.used_at, NULL, false, false, d.phone
          FROM postern.user_identifier AS i
          JOIN postern.device_key AS d ON d.realm_id = i.realm_id AND d.phone = i.proven_key
         WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = 'phone' AND d.phone_at >= i.held_since
           AND d.user_id IS DISTINCT FROM p_user)
    SELECT l.id, l.display_name, coalesce(c.client_id, ''), date_part('epoch', l.added_at),
           CASE WHEN l.used_at > l.added_at THEN date_part('epoch', l.used_at) END,
           CASE WHEN l.probation_until > now() THEN date_part('epoch', l.probation_until) END,
           l.adopted, l.trusted, l.phone
      FROM listed AS l LEFT JOIN postern.client AS c ON c.realm_id = p_realm AND c.id = l.client
     WHERE p_id IS NULL OR l.id = p_id
     ORDER BY l.added_at DESC, l.id
$$;
COMMENT ON FUNCTION postern.list_devices IS
    'A user''s trusted devices and the keys of the user''s numbers, newest first, or the one named';
GRANT EXECUTE ON FUNCTION postern.list_devices TO postern_app;

-- The device that a call's proof stands for. Outcomes: found (id, owner), unknown (no trusted device, or its user is
-- disabled), rate_limited.
CREATE OR REPLACE FUNCTION postern.enter_device(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits,
    OUT outcome text, OUT device postern.device_key,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm, p_proof);
    SELECT d.* INTO device FROM postern.device_by_key(p_realm, p_proof.key) AS d;
    outcome := CASE WHEN FOUND THEN 'found' ELSE 'unknown' END;
END
$$;
COMMENT ON FUNCTION postern.enter_device IS
    'Begins the statement of a call that a device makes with its proof alone: permits, proof, device';
GRANT EXECUTE ON FUNCTION postern.enter_device TO postern_app;

-- One call of a device about itself. Without p_remove it is changed as far as p_display_name and p_push_handle say
-- (p_clear_push: the handle goes), and returned. Outcomes: done; unknown; foreign (p_id is another device; NULL: the
-- caller does not name one); rate_limited.
CREATE OR REPLACE FUNCTION postern.call_of_device(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits, p_id uuid, p_display_name text,
    p_push_handle bytea, p_clear_push boolean, p_remove boolean, p_source text,
    OUT outcome text, OUT id uuid, OUT display_name text, OUT client_id text, OUT created_at double precision,
    OUT last_used_at double precision, OUT probation_until double precision, OUT is_adopted boolean,
    OUT is_trusted boolean, OUT phone text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_entered record;
    v_device postern.device_key;
BEGIN
    SELECT t.* INTO v_entered FROM postern.enter_device(p_realm, p_proof, p_permits) AS t;
    outcome := v_entered.outcome;
    limit_ord := v_entered.limit_ord;
    retry_after := v_entered.retry_after;
    granted := v_entered.granted;
    IF outcome <> 'found' THEN
        RETURN;
    END IF;
    v_device := v_entered.device;
    IF v_device.id <> p_id THEN
        outcome := 'foreign';
        RETURN;
    END IF;
    outcome := 'done';
    IF p_remove THEN
        PERFORM postern.remove_device(p_realm, NULL, v_device.user_id, v_device.id, p_source, true);
        RETURN;
    END IF;
    SELECT c.* INTO id, display_name, client_id, created_at, last_used_at, probation_until, is_adopted, is_trusted,
                    phone
      FROM postern.change_device(p_realm, v_device.user_id, v_device.id, p_display_name, p_push_handle,
                                 p_clear_push) AS c;
END
$$;
COMMENT ON FUNCTION postern.call_of_device IS 'A device reads, changes or removes itself by a proof of its key';
GRANT EXECUTE ON FUNCTION postern.call_of_device TO postern_app;

CREATE OR REPLACE FUNCTION postern.change_device(
    p_realm uuid, p_user uuid, p_id uuid, p_display_name text, p_push_handle bytea, p_clear_push boolean)
RETURNS TABLE (id uuid, display_name text, client_id text, created_at double precision, last_used_at double precision,
               probation_until double precision, is_adopted boolean, is_trusted boolean, phone text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF p_display_name IS NOT NULL OR p_push_handle IS NOT NULL OR p_clear_push THEN
        UPDATE postern.device_key AS d
           SET display_name = coalesce(p_display_name, d.display_name),
               push_handle = CASE WHEN p_clear_push THEN NULL ELSE coalesce(p_push_handle, d.push_handle) END
         WHERE d.realm_id = p_realm AND d.user_id = p_user AND d.id = p_id;
    END IF;
    RETURN QUERY SELECT l.* FROM postern.list_devices(p_realm, p_user, p_id) AS l WHERE l.is_trusted;
END
$$;
COMMENT ON FUNCTION postern.change_device IS 'Changes a user''s device as far as the arguments say, and returns it';

CREATE OR REPLACE FUNCTION postern.change_own_device(
    p_realm uuid, p_session uuid, p_id uuid, p_display_name text, p_push_handle bytea, p_clear_push boolean)
RETURNS TABLE (id uuid, display_name text, client_id text, created_at double precision, last_used_at double precision,
               probation_until double precision, is_adopted boolean, is_trusted boolean, phone text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    RETURN QUERY
    SELECT c.* FROM postern.change_device(p_realm, v_user.id, p_id, p_display_name, p_push_handle, p_clear_push) AS c;
END
$$;
COMMENT ON FUNCTION postern.change_own_device IS 'Changes a device of the session''s user, and returns it';
GRANT EXECUTE ON FUNCTION postern.change_own_device TO postern_app;

-- At most once a minute: a device that waits for approvals comes every few seconds.
CREATE OR REPLACE FUNCTION postern.note_device_use(p_realm uuid, p_id uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    UPDATE postern.device_key AS d SET used_at = now()
     WHERE d.realm_id = p_realm AND d.id = p_id AND d.used_at < now() - interval '1 minute'
$$;
COMMENT ON FUNCTION postern.note_device_use IS 'A device was used now';

RESET ROLE;
