-- The cluster that a realm moves to (docs/decisions/0047). `postern realm move` calls all of this as a superuser.
SET LOCAL ROLE postern_owner;

-- Ids of transactions are this cluster's own: those of another one are older than all of them.
CREATE OR REPLACE FUNCTION postern.put_xid_before_all() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    NEW.xid := '3';
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.put_xid_before_all IS
    'Trigger: a row that arrives from another cluster is of a transaction before all of this one';

CREATE OR REPLACE FUNCTION postern.tables_with_transactions() RETURNS SETOF text
LANGUAGE sql IMMUTABLE
AS $$ VALUES ('audit_event'), ('webhook_delivery') $$;
COMMENT ON FUNCTION postern.tables_with_transactions IS 'Tables that get the trigger put_xid_before_all for a move';

CREATE OR REPLACE FUNCTION postern.last_event() RETURNS bigint
LANGUAGE sql STABLE
AS $$ SELECT s.last_value FROM postern.audit_event_id_seq AS s $$;
COMMENT ON FUNCTION postern.last_event IS 'No row of the audit log of this cluster has a higher id';

-- p_hosts: of the realm, which no realm of this cluster may have. p_last: the other cluster's last_event. From now on
-- ids here are above all that it will have given when the realm is opened here. clear_rows removes before what an
-- earlier try has left.
-- A restart, unlike setval, also ends the numbers that sessions have taken in advance.
CREATE OR REPLACE FUNCTION postern.begin_arriving(
    p_realm uuid, p_slug text, p_hosts text[], p_peer text, p_last bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_table text;
BEGIN
    PERFORM postern.lock_tables_shortly();
    IF EXISTS (SELECT FROM postern.realm AS r WHERE r.id = p_realm) THEN
        RAISE EXCEPTION 'realm % has rows here from before: postern realm clear removes them', p_slug;
    END IF;
    IF EXISTS (SELECT FROM postern.realm AS r WHERE r.slug = p_slug) THEN
        RAISE EXCEPTION 'another realm % is in this cluster', p_slug;
    END IF;
    IF EXISTS (SELECT FROM postern.realm_domain AS d WHERE d.domain = ANY (p_hosts) AND d.realm_id <> p_realm) THEN
        RAISE EXCEPTION 'a host of realm % is of another realm in this cluster', p_slug;
    END IF;
    PERFORM set_config('session_replication_role', 'replica', true);
    INSERT INTO postern.realm_move AS m (realm_id, state, peer) VALUES (p_realm, 'arriving', p_peer)
        ON CONFLICT (realm_id) DO UPDATE SET started_at = now(), peer = p_peer WHERE m.state = 'arriving';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'realm % is in another move here', p_slug;
    END IF;
    FOR v_table IN SELECT postern.tables_with_transactions() LOOP
        PERFORM postern.put_move_trigger(p_realm, v_table, '_xid', 'INSERT OR UPDATE', 'NEW',
                                         'postern.put_xid_before_all()');
        EXECUTE format('ALTER TABLE postern.%I ENABLE REPLICA TRIGGER %I', v_table,
                       postern.name_of_move(p_realm) || '_xid');
    END LOOP;
    EXECUTE format('ALTER TABLE postern.audit_event ALTER COLUMN id RESTART WITH %s',
                   greatest(postern.last_event(), p_last) + 1000000000);
END
$$;
COMMENT ON FUNCTION postern.begin_arriving IS 'Notes that a realm is being copied from another cluster';

-- Proofs that arrive before the realm is served; a crash of this cluster that loses them also begins the store anew.
CREATE OR REPLACE FUNCTION postern.put_proofs(p_proofs jsonb) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO postern.used_proof (realm_id, slot, key, used_by)
    SELECT x.realm_id, x.slot, x.key, x.used_by
      FROM jsonb_populate_recordset(NULL::postern.used_proof, p_proofs) AS x
        ON CONFLICT DO NOTHING;
$$;
COMMENT ON FUNCTION postern.put_proofs IS 'Adds used proofs of a realm that arrives';

-- p_last: what end_writes returned. From the commit of this on the realm is served here.
CREATE OR REPLACE FUNCTION postern.open_realm(p_realm uuid, p_last jsonb) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_since bigint := (p_last ->> 'proofs_since')::bigint;
BEGIN
    -- Writes wait meanwhile: rather another try than a long pause.
    PERFORM set_config('lock_timeout', '300ms', true);
    PERFORM set_config('session_replication_role', 'replica', true);
    DELETE FROM postern.realm_move AS m WHERE m.realm_id = p_realm AND m.state = 'arriving';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'realm % is not expected here', p_realm;
    END IF;
    INSERT INTO postern.realm SELECT * FROM jsonb_populate_record(
        NULL::postern.realm,
        p_last -> 'realm' || jsonb_build_object('config_version', nextval('postern.config_version')));
    PERFORM postern.put_proofs(p_last -> 'proofs');
    -- What the other cluster has forgotten is not known here either.
    PERFORM postern.begin_proof_store('-infinity');
    UPDATE postern.schema_proof_store AS s SET since = v_since WHERE s.since < v_since;
    IF (p_last ->> 'last_event')::bigint >= (SELECT s.last_value FROM postern.audit_event_id_seq AS s) THEN
        RAISE EXCEPTION 'ids of events here are not above those of the other cluster: begin the move anew';
    END IF;
    UPDATE postern.webhook_cursor AS c SET xid = '3', id = x.id, replay_until = '0', replay_after = 0
      FROM jsonb_to_recordset(p_last -> 'cursors') AS x (webhook uuid, id bigint)
     WHERE c.realm_id = p_realm AND c.webhook = x.webhook;
    DELETE FROM postern.realm_move_mark AS k WHERE k.realm_id = p_realm;
    PERFORM pg_notify('postern_config', p_realm::text);
END
$$;
COMMENT ON FUNCTION postern.open_realm IS 'Begins to serve a realm that has arrived';

-- Columns that count transactions differ between clusters; a cursor counts nothing else.
CREATE OR REPLACE FUNCTION postern.realm_checksum(p_realm uuid, p_table text, OUT count bigint, OUT sum numeric)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    EXECUTE (SELECT format('SELECT count(*), coalesce(sum(hashtextextended(ROW(%s)::text, 0)), 0) FROM postern.%I AS t'
                           ' WHERE t.realm_id = $1', string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum),
                           p_table)
               FROM pg_attribute AS a
              WHERE a.attrelid = format('postern.%I', p_table)::regclass AND a.attnum > 0 AND NOT a.attisdropped
                AND a.atttypid <> 'xid8'::regtype
                AND (p_table <> 'webhook_cursor' OR a.attname IN ('realm_id', 'webhook')))
       INTO count, sum USING p_realm;
