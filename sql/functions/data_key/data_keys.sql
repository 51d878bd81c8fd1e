-- Data keys: made on first use, moved to a newer line of the key file (docs/decisions/0024).
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    -- Keys derived by version 0, when the last code that they verify is used or deleted.
    ('data_key', 't.derived_from IS NOT NULL AND t.created_at < now() - interval ''1 day'''
                 ' AND NOT EXISTS (SELECT FROM postern.recovery_code AS r'
                 '                  WHERE r.realm_id = t.realm_id AND r.data_key = t.id)'
                 ' AND NOT EXISTS (SELECT FROM postern.test_identity AS i'
                 '                  WHERE i.realm_id = t.realm_id AND i.data_key = t.id)')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- The key for new secrets of a realm and purpose; no row before there is one.
CREATE OR REPLACE FUNCTION postern.current_data_key(p_realm uuid, p_purpose text)
RETURNS TABLE (id uuid, sealed bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT d.id, d.sealed FROM postern.data_key AS d
     WHERE d.realm_id = p_realm AND d.purpose = p_purpose AND d.number IS NOT NULL
     ORDER BY d.number DESC LIMIT 1;
END
$$;
COMMENT ON FUNCTION postern.current_data_key IS 'The data key that protects new secrets of a purpose';
GRANT EXECUTE ON FUNCTION postern.current_data_key TO postern_app;

-- When several servers try at once, one inserts, and all get that row.
CREATE OR REPLACE FUNCTION postern.add_data_key(
    p_realm uuid, p_purpose text, p_id uuid, p_derived_from bytea, p_file_key bytea, p_sealed bytea)
RETURNS TABLE (id uuid, sealed bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.data_key (realm_id, id, purpose, number, derived_from, file_key, sealed)
    VALUES (p_realm, p_id, p_purpose, CASE WHEN p_derived_from IS NULL THEN 1 END, p_derived_from, p_file_key, p_sealed)
        ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT d.id, d.sealed FROM postern.data_key AS d
     WHERE d.realm_id = p_realm AND d.purpose = p_purpose
       AND CASE WHEN p_derived_from IS NULL THEN d.number IS NOT NULL ELSE d.derived_from = p_derived_from END
     ORDER BY d.number DESC LIMIT 1;
END
$$;
COMMENT ON FUNCTION postern.add_data_key IS
    'Stores a data key unless there is one of its kind; returns the one that is in force';
GRANT EXECUTE ON FUNCTION postern.add_data_key TO postern_app;

-- SECURITY DEFINER below: resealing goes through all realms.
CREATE OR REPLACE FUNCTION postern.data_keys_to_reseal(p_newest bytea, p_limit integer)
RETURNS TABLE (realm_id uuid, id uuid, purpose text, sealed bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT d.realm_id, d.id, d.purpose, d.sealed FROM postern.data_key AS d
     WHERE d.file_key <> p_newest AND d.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
     ORDER BY d.realm_id, d.id LIMIT p_limit
$$;
COMMENT ON FUNCTION postern.data_keys_to_reseal IS 'Data keys that are sealed by another line than this one';
GRANT EXECUTE ON FUNCTION postern.data_keys_to_reseal TO postern_app;

CREATE OR REPLACE FUNCTION postern.reseal_data_key(
    p_realm uuid, p_id uuid, p_former bytea, p_file_key bytea, p_sealed bytea)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    UPDATE postern.data_key AS d SET file_key = p_file_key, sealed = p_sealed, resealed_at = now()
     WHERE d.realm_id = p_realm AND d.id = p_id AND d.sealed = p_former;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.reseal_data_key IS
    'Replaces the seal of a data key; false when another server did that meanwhile';
GRANT EXECUTE ON FUNCTION postern.reseal_data_key TO postern_app;

-- A binary of version 0 cannot read what is under a data key. It names its connections just "postern".
CREATE OR REPLACE FUNCTION postern.version_0_connections() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT count(*)::integer FROM pg_stat_activity AS a
     WHERE a.datname = current_database() AND a.application_name IN ('postern', 'postern listen')
$$;
COMMENT ON FUNCTION postern.version_0_connections IS 'Connections of servers that cannot read what is under a data key';
GRANT EXECUTE ON FUNCTION postern.version_0_connections TO postern_app;

-- What version 0 sealed directly under a line. name: the kid, or the user.
CREATE OR REPLACE FUNCTION postern.secrets_without_data_key(p_limit integer)
RETURNS TABLE (kind text, realm_id uuid, name text, row_id uuid, sealed bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    (SELECT 'signing-key', k.realm_id, k.kid, NULL::uuid, k.sealed_private FROM postern.signing_key AS k
      WHERE k.data_key IS NULL AND k.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
      ORDER BY k.realm_id, k.kid LIMIT p_limit)
    UNION ALL
    (SELECT 'test-code', t.realm_id, t.user_id::text, t.user_id, NULL FROM postern.test_identity AS t
      WHERE t.data_key IS NULL AND t.pending_code IS NULL AND t.ended_at IS NULL
        AND t.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[]) LIMIT p_limit)
    UNION ALL
    (SELECT 'totp-seed', f.realm_id, f.user_id::text, f.id, f.sealed_seed FROM postern.totp_factor AS f
      WHERE f.data_key IS NULL AND f.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
      ORDER BY f.realm_id, f.user_id LIMIT p_limit)
$$;
COMMENT ON FUNCTION postern.secrets_without_data_key IS 'Long-lived secrets that version 0 left directly under a line';
GRANT EXECUTE ON FUNCTION postern.secrets_without_data_key TO postern_app;

CREATE OR REPLACE FUNCTION postern.move_signing_key(p_realm uuid, p_kid text, p_former bytea, p_sealed bytea)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    UPDATE postern.signing_key AS k SET sealed_private = p_sealed
     WHERE k.realm_id = p_realm AND k.kid = p_kid AND k.sealed_private = p_former;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.move_signing_key IS 'Puts a signing key under a data key';
GRANT EXECUTE ON FUNCTION postern.move_signing_key TO postern_app;

-- The recovery codes were made with the seed, under the same line: p_recovery_key holds the key that line gave them.
CREATE OR REPLACE FUNCTION postern.move_totp_seed(
    p_realm uuid, p_factor uuid, p_former bytea, p_sealed bytea, p_recovery_key uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user uuid;
BEGIN
    UPDATE postern.totp_factor AS f SET sealed_seed = p_sealed
     WHERE f.realm_id = p_realm AND f.id = p_factor AND f.sealed_seed = p_former
    RETURNING f.user_id INTO v_user;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.recovery_code AS r SET data_key = p_recovery_key
     WHERE r.realm_id = p_realm AND r.user_id = v_user AND r.data_key IS NULL;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.move_totp_seed IS 'Puts a TOTP seed and the recovery codes made with it under data keys';
GRANT EXECUTE ON FUNCTION postern.move_totp_seed TO postern_app;

CREATE OR REPLACE FUNCTION postern.move_test_code(p_realm uuid, p_user uuid, p_data_key uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    UPDATE postern.test_identity AS t SET data_key = p_data_key
     WHERE t.realm_id = p_realm AND t.user_id = p_user AND t.data_key IS NULL AND t.pending_code IS NULL;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.move_test_code IS 'Names the data key of a code that version 0 keyed';
GRANT EXECUTE ON FUNCTION postern.move_test_code TO postern_app;

RESET ROLE;
