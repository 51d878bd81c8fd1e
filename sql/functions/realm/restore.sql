-- After the database went back to an earlier time: what was used up or ended since that time must not come back.
SET LOCAL ROLE postern_owner;

-- Tables all of whose rows are void after a restore: each row can be used once, or leads to one that can, and
-- after a restore it is not known which of them were used. Sessions and the mail queue have rules of their own below.
CREATE OR REPLACE FUNCTION postern.tables_void_after_restore() RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN ARRAY['address_verification', 'sign_in_request', 'authorization_code', 'login_code', 'login_link',
             'pushed_request', 'device_request', 'sent_form'];
COMMENT ON FUNCTION postern.tables_void_after_restore IS
    'Tables that admin.after_restore empties: codes, links, requests, handles, device requests';

CREATE OR REPLACE FUNCTION admin.after_restore(
    restored_to timestamptz, sessions_used_since timestamptz DEFAULT '-infinity')
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_servers integer;
    v_table text;
    v_rows bigint;
    v_single_use bigint := 0;
    v_realm uuid;
    v_counts record;
    v_total jsonb := '{"sessions": 0, "browser_sessions": 0, "messages": 0}';
BEGIN
    IF restored_to IS NULL OR restored_to > now() OR NOT isfinite(restored_to) THEN
        PERFORM postern.refuse(format('restored_to %s is not a moment of the past', postern.shown(restored_to::text)),
            'Give the moment to which the database was restored: recovery_target_time, or when the backup was made.');
    END IF;
    IF sessions_used_since IS NULL THEN
        PERFORM postern.refuse('sessions_used_since is NULL',
            'Leave it out to end every session, or give a moment: sessions that were not used since then stay.');
    END IF;
    SELECT count(*) INTO v_servers FROM pg_stat_activity AS a
     WHERE a.datname = current_database() AND a.application_name LIKE 'postern/%';
    IF v_servers > 0 THEN
        PERFORM postern.refuse(format('%s connections of servers are open', v_servers),
            'Stop every postern serve first: what this call makes void could be used meanwhile.');
    END IF;

    INSERT INTO postern.schema_restore (restored_to) VALUES (restored_to);
    FOREACH v_table IN ARRAY postern.tables_void_after_restore() LOOP
        EXECUTE format('DELETE FROM postern.%I', v_table);
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_single_use := v_single_use + v_rows;
    END LOOP;
    -- Proofs of possession from before are older than the store of used proofs.
    INSERT INTO postern.schema_proof_store (since) VALUES (ceil(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
        ON CONFLICT (is_present) DO UPDATE SET since = EXCLUDED.since;

    FOR v_realm IN SELECT r.id FROM postern.realm AS r ORDER BY r.id LOOP
        -- Tokens of service accounts that were revoked since are known no more.
        UPDATE postern.service_account AS s SET token_salt = uuid_send(gen_random_uuid()) WHERE s.realm_id = v_realm;
        WITH ended AS (
            -- Revoked and not deleted: every token of the family is refused and never judged as reuse.
            UPDATE postern.session AS s SET revoked_at = now()
             WHERE s.realm_id = v_realm AND s.revoked_at IS NULL AND s.last_used_at >= sessions_used_since
            RETURNING s.id, s.client, s.user_id,
                      s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true) AS was_alive),
        browsers AS (
            UPDATE postern.browser_session AS b SET ended_at = now()
             WHERE b.realm_id = v_realm AND b.ended_at IS NULL AND b.last_used_at >= sessions_used_since
            RETURNING b.id, b.user_id, b.expires_at > now() AND b.idle_expires_at > now() AS was_alive),
        told AS (
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            SELECT v_realm, 'session_revoked', x.client, x.user_id, x.id, 'sql:' || session_user,
                   jsonb_build_object('reason', 'database_restored')
              FROM (SELECT e.id, e.client, e.user_id FROM ended AS e WHERE e.was_alive
                    UNION ALL
                    SELECT b.id, NULL, b.user_id FROM browsers AS b WHERE b.was_alive) AS x),
        messages AS (
            -- Sealed messages hold codes and links. Notices are sent, perhaps again.
            DELETE FROM postern.message_outbox AS m
             WHERE m.realm_id = v_realm AND m.state = 'queued' AND m.payload IS NOT NULL RETURNING 1)
        SELECT (SELECT count(*) FROM ended) AS sessions, (SELECT count(*) FROM browsers) AS browser_sessions,
               (SELECT count(*) FROM messages) AS messages
          INTO v_counts;
        PERFORM postern.admin_audit(v_realm, 'database_restored',
            detail => to_jsonb(v_counts) || jsonb_build_object('restored_to', restored_to));
        v_total := (SELECT jsonb_object_agg(e.key, e.value::bigint + (v_total ->> e.key)::bigint)
                      FROM jsonb_each_text(to_jsonb(v_counts)) AS e);
    END LOOP;
    RETURN v_total || jsonb_build_object('single_use', v_single_use);
END
$$;
COMMENT ON FUNCTION admin.after_restore IS
'Call it once after this database was restored to an earlier time, in all realms, before the first server starts. What
was used up or ended since that time is not known, so everything that could come back is void: codes, links, handles,
pushed requests, authorization codes, approvals, ceremonies and proofs from before this call, and queued messages with
codes or links. Access tokens of service accounts that are no JWTs end. Sessions end: their users sign in again, and no
token of them is judged as reuse. Returns how many of each.
restored_to: the moment to which the database was restored. sessions_used_since: sessions that were not used at or after
this moment stay (default: none stay). A session that stays may be one that its user had ended since.
Example: SELECT admin.after_restore(''2026-03-01 12:00+00'');';

RESET ROLE;
