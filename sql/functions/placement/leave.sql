-- The cluster that a realm leaves (docs/decisions/0047). `postern realm move` calls all of this as a superuser.
SET LOCAL ROLE postern_owner;

-- Every table with rows of realms that are copied while the realm is served. postern.realm and the unlogged
-- postern.used_proof are copied by open_realm. Its own search_path keeps it from becoming a part of queries, which
-- would then look into tables that it leaves out.
CREATE OR REPLACE FUNCTION postern.tables_of_realms() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.relname::text FROM pg_class AS c
      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'realm_id' AND NOT a.attisdropped
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p'
       AND c.relname NOT IN ('realm_move', 'deleted_realm')
     ORDER BY 1
$$;
COMMENT ON FUNCTION postern.tables_of_realms IS 'Tables whose rows a move of a realm copies while it is served';

-- Looks at the state before it waits for the lock, so that a writer does not wait for a realm that has left; and again
-- with the lock, because the state may have changed meanwhile.
CREATE OR REPLACE FUNCTION postern.refuse_when_left() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_realm uuid := TG_ARGV[0];
BEGIN
    IF postern.placement(v_realm) <> 'left' THEN
        PERFORM pg_advisory_xact_lock_shared(postern.lock_of_writers(v_realm));
    END IF;
    IF postern.placement(v_realm) = 'left' THEN
        RAISE EXCEPTION 'realm % is served by another cluster', v_realm
            USING ERRCODE = 'PM001', HINT = 'postern realm list shows which';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.refuse_when_left IS 'Trigger: refuses every write to the rows of a realm that has left';

