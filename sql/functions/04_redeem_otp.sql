-- urn:cocoar:otp, the whole of it in one call.
SET LOCAL ROLE postern_owner;

-- Order: rate limits; the lock of the address, known or not; the try is counted; comparison and consumption in one statement;
-- then the session, or the refusal is counted. reason is for logs only.
-- An account with a second factor takes two calls: the first one consumes nothing and answers second_factor with what the presented code
-- must be compared with; the second one (p_factor and what came of the comparison) does everything again and consumes both factors, or
-- answers second_factor_wrong. Neither answer is a try at the first factor.
DO $$
DECLARE
    f regprocedure;
BEGIN
    -- Replaced rather than redefined: arguments and result have changed over time.
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.pronamespace = 'postern'::regnamespace AND p.proname = 'redeem_otp' LOOP
        EXECUTE format('DROP FUNCTION %s', f);
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION postern.redeem_otp(
    p_realm uuid, p_client uuid, p_permission text, p_email_key text, p_handle bytea, p_keyed bytea[], p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_failure_permits integer, p_failure_per double precision, p_failure_burst integer,
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT auth_time double precision, OUT db_now double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT email text, OUT email_verified boolean, OUT refresh_expires_at double precision, OUT session_expires_at double precision,
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_key text := p_email_key;
    v_step interval;
    v_locked_until timestamptz;
    v_consecutive integer;
    v_refusals integer;
    v_over_budget boolean;
    v_client_id text;
    v_codes uuid[];
    v_adopted boolean := false;
    v_keyed bytea;
    v_stamp uuid;
    v_has_totp boolean;
    v_expires_at timestamptz;
    v_refresh_expires_at timestamptz;
    v_dummy bytea;
    v_seen bigint := 0;
    v_live bigint;
    v_equal bigint;
    v_bound bigint;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    outcome := 'refused';
    IF cardinality(p_keys) > 0 THEN
        SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
          FROM postern.take_realm_permits(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF limit_ord IS NOT NULL THEN
            outcome := 'rate_limited';
            RETURN;
        END IF;
    END IF;

    IF p_handle IS NOT NULL AND v_key IS NULL THEN
        SELECT a.email_key INTO v_key FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.id = p_handle;
        IF NOT FOUND THEN
            reason := 'unknown';
            RETURN;
        END IF;
    END IF;

    -- One try at a time per address. The lock goes with the transaction, so the next one sees what this one did.
    PERFORM pg_advisory_xact_lock(hashtextextended(v_key, uuid_hash_extended(p_realm, 2)));

    -- The try is counted before anything is compared: on the handle, which has tries of its own,
    -- or as a permit of the address's failure budget, which a right code gives back.
    IF p_handle IS NOT NULL THEN
        UPDATE postern.auth_session AS a
           SET attempts = a.attempts + 1
          FROM postern.realm AS r
         WHERE a.realm_id = p_realm AND a.id = p_handle AND a.email_key = v_key AND a.expires_at > now() AND a.kind IN ('otp', 'register')
           AND r.id = p_realm AND a.attempts < r.otp_attempts
        RETURNING a.code_ids INTO v_codes;
        IF NOT FOUND THEN
            reason := 'attempts';
        END IF;
        SELECT g.consecutive, g.locked_until INTO v_consecutive, v_locked_until
          FROM postern.code_guard AS g WHERE g.realm_id = p_realm AND g.email_key = v_key;
    ELSE
        v_step := make_interval(secs => p_failure_per / p_failure_permits);
        INSERT INTO postern.code_guard AS g (realm_id, email_key, failures_tat)
        VALUES (p_realm, v_key, now() + v_step)
            ON CONFLICT (realm_id, email_key) DO UPDATE
           SET over_budget = greatest(g.failures_tat, now()) > now() + (p_failure_burst - 1) * v_step,
               failures_tat = CASE WHEN greatest(g.failures_tat, now()) <= now() + (p_failure_burst - 1) * v_step
                                   THEN greatest(g.failures_tat, now()) + v_step ELSE g.failures_tat END,
               updated_at = now()
        RETURNING g.consecutive, g.locked_until, g.over_budget INTO v_consecutive, v_locked_until, v_over_budget;
        IF v_over_budget THEN
            reason := 'budget';
        END IF;
    END IF;
    IF v_locked_until > now() THEN
        reason := 'locked';
    END IF;

    IF reason IS NULL THEN
        -- One candidate per server key, newest first. All codes of the address go with the right one; whoever deletes them has
        -- redeemed it, anybody else deletes nothing.
        -- (@> rather than = ANY: no part of the index condition, so that the generic plan is chosen and nothing is planned per call.)
        LOOP
            FOREACH v_keyed IN ARRAY p_keyed LOOP
                WITH spent AS (
                    DELETE FROM postern.login_code AS d
                     USING (SELECT u.id, u.security_stamp, u.email, u.email_verified, u.has_totp, k.client_id, now() + r.session_lifetime AS expires_at
                              FROM postern.login_code AS c, postern.user_account AS u, postern.client AS k, postern.realm AS r
                             WHERE c.realm_id = p_realm AND c.email_key = v_key AND (p_handle IS NULL OR v_codes @> ARRAY[c.id])
                               AND c.expires_at > now() AND (c.client IS NULL OR c.client = p_client) AND c.mac = sha256(c.salt || v_keyed)
                               AND u.realm_id = p_realm AND u.id = c.user_id AND u.email_key = v_key AND u.enabled AND (u.email_verified OR c.is_test)
                               AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
                               AND r.id = p_realm AND r.enabled AND r.native_grants_enabled
                             LIMIT 1) AS hit
                     -- Whoever has a second factor is looked for below; so is whoever presents one.
                     WHERE d.realm_id = p_realm AND d.email_key = v_key AND NOT hit.has_totp AND p_factor IS NULL
                    RETURNING hit.id, hit.security_stamp, hit.email, hit.email_verified, hit.client_id, hit.expires_at)
                SELECT s.id, s.security_stamp, s.email, s.email_verified, s.client_id, s.expires_at
                  INTO user_id, v_stamp, email, email_verified, v_client_id, v_expires_at
                  FROM spent AS s LIMIT 1;
                EXIT WHEN FOUND;
            END LOOP;
            -- Nobody's code: perhaps one that registers. Then it has a user now, and is redeemed like any other.
            EXIT WHEN user_id IS NOT NULL OR v_adopted
                OR NOT postern.adopt_registration(p_realm, p_client, p_permission, v_key, p_handle, v_codes, p_keyed, p_source);
            v_adopted := true;
        END LOOP;
    END IF;

    -- Not redeemed: perhaps a right code of somebody with a second factor. All who are refused are looked for alike.
    IF user_id IS NULL AND reason IS NULL THEN
        SELECT u.id, u.security_stamp, u.email, u.email_verified, k.client_id, now() + r.session_lifetime, u.has_totp
          INTO user_id, v_stamp, email, email_verified, v_client_id, v_expires_at, v_has_totp
          FROM postern.login_code AS c, postern.user_account AS u, postern.client AS k, postern.realm AS r
         WHERE c.realm_id = p_realm AND c.email_key = v_key AND (p_handle IS NULL OR v_codes @> ARRAY[c.id])
           AND c.expires_at > now() AND (c.client IS NULL OR c.client = p_client)
           AND EXISTS (SELECT FROM unnest(p_keyed) AS x (keyed) WHERE c.mac = sha256(c.salt || x.keyed))
           AND u.realm_id = p_realm AND u.id = c.user_id AND u.email_key = v_key AND u.enabled AND (u.email_verified OR c.is_test) AND (u.has_totp OR p_factor IS NOT NULL)
           AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
           AND r.id = p_realm AND r.enabled AND r.native_grants_enabled
         LIMIT 1;
        IF FOUND THEN
            SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
              FROM postern.check_second_factor(p_realm, user_id, v_has_totp, p_factor, p_totp_step, p_recovery, p_client, p_session, p_source) AS s;
            IF outcome = 'proved' THEN
                DELETE FROM postern.login_code AS d WHERE d.realm_id = p_realm AND d.email_key = v_key;
                IF NOT FOUND THEN
                    user_id := NULL;
                END IF;
                outcome := 'refused';
            ELSE
                -- The first factor was right: its try is given back.
                IF p_handle IS NOT NULL THEN
                    UPDATE postern.auth_session AS a SET attempts = a.attempts - 1 WHERE a.realm_id = p_realm AND a.id = p_handle;
                ELSE
                    UPDATE postern.code_guard AS g SET failures_tat = g.failures_tat - v_step WHERE g.realm_id = p_realm AND g.email_key = v_key;
                END IF;
                user_id := NULL;
                email := NULL;
                email_verified := NULL;
                RETURN;
            END IF;
        END IF;
    END IF;

    IF user_id IS NOT NULL THEN
        IF p_handle IS NULL OR v_consecutive > 0 THEN
            UPDATE postern.code_guard AS g
               SET consecutive = 0, locked_until = NULL, failures_tat = CASE WHEN p_handle IS NULL THEN g.failures_tat - v_step ELSE g.failures_tat END
             WHERE g.realm_id = p_realm AND g.email_key = v_key;
        END IF;
        IF p_refresh_hash IS NULL THEN
            -- Nothing can prolong it: the session ends with its access token.
            v_expires_at := least(v_expires_at, now() + make_interval(secs => p_access_lifetime));
        ELSE
            v_refresh_expires_at := least(v_expires_at, now() + make_interval(secs => p_refresh_lifetime));
        END IF;
        INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, refresh_expires_at,
                                     token_salt, current_hash, scope, resource, amr)
        VALUES (p_realm, p_session, user_id, p_client, v_client_id, v_stamp, now(), v_expires_at, v_refresh_expires_at,
                p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr);
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source)
        VALUES (p_realm, 'sign_in', p_client, user_id, p_session, p_source);
        outcome := 'ok';
        auth_time := db_now;
        refresh_expires_at := date_part('epoch', v_refresh_expires_at);
        session_expires_at := date_part('epoch', v_expires_at);
        RETURN;
    END IF;

    -- Refused: one more in a row, known address or not. The hundredth closes both forms for a day; after that day the count starts again.
    INSERT INTO postern.code_guard AS g (realm_id, email_key, consecutive) VALUES (p_realm, v_key, 1)
        ON CONFLICT (realm_id, email_key) DO UPDATE
       SET consecutive = CASE WHEN g.locked_until <= now() THEN 1 ELSE g.consecutive + 1 END,
           locked_until = CASE WHEN g.locked_until > now() THEN g.locked_until
                               WHEN g.locked_until IS NULL AND g.consecutive >= 99 THEN now() + interval '24 hours' END,
           updated_at = now()
    RETURNING g.consecutive INTO v_refusals;
    IF v_refusals >= 100 AND v_locked_until IS NULL THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
        VALUES (p_realm, 'code_lockout', p_client,
                (SELECT u.id FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.email_key = v_key), p_source,
                jsonb_build_object('refusals', v_refusals));
    END IF;
    -- Why, for the log; and three comparisons' work whatever there was to compare.
    SELECT count(*), count(*) FILTER (WHERE c.expires_at > now()),
           count(*) FILTER (WHERE c.expires_at > now() AND c.mac = sha256(c.salt || p_keyed[1])),
           count(*) FILTER (WHERE c.expires_at > now() AND c.mac = sha256(c.salt || p_keyed[1]) AND c.client <> p_client)
      INTO v_seen, v_live, v_equal, v_bound
      FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.email_key = v_key;
    FOR i IN v_seen + 1 .. 3 LOOP
        v_dummy := sha256(p_token_salt || p_keyed[1]);
    END LOOP;
    reason := CASE WHEN reason IS NOT NULL THEN reason
                   WHEN v_seen = 0 THEN 'unknown'
                   WHEN v_live = 0 THEN 'expired'
                   WHEN v_equal = 0 THEN 'wrong'
                   WHEN v_bound > 0 THEN 'client'
                   ELSE 'disabled' END;
END
$$;
COMMENT ON FUNCTION postern.redeem_otp IS 'Redeems a one-time code: counts, compares, consumes and opens the session in one call';
REVOKE ALL ON FUNCTION postern.redeem_otp FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.redeem_otp TO postern_app;

RESET ROLE;
