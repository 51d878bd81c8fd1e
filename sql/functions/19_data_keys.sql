-- Data keys: made on first use, moved to a newer line of the key file, counted (docs/decisions/0024).
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
     WHERE d.realm_id = p_realm AND d.purpose = p_purpose AND d.number IS NOT NULL
     ORDER BY d.number DESC LIMIT 1;
END
$$;
COMMENT ON FUNCTION postern.current_data_key(uuid, text) IS 'The data key that protects new secrets of a purpose';

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
COMMENT ON FUNCTION postern.add_data_key(uuid, text, uuid, bytea, bytea, bytea) IS
    'Stores a data key unless there is one of its kind; returns the one that is in force';

-- A length and then the bytes, so that several values travel in one.
CREATE OR REPLACE FUNCTION postern.framed(p_value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN int4send(octet_length(coalesce(p_value, '\x'))) || coalesce(p_value, '\x');
COMMENT ON FUNCTION postern.framed(bytea) IS 'Length (4 bytes) and value';

-- The seed with what is needed to open it and to compare recovery codes, so that a sign-in never has to ask for a data
-- key: 03 "pdk", the sealed data key of the seed, the sealed seed, then each data key of the account's recovery codes
-- (id and seal).
-- As stored where version 0 made all of it.
CREATE OR REPLACE FUNCTION postern.second_factor_material(p_realm uuid, p_user uuid, p_sealed_seed bytea)
RETURNS bytea
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN s.sealed IS NULL AND r.framed IS NULL THEN p_sealed_seed
                ELSE '\x0370646b'::bytea || postern.framed(s.sealed) || postern.framed(p_sealed_seed)
                     || coalesce(r.framed, '\x') END
      FROM (SELECT (SELECT d.sealed FROM postern.data_key AS d
                     WHERE d.realm_id = p_realm AND d.id = postern.data_key_of(p_sealed_seed)) AS sealed) AS s,
           (SELECT string_agg(postern.framed(uuid_send(d.id) || d.sealed), '\x'::bytea) AS framed
              FROM postern.data_key AS d
             WHERE d.realm_id = p_realm
               AND d.id IN (SELECT c.data_key FROM postern.recovery_code AS c
                             WHERE c.realm_id = p_realm AND c.user_id = p_user)) AS r
$$;
COMMENT ON FUNCTION postern.second_factor_material(uuid, uuid, bytea) IS
    'A sealed seed with the data keys that open it and compare the account''s recovery codes';

-- SECURITY DEFINER below: resealing goes through all realms.

CREATE OR REPLACE FUNCTION postern.data_keys_to_reseal(p_newest bytea, p_limit integer)
RETURNS TABLE (realm_id uuid, id uuid, purpose text, sealed bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT d.realm_id, d.id, d.purpose, d.sealed FROM postern.data_key AS d
     WHERE d.file_key <> p_newest ORDER BY d.realm_id, d.id LIMIT p_limit
$$;
COMMENT ON FUNCTION postern.data_keys_to_reseal(bytea, integer) IS 'Data keys that are sealed by another line than this one';

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
COMMENT ON FUNCTION postern.reseal_data_key(uuid, uuid, bytea, bytea, bytea) IS
    'Replaces the seal of a data key; false when another server did that meanwhile';

-- A binary of version 0 cannot read what is under a data key. It names its connections just "postern".
CREATE OR REPLACE FUNCTION postern.version_0_connections() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT count(*)::integer FROM pg_stat_activity AS a
     WHERE a.datname = current_database() AND a.application_name IN ('postern', 'postern listen')
$$;
COMMENT ON FUNCTION postern.version_0_connections() IS
    'Connections of servers that cannot read what is under a data key';

-- What version 0 sealed directly under a line. name: the kid, or the user.
CREATE OR REPLACE FUNCTION postern.secrets_without_data_key(p_limit integer)
RETURNS TABLE (kind text, realm_id uuid, name text, row_id uuid, sealed bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    (SELECT 'signing-key', k.realm_id, k.kid, NULL::uuid, k.sealed_private FROM postern.signing_key AS k
      WHERE k.data_key IS NULL ORDER BY k.realm_id, k.kid LIMIT p_limit)
    UNION ALL
    (SELECT 'test-code', t.realm_id, t.user_id::text, t.user_id, NULL FROM postern.test_identity AS t
      WHERE t.data_key IS NULL AND t.pending_code IS NULL AND t.ended_at IS NULL LIMIT p_limit)
    UNION ALL
    (SELECT 'totp-seed', f.realm_id, f.user_id::text, f.id, f.sealed_seed FROM postern.totp_factor AS f
      WHERE f.data_key IS NULL ORDER BY f.realm_id, f.user_id LIMIT p_limit)
$$;
COMMENT ON FUNCTION postern.secrets_without_data_key(integer) IS
    'Long-lived secrets that version 0 left directly under a line';

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
COMMENT ON FUNCTION postern.move_signing_key(uuid, text, bytea, bytea) IS 'Puts a signing key under a data key';

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
COMMENT ON FUNCTION postern.move_totp_seed(uuid, uuid, bytea, bytea, uuid) IS
    'Puts a TOTP seed and the recovery codes made with it under data keys';

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
COMMENT ON FUNCTION postern.move_test_code(uuid, uuid, uuid) IS 'Names the data key of a code that version 0 keyed';

-- Counts per kind everything long-lived that depends on a line of the key file, except sessions. line NULL: version 0
-- did not record it. Data keys are counted themselves (kind 'data-key') and by what they protect.
CREATE OR REPLACE FUNCTION postern.key_line_secrets()
RETURNS TABLE (line bytea, kind text, count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT u.line, u.kind, sum(u.count)::bigint
      FROM (SELECT d.file_key AS line, 'data-key' AS kind, count(*) AS count
              FROM postern.data_key AS d GROUP BY 1
            UNION ALL
            SELECT coalesce(d.file_key, substr(k.sealed_private, 1, 4)), 'signing-key', count(*)
              FROM postern.signing_key AS k
              LEFT JOIN postern.data_key AS d ON d.realm_id = k.realm_id AND d.id = k.data_key
             WHERE k.retires_at IS NULL OR k.retires_at > now() GROUP BY 1
            UNION ALL
            SELECT coalesce(d.file_key, f.line), 'totp-seed', sum(f.count)
              FROM (SELECT t.realm_id, t.data_key,
                           CASE WHEN t.data_key IS NULL THEN substr(t.sealed_seed, 1, 4) END AS line, count(*) AS count
                      FROM postern.totp_factor AS t GROUP BY 1, 2, 3) AS f
              LEFT JOIN postern.data_key AS d ON d.realm_id = f.realm_id AND d.id = f.data_key GROUP BY 1
            UNION ALL
            SELECT coalesce(d.file_key, c.line), 'recovery-code', sum(c.count)
              FROM (SELECT r.realm_id, r.data_key, NULL::bytea AS line, count(*) AS count
                      FROM postern.recovery_code AS r WHERE r.data_key IS NOT NULL GROUP BY 1, 2
                    UNION ALL
                    -- Made with the seed, under the seed's line.
                    SELECT r.realm_id, NULL, CASE WHEN t.data_key IS NULL THEN substr(t.sealed_seed, 1, 4) END, count(*)
                      FROM postern.recovery_code AS r
                      JOIN postern.totp_factor AS t ON t.realm_id = r.realm_id AND t.user_id = r.user_id
                     WHERE r.data_key IS NULL GROUP BY 1, 3) AS c
              LEFT JOIN postern.data_key AS d ON d.realm_id = c.realm_id AND d.id = c.data_key GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'test-code', count(*)
              FROM postern.test_identity AS t
              LEFT JOIN postern.data_key AS d ON d.realm_id = t.realm_id AND d.id = t.data_key
             WHERE t.pending_code IS NULL AND t.ended_at IS NULL AND t.expires_at > now() GROUP BY 1) AS u
     GROUP BY 1, 2
$$;
COMMENT ON FUNCTION postern.key_line_secrets() IS
    'What each line of the key file protects, except sessions: data keys and what they protect';

-- Counts a part of the table (p_pages pages from p_page on), so that no statement is long, however many sessions there
-- are. A session depends on a line while its refresh token can be used. line NULL: made before lines were counted.
CREATE OR REPLACE FUNCTION postern.key_line_sessions(p_page bigint, p_pages integer)
RETURNS TABLE (line bytea, count bigint, next_page bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_next bigint := p_page + p_pages;
    v_size bigint := pg_relation_size('postern.session'::regclass) / current_setting('block_size')::bigint;
BEGIN
    IF v_next >= v_size THEN
        v_next := NULL;
    END IF;
    RETURN QUERY
    SELECT s.server_key, count(*), v_next FROM postern.session AS s
     WHERE s.ctid >= format('(%s,0)', p_page)::tid AND s.ctid < format('(%s,0)', p_page + p_pages)::tid
       AND s.current_hash IS NOT NULL AND s.revoked_at IS NULL
       AND s.refresh_expires_at > now() AND s.expires_at > now()
     GROUP BY s.server_key;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bytea, 0::bigint, v_next;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.key_line_sessions(bigint, integer) IS
    'Live refresh families by the line of the key file they depend on, a part of the table at a time';

CREATE OR REPLACE FUNCTION postern.key_line_name(p_line bytea) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(encode(p_line, 'hex'), 'unknown');
COMMENT ON FUNCTION postern.key_line_name(bytea) IS 'A line of the key file as commands print it';

CREATE OR REPLACE VIEW admin.key_lines AS
SELECT postern.key_line_name(u.line) AS line, u.kind, u.count
  FROM (SELECT s.line, s.kind, s.count FROM postern.key_line_secrets() AS s
        UNION ALL
        SELECT s.server_key, 'session', count(*) FROM postern.session AS s
         WHERE s.current_hash IS NOT NULL AND s.revoked_at IS NULL
           AND s.refresh_expires_at > now() AND s.expires_at > now()
         GROUP BY s.server_key) AS u;
COMMENT ON VIEW admin.key_lines IS
    'What each line of the key file still protects, by the line''s id; reads all sessions';
REVOKE ALL ON admin.key_lines FROM PUBLIC;
GRANT SELECT ON admin.key_lines TO postern_admin;

-- For a line that is lost, or that others may know.
CREATE OR REPLACE FUNCTION admin.forget_key_line(line text)
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_line bytea;
    v_realm uuid;
    v_counts record;
    v_total jsonb := '{}';
BEGIN
    IF line IS NULL OR line COLLATE "C" !~ '\A[0-9a-f]{8}\Z' THEN
        PERFORM postern.refuse(format('line %s is not the id of a line', postern.shown(line)),
            'Allowed are 8 hexadecimal digits as in SELECT * FROM admin.key_lines.');
    END IF;
    v_line := decode(line, 'hex');
    FOR v_realm IN SELECT r.id FROM postern.realm AS r ORDER BY r.id LOOP
        WITH ended AS (
            UPDATE postern.session AS s SET revoked_at = now()
             WHERE s.realm_id = v_realm AND s.server_key = v_line AND s.revoked_at IS NULL RETURNING 1),
        keys AS (
            SELECT d.id FROM postern.data_key AS d WHERE d.realm_id = v_realm AND d.file_key = v_line),
        factors AS (
            DELETE FROM postern.totp_factor AS f
             WHERE f.realm_id = v_realm
               AND (f.data_key IN (SELECT k.id FROM keys AS k)
                    OR f.data_key IS NULL AND substr(f.sealed_seed, 1, 4) = v_line) RETURNING 1),
        codes AS (
            DELETE FROM postern.recovery_code AS r
             WHERE r.realm_id = v_realm AND r.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        identities AS (
            DELETE FROM postern.test_identity AS t
             WHERE t.realm_id = v_realm AND t.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        signing AS (
            DELETE FROM postern.signing_key AS s
             WHERE s.realm_id = v_realm
               AND (s.data_key IN (SELECT k.id FROM keys AS k)
                    OR s.data_key IS NULL AND substr(s.sealed_private, 1, 4) = v_line) RETURNING 1)
        SELECT (SELECT count(*) FROM ended) AS sessions, (SELECT count(*) FROM factors) AS totp_seeds,
               (SELECT count(*) FROM codes) AS recovery_codes, (SELECT count(*) FROM identities) AS test_identities,
               (SELECT count(*) FROM signing) AS signing_keys
          INTO v_counts;
        DELETE FROM postern.data_key AS d WHERE d.realm_id = v_realm AND d.file_key = v_line;
        IF EXISTS (SELECT FROM jsonb_each_text(to_jsonb(v_counts)) AS e WHERE e.value <> '0') THEN
            PERFORM postern.admin_audit(v_realm, 'key_line_forgotten',
                detail => to_jsonb(v_counts) || jsonb_build_object('line', line));
        END IF;
        v_total := (SELECT jsonb_object_agg(e.key, e.value::bigint + coalesce((v_total ->> e.key)::bigint, 0))
                      FROM jsonb_each_text(to_jsonb(v_counts)) AS e);
    END LOOP;
    RETURN v_total;
END
$$;
COMMENT ON FUNCTION admin.forget_key_line(text) IS
'Ends and deletes, in all realms, what only this line of the key file protects, and returns how many of each: sessions
are ended; TOTP factors, recovery codes, test identities and signing keys are deleted (realms make new signing keys at
once). For a line that is lost for good. After postern keys reseal only sessions stand on an older line: then this ends
those that have not refreshed since, so that a line that others may know can be removed at once.
line: its id, as in admin.key_lines.
Example: SELECT admin.forget_key_line(''1f0c9a3e'');';
REVOKE ALL ON FUNCTION admin.forget_key_line(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION admin.forget_key_line(text) TO postern_admin;

DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p
              WHERE p.pronamespace = 'postern'::regnamespace
                AND p.proname IN ('current_data_key', 'add_data_key', 'framed', 'second_factor_material',
                                  'data_keys_to_reseal', 'reseal_data_key', 'version_0_connections',
                                  'secrets_without_data_key', 'move_signing_key', 'move_totp_seed', 'move_test_code',
                                  'key_line_secrets', 'key_line_sessions', 'key_line_name') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO postern_app', f);
    END LOOP;
END
$$;
-- The view above calls them with its reader's rights.
GRANT EXECUTE ON FUNCTION postern.key_line_secrets(), postern.key_line_name(bytea) TO postern_admin;

RESET ROLE;
