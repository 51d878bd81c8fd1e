-- Passkeys: ceremonies are spent, assertions looked up and recorded, credentials enrolled, listed, renamed and deleted.
SET LOCAL ROLE postern_owner;

-- Spends a ceremony and fetches the data to verify it, in one call: the ceremony is spent before anything is verified.
-- Always one row; spent says whether this call was the first and in time. The credential's columns are NULL when it is unknown.
CREATE OR REPLACE FUNCTION postern.begin_assertion(
    p_realm uuid, p_ceremony bytea, p_expires double precision, p_rp_id text, p_credential_id bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT passkey uuid, OUT user_handle bytea, OUT public_key bytea, OUT sign_count bigint, OUT backup_eligible boolean,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
          FROM postern.take_realm_permits(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF limit_ord IS NOT NULL THEN
            outcome := 'rate_limited';
            RETURN;
        END IF;
    END IF;
    outcome := 'refused';
    INSERT INTO postern.spent_ceremony (realm_id, id, expires_at)
    SELECT p_realm, p_ceremony, to_timestamp(p_expires) WHERE to_timestamp(p_expires) > now()
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        outcome := 'spent';
    END IF;
    SELECT p.id, u.user_handle, p.public_key, p.sign_count, p.backup_eligible
      INTO passkey, user_handle, public_key, sign_count, backup_eligible
      FROM postern.passkey AS p, postern.user_account AS u
     WHERE p.realm_id = p_realm AND p.credential_id = p_credential_id AND p.rp_id = p_rp_id
       AND u.realm_id = p_realm AND u.id = p.user_id;
END
$$;
COMMENT ON FUNCTION postern.begin_assertion(uuid, bytea, double precision, text, bytea, text[], integer[], integer[], double precision[], integer[]) IS
    'Spends a login ceremony and fetches the credential it names';

-- Records a verified assertion and opens the session. The counter moves in the same statement that checks it again: of two assertions
-- at once the lower one is refused, and a zero never lowers a stored counter.
CREATE OR REPLACE FUNCTION postern.redeem_passkey(
    p_realm uuid, p_client uuid, p_permission text, p_passkey uuid, p_sign_count bigint, p_backup_state boolean,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_user record;
    v_expires_at timestamptz;
    v_refresh_expires_at timestamptz;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    outcome := 'refused';
    UPDATE postern.passkey AS p
       SET sign_count = greatest(p.sign_count, p_sign_count), backup_state = p_backup_state, last_used_at = now()
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE p.realm_id = p_realm AND p.id = p_passkey AND (p.sign_count < p_sign_count OR (p.sign_count = 0 AND p_sign_count = 0))
       AND u.realm_id = p_realm AND u.id = p.user_id AND u.enabled
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.native_grants_enabled
    RETURNING u.id, u.security_stamp, u.email_key, k.client_id, now() + r.session_lifetime AS expires_at INTO v_user;
    IF NOT FOUND THEN
        SELECT CASE WHEN p.sign_count >= p_sign_count AND p.sign_count > 0 THEN 'sign_count' ELSE 'disabled' END, p.user_id
          INTO reason, user_id FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.id = p_passkey;
        IF reason = 'sign_count' THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
            VALUES (p_realm, 'passkey_sign_count_regressed', p_client, user_id, p_source, jsonb_build_object('passkey', p_passkey, 'presented', p_sign_count));
        END IF;
        reason := coalesce(reason, 'deleted');
        user_id := NULL;
        RETURN;
    END IF;
    user_id := v_user.id;
    v_expires_at := v_user.expires_at;
    IF p_refresh_hash IS NULL THEN
        -- Nothing can prolong it: the session ends with its access token.
        v_expires_at := least(v_expires_at, now() + make_interval(secs => p_access_lifetime));
    ELSE
        v_refresh_expires_at := least(v_expires_at, now() + make_interval(secs => p_refresh_lifetime));
    END IF;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, refresh_expires_at,
                                 token_salt, current_hash, scope, resource, amr, server_key)
    VALUES (p_realm, p_session, user_id, p_client, v_user.client_id, v_user.security_stamp, now(), v_expires_at, v_refresh_expires_at,
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_server_key);
    -- A sign-in by passkey unlocks the codes of a locked account.
    UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
     WHERE g.realm_id = p_realm AND g.email_key = v_user.email_key AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'sign_in', p_client, user_id, p_session, p_source, jsonb_build_object('passkey', p_passkey));
    outcome := 'ok';
    session_expires_at := date_part('epoch', v_expires_at);
END
$$;
COMMENT ON FUNCTION
    postern.redeem_passkey(uuid, uuid, text, uuid, bigint, boolean, uuid, bytea, bytea, text[], text[], text[], integer, integer, text, bytea) IS
    'Records a verified assertion: counter, session and audit in one call';

-- What creation options need of a user: the handle, the names, and the credentials of this RP ID to exclude.
CREATE OR REPLACE FUNCTION postern.enrolment_options(p_realm uuid, p_user uuid, p_rp_id text)
RETURNS TABLE (user_handle bytea, email text, display_name text, credential_ids bytea[], total integer)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT u.user_handle, u.email, coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), u.email),
           (SELECT coalesce(array_agg(p.credential_id), '{}') FROM postern.passkey AS p
             WHERE p.realm_id = tenant.realm AND p.user_id = u.id AND p.rp_id = p_rp_id),
           (SELECT count(*)::integer FROM postern.passkey AS p WHERE p.realm_id = tenant.realm AND p.user_id = u.id)
      FROM (SELECT set_config('postern.realm', p_realm::text, true)::uuid AS realm OFFSET 0) AS tenant,
           LATERAL (SELECT * FROM postern.user_account AS a WHERE a.realm_id = tenant.realm AND a.id = p_user AND a.enabled OFFSET 0) AS u
