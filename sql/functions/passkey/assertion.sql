-- urn:cocoar:passkey: ceremonies are spent, assertions looked up and recorded.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:cocoar:passkey', 'Sign in by a passkey')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('passkey-begin', 'source', 1200, interval '5 minutes', 300, 'enforce'),
    ('passkey-begin', 'client', NULL, NULL, NULL, NULL),
    ('passkey-begin', 'app', NULL, NULL, NULL, NULL)
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('spent_ceremony', 't.expires_at < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Spends a ceremony and fetches the data to verify it, in one call: the ceremony is spent before anything is verified.
-- Always one row; spent says whether this call was the first and in time. The credential's columns are NULL when it is
-- unknown. The client is judged here, as an assertion that fails is not seen by another statement; p_app: as
-- postern.opened_from takes it.
CREATE OR REPLACE FUNCTION postern.begin_assertion(
    p_realm uuid, p_client uuid, p_permission text, p_app text, p_ceremony bytea, p_expires double precision,
    p_rp_id text, p_credential_id bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT passkey uuid, OUT user_handle bytea, OUT public_key bytea, OUT sign_count bigint,
    OUT backup_eligible boolean,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.* INTO outcome, limit_ord, retry_after, granted
          FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF outcome = 'rate_limited' THEN
            RETURN;
        END IF;
    END IF;
    PERFORM set_config('postern.app', coalesce(p_app, ''), true), postern.use_proof(p_realm);
    PERFORM postern.require_client(p_realm, p_client, p_permission);
    outcome := CASE WHEN postern.spend_ceremony(p_realm, p_ceremony, p_expires) THEN 'spent' ELSE 'refused' END;
    SELECT p.id, u.user_handle, p.public_key, p.sign_count, p.backup_eligible
      INTO passkey, user_handle, public_key, sign_count, backup_eligible
      FROM postern.passkey AS p, postern.user_account AS u
     WHERE p.realm_id = p_realm AND p.credential_id = p_credential_id AND p.rp_id = p_rp_id
       AND u.realm_id = p_realm AND u.id = p.user_id;
END
$$;
COMMENT ON FUNCTION postern.begin_assertion IS 'Spends a login ceremony and fetches the credential it names';
GRANT EXECUTE ON FUNCTION postern.begin_assertion TO postern_app;

-- Records a verified assertion and opens the session. The counter moves in the same statement that checks it again: of
-- two assertions at once the lower one is refused, and a zero never lowers a stored counter.
CREATE OR REPLACE FUNCTION postern.redeem_passkey(
    p_realm uuid, p_client uuid, p_permission text, p_passkey uuid, p_sign_count bigint, p_backup_state boolean,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_user record;
    v_opened record;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    outcome := 'refused';
    UPDATE postern.passkey AS p
       SET sign_count = greatest(p.sign_count, p_sign_count), backup_state = p_backup_state, last_used_at = now()
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE p.realm_id = p_realm AND p.id = p_passkey
       AND (p.sign_count < p_sign_count OR (p.sign_count = 0 AND p_sign_count = 0))
       AND u.realm_id = p_realm AND u.id = p.user_id AND u.enabled
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled
       AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled)
    RETURNING u.id, u.security_stamp, coalesce(u.email_key, '') AS email_key, k.client_id,
              now() + r.session_lifetime AS expires_at INTO v_user;
    IF NOT FOUND THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        SELECT CASE WHEN p.sign_count >= p_sign_count AND p.sign_count > 0 THEN 'sign_count' ELSE 'disabled' END,
               p.user_id
          INTO reason, user_id FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.id = p_passkey;
        IF reason = 'sign_count' THEN
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
            VALUES (p_realm, 'passkey_sign_count_regressed', p_client, user_id, p_source,
                    jsonb_build_object('passkey', p_passkey, 'presented', p_sign_count));
        END IF;
        reason := coalesce(reason, 'deleted');
        user_id := NULL;
        RETURN;
    END IF;
    user_id := v_user.id;
    -- A passkey unlocks the codes of a locked account.
    v_opened := postern.open_session(
        p_realm, p_client, v_user.client_id, user_id, v_user.security_stamp, v_user.expires_at,
        ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
            p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
        jsonb_build_object('passkey', p_passkey), v_user.email_key, NULL);
    outcome := 'ok';
    session_expires_at := v_opened.expires_at;
END
$$;
COMMENT ON FUNCTION postern.redeem_passkey IS 'Records a verified assertion: counter, session and audit in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_passkey TO postern_app;

-- Kept for older binaries.

-- These binaries do not name the line of the key file that the session depends on.
CREATE OR REPLACE FUNCTION postern.redeem_assertion(
    p_realm uuid, p_client uuid, p_permission text, p_passkey uuid, p_sign_count bigint, p_backup_state boolean,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision)
LANGUAGE sql
AS $$
    SELECT p.outcome, p.reason, p.user_id, p.db_now, p.session_expires_at
      FROM postern.redeem_passkey(p_realm, p_client, p_permission, p_passkey, p_sign_count, p_backup_state, p_session,
                                  p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
                                  p_refresh_lifetime, p_source, NULL) AS p
$$;
COMMENT ON FUNCTION postern.redeem_assertion IS 'For older binaries: postern.redeem_passkey';
GRANT EXECUTE ON FUNCTION postern.redeem_assertion TO postern_app;

RESET ROLE;
