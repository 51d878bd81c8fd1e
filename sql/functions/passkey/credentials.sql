-- Passkeys are enrolled, listed, renamed and deleted.
SET LOCAL ROLE postern_owner;

-- What creation options need of a user: the handle, the names, and the credentials of this RP ID to exclude. email is
-- the name of the account: the primary phone number of a user without an address.
CREATE OR REPLACE FUNCTION postern.enrolment_options(p_realm uuid, p_user uuid, p_rp_id text)
RETURNS TABLE (user_handle bytea, email text, display_name text, credential_ids bytea[], total integer)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT u.user_handle, n.name, coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), n.name),
           (SELECT coalesce(array_agg(p.credential_id), '{}') FROM postern.passkey AS p
             WHERE p.realm_id = tenant.realm AND p.user_id = u.id AND p.rp_id = p_rp_id),
           (SELECT count(*)::integer FROM postern.passkey AS p WHERE p.realm_id = tenant.realm AND p.user_id = u.id)
      FROM (SELECT set_config('postern.realm', p_realm::text, true)::uuid AS realm OFFSET 0) AS tenant,
           LATERAL (SELECT * FROM postern.user_account AS a WHERE a.realm_id = tenant.realm AND a.id = p_user
                    AND a.enabled OFFSET 0) AS u,
           LATERAL (SELECT coalesce(u.email, (SELECT i.value FROM postern.user_identifier AS i
                                               WHERE i.realm_id = tenant.realm AND i.user_id = u.id
                                                 AND i.primary_kind = 'phone'), u.id::text) AS name) AS n
$$;
COMMENT ON FUNCTION postern.enrolment_options IS 'What the creation options of a passkey are made from';
GRANT EXECUTE ON FUNCTION postern.enrolment_options TO postern_app;

-- Spends what is sealed and in no table, once and in time. p_lifetime: the longest that it lives. After a restore of
-- the database does not know what was spent before, so all of that is spent. p_session: derived from the request that
-- presents it: the same request within a minute finds it fresh again.
CREATE OR REPLACE FUNCTION postern.spend(
    p_realm uuid, p_id bytea, p_expires double precision, p_lifetime interval, p_session uuid DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO postern.spent_ceremony (realm_id, id, expires_at, session)
    SELECT p_realm, p_id, to_timestamp(p_expires), p_session
     WHERE to_timestamp(p_expires) > now()
       AND NOT EXISTS (SELECT FROM postern.schema_restore AS x WHERE to_timestamp(p_expires) <= x.at + p_lifetime)
        ON CONFLICT DO NOTHING;
    RETURN FOUND OR p_session IS NOT NULL
        AND EXISTS (SELECT FROM postern.spent_ceremony AS s
                     WHERE s.realm_id = p_realm AND s.id = p_id AND s.session = p_session
                       AND s.spent_at > now() - interval '60 seconds');
END
$$;
COMMENT ON FUNCTION postern.spend IS
    'Spends a sealed value; false when it was spent before, is expired, or is from before a restore of the database';
GRANT EXECUTE ON FUNCTION postern.spend TO postern_app;

-- Spends a ceremony, before its answer is verified. True for the first, in time.
CREATE OR REPLACE FUNCTION postern.spend_ceremony(
    p_realm uuid, p_ceremony bytea, p_expires double precision, p_session uuid DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
BEGIN
    RETURN postern.spend(p_realm, p_ceremony, p_expires,
                         (SELECT r.ceremony_lifetime FROM postern.realm AS r WHERE r.id = p_realm), p_session);
END
$$;
COMMENT ON FUNCTION postern.spend_ceremony IS 'Spends a ceremony; false when it was spent before or is expired';
GRANT EXECUTE ON FUNCTION postern.spend_ceremony TO postern_app;

-- Stores a verified credential of a live session's user, and queues the notices (p_mail_id and p_payload are for one
-- address and not used any more). NULL when the session ended meanwhile, the credential is registered in this realm
-- already, or the user has twenty.
CREATE OR REPLACE FUNCTION postern.add_passkey(
    p_realm uuid, p_session uuid, p_rp_id text, p_credential_id bytea, p_public_key bytea, p_sign_count bigint,
    p_aaguid uuid, p_backup_eligible boolean, p_backup_state boolean, p_uv_initialized boolean, p_transports text[],
    p_format text, p_display_name text, p_source text, p_mail_id uuid, p_payload bytea)
RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
    v_id uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    -- Makes the count of this user's passkeys exact, too.
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, sign_count, aaguid,
                                 backup_eligible, backup_state, uv_initialized, transports, attestation_format,
                                 display_name)
    SELECT p_realm, v_user.id, p_rp_id, p_credential_id, p_public_key, p_sign_count, p_aaguid, p_backup_eligible,
           p_backup_state, p_uv_initialized, p_transports, p_format, p_display_name
     WHERE (SELECT count(*) FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = v_user.id) < 20
        ON CONFLICT DO NOTHING
    RETURNING id INTO v_id;
    IF v_id IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM postern.queue_notice(p_realm, v_user.id, 'passkey-added', postern.app_named(p_realm, v_user.client)
                                 || jsonb_strip_nulls(jsonb_build_object('aaguid', p_aaguid))
                                 || postern.offer_undo(p_realm, v_user.id, 'passkey', v_id, p_aaguid::text, p_source));
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'passkey_added', v_user.client, v_user.id, p_session, p_source,
            jsonb_build_object('passkey', v_id, 'transports', p_transports));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.add_passkey IS 'Stores a verified credential and tells its owner by mail';