$$;
COMMENT ON FUNCTION postern.enrolment_options(uuid, uuid, text) IS 'What the creation options of a passkey are made from';

-- Spends an enrolment ceremony, before its answer is verified. True for the first, in time.
CREATE OR REPLACE FUNCTION postern.spend_ceremony(p_realm uuid, p_ceremony bytea, p_expires double precision)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.spent_ceremony (realm_id, id, expires_at)
    SELECT p_realm, p_ceremony, to_timestamp(p_expires) WHERE to_timestamp(p_expires) > now()
        ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.spend_ceremony(uuid, bytea, double precision) IS 'Spends an enrolment ceremony; false when it was spent before or is expired';

-- Stores a verified credential of a live session's user, and queues the notice. NULL when the session ended meanwhile, the credential is
-- registered in this realm already, or the user has twenty.
CREATE OR REPLACE FUNCTION postern.add_passkey(
    p_realm uuid, p_session uuid, p_rp_id text, p_credential_id bytea, p_public_key bytea, p_sign_count bigint, p_aaguid uuid,
    p_backup_eligible boolean, p_backup_state boolean, p_uv_initialized boolean, p_transports text[], p_format text, p_display_name text,
    p_source text, p_mail_id uuid, p_payload bytea)
RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
    v_id uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    -- The advisory lock below makes the count of this user's passkeys exact.
    SELECT u.id, u.email, u.email_verified, s.client INTO v_user
      FROM postern.session AS s, postern.user_account AS u
     WHERE s.realm_id = p_realm AND s.id = p_session AND s.revoked_at IS NULL AND s.expires_at > now()
       AND u.realm_id = p_realm AND u.id = s.user_id AND u.enabled AND u.security_stamp = s.security_stamp;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(v_user.id::text, 3));
    INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, sign_count, aaguid, backup_eligible, backup_state,
                                 uv_initialized, transports, attestation_format, display_name)
    SELECT p_realm, v_user.id, p_rp_id, p_credential_id, p_public_key, p_sign_count, p_aaguid, p_backup_eligible, p_backup_state,
           p_uv_initialized, p_transports, p_format, p_display_name
     WHERE (SELECT count(*) FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = v_user.id) < 20
        ON CONFLICT DO NOTHING
    RETURNING id INTO v_id;
    IF v_id IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload)
    SELECT p_realm, p_mail_id, v_user.email, 'passkey-added', p_payload
     WHERE v_user.email_verified AND NOT postern.is_test_identity(v_user.id);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'passkey_added', v_user.client, v_user.id, p_session, p_source, jsonb_build_object('passkey', v_id));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.add_passkey(uuid, uuid, text, bytea, bytea, bigint, uuid, boolean, boolean, boolean, text[], text, text, text, uuid, bytea) IS
    'Stores a verified credential and tells its owner by mail';

