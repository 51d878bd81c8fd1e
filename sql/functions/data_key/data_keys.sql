-- Data keys: made on first use, moved to a newer line of the key file (docs/decisions/0024).
SET LOCAL ROLE postern_owner;

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
     WHERE d.realm_id = p_realm AND d.purpose = p_purpose
     ORDER BY d.number DESC LIMIT 1;
END
$$;
COMMENT ON FUNCTION postern.current_data_key IS 'The data key that protects new secrets of a purpose';
GRANT EXECUTE ON FUNCTION postern.current_data_key TO postern_app;

-- When several servers try at once, one inserts, and all get that row.
CREATE OR REPLACE FUNCTION postern.add_data_key(
    p_realm uuid, p_purpose text, p_id uuid, p_file_key bytea, p_sealed bytea)
RETURNS TABLE (id uuid, sealed bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.data_key (realm_id, id, purpose, number, file_key, sealed)
    VALUES (p_realm, p_id, p_purpose, 1, p_file_key, p_sealed)
        ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT d.id, d.sealed FROM postern.current_data_key(p_realm, p_purpose) AS d;
END
$$;
COMMENT ON FUNCTION postern.add_data_key IS
    'Stores a data key unless there is one of its purpose; returns the one that is in force';
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

RESET ROLE;
