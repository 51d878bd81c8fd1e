-- Realms that are deleted: closed first, erased after a time of grace.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.delete_realm(
    realm text, confirm text DEFAULT NULL, grace interval DEFAULT NULL,
    OUT users bigint, OUT clients bigint, OUT sessions bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_now postern.realm;
    v_grace interval := coalesce(grace, interval '7 days');
BEGIN
    SELECT r.* INTO v_now FROM postern.realm AS r WHERE r.id = v_realm;
    SELECT count(*) INTO users FROM postern.user_account AS u WHERE u.realm_id = v_realm;
    SELECT count(*) INTO clients FROM postern.client AS c WHERE c.realm_id = v_realm;
    SELECT count(*) INTO sessions FROM postern.session AS s
     WHERE s.realm_id = v_realm AND s.revoked_at IS NULL AND s.expires_at > now()
       AND coalesce(s.refresh_expires_at > now(), true);
    IF v_now.enabled THEN
        PERFORM postern.refuse(format('realm "%s" is enabled', realm),
            format('It has %s users, %s clients and %s live sessions. Close it first: admin.put_realm(%L, enabled => '
                   'false).', users, clients, sessions, realm));
    ELSIF confirm IS DISTINCT FROM realm THEN
        PERFORM postern.refuse(format('confirm %s is not the name of the realm', postern.shown(confirm)),
            format('This deletes %s users, %s clients and %s live sessions. To do it: admin.delete_realm(%L, '
                   'confirm => %L).', users, clients, sessions, realm, realm));
    -- What counts is when it ends: months and days of an interval do not compare as they add.
    ELSIF now() + v_grace NOT BETWEEN now() AND now() + interval '90 days' THEN
        PERFORM postern.refuse(format('grace %s is out of range', postern.shown(grace::text)),
                               'Allowed is an interval from 0 to 90 days.');
    END IF;
    UPDATE postern.realm AS r SET deleted_at = coalesce(r.deleted_at, now()), erased_at = now() + v_grace
     WHERE r.id = v_realm;
    INSERT INTO postern.deleted_realm AS d (realm_id, created_at, users, clients, slug, issuer, deleted_by)
    VALUES (v_realm, v_now.created_at, users, clients, v_now.slug,
            postern.issuer(v_now.public_origin, v_now.primary_domain), 'sql:' || session_user)
        ON CONFLICT (realm_id) DO UPDATE SET deleted_by = excluded.deleted_by;
    PERFORM postern.admin_audit(v_realm, 'realm_deletion_scheduled', detail => jsonb_build_object(
        'erased_at', now() + v_grace, 'users', users, 'clients', clients, 'sessions', sessions));
END
$$;
COMMENT ON FUNCTION admin.delete_realm IS
'Deletes a closed realm with everything in it: clients, users, sessions, codes, mail, audit log. Returns how many users,
clients and live sessions that is. Until grace is over its hosts answer 404, its slug and domains stay taken, and
admin.undelete_realm brings everything back; then it is erased. Called again, it changes the end of the grace.
admin.deleted_realms keeps that it happened.
confirm: the slug once more. grace: 0 to 90 days, default 7 days.
Example: SELECT admin.delete_realm(''acme'', confirm => ''acme'');';

CREATE OR REPLACE FUNCTION admin.undelete_realm(realm text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    -- The sweeper has begun as soon as it may: what it took is not known.
    IF EXISTS (SELECT FROM postern.realm AS r WHERE r.id = v_realm AND r.erased_at <= now()) THEN
        PERFORM postern.refuse(format('realm "%s" is being erased', realm), 'Its grace is over: there is no way back.');
    END IF;
    UPDATE postern.realm AS r SET deleted_at = NULL, erased_at = NULL WHERE r.id = v_realm AND r.deleted_at IS NOT NULL;
    IF FOUND THEN
        DELETE FROM postern.deleted_realm AS d WHERE d.realm_id = v_realm;
        PERFORM postern.admin_audit(v_realm, 'realm_undeleted');
    END IF;
END
$$;
COMMENT ON FUNCTION admin.undelete_realm IS
'Brings a deleted realm back with everything in it, while its grace lasts (erased_at in admin.realms). It is disabled;
admin.put_realm(slug, enabled => true) opens it.
Example: SELECT admin.undelete_realm(''acme'');';

-- Erases up to p_batch rows of one realm whose grace is over, for the sweeper; returns how many. What would tell others
-- of each row that goes comes first. Rows go table by table, users with what hangs on them; the last call takes the
-- realm itself with all that is small.
CREATE OR REPLACE FUNCTION postern.erase_realm(p_batch integer) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid;
    v_table text;
    v_rows bigint;
    v_total bigint := 0;
BEGIN
    SELECT r.id INTO v_realm FROM postern.realm AS r
     WHERE r.erased_at <= now() AND r.id <> ALL (postern.unserved_realms())
     ORDER BY r.erased_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM postern.webhook AS w WHERE w.realm_id = v_realm;
    DELETE FROM postern.logout_uri AS u WHERE u.realm_id = v_realm;
    FOREACH v_table IN ARRAY ARRAY[
        'session', 'browser_session', 'device_request', 'user_account', 'device_key', 'sign_in_request', 'login_code',
        'login_link', 'message_outbox', 'code_guard', 'rate_bucket', 'audit_event']
    LOOP
        EXECUTE format('DELETE FROM postern.%1$I AS t WHERE t.realm_id = $1 AND t.ctid = ANY (ARRAY('
                       'SELECT x.ctid FROM postern.%1$I AS x WHERE x.realm_id = $1 LIMIT $2))', v_table)
          USING v_realm, p_batch - v_total;
        GET DIAGNOSTICS v_rows = ROW_COUNT;
        v_total := v_total + v_rows;
        IF v_total >= p_batch THEN
            RETURN v_total;
        END IF;
    END LOOP;
    DELETE FROM postern.realm AS r WHERE r.id = v_realm;
    RETURN v_total + 1;
END
$$;
COMMENT ON FUNCTION postern.erase_realm IS 'Erases a part of a realm that was deleted and whose grace is over';

CREATE OR REPLACE VIEW admin.deleted_realms AS
SELECT d.slug, d.realm_id AS id, d.issuer, d.created_at, d.deleted_at, d.deleted_by, d.users, d.clients, d.erased_at
  FROM postern.deleted_realm AS d;
COMMENT ON VIEW admin.deleted_realms IS
    'Realms that were deleted: when, by whom and how large they were. erased_at NULL: admin.realms has it still';

RESET ROLE;
