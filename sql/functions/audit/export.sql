-- The audit log for postern audit export: in the order in which rows became visible, so that none comes in between.
SET LOCAL ROLE postern_owner;

-- A place in that order is 'xid:id' of a row; '0:0' is before all rows.
CREATE OR REPLACE FUNCTION postern.audit_place(p_realm uuid, p_id bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT a.xid || ':' || a.id FROM postern.audit_event AS a
     WHERE a.realm_id = p_realm AND a.id = p_id
$$;
COMMENT ON FUNCTION postern.audit_place IS 'Place of an event in the order of export; NULL: there is no such event';
GRANT EXECUTE ON FUNCTION postern.audit_place TO postern_app;

CREATE OR REPLACE FUNCTION postern.audit_line(p_slug text, p_event postern.audit_event) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT row_to_json(l)::text
      FROM (SELECT p_slug AS realm, p_event.id,
                   to_char(p_event.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
                   p_event.event, (SELECT c.client_id FROM postern.client AS c
                                    WHERE c.realm_id = p_event.realm_id AND c.id = p_event.client) AS client_id,
                   p_event.user_id, p_event.session_id, p_event.source, p_event.detail,
                   coalesce(postern.is_test_identity(p_event.user_id), false) AS test_identity) AS l
$$;
COMMENT ON FUNCTION postern.audit_line IS 'An event as a line of JSON, with the members of admin.audit_log';

-- Reads at most p_batch rows behind a place. lines: those at or after p_since (seconds), NULL: none; place: behind the
-- last row that was read; is_end: there is no further row now. Rows of transactions that may still be open wait, and so
-- do all rows behind them.
CREATE OR REPLACE FUNCTION postern.export_audit(
    p_realm uuid, p_place text, p_since double precision, p_batch integer,
    OUT lines text, OUT place text, OUT is_end boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_slug text := (SELECT r.slug FROM postern.realm AS r WHERE r.id = p_realm);
    v_since timestamptz := to_timestamp(p_since);
    v_xid xid8 := split_part(p_place, ':', 1)::xid8;
    v_id bigint := split_part(p_place, ':', 2)::bigint;
    v_end xid8 := pg_snapshot_xmin(pg_current_snapshot());
BEGIN
    -- After a dump was restored into another cluster the log has rows of the future; all of them are finished.
    IF (SELECT a.xid >= pg_snapshot_xmax(pg_current_snapshot()) FROM postern.audit_event AS a
         WHERE a.realm_id = p_realm ORDER BY a.xid DESC, a.id DESC LIMIT 1) THEN
        v_end := '18446744073709551615';
    END IF;
    SELECT string_agg(postern.audit_line(v_slug, b.a), E'\n' ORDER BY (b.a).xid, (b.a).id)
               FILTER (WHERE (b.a).at >= v_since),
           (array_agg((b.a).xid || ':' || (b.a).id ORDER BY (b.a).xid DESC, (b.a).id DESC))[1], count(*) < p_batch
      INTO lines, place, is_end
      FROM (SELECT a FROM postern.audit_event AS a
             WHERE a.realm_id = p_realm AND (a.xid, a.id) > (v_xid, v_id) AND a.xid < v_end
             ORDER BY a.xid, a.id LIMIT p_batch) AS b;
    place := coalesce(place, p_place);
END
$$;
COMMENT ON FUNCTION postern.export_audit IS 'The next rows of the audit log as lines of JSON';
GRANT EXECUTE ON FUNCTION postern.export_audit TO postern_app;

RESET ROLE;
