-- Which number a key proves, for whom, and when that ends.
SET LOCAL ROLE postern_owner;

-- The number that a key proves to a client; NULL: to that client it is a new key. change_hands and the end of a test
-- number take bindings away; here times and permissions are compared once more.
CREATE OR REPLACE FUNCTION postern.bound_phone(k postern.device_key, p_client uuid) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN EXISTS (SELECT FROM postern.user_identifier AS i
                  WHERE i.realm_id = k.realm_id AND i.proven_key = k.phone AND i.held_since > k.phone_at) THEN NULL
    WHEN k.phone_by = 'asserted'
         AND NOT EXISTS (SELECT FROM postern.client AS c
                          WHERE c.realm_id = k.realm_id AND c.id = p_client AND c.id = k.phone_client
                            AND 'cap:assert-possession' = ANY (c.permissions)) THEN NULL
    WHEN k.phone_by = 'test'
         AND NOT EXISTS (SELECT FROM postern.test_number AS n
                          WHERE n.realm_id = k.realm_id AND n.phone = k.phone AND n.client = p_client
                            AND n.client = k.phone_client AND n.expires_at > now()) THEN NULL
    ELSE k.phone END;
COMMENT ON FUNCTION postern.bound_phone IS
    'The number that a key proves to a client: what a backend said or a test number gave counts for that client alone';

-- One key has one phone; a second number frees the first. p_by: as device_key.phone_by. The account that has the number
-- is told of a key that it did not know.
CREATE OR REPLACE FUNCTION postern.bind_phone(t postern.device_request, p_by text) RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    v_before postern.device_key;
    v_id uuid;
BEGIN
    IF t.key IS NULL OR t.phone IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT k.* INTO v_before FROM postern.device_key AS k
     WHERE k.realm_id = t.realm_id AND k.thumbprint = t.key FOR UPDATE;
    INSERT INTO postern.device_key AS k (realm_id, thumbprint, public_key, phone, phone_at, phone_by, phone_client)
    VALUES (t.realm_id, t.key, t.public_key, t.phone, clock_timestamp(), p_by, t.client)
        ON CONFLICT (realm_id, thumbprint) DO UPDATE
       SET phone = excluded.phone, phone_at = excluded.phone_at, phone_by = excluded.phone_by,
           phone_client = excluded.phone_client, used_at = now()
    RETURNING k.id INTO v_id;
    IF v_before.phone IS DISTINCT FROM t.phone THEN
        INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
        VALUES (t.realm_id, CASE WHEN v_before.phone IS NULL THEN 'possession_bound' ELSE 'possession_rebound' END,
                t.client, t.source, jsonb_build_object('correlation_id', t.id, 'device', v_id));
    END IF;
    IF v_before.phone IS DISTINCT FROM t.phone OR postern.bound_phone(v_before, t.client) IS NULL THEN
        PERFORM postern.tell_of_phone_key(t, v_id);
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.bind_phone IS 'Binds the key of a transaction to its number; says which key that is';

CREATE OR REPLACE FUNCTION postern.tell_of_phone_key(t postern.device_request, p_device uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_number text := postern.masked_identifier(t.phone);
BEGIN
    PERFORM postern.queue_notice(
                t.realm_id, i.user_id, 'phone-key-added',
                postern.notice_of_device(t.realm_id, p_device, t.client, t.source)
                || jsonb_build_object('number', v_number)
                || postern.offer_undo(t.realm_id, i.user_id, 'phone-key', p_device, v_number, t.source))
       FROM postern.user_identifier AS i
      WHERE i.realm_id = t.realm_id AND i.proven_key = t.phone AND i.kind = 'phone';
END
$$;
COMMENT ON FUNCTION postern.tell_of_phone_key IS
    'Tells the account that has a number of a device that proves it now, with a link to undo that';

-- Takes the number from a key. A trusted device stays one. p_reason: for the audit log. p_client: only if that client
-- bound it last; NULL: whichever client did. p_user: who removed it.
CREATE OR REPLACE FUNCTION postern.unbind_phone(
    p_realm uuid, p_device uuid, p_reason text, p_client uuid DEFAULT NULL, p_user uuid DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_client uuid;
BEGIN
    SELECT k.phone_client INTO v_client FROM postern.device_key AS k
     WHERE k.realm_id = p_realm AND k.id = p_device AND k.phone IS NOT NULL
       AND (p_client IS NULL OR k.phone_client = p_client) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.device_key AS k SET phone = NULL, phone_at = NULL, phone_by = NULL, phone_client = NULL
     WHERE k.realm_id = p_realm AND k.id = p_device;
    DELETE FROM postern.device_key AS k WHERE k.realm_id = p_realm AND k.id = p_device AND k.user_id IS NULL;
    -- A realm that is being deleted keeps no log.
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, detail)
    SELECT p_realm, 'key_revoked', v_client, p_user, jsonb_build_object('device', p_device, 'reason', p_reason)
      FROM postern.realm AS r WHERE r.id = p_realm;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.unbind_phone IS
    'Takes the number from a key, audited; false: it has none, or another client bound it';

-- p_test_of: only the bindings that a client made with its test number; NULL: all.
CREATE OR REPLACE FUNCTION postern.end_phone_bindings(
    p_realm uuid, p_phone text, p_reason text, p_test_of uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.unbind_phone(p_realm, k.id, p_reason)
       FROM postern.device_key AS k
      WHERE k.realm_id = p_realm AND k.phone = p_phone
        AND (p_test_of IS NULL OR k.phone_by = 'test' AND k.phone_client = p_test_of);
END
$$;
COMMENT ON FUNCTION postern.end_phone_bindings IS 'No key proves a number any more';

-- What was passed for a number stays passed for the backend that asked, and signs no user in. p_test_of: only the
-- transactions of a client with its test number.
CREATE OR REPLACE FUNCTION postern.end_possessions(p_realm uuid, p_phone text, p_test_of uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_states postern.device_request_state[] := '{open,sent,linked,required}';
BEGIN
    PERFORM postern.fail_possession(p_realm, t.id, v_states, '{9100}')
       FROM postern.device_request AS t
      WHERE t.realm_id = p_realm AND t.phone = p_phone AND t.kind <> 'approval' AND t.state = ANY (v_states)
        AND (p_test_of IS NULL OR t.is_test AND t.client = p_test_of);
    -- Looked at after those: one that passed meanwhile is among these.
    UPDATE postern.device_request AS t SET security_stamp = NULL
     WHERE t.realm_id = p_realm AND t.phone = p_phone AND t.kind <> 'approval' AND t.state = 'passed'
       AND t.security_stamp IS NOT NULL AND (p_test_of IS NULL OR t.is_test AND t.client = p_test_of);
END
$$;
COMMENT ON FUNCTION postern.end_possessions IS 'Ends the transactions of a number that is in other hands now';

-- Called by a trigger of test_number, however a row goes: deleted, replaced, swept after its time.
CREATE OR REPLACE FUNCTION postern.end_test_number(p_realm uuid, p_phone text, p_client uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    -- A realm that is being deleted keeps nothing.
    IF NOT EXISTS (SELECT FROM postern.realm AS r WHERE r.id = p_realm) THEN
        RETURN;
    END IF;
    PERFORM postern.end_possessions(p_realm, p_phone, p_client);
    PERFORM postern.end_phone_bindings(p_realm, p_phone, 'test_number', p_client);
END
$$;
COMMENT ON FUNCTION postern.end_test_number IS 'What was proven by a test number ends with it';

RESET ROLE;
