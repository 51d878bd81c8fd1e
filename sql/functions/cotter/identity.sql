-- Who proved which address: the codes, sessions and accounts of Cotter's web wire.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('user_account', 't.unproven_until < now() AND NOT EXISTS (SELECT FROM postern.user_identifier AS i '
     'WHERE i.realm_id = t.realm_id AND i.user_id = t.id AND i.proven_key IS NOT NULL)')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- redeem_authorization_code for a code whose request asked for a proven address; kind, identifier and the columns after
-- it say whose address it is. A code whose address is no longer its user's is refused and stays.
-- Outcomes: ok, refused (reason is for logs only), rate_limited.
CREATE OR REPLACE FUNCTION postern.redeem_identity_code(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_code_hash bytea,
    p_redirect_uri text, p_challenge text,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision, OUT scope text[], OUT amr text[], OUT acr text,
    OUT auth_time double precision, OUT kind text, OUT method text, OUT identifier uuid, OUT value text,
    OUT added_at double precision, OUT proved_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_proof jsonb;
BEGIN
    PERFORM set_config('postern.realm', v_realm::text, true);
    SELECT a.proof, i.id, i.value, date_part('epoch', i.added_at), date_part('epoch', i.proved_at)
      INTO v_proof, identifier, value, added_at, proved_at
      FROM postern.authorization_code AS a
      JOIN postern.user_identifier AS i ON i.realm_id = v_realm AND i.user_id = a.user_id
          AND i.proven_key = postern.address_key(a.proof ->> 'value')
     WHERE a.realm_id = v_realm AND a.code_hash = p_code_hash AND a.client = p_caller.client;
    -- Without a proof that holds, no code has this hash: the permits are taken all the same.
    SELECT t.outcome, t.reason, t.user_id, t.db_now, t.session_expires_at, t.scope, t.amr, t.acr, t.auth_time,
           t.limit_ord, t.retry_after, t.granted
      INTO outcome, reason, user_id, db_now, session_expires_at, scope, amr, acr, auth_time, limit_ord, retry_after,
           granted
      FROM postern.redeem_authorization_code(
               p_caller, p_permits, p_new, CASE WHEN v_proof IS NULL THEN ''::bytea ELSE p_code_hash END,
               p_redirect_uri, p_challenge, NULL) AS t;
    IF outcome = 'ok' THEN
        kind := v_proof ->> 'kind';
        method := v_proof ->> 'method';
        UPDATE postern.session AS s SET proof = v_proof, cotter = true
         WHERE s.realm_id = v_realm AND s.id = p_new.id AND s.proof IS NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.redeem_identity_code IS
    'Redeems an authorization code whose request asked for a proven address, and says which one that is';
GRANT EXECUTE ON FUNCTION postern.redeem_identity_code TO postern_app;

CREATE OR REPLACE FUNCTION postern.session_proof(
    p_realm uuid, p_session uuid, OUT value text, OUT method text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT s.proof ->> 'value', s.proof ->> 'method' INTO value, method
      FROM postern.session AS s WHERE s.realm_id = p_realm AND s.id = p_session;
END
$$;
COMMENT ON FUNCTION postern.session_proof IS 'The address that was proven for a session; NULL without one';
GRANT EXECUTE ON FUNCTION postern.session_proof TO postern_app;

-- A link carries its user, so one for an unknown address needs an account before the proof. It holds nothing, opens
-- nothing, and is swept after a day unless the link is redeemed. NULL: the source has caused too many, or another
-- account can still take the address back.
-- The caller holds the lock of the address.
CREATE OR REPLACE FUNCTION postern.claim_user(p_realm uuid, p_address text, p_source text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user record;
    v_id uuid;
BEGIN
    SELECT a.user_id, u.enabled AND NOT a.proven AS open INTO v_user
      FROM postern.account_of(p_realm, postern.address_key(p_address)) AS a
      JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = a.user_id;
    IF v_user.user_id IS NOT NULL THEN
        RETURN CASE WHEN v_user.open THEN v_user.user_id END;
    END IF;
    IF NOT postern.admit_registration(p_realm, p_source)
       OR postern.is_contested(p_realm, postern.address_key(p_address)) THEN
        RETURN NULL;
    END IF;
    INSERT INTO postern.user_account AS u (realm_id, email_verified, unproven_until)
    VALUES (p_realm, false, now() + interval '1 day') RETURNING u.id INTO v_id;
    INSERT INTO postern.user_identifier (realm_id, user_id, kind, value)
    VALUES (p_realm, v_id, CASE WHEN postern.is_phone(p_address) THEN 'phone' ELSE 'email' END, p_address);
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.claim_user IS
    'The account that a link to an unproven address will prove it for; NULL: no link is sent';
GRANT EXECUTE ON FUNCTION postern.claim_user TO postern_app;

RESET ROLE;
