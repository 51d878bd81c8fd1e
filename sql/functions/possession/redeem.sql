-- urn:postern:possession: a number that was just proven signs in the user whose it is.
SET LOCAL ROLE postern_owner;

-- How a transaction was passed, for the authentication methods that the session will say; NULL: it is not passed.
CREATE OR REPLACE FUNCTION postern.possession_passed_by(p_realm uuid, p_auth_id uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN (SELECT t.detail ->> 'by' FROM postern.device_request AS t
             WHERE t.realm_id = p_realm AND t.auth_id = p_auth_id AND t.state = 'passed' AND t.expires_at > now());
END
$$;
COMMENT ON FUNCTION postern.possession_passed_by IS 'How a transaction was passed; NULL: it is not';
GRANT EXECUTE ON FUNCTION postern.possession_passed_by TO postern_app;

-- p_by: as possession_passed_by said it. The key is that of the statement's proof. The user who has the number as a
-- proven identifier is signed in, if that user had it when the transaction passed, and has not signed out everywhere
-- since. A number that was proven long ago needs the second factor beside it. What this server did not see itself, and
-- a key, leave the proof of the number as old as it is.
-- Outcomes: ok, refused (reason is for logs only), rate_limited, busy, and those of a second factor.
CREATE OR REPLACE FUNCTION postern.redeem_possession(
    p_realm uuid, p_client uuid, p_permission text, p_auth_id uuid, p_by text, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_passed record;
    v_opened record;
BEGIN
    db_now := date_part('epoch', now());
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    outcome := 'refused';
    SELECT t.id AS transaction, t.phone, t.client AS asker, u.id, u.security_stamp, u.has_totp, k.client_id,
           now() + r.session_lifetime AS session_end,
           i.proved_at < postern.stale_before(p_realm) AS stale,
           p_by IN ('code', 'link', 'operator') AND NOT t.is_test AS is_proof
      INTO v_passed
      FROM postern.device_request AS t
      JOIN postern.client AS asker ON asker.realm_id = p_realm AND asker.id = t.client AND asker.enabled
      JOIN postern.client AS k ON k.realm_id = p_realm AND k.id = asker.possession_login_client
      JOIN postern.user_identifier AS i ON i.realm_id = p_realm AND i.proven_key = t.phone AND i.kind = 'phone'
      JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = i.user_id AND u.enabled
                                       AND u.security_stamp = t.security_stamp
      JOIN postern.realm AS r ON r.id = p_realm
     WHERE t.realm_id = p_realm AND t.auth_id = p_auth_id AND t.state = 'passed' AND t.expires_at > now()
       AND t.key = postern.proof_key() AND t.detail ->> 'by' = p_by AND t.ended_at >= i.held_since
       AND (p_by <> 'key' OR EXISTS (SELECT FROM postern.device_key AS d
                                      WHERE d.realm_id = p_realm AND d.thumbprint = t.key
                                        AND postern.bound_phone(d, t.client) = t.phone))
       AND (p_by <> 'bind' OR 'cap:assert-possession' = ANY (asker.permissions))
       AND (NOT t.is_test OR EXISTS (SELECT FROM postern.test_number_of(p_realm, t.client, t.phone) AS n
                                      WHERE n.phone IS NOT NULL))
       AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.enabled AND r.possession_enabled
       AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled);
    IF v_passed.id IS NOT NULL AND NOT (v_passed.stale AND NOT v_passed.has_totp) THEN
        IF NOT postern.try_hold_user(p_realm, v_passed.id) THEN
            outcome := 'busy';
            RETURN;
        END IF;
        -- What is refused up to here leaves the transaction as it is.
        IF v_passed.has_totp OR p_factor IS NOT NULL OR postern.falls_short(p_amr) THEN
            SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at
              INTO outcome, factor, sealed_seed, last_step_at
              FROM postern.check_second_factor(p_realm, v_passed.id, v_passed.has_totp, p_factor, p_totp_step,
                                               p_recovery, p_client, p_session, p_source) AS s;
            IF outcome <> 'proved' THEN
                RETURN;
            END IF;
            outcome := 'refused';
        END IF;
        PERFORM FROM postern.move_device_request(p_realm, v_passed.transaction, '{passed}', 'redeemed');
        IF FOUND THEN
            outcome := 'ok';
            user_id := v_passed.id;
            UPDATE postern.device_request AS t SET user_id = v_passed.id
             WHERE t.realm_id = p_realm AND t.id = v_passed.transaction;
            IF v_passed.is_proof THEN
                PERFORM postern.prove_identifier(p_realm, user_id, 'phone', v_passed.phone);
            END IF;
            v_opened := postern.open_session(
                p_realm, p_client, v_passed.client_id, user_id, v_passed.security_stamp, v_passed.session_end,
                ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
                    p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
                jsonb_build_object('correlation_id', v_passed.transaction), v_passed.phone, NULL);
            session_expires_at := v_opened.expires_at;
            RETURN;
        END IF;
    END IF;
    PERFORM postern.require_client(p_realm, p_client, p_permission);
    reason := CASE WHEN v_passed.id IS NULL THEN 'transaction' WHEN v_passed.stale THEN 'stale' ELSE 'used' END;
END
$$;
COMMENT ON FUNCTION postern.redeem_possession IS 'Signs a user in by a phone number that was proven in a transaction';
GRANT EXECUTE ON FUNCTION postern.redeem_possession TO postern_app;

RESET ROLE;
