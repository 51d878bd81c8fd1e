-- What stands on each line of the key file: counted, and ended for a line that is lost (docs/decisions/0024).
SET LOCAL ROLE postern_owner;

-- Counts per kind everything long-lived that depends on a line of the key file, except sessions. Data keys are counted
-- themselves (kind 'data-key') and by what they protect.
CREATE OR REPLACE FUNCTION postern.key_line_secrets()
RETURNS TABLE (line bytea, kind text, count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT u.line, u.kind, sum(u.count)::bigint
      FROM (SELECT d.file_key AS line, 'data-key' AS kind, count(*) AS count
              FROM postern.data_key AS d GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'signing-key', count(*)
              FROM postern.signing_key AS k
              JOIN postern.data_key AS d ON d.realm_id = k.realm_id AND d.id = k.data_key
             WHERE k.retires_at IS NULL OR k.retires_at > now() GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'totp-seed', sum(f.count)
              FROM (SELECT t.realm_id, t.data_key, count(*) AS count FROM postern.totp_factor AS t GROUP BY 1, 2) AS f
              JOIN postern.data_key AS d ON d.realm_id = f.realm_id AND d.id = f.data_key GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'recovery-code', sum(c.count)
              FROM (SELECT r.realm_id, r.data_key, count(*) AS count FROM postern.recovery_code AS r GROUP BY 1, 2) AS c
              JOIN postern.data_key AS d ON d.realm_id = c.realm_id AND d.id = c.data_key GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'test-code', count(*)
              FROM postern.test_identity AS t
              JOIN postern.data_key AS d ON d.realm_id = t.realm_id AND d.id = t.data_key
             WHERE t.pending_code IS NULL AND t.ended_at IS NULL AND t.expires_at > now() GROUP BY 1
            UNION ALL
            SELECT d.file_key, 'test-code', count(*)
              FROM postern.test_number AS n
              JOIN postern.data_key AS d ON d.realm_id = n.realm_id AND d.id = n.data_key
             WHERE n.expires_at > now() GROUP BY 1) AS u
     GROUP BY 1, 2
$$;
COMMENT ON FUNCTION postern.key_line_secrets IS
    'What each line of the key file protects, except sessions: data keys and what they protect';
GRANT EXECUTE ON FUNCTION postern.key_line_secrets TO postern_app, postern_admin;

-- Counts a part of the table (p_pages pages from p_page on), so that no statement is long, however many sessions there
-- are. A session depends on a line while its refresh token can be used. line NULL: there is none in this part.
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
    SELECT s.server_key::bytea, count(*), v_next FROM postern.session AS s
     WHERE s.ctid >= format('(%s,0)', p_page)::tid AND s.ctid < format('(%s,0)', p_page + p_pages)::tid
       AND s.current_hash IS NOT NULL AND s.revoked_at IS NULL
       AND s.refresh_expires_at > now() AND s.expires_at > now()
     GROUP BY s.server_key;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bytea, 0::bigint, v_next;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.key_line_sessions IS
    'Live refresh families by the line of the key file they depend on, a part of the table at a time';
GRANT EXECUTE ON FUNCTION postern.key_line_sessions TO postern_app;

CREATE OR REPLACE VIEW admin.key_lines AS
SELECT encode(u.line, 'hex') AS line, u.kind, u.count
  FROM (SELECT s.line, s.kind, s.count FROM postern.key_line_secrets() AS s
        UNION ALL
        SELECT s.server_key, 'session', count(*) FROM postern.session AS s
         WHERE s.server_key IS NOT NULL AND s.current_hash IS NOT NULL AND s.revoked_at IS NULL
           AND s.refresh_expires_at > now() AND s.expires_at > now()
         GROUP BY s.server_key) AS u;
COMMENT ON VIEW admin.key_lines IS
    'What each line of the key file still protects, by the line''s id; reads all sessions';

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
             WHERE s.realm_id = v_realm AND s.server_key = v_line AND s.revoked_at IS NULL
            RETURNING s.id, s.client, s.user_id,
                      s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true) AS was_alive),
        told AS (
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            SELECT v_realm, 'session_revoked', e.client, e.user_id, e.id, 'sql:' || session_user,
                   jsonb_build_object('reason', 'key_line_forgotten')
              FROM ended AS e WHERE e.was_alive),
        keys AS (
            SELECT d.id FROM postern.data_key AS d WHERE d.realm_id = v_realm AND d.file_key = v_line),
        factors AS (
            DELETE FROM postern.totp_factor AS f
             WHERE f.realm_id = v_realm AND f.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        codes AS (
            DELETE FROM postern.recovery_code AS r
             WHERE r.realm_id = v_realm AND r.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        identities AS (
            DELETE FROM postern.test_identity AS t
             WHERE t.realm_id = v_realm AND t.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        numbers AS (
            DELETE FROM postern.test_number AS n
             WHERE n.realm_id = v_realm AND n.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1),
        signing AS (
            DELETE FROM postern.signing_key AS s
             WHERE s.realm_id = v_realm AND s.data_key IN (SELECT k.id FROM keys AS k) RETURNING 1)
        SELECT (SELECT count(*) FROM ended) AS sessions, (SELECT count(*) FROM factors) AS totp_seeds,
               (SELECT count(*) FROM codes) AS recovery_codes, (SELECT count(*) FROM identities) AS test_identities,
               (SELECT count(*) FROM numbers) AS test_numbers,
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
COMMENT ON FUNCTION admin.forget_key_line IS
'Ends and deletes, in all realms, what only this line of the key file protects, and returns how many of each: sessions
are ended; TOTP factors, recovery codes, test identities and signing keys are deleted (realms make new signing keys at
once). For a line that is lost for good. After postern keys reseal only sessions stand on an older line: then this ends
those that have not refreshed since, so that a line that others may know can be removed at once.
line: its id, as in admin.key_lines.
Example: SELECT admin.forget_key_line(''1f0c9a3e'');';

RESET ROLE;