END
$$;
COMMENT ON FUNCTION postern.realm_checksum IS 'Number of rows of a realm in a table, and a sum over what they hold';

CREATE OR REPLACE FUNCTION postern.note_verified(p_realm uuid) RETURNS void
LANGUAGE sql
AS $$ UPDATE postern.realm_move AS m SET verified_at = now() WHERE m.realm_id = p_realm AND m.state = 'left' $$;
COMMENT ON FUNCTION postern.note_verified IS 'Notes that the rows of a realm that has left are in the other cluster';

-- Removes rows of a realm that has left, or of a copy that was not opened, p_limit at most; returns how many.
CREATE OR REPLACE FUNCTION postern.clear_rows(p_realm uuid, p_table text, p_limit integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM postern.realm_move AS m
                    WHERE m.realm_id = p_realm
                      AND (m.state = 'arriving' OR m.state = 'left' AND m.verified_at IS NOT NULL)) THEN
        RAISE EXCEPTION 'realm % has not left, or its copy was not found to be equal', p_realm;
    END IF;
    PERFORM set_config('session_replication_role', 'replica', true);
    EXECUTE format('DELETE FROM postern.%1$I AS t WHERE t.%2$I = $1 AND t.ctid = ANY (ARRAY('
                   'SELECT x.ctid FROM postern.%1$I AS x WHERE x.%2$I = $1 LIMIT $2))', p_table,
                   postern.realm_column(p_table)) USING p_realm, p_limit;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RETURN v_rows;
END
$$;
COMMENT ON FUNCTION postern.clear_rows IS 'Removes rows of a realm from a cluster that does not serve it';

CREATE OR REPLACE FUNCTION postern.end_move(p_realm uuid) RETURNS void
LANGUAGE sql
AS $$
    DELETE FROM postern.realm_move AS m WHERE m.realm_id = p_realm;
    DELETE FROM postern.realm_move_mark AS k WHERE k.realm_id = p_realm;
    SELECT pg_notify('postern_config', p_realm::text);
$$;
COMMENT ON FUNCTION postern.end_move IS 'Forgets a move: the cluster has no rows of the realm, or serves it';

RESET ROLE;
