-- The sweeper. SECURITY DEFINER, since the app role sees one realm at a time.
SET LOCAL ROLE postern_owner;

-- Walks each table of sweep_rule a bounded number of pages at a time and deletes expired rows: no index on any expiry
-- is needed, and the work of a call does not grow with the tables. Returns the number of rows deleted.
CREATE OR REPLACE FUNCTION postern.sweep(p_batch integer)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_rule record;
    v_from bigint;
    v_to bigint;
    v_pages bigint;
    v_step bigint := greatest(p_batch / 10, 1);
    v_rows bigint;
    v_total bigint := 0;
    v_without uuid[] := postern.unserved_realms();
BEGIN
    IF NOT pg_try_advisory_xact_lock(postern.lock_of_sweep()) THEN
        RETURN 0;
    END IF;
    FOR v_rule IN
        SELECT r.table_name AS name, r.condition FROM postern.sweep_rule AS r ORDER BY r.table_name
    LOOP
        v_pages := pg_relation_size(format('postern.%I', v_rule.name)::regclass)
            / current_setting('block_size')::bigint;
        CONTINUE WHEN v_pages = 0;
        SELECT c.block INTO v_from FROM postern.sweep_cursor AS c WHERE c.table_name = v_rule.name;
        v_from := CASE WHEN v_from < v_pages THEN v_from ELSE 0 END;
        v_to := v_from + v_step;
        EXECUTE format('DELETE FROM postern.%I AS t WHERE t.ctid >= $1 AND t.ctid < $2 AND t.realm_id <> ALL ($3)'
                       ' AND (%s)', v_rule.name, v_rule.condition)
          USING format('(%s,0)', coalesce(v_from, 0))::tid, format('(%s,0)', coalesce(v_to, v_step))::tid,
                v_without;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_total := v_total + v_rows;
        INSERT INTO postern.sweep_cursor AS c (table_name, block) VALUES (v_rule.name, coalesce(v_to, v_step))
            ON CONFLICT (table_name) DO UPDATE SET block = excluded.block;
    END LOOP;
    -- Mail that was not sent in time.
    UPDATE postern.message_outbox AS m SET state = 'dead', payload = NULL, detail = NULL,
        last_error = CASE WHEN m.channel = 'email' THEN coalesce(m.last_error, 'expired') ELSE 'expired' END
     WHERE (m.realm_id, m.id) IN (SELECT d.realm_id, d.id FROM postern.message_outbox AS d
                                   WHERE d.state = 'queued' AND d.not_before <= now()
                                     AND d.expires_at <= now() AND d.realm_id <> ALL (v_without)
                                   LIMIT p_batch FOR NO KEY UPDATE SKIP LOCKED);
    v_total := v_total + postern.erase_realm(p_batch);
    PERFORM postern.end_test_identities();
    PERFORM postern.empty_proof_slots();
    -- A replaced client secret whose overlap has ended.
    UPDATE postern.client AS c SET previous_secret_hash = NULL, previous_secret_expires_at = NULL
     WHERE c.previous_secret_expires_at <= now() AND c.realm_id <> ALL (v_without);
    RETURN v_total;
END
$$;
COMMENT ON FUNCTION postern.sweep IS 'Deletes expired rows, about p_batch at a time; one sweeper runs at a time';
GRANT EXECUTE ON FUNCTION postern.sweep TO postern_app;

RESET ROLE;
