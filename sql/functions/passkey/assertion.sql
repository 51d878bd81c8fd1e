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
-- p_session: of a request that may come again, as postern.spend takes it.
-- Always one row; spent says whether this call was the first and in time. The credential's columns are NULL when it is
-- unknown. The client is judged here, as an assertion that fails is not seen by another statement.
CREATE OR REPLACE FUNCTION postern.begin_assertion(
    p_caller postern.caller, p_permits postern.permits, p_ceremony bytea, p_expires double precision, p_session uuid,
    p_rp_id text, p_credential_id bytea,
    OUT outcome text, OUT passkey uuid, OUT user_handle bytea, OUT public_key bytea, OUT sign_count bigint,
    OUT backup_eligible boolean,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_lifetime interval;
    v postern.sign_in_result;
BEGIN
    v := postern.admit(p_caller, p_permits);
    limit_ord := v.limit_ord;
    retry_after := v.retry_after;
    granted := v.granted;
    IF v.outcome = 'rate_limited' THEN
        outcome := v.outcome;
        RETURN;
    END IF;
    SELECT s.ceremony_lifetime, p.id, u.user_handle, p.public_key, p.sign_count, p.backup_eligible
      INTO v_lifetime, passkey, user_handle, public_key, sign_count, backup_eligible
      FROM postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s
      LEFT JOIN (postern.passkey AS p
                 JOIN postern.user_account AS u ON u.realm_id = v_realm AND u.id = p.user_id)
             ON p.realm_id = v_realm AND p.credential_id = p_credential_id AND p.rp_id = p_rp_id;
    IF NOT FOUND THEN
        PERFORM postern.require_client(p_caller);
    END IF;
    outcome := CASE WHEN postern.spend(v_realm, p_ceremony, p_expires, v_lifetime, p_session) THEN 'spent'
                    ELSE 'refused' END;
END
$$;
COMMENT ON FUNCTION postern.begin_assertion IS 'Spends a login ceremony and fetches the credential it names';
GRANT EXECUTE ON FUNCTION postern.begin_assertion TO postern_app;

-- Records a verified assertion and opens the session. The counter moves in the same statement that checks it again: of
-- two assertions at once the lower one is refused, and a zero never lowers a stored counter.
CREATE OR REPLACE FUNCTION postern.redeem_passkey(
    p_caller postern.caller, p_new postern.new_session, p_passkey uuid, p_sign_count bigint, p_backup_state boolean)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_user uuid;
    v_reason text;
    v_set text := set_config('postern.realm', v_realm::text, true);
    v_candidate postern.candidate;
    v postern.sign_in_result;
BEGIN
    v.db_now := date_part('epoch', now());
    -- A passkey unlocks the codes of a locked account: address_key.
    UPDATE postern.passkey AS p
       SET sign_count = greatest(p.sign_count, p_sign_count), backup_state = p_backup_state, last_used_at = now()
      FROM postern.user_account AS u,
           postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s
     WHERE p.realm_id = v_realm AND p.id = p_passkey
       AND (p.sign_count < p_sign_count OR (p.sign_count = 0 AND p_sign_count = 0))
       AND u.realm_id = v_realm AND u.id = p.user_id AND u.enabled
    RETURNING u.id, u.security_stamp, coalesce(u.address_key, ''), s.client_id, s.session_end, p.id,
              jsonb_build_object('passkey', p.id)
         INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.address_key, v_candidate.client_id,
              v_candidate.session_end, v_candidate.factor, v_candidate.detail;
    IF FOUND THEN
        RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
    END IF;
    SELECT CASE WHEN p.sign_count >= p_sign_count AND p.sign_count > 0 THEN 'sign_count' ELSE 'disabled' END, p.user_id
      INTO v_reason, v_user FROM postern.passkey AS p WHERE p.realm_id = v_realm AND p.id = p_passkey;
    v := postern.refuse_sign_in(p_caller, p_new, v, coalesce(v_reason, 'deleted'));
    IF v.reason = 'sign_count' THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
        VALUES (v_realm, 'passkey_sign_count_regressed', p_caller.client, v_user, p_caller.source,
                jsonb_build_object('passkey', p_passkey, 'presented', p_sign_count));
    END IF;
    RETURN v;
END
$$;
COMMENT ON FUNCTION postern.redeem_passkey IS 'Records a verified assertion: counter, session and audit in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_passkey TO postern_app;

RESET ROLE;