-- One table a transaction: the lock on it ends at once.
CREATE OR REPLACE FUNCTION postern.guard_table(p_realm uuid, p_table text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_call text := format('postern.refuse_when_left(%L)', p_realm);
BEGIN
    PERFORM postern.lock_tables_shortly();
    PERFORM postern.put_move_trigger(p_realm, p_table, '_new', 'INSERT', 'NEW', v_call),
            postern.put_move_trigger(p_realm, p_table, '_old', 'UPDATE OR DELETE', 'OLD', v_call);
END
$$;
COMMENT ON FUNCTION postern.guard_table IS 'Makes the triggers that keep writers from a realm once it has left';

CREATE OR REPLACE FUNCTION postern.guarded_tables() RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    SELECT t FROM postern.tables_of_realms() AS t WHERE t <> 'realm_move_mark'
     UNION ALL VALUES ('realm'), ('used_proof')
$$;
COMMENT ON FUNCTION postern.guarded_tables IS 'Tables that guard_table is called for';

CREATE OR REPLACE FUNCTION postern.begin_leaving(p_realm uuid, p_peer text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO postern.realm_move AS m (realm_id, state, peer) VALUES (p_realm, 'leaving', p_peer)
        ON CONFLICT (realm_id) DO UPDATE SET started_at = now() WHERE m.state = 'leaving' AND m.peer = p_peer;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'realm % is in another move: %', p_realm,
            (SELECT m.state || ' ' || m.peer FROM postern.realm_move AS m WHERE m.realm_id = p_realm);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.begin_leaving IS 'Notes that a realm is being copied to another cluster';

CREATE OR REPLACE FUNCTION postern.publish_realm(p_realm uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE (SELECT format('CREATE PUBLICATION %I FOR TABLE %s', postern.name_of_move(p_realm),
                           string_agg(format('postern.%I WHERE (realm_id = %L)', t, p_realm), ', '))
               FROM postern.tables_of_realms() AS t);
END
$$;
COMMENT ON FUNCTION postern.publish_realm IS 'Makes the publication of all rows of a realm';

-- From the commit of this on every write is refused; writes under way are waited for by end_writes.
CREATE OR REPLACE FUNCTION postern.close_realm(p_realm uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.announce_move(p_realm);
    UPDATE postern.realm_move AS m SET state = 'left', left_at = clock_timestamp()
     WHERE m.realm_id = p_realm AND m.state = 'leaving';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'realm % is not being copied', p_realm;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.close_realm IS 'Ends writing to a realm in this cluster';

CREATE OR REPLACE FUNCTION postern.reopen_realm(p_realm uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE postern.realm_move AS m SET state = 'leaving', left_at = NULL
     WHERE m.realm_id = p_realm AND m.state = 'left' AND m.verified_at IS NULL;
    PERFORM postern.announce_move(p_realm);
END
$$;
COMMENT ON FUNCTION postern.reopen_realm IS 'Takes close_realm back; only while no other cluster serves the realm';

-- A row that is in the other cluster says that all before it are. Before the realm is closed it measures how long a
-- change takes to arrive.
CREATE OR REPLACE FUNCTION postern.mark_move(p_realm uuid) RETURNS uuid
LANGUAGE sql
AS $$ INSERT INTO postern.realm_move_mark (realm_id) VALUES (p_realm) RETURNING id $$;
COMMENT ON FUNCTION postern.mark_move IS 'Writes a row whose arrival in the other cluster can be awaited';

-- Used proofs, which logical replication does not copy: p_limit of a slot behind p_after, and the last of them; keys as
-- eight bytes, p_after empty at first.
CREATE OR REPLACE FUNCTION postern.proofs_to_copy(
    p_realm uuid, p_slot integer, p_after bytea, p_limit integer, OUT proofs jsonb, OUT last bytea)
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(to_jsonb(x)), '[]'), int8send(max(x.key))
      FROM (SELECT u.* FROM postern.used_proof AS u
             WHERE u.realm_id = p_realm AND u.slot = p_slot
               AND u.key > coalesce(('x' || NULLIF(encode(p_after, 'hex'), ''))::bit(64)::bigint,
                                    '-9223372036854775808')
             ORDER BY u.key LIMIT p_limit) AS x
$$;
COMMENT ON FUNCTION postern.proofs_to_copy IS 'A page of the used proofs of a realm';

-- Waits for the last writer, at most p_wait; queues for the webhooks what they have not been queued, because the other
-- cluster counts transactions otherwise; and writes the mark. Returns the rows that open_realm takes. p_since: proofs
-- of older transactions were copied before; a realm may have a million.
CREATE OR REPLACE FUNCTION postern.end_writes(p_realm uuid, p_wait interval, p_since xid) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_webhook record;
    v_cursor postern.webhook_cursor;
    v_rows postern.audit_event[];
    v_cursors jsonb := '[]';
BEGIN
    PERFORM set_config('lock_timeout', (extract(epoch FROM p_wait) * 1000)::integer || 'ms', true);
    PERFORM pg_advisory_xact_lock(postern.lock_of_writers(p_realm));
    PERFORM set_config('session_replication_role', 'replica', true);
    FOR v_webhook IN SELECT w.id, w.enabled, w.events FROM postern.webhook AS w WHERE w.realm_id = p_realm LOOP
        SELECT c.* INTO v_cursor FROM postern.webhook_cursor AS c
         WHERE c.realm_id = p_realm AND c.webhook = v_webhook.id FOR UPDATE;
        WHILE v_webhook.enabled LOOP
            v_rows := ARRAY(SELECT a FROM postern.audit_event AS a
                             WHERE a.realm_id = p_realm AND (a.xid, a.id) > (v_cursor.xid, v_cursor.id)
                             ORDER BY a.xid, a.id LIMIT 1000);
            EXIT WHEN cardinality(v_rows) = 0;
            PERFORM postern.queue_events(v_cursor, v_webhook.events, v_rows);
            UPDATE postern.webhook_cursor AS c
               SET xid = v_rows[cardinality(v_rows)].xid, id = v_rows[cardinality(v_rows)].id
             WHERE c.realm_id = p_realm AND c.webhook = v_webhook.id RETURNING c.* INTO v_cursor;
        END LOOP;
        -- OFFSET: by the index on what is behind the cursor, not by that on the ids of the whole audit log.
        v_cursors := v_cursors || jsonb_build_object('webhook', v_webhook.id, 'id', coalesce(
            (SELECT min(x.id) - 1 FROM (SELECT a.id FROM postern.audit_event AS a
              WHERE a.realm_id = p_realm AND (a.xid, a.id) > (v_cursor.xid, v_cursor.id) OFFSET 0) AS x),
            (SELECT max(a.id) FROM postern.audit_event AS a WHERE a.realm_id = p_realm), 0));
    END LOOP;
    RETURN jsonb_build_object(
        'mark', postern.mark_move(p_realm), 'cursors', v_cursors,
        'realm', (SELECT to_jsonb(r) FROM postern.realm AS r WHERE r.id = p_realm),
        'proofs', (SELECT coalesce(jsonb_agg(to_jsonb(u)), '[]') FROM postern.used_proof AS u
                    WHERE u.realm_id = p_realm AND age(u.xmin) <= age(p_since)),
        'proofs_since', (SELECT s.since FROM postern.schema_proof_store AS s),
        'last_event', postern.last_event());
END
$$;
COMMENT ON FUNCTION postern.end_writes IS 'The last rows of a realm in the cluster that it leaves';

RESET ROLE;
