-- The second factor: used beside any first factor, enrolled and removed by its owner.
SET LOCAL ROLE postern_owner;

-- One try at an account's second factor, in the transaction that verified the first. True: right, and spent by this
-- call.
-- False: wrong, and counted; or refused uncounted, while five wrong tries of the last ten minutes (TOTP or recovery
-- codes) or, for TOTP alone, a hundred in a row without a right one close it (NIST SP 800-63B).
-- p_second: factor: the row whose seed the caller compared with; totp_step: the time step whose code was presented,
-- NULL when none matched (the bound on it is wider than what the caller accepts, since a little time has passed);
-- recovery: the code's HMAC under each server key.
CREATE OR REPLACE FUNCTION postern.use_second_factor(
    p_realm uuid, p_user uuid, p_second postern.second_factor_proof, p_client uuid, p_session uuid, p_source text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_closed boolean;
    v_fifth timestamptz;
    v_wrong integer;
    v_left bigint;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    -- One try at a time per account: the row stays locked until the transaction ends.
    SELECT coalesce(f.wrong_5_at > now() - interval '10 minutes', false)
        OR (p_second.recovery IS NULL AND coalesce(f.locked_until > now(), false))
      INTO v_closed
      FROM postern.totp_factor AS f
     WHERE f.realm_id = p_realm AND f.user_id = p_user AND f.id = p_second.factor
       FOR NO KEY UPDATE;
    IF NOT FOUND OR v_closed THEN
        RETURN false;
    END IF;

    IF p_second.recovery IS NOT NULL THEN
        DELETE FROM postern.recovery_code AS r
         WHERE r.realm_id = p_realm AND r.user_id = p_user AND r.mac = ANY (p_second.recovery);
        IF FOUND THEN
            UPDATE postern.totp_factor AS f SET last_used_at = now() WHERE f.realm_id = p_realm AND f.user_id = p_user;
            SELECT count(*) INTO v_left
              FROM postern.recovery_code AS r WHERE r.realm_id = p_realm AND r.user_id = p_user;
            INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
            VALUES (p_realm, 'recovery_code_used', p_client, p_user, p_session, p_source,
                    jsonb_build_object('left', v_left));
            IF v_left = 0 THEN
                INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
                VALUES (p_realm, 'recovery_codes_used_up', p_client, p_user, p_session, p_source);
                PERFORM postern.queue_notice(p_realm, p_user, 'recovery-codes-used-up',
                                             postern.app_named(p_realm, p_client));
            END IF;
            RETURN true;
        END IF;
    ELSE
        UPDATE postern.totp_factor AS f
           SET last_step_at = to_timestamp(p_second.totp_step * 30), last_used_at = now(), wrong_in_a_row = 0,
               locked_until = NULL
         WHERE f.realm_id = p_realm AND f.user_id = p_user AND to_timestamp(p_second.totp_step * 30) > f.last_step_at
           AND to_timestamp(p_second.totp_step * 30) BETWEEN now() - interval '90 seconds'
              AND now() + interval '30 seconds';
        IF FOUND THEN
            RETURN true;
        END IF;
    END IF;

    UPDATE postern.totp_factor AS f
       SET wrong_5_at = f.wrong_4_at, wrong_4_at = f.wrong_3_at, wrong_3_at = f.wrong_2_at, wrong_2_at = f.wrong_1_at,
           wrong_1_at = now(),
           -- The hundredth in a row closes TOTP for a day; after that day the count starts again.
           wrong_in_a_row = CASE WHEN f.locked_until <= now() THEN 1 ELSE f.wrong_in_a_row + 1 END,
           locked_until = CASE WHEN f.locked_until <= now() THEN NULL
                               WHEN f.wrong_in_a_row >= 99 THEN coalesce(f.locked_until, now() + interval '24 hours')
                                   END
     WHERE f.realm_id = p_realm AND f.user_id = p_user
    RETURNING f.wrong_5_at, f.wrong_in_a_row INTO v_fifth, v_wrong;
    IF v_fifth > now() - interval '10 minutes' OR v_wrong = 100 THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
        VALUES (p_realm, 'second_factor_locked', p_client, p_user, p_source, jsonb_build_object('in_a_row', v_wrong));
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION postern.use_second_factor IS
    'One try at an account''s second factor: spends it, or counts the wrong try';
GRANT EXECUTE ON FUNCTION postern.use_second_factor TO postern_app;

-- A length and then the bytes, so that several values travel in one.
CREATE OR REPLACE FUNCTION postern.framed(p_value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN int4send(octet_length(coalesce(p_value, '\x'))) || coalesce(p_value, '\x');
COMMENT ON FUNCTION postern.framed IS 'Length (4 bytes) and value';
GRANT EXECUTE ON FUNCTION postern.framed TO postern_app;

-- The seed with what is needed to open it and to compare recovery codes, so that a sign-in never has to ask for a data
-- key: 03 "pdk", the sealed data key of the seed, the sealed seed, then each data key of the account's recovery codes
-- (id and seal).
CREATE OR REPLACE FUNCTION postern.second_factor_material(p_realm uuid, p_user uuid, p_sealed_seed bytea)
RETURNS bytea
LANGUAGE sql STABLE
AS $$
    SELECT '\x0370646b'::bytea || postern.framed(s.sealed) || postern.framed(p_sealed_seed)
           || coalesce(r.framed, '\x')
      FROM (SELECT (SELECT d.sealed FROM postern.data_key AS d
                     WHERE d.realm_id = p_realm AND d.id = postern.data_key_of(p_sealed_seed)) AS sealed) AS s,
           (SELECT string_agg(postern.framed(uuid_send(d.id) || d.sealed), '\x'::bytea) AS framed
              FROM postern.data_key AS d
             WHERE d.realm_id = p_realm
               AND d.id IN (SELECT c.data_key FROM postern.recovery_code AS c
                             WHERE c.realm_id = p_realm AND c.user_id = p_user)) AS r
$$;
COMMENT ON FUNCTION postern.second_factor_material IS
    'A sealed seed with the data keys that open it and compare the account''s recovery codes';
GRANT EXECUTE ON FUNCTION postern.second_factor_material TO postern_app;

-- Stores a seed its owner has proven to hold, in place of an earlier one, with its recovery codes: each the id of a
-- data key (16 bytes) and the HMAC under it.
-- enrolled; ceremony: spent or expired; step_up: the account has a second factor and this session neither proved nor
-- enrolled it;
-- signed_out: the session ended meanwhile.
CREATE OR REPLACE FUNCTION postern.enrol_totp(
    p_realm uuid, p_session uuid, p_ceremony bytea, p_expires double precision,
    p_factor uuid, p_sealed_seed bytea, p_step bigint, p_recovery bytea[], p_source text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS NULL THEN
        RETURN 'signed_out';
    END IF;
    IF NOT postern.spend_ceremony(p_realm, p_ceremony, p_expires) THEN
        RETURN 'ceremony';
    END IF;
    -- Wrong tries of the last minutes stay counted, so that a new seed does not reset them.
    INSERT INTO postern.totp_factor AS f (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed)
    VALUES (p_realm, v_user.id, p_factor, p_session, to_timestamp(p_step * 30), p_sealed_seed)
        ON CONFLICT (realm_id, user_id) DO UPDATE
       SET id = excluded.id, enrolled_by = excluded.enrolled_by, created_at = now(),
           last_step_at = excluded.last_step_at, last_used_at = NULL,
           sealed_seed = excluded.sealed_seed, wrong_in_a_row = 0, locked_until = NULL
     WHERE v_user.proved OR f.enrolled_by = p_session;
    IF NOT FOUND THEN
        RETURN 'step_up';
    END IF;
    DELETE FROM postern.recovery_code AS r WHERE r.realm_id = p_realm AND r.user_id = v_user.id;
    INSERT INTO postern.recovery_code (realm_id, user_id, mac, data_key)
    SELECT p_realm, v_user.id, substr(m.mac, 17), encode(substr(m.mac, 1, 16), 'hex')::uuid
      FROM unnest(p_recovery) AS m (mac);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
    VALUES (p_realm, 'totp_enrolled', v_user.client, v_user.id, p_session, p_source);
    PERFORM postern.queue_notice(p_realm, v_user.id, 'totp-added', postern.app_named(p_realm, v_user.client)
                                 || postern.offer_undo(p_realm, v_user.id, 'totp', p_factor, NULL, p_source));
    RETURN 'enrolled';
END
$$;
COMMENT ON FUNCTION postern.enrol_totp IS 'Stores a proven TOTP seed and its recovery codes, in place of earlier ones';
GRANT EXECUTE ON FUNCTION postern.enrol_totp TO postern_app;

-- removed; none: there is nothing to remove; step_up and signed_out as above.
CREATE OR REPLACE FUNCTION postern.remove_totp(p_realm uuid, p_session uuid, p_source text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS NULL THEN
        RETURN 'signed_out';
    END IF;
    DELETE FROM postern.totp_factor AS f
     WHERE f.realm_id = p_realm AND f.user_id = v_user.id AND (v_user.proved OR f.enrolled_by = p_session);
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT FROM postern.totp_factor AS f WHERE f.realm_id = p_realm
                                 AND f.user_id = v_user.id) THEN 'step_up' ELSE 'none' END;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
    VALUES (p_realm, 'totp_removed', v_user.client, v_user.id, p_session, p_source);
    PERFORM postern.queue_notice(p_realm, v_user.id, 'totp-removed', postern.app_named(p_realm, v_user.client));
    RETURN 'removed';
END
$$;
COMMENT ON FUNCTION postern.remove_totp IS 'Removes the second factor of a session''s user, recovery codes included';
GRANT EXECUTE ON FUNCTION postern.remove_totp TO postern_app;

CREATE OR REPLACE FUNCTION admin.reset_totp(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
BEGIN
    DELETE FROM postern.totp_factor AS f WHERE f.realm_id = v_realm AND f.user_id = v_user;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'totp_removed', user_id => v_user);
    PERFORM postern.queue_notice(v_realm, v_user, 'totp-removed');
    RETURN true;
END
$$;
COMMENT ON FUNCTION admin.reset_totp IS
'Removes the second factor of a user who lost the authenticator and the recovery codes; false when there was none.
Sessions go on.
Be as sure who is asking as you would be for a new account: from then on a code by mail is enough.
Example: SELECT admin.reset_totp(''acme'', ''ada@example.com'');';

RESET ROLE;
