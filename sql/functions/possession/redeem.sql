-- urn:postern:possession: a number that was just proven signs in the user whose it is.
SET LOCAL ROLE postern_owner;

-- How a transaction was passed, for the authentication methods that the session will say; NULL: it is not passed. Of
-- one that signed in as well: the same request may come again.
CREATE OR REPLACE FUNCTION postern.possession_passed_by(p_realm uuid, p_auth_id uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN (SELECT t.detail ->> 'by' FROM postern.device_request AS t
             WHERE t.realm_id = p_realm AND t.auth_id = p_auth_id AND t.state IN ('passed', 'redeemed')
               AND t.expires_at > now());
END
$$;
COMMENT ON FUNCTION postern.possession_passed_by IS 'How a transaction was passed; NULL: it is not';
GRANT EXECUTE ON FUNCTION postern.possession_passed_by TO postern_app;

-- p_by: as possession_passed_by said it. The key is that of the statement's proof. The user who has the number as a
-- proven identifier is signed in, if that user had it when the transaction passed, and has not signed out everywhere
-- since. A number that was proven long ago needs the second factor beside it. What this server did not see itself, and
-- a key, leave the proof of the number as old as it is.
CREATE OR REPLACE FUNCTION postern.redeem_possession(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_auth_id uuid, p_by text,
    p_second postern.second_factor_proof)
RETURNS postern.sign_in_result
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_transaction postern.device_request;
    v_stale boolean;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    SELECT t.* INTO v_transaction
      FROM postern.device_request AS t
     WHERE t.realm_id = v_realm AND t.auth_id = p_auth_id AND t.state = 'passed' AND t.expires_at > now()
       AND t.key = (p_caller.proof).key AND t.detail ->> 'by' = p_by;
    SELECT u.id, u.security_stamp, u.has_totp, s.client_id, s.session_end, v_transaction.phone,
           jsonb_build_object('correlation_id', v_transaction.id), i.proved_at < postern.stale_before(v_realm)
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
           v_candidate.session_end, v_candidate.address_key, v_candidate.detail, v_stale
      FROM postern.client AS asker
      JOIN postern.user_identifier AS i
           ON i.realm_id = v_realm AND i.proven_key = v_transaction.phone AND i.kind = 'phone'
      JOIN postern.user_account AS u
           ON u.realm_id = v_realm AND u.id = i.user_id AND u.enabled
          AND u.security_stamp = v_transaction.security_stamp
      JOIN postern.realm AS r ON r.id = v_realm AND r.possession_enabled
      JOIN postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s ON true
     WHERE asker.realm_id = v_realm AND asker.id = v_transaction.client AND asker.enabled
       AND asker.possession_login_client = p_caller.client AND v_transaction.ended_at >= i.held_since
       AND (p_by <> 'key' OR EXISTS (SELECT FROM postern.device_key AS d
                                      WHERE d.realm_id = v_realm AND d.thumbprint = v_transaction.key
                                        AND postern.bound_phone(d, asker.id) = v_transaction.phone))
       AND (p_by <> 'bind' OR 'cap:assert-possession' = ANY (asker.permissions))
       AND (NOT v_transaction.is_test
            OR EXISTS (SELECT FROM postern.test_number_of(v_realm, asker.id, v_transaction.phone) AS n
                        WHERE n.phone IS NOT NULL));
    IF NOT FOUND THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'transaction');
    ELSIF v_stale AND NOT v_candidate.has_totp THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'stale');
    END IF;
    v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    PERFORM FROM postern.move_device_request(v_realm, v_transaction.id, '{passed}', 'redeemed');
    IF NOT FOUND THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'used');
    END IF;
    UPDATE postern.device_request AS t SET user_id = v_candidate.user_id
     WHERE t.realm_id = v_realm AND t.id = v_transaction.id;
    IF p_by IN ('code', 'link', 'operator') AND NOT v_transaction.is_test THEN
        PERFORM postern.prove_identifier(v_realm, v_candidate.user_id, 'phone', v_transaction.phone);
    END IF;
    RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
END
$$;
COMMENT ON FUNCTION postern.redeem_possession IS 'Signs a user in by a phone number that was proven in a transaction';
GRANT EXECUTE ON FUNCTION postern.redeem_possession TO postern_app;

RESET ROLE;
