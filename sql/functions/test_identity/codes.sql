-- What servers do about the codes of test identities and test numbers (docs/decisions/0015).
SET LOCAL ROLE postern_owner;

-- user_id NULL: of a test number, which is address_key then.
CREATE OR REPLACE FUNCTION postern.pending_test_codes()
RETURNS TABLE (realm_id uuid, user_id uuid, address_key text, code text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT t.realm_id, t.user_id, u.address_key, t.pending_code
      FROM postern.test_identity AS t JOIN postern.user_account AS u ON u.realm_id = t.realm_id AND u.id = t.user_id
     WHERE t.pending_code IS NOT NULL AND t.expires_at > now()
       AND t.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
    UNION ALL
    SELECT n.realm_id, NULL, n.phone, n.pending_code FROM postern.test_number AS n
     WHERE n.pending_code IS NOT NULL AND n.expires_at > now()
       AND n.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
$$;
COMMENT ON FUNCTION postern.pending_test_codes IS
    'Codes of test identities and test numbers that no server has keyed yet, of all realms';
GRANT EXECUTE ON FUNCTION postern.pending_test_codes TO postern_app;

-- p_code: the code that was keyed, in case an administrator has put another one meanwhile. p_data_key: the key of the
-- HMAC.
-- True when this call stored it.
CREATE OR REPLACE FUNCTION postern.store_test_code(
    p_realm uuid, p_user uuid, p_code text, p_salt bytea, p_keyed bytea, p_data_key uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_identity record;
BEGIN
    UPDATE postern.test_identity AS t SET pending_code = NULL, data_key = p_data_key
      FROM postern.user_account AS u
     WHERE t.realm_id = p_realm AND t.user_id = p_user AND t.pending_code = p_code AND u.realm_id = p_realm
       AND u.id = p_user
    RETURNING t.code_id, t.client, t.expires_at, u.address_key INTO v_identity;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.login_code AS c (realm_id, address_key, id, user_id, client, expires_at, salt, mac, is_test)
    VALUES (p_realm, v_identity.address_key, v_identity.code_id, p_user, v_identity.client, v_identity.expires_at,
            p_salt, sha256(p_salt || p_keyed), true)
        ON CONFLICT (realm_id, address_key, id) DO UPDATE
       SET client = excluded.client, expires_at = excluded.expires_at, salt = excluded.salt, mac = excluded.mac;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.store_test_code IS 'Stores the keyed form of a test identity''s code and forgets the code';
GRANT EXECUTE ON FUNCTION postern.store_test_code TO postern_app;

-- True when this call stored it.
CREATE OR REPLACE FUNCTION postern.store_test_number_code(
    p_realm uuid, p_phone text, p_code text, p_salt bytea, p_keyed bytea, p_data_key uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    UPDATE postern.test_number AS n
       SET pending_code = NULL, code_salt = p_salt, code_mac = sha256(p_salt || p_keyed), data_key = p_data_key
     WHERE n.realm_id = p_realm AND n.phone = p_phone AND n.pending_code = p_code;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.store_test_number_code IS
    'Stores the keyed form of a test number''s code and forgets the code';
GRANT EXECUTE ON FUNCTION postern.store_test_number_code TO postern_app;

-- A request for a code by a test identity: nothing is sent, the handle opens the fixed code. False for every other
-- address.
CREATE OR REPLACE FUNCTION postern.answer_test_identity(p_realm uuid, p_request bytea, p_address_key text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_identity record;
BEGIN
    SELECT t.code_id, t.user_id INTO v_identity
      FROM postern.user_account AS u JOIN postern.test_identity AS t ON t.realm_id = u.realm_id AND t.user_id = u.id
     WHERE u.realm_id = p_realm AND u.address_key = p_address_key;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.sign_in_request AS a
       SET pending = false, code_ids = CASE WHEN v_identity.code_id = ANY (a.code_ids) THEN a.code_ids ELSE a.code_ids
           || v_identity.code_id END
     WHERE a.realm_id = p_realm AND a.id = p_request;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id)
    SELECT p_realm, 'test_identity_requested', a.client, v_identity.user_id FROM postern.sign_in_request AS a
     WHERE a.realm_id = p_realm AND a.id = p_request;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.answer_test_identity IS
    'Points a handle at the fixed code, if the address is a test identity''s';
GRANT EXECUTE ON FUNCTION postern.answer_test_identity TO postern_app;

-- Carried out by the sweeper: sessions end, the user is disabled until the identity is put again.
CREATE OR REPLACE FUNCTION postern.end_test_identities() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_ended record;
    v_count integer := 0;
BEGIN
    FOR v_ended IN
        UPDATE postern.test_identity AS t SET ended_at = now(), pending_code = NULL
         WHERE t.expires_at <= now() AND t.ended_at IS NULL
           AND t.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
        RETURNING t.realm_id, t.user_id, t.client
    LOOP
        UPDATE postern.user_account AS u SET enabled = false
         WHERE u.realm_id = v_ended.realm_id AND u.id = v_ended.user_id;
        PERFORM postern.end_access(v_ended.realm_id, v_ended.user_id);
        INSERT INTO postern.audit_event (realm_id, event, client, user_id)
        VALUES (v_ended.realm_id, 'test_identity_ended', v_ended.client, v_ended.user_id);
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END
$$;
COMMENT ON FUNCTION postern.end_test_identities IS 'Ends the test identities whose time is over; returns how many';

RESET ROLE;