-- The passkeys of a user, newest first.
CREATE OR REPLACE FUNCTION postern.list_passkeys(p_realm uuid, p_user uuid, p_id uuid DEFAULT NULL)
RETURNS TABLE (id uuid, rp_id text, aaguid uuid, backup_eligible boolean, backup_state boolean, transports text[], display_name text,
               created_at double precision, last_used_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT p.id, p.rp_id, p.aaguid, p.backup_eligible, p.backup_state, p.transports, p.display_name,
           date_part('epoch', p.created_at), date_part('epoch', p.last_used_at)
      FROM postern.passkey AS p
     WHERE p.realm_id = p_realm AND p.user_id = p_user AND (p_id IS NULL OR p.id = p_id)
     ORDER BY p.created_at DESC, p.id;
END
$$;
COMMENT ON FUNCTION postern.list_passkeys(uuid, uuid, uuid) IS 'A user''s passkeys, or the one named';

CREATE OR REPLACE FUNCTION postern.rename_passkey(p_realm uuid, p_user uuid, p_id uuid, p_display_name text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.passkey AS p SET display_name = p_display_name WHERE p.realm_id = p_realm AND p.user_id = p_user AND p.id = p_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.rename_passkey(uuid, uuid, uuid, text) IS 'Renames a user''s own passkey';

-- Deletes a user's own passkey and queues the notice. True exactly once.
CREATE OR REPLACE FUNCTION postern.delete_passkey(
    p_realm uuid, p_session uuid, p_user uuid, p_id uuid, p_source text, p_mail_id uuid, p_payload bytea)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_client uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    DELETE FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = p_user AND p.id = p_id;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload)
    SELECT p_realm, p_mail_id, u.email, 'passkey-removed', p_payload FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user
       AND u.email_verified AND NOT postern.is_test_identity(u.id);
    SELECT s.client INTO v_client FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'passkey_deleted', v_client, p_user, p_session, p_source, jsonb_build_object('passkey', p_id));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.delete_passkey(uuid, uuid, uuid, uuid, text, uuid, bytea) IS 'Deletes a user''s own passkey and tells the user by mail';

-- Kept for older binaries, which do not name the line of the key file that the session depends on.
CREATE OR REPLACE FUNCTION postern.redeem_assertion(
    p_realm uuid, p_client uuid, p_permission text, p_passkey uuid, p_sign_count bigint, p_backup_state boolean,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision)
LANGUAGE sql
AS $$
    SELECT p.outcome, p.reason, p.user_id, p.db_now, p.session_expires_at
      FROM postern.redeem_passkey(p_realm, p_client, p_permission, p_passkey, p_sign_count, p_backup_state, p_session,
                                  p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
                                  p_refresh_lifetime, p_source, NULL) AS p
$$;
COMMENT ON FUNCTION
    postern.redeem_assertion(uuid, uuid, text, uuid, bigint, boolean, uuid, bytea, bytea, text[], text[], text[], integer, integer, text) IS
    'For older binaries: postern.redeem_passkey';

DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p
              WHERE p.pronamespace = 'postern'::regnamespace
                AND p.proname IN ('begin_assertion', 'redeem_passkey', 'redeem_assertion', 'enrolment_options', 'spend_ceremony', 'add_passkey', 'list_passkeys',
                                  'rename_passkey', 'delete_passkey') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO postern_app', f);
    END LOOP;
END
$$;

RESET ROLE;