GRANT EXECUTE ON FUNCTION postern.add_passkey TO postern_app;

-- The passkeys of a user, newest first.
CREATE OR REPLACE FUNCTION postern.list_passkeys(p_realm uuid, p_user uuid, p_id uuid DEFAULT NULL)
RETURNS TABLE (id uuid, rp_id text, aaguid uuid, backup_eligible boolean, backup_state boolean, transports text[],
               display_name text, created_at double precision, last_used_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT p.id, p.rp_id::text, p.aaguid, p.backup_eligible, p.backup_state, p.transports, p.display_name::text,
           date_part('epoch', p.created_at), date_part('epoch', p.last_used_at)
      FROM postern.passkey AS p
     WHERE p.realm_id = p_realm AND p.user_id = p_user AND (p_id IS NULL OR p.id = p_id)
     ORDER BY p.created_at DESC, p.id;
END
$$;
COMMENT ON FUNCTION postern.list_passkeys IS 'A user''s passkeys, or the one named';
GRANT EXECUTE ON FUNCTION postern.list_passkeys TO postern_app;

CREATE OR REPLACE FUNCTION postern.rename_passkey(p_realm uuid, p_session uuid, p_id uuid, p_display_name text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    UPDATE postern.passkey AS p SET display_name = p_display_name
     WHERE p.realm_id = p_realm AND p.user_id = v_user.id AND p.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.rename_passkey IS 'Renames a passkey of the session''s user';
GRANT EXECUTE ON FUNCTION postern.rename_passkey TO postern_app;

-- Deletes a user's own passkey and queues the notice. True exactly once.
CREATE OR REPLACE FUNCTION postern.delete_passkey(
    p_realm uuid, p_session uuid, p_id uuid, p_source text, p_mail_id uuid, p_payload bytea)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
    v_aaguid uuid;
    v_transports text[];
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    DELETE FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = v_user.id AND p.id = p_id
    RETURNING p.aaguid, p.transports INTO v_aaguid, v_transports;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postern.queue_notice(p_realm, v_user.id, 'passkey-removed', postern.app_named(p_realm, v_user.client)
                                 || jsonb_strip_nulls(jsonb_build_object('aaguid', v_aaguid)));
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'passkey_deleted', v_user.client, v_user.id, p_session, p_source,
            jsonb_build_object('passkey', p_id, 'transports', v_transports));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.delete_passkey IS 'Deletes a passkey of the session''s user, and tells the user by mail';
GRANT EXECUTE ON FUNCTION postern.delete_passkey TO postern_app;

CREATE OR REPLACE FUNCTION admin.delete_passkey(realm text, id uuid)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_passkey record;
BEGIN
    DELETE FROM postern.passkey AS p WHERE p.realm_id = v_realm AND p.id = id
    RETURNING p.user_id, p.aaguid, p.transports INTO v_passkey;
    PERFORM postern.admin_removed(v_realm, FOUND, 'passkey_deleted', user_id => v_passkey.user_id,
        detail => jsonb_build_object('passkey', id, 'transports', v_passkey.transports),
        p_missing => format('id %s is not a passkey of this realm', postern.shown(id::text)),
        p_hint => 'SELECT id FROM admin.passkeys WHERE realm = … AND email = … lists them.');
    PERFORM postern.queue_notice(v_realm, v_passkey.user_id, 'passkey-removed',
        jsonb_strip_nulls(jsonb_build_object('aaguid', v_passkey.aaguid)));
END
$$;
COMMENT ON FUNCTION admin.delete_passkey IS
'Deletes one passkey of a user, who is told by mail. Sessions that it opened go on: see admin.end_session and
admin.sign_out_everywhere.
Example: SELECT admin.delete_passkey(''acme'', id) FROM admin.passkeys
    WHERE realm = ''acme'' AND email = ''ada@example.com'';';

CREATE OR REPLACE VIEW admin.passkeys AS
SELECT r.slug AS realm, u.email, p.id, p.rp_id, p.display_name, p.aaguid, p.backup_eligible, p.backup_state,
       p.transports, p.created_at, p.last_used_at
  FROM postern.passkey AS p JOIN postern.realm AS r ON r.id = p.realm_id
  JOIN postern.user_account AS u ON u.realm_id = p.realm_id AND u.id = p.user_id;
COMMENT ON VIEW admin.passkeys IS 'Passkeys of users, without credential ids and keys';

RESET ROLE;
