-- urn:cocoar:otp, the whole of it in one call.
SET LOCAL ROLE postern_owner;

-- Order: take permits; try the lock of the address (of the device, for the handle of a known device) without waiting;
-- refuse what is locked out; count the try; compare and consume in one statement; then open the session, or count the
-- wrong codes. outcome busy: another transaction tries a code of this address now; nothing was counted or consumed,
-- call again. compared: as in postern.refuse_code. reason is for logs only. Codes compared: with
-- a handle the codes of that handle; with the address alone the three newest codes that this client may redeem. Never
-- more than the number of tries left of the hundred. An account with a second factor takes two calls. The first call
-- consumes nothing and returns second_factor with the data to compare the presented code with. The second call
-- (p_factor and the result of the comparison) repeats everything and consumes both factors, or returns
-- second_factor_wrong. Neither outcome counts as a try at the first factor, and neither does unmet: the account lacks
-- the second factor that acr_values asks for (postern.falls_short).
CREATE OR REPLACE FUNCTION postern.redeem_code(
    p_realm uuid, p_client uuid, p_permission text, p_email_key text, p_handle bytea, p_keyed bytea[], p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_failure_permits integer, p_failure_per double precision, p_failure_burst integer,
    p_brake_permits integer, p_brake_per double precision, p_brake_burst integer,
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT auth_time double precision, OUT db_now double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT email text, OUT email_verified boolean, OUT refresh_expires_at double precision,
    OUT session_expires_at double precision,
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision, OUT compared integer)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_device uuid;
    v_step interval;
    v_locked_until timestamptz;
    v_consecutive integer := 0;
    v_client_id text;
    v_codes uuid[] := '{}';
    v_registered boolean := false;
    v_keyed bytea;
    v_stamp uuid;
    v_has_totp boolean;
    v_expires_at timestamptz;
    v_opened record;
    v_refusal record;
    v_region text;
    v_asked_from text;
    v_falls_short boolean := postern.falls_short(p_amr);
BEGIN
    db_now := date_part('epoch', now());
    compared := 0;
    v_set := set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.* INTO outcome, limit_ord, retry_after, granted
          FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF outcome = 'rate_limited' THEN
            RETURN;
        END IF;
    END IF;
    PERFORM postern.use_proof(p_realm);
    outcome := 'refused';

    -- One try at a time per address, so that the next try sees the effects of this one. Known devices do not wait for
    -- strangers.
    IF p_handle IS NOT NULL THEN
        SELECT a.device INTO v_device
          FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.id = p_handle AND a.email_key = p_email_key;
    END IF;
    IF NOT pg_try_advisory_xact_lock(postern.lock_of_codes(p_realm, p_email_key, v_device)) THEN
        outcome := 'busy';
        RETURN;
    END IF;

    -- A locked address or device compares and counts nothing. Otherwise the try is counted before the comparison: on
    -- the handle, which has its own tries, or in the address's failure budget and its count of wrong codes. A right
    -- code gives both back.
    v_step := make_interval(secs => p_failure_per / p_failure_permits);
    IF v_device IS NOT NULL THEN
        UPDATE postern.auth_session AS a
           SET attempts = a.attempts + 1
          FROM postern.realm AS r
          LEFT JOIN postern.user_identifier AS i ON i.realm_id = p_realm AND i.proven_key = p_email_key
          LEFT JOIN postern.device_guard AS g
                 ON g.realm_id = p_realm AND g.user_id = i.user_id AND g.device = v_device
         WHERE a.realm_id = p_realm AND a.id = p_handle AND a.email_key = p_email_key AND a.expires_at > now()
           AND a.kind IN ('otp', 'register') AND a.device = v_device
           AND (a.jkt IS NULL OR a.jkt = postern.proof_key())
           AND r.id = p_realm AND a.attempts < r.otp_attempts AND coalesce(g.locked_until <= now(), true)
        RETURNING a.code_ids, CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END,
                  g.locked_until
             INTO v_codes, v_consecutive, v_locked_until;
    ELSIF p_handle IS NOT NULL THEN
        UPDATE postern.auth_session AS a
           SET attempts = a.attempts + 1
          FROM postern.realm AS r
          LEFT JOIN postern.code_guard AS g ON g.realm_id = p_realm AND g.email_key = p_email_key
          LEFT JOIN postern.rate_bucket AS b ON b.realm_id = p_realm AND b.key = 'token|wrong-codes'
         WHERE a.realm_id = p_realm AND a.id = p_handle AND a.email_key = p_email_key AND a.expires_at > now()
           AND a.kind IN ('otp', 'register') AND a.device IS NULL
           AND (a.jkt IS NULL OR a.jkt = postern.proof_key())
           AND r.id = p_realm AND coalesce(g.locked_until <= now(), true)
           AND a.attempts < CASE WHEN postern.is_braked(b.tat, p_brake_permits, p_brake_per, p_brake_burst)
                                 THEN 1 ELSE r.otp_attempts END
        RETURNING a.code_ids, CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END,
                  g.locked_until
             INTO v_codes, v_consecutive, v_locked_until;
    ELSE
        SELECT CASE WHEN g.locked_until > now() THEN 'locked'
                    WHEN postern.is_braked(b.tat, p_brake_permits, p_brake_per, p_brake_burst) THEN 'brake'
                    WHEN greatest(g.failures_tat, now()) > now() + (p_failure_burst - 1) * v_step THEN 'budget' END,
               CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END, g.locked_until,
               ARRAY(SELECT c.id FROM postern.login_code AS c
                      WHERE c.realm_id = p_realm AND c.email_key = p_email_key AND c.expires_at > now()
                        AND (c.client IS NULL OR c.client = p_client)
                        AND (c.jkt IS NULL OR c.jkt = postern.proof_key())
                      ORDER BY c.created_at DESC, c.id LIMIT 3)
          INTO reason, v_consecutive, v_locked_until, v_codes
          FROM (VALUES (p_realm, p_email_key)) AS k (realm_id, email_key)
          LEFT JOIN postern.code_guard AS g ON g.realm_id = k.realm_id AND g.email_key = k.email_key
          LEFT JOIN postern.rate_bucket AS b ON b.realm_id = k.realm_id AND b.key = 'token|wrong-codes';
    END IF;
    IF p_handle IS NOT NULL AND NOT FOUND THEN
        reason := 'attempts';
        v_codes := '{}';
    ELSIF p_handle IS NOT NULL THEN
        -- After a resend the previous code stays valid, for a mail that arrives late.
        v_codes := v_codes[greatest(cardinality(v_codes) - least(2, greatest(100 - v_consecutive, 1)) + 1, 1):];
    ELSIF reason IS NULL THEN
        v_codes := v_codes[:greatest(100 - v_consecutive, 1)];
        compared := cardinality(v_codes);
        INSERT INTO postern.code_guard AS g (realm_id, email_key, failures_tat, consecutive)
        VALUES (p_realm, p_email_key, CASE WHEN compared > 0 THEN now() + v_step ELSE '-infinity' END, compared)
            ON CONFLICT (realm_id, email_key) DO UPDATE
           SET failures_tat = CASE WHEN compared > 0 THEN greatest(g.failures_tat, now()) + v_step
                                   ELSE g.failures_tat END,
               consecutive = v_consecutive + compared,
               locked_until = CASE WHEN v_consecutive + compared >= 100 THEN now() + interval '24 hours' END,
               updated_at = now();
    END IF;

    IF reason IS NULL THEN
        -- Fast path. One candidate per server key, newest first. A right code deletes all codes of the address: the
        -- transaction that deletes them has redeemed the code; a concurrent one deletes no row. (@> rather than = ANY:
        -- no part of the index condition, so that the generic plan is chosen and nothing is planned per call.)
        LOOP
            FOREACH v_keyed IN ARRAY p_keyed LOOP
                WITH spent AS (
                    DELETE FROM postern.login_code AS d
                     USING (SELECT u.id, u.security_stamp, u.email, u.email_verified, u.has_totp, k.client_id,
                                   now() + r.session_lifetime AS expires_at, c.region, c.source
                              FROM postern.login_code AS c, postern.user_account AS u, postern.client AS k,
                                   postern.realm AS r
                             WHERE c.realm_id = p_realm AND c.email_key = p_email_key AND v_codes @> ARRAY[c.id]
                               AND c.expires_at > now() AND (c.client IS NULL OR c.client = p_client)
                               AND c.mac = sha256(c.salt || v_keyed)
                               AND u.realm_id = p_realm AND u.id = c.user_id AND u.enabled
                               AND (c.is_test OR EXISTS (SELECT FROM postern.user_identifier AS i
                                                          WHERE i.realm_id = p_realm AND i.proven_key = p_email_key
                                                            AND i.user_id = u.id
                                                            AND (i.kind = 'email'
                                                                 OR i.proved_at >= postern.stale_before(p_realm))))
                               AND k.realm_id = p_realm AND k.id = p_client AND k.enabled
                               AND p_permission = ANY (k.permissions)
                               AND r.id = p_realm AND r.enabled
                               AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled)
                             LIMIT 1) AS hit
                     -- Accounts with a second factor, and requests that present one, are handled below.
                     WHERE d.realm_id = p_realm AND d.email_key = p_email_key AND NOT hit.has_totp AND p_factor IS NULL
                       AND NOT v_falls_short
                    RETURNING hit.id, hit.security_stamp, hit.email, hit.email_verified, hit.client_id, hit.expires_at,
                              hit.region, hit.source)
                SELECT s.id, s.security_stamp, s.email, s.email_verified, s.client_id, s.expires_at, s.region, s.source
                  INTO user_id, v_stamp, email, email_verified, v_client_id, v_expires_at, v_region, v_asked_from
                  FROM spent AS s LIMIT 1;
                EXIT WHEN FOUND;
            END LOOP;
            -- Registration. No sign-in code matched: try the pending registrations of this address. A registration that
            -- matches has a user now and is redeemed by the next pass of the loop.
            EXIT WHEN user_id IS NOT NULL OR v_registered
                   OR NOT postern.register_by_code(p_realm, p_client, p_permission, p_email_key, v_codes, p_keyed,
                                                   p_source);
            v_registered := true;
        END LOOP;
    END IF;

    -- Second factor. The code may be right for an account that has one. Every refused try runs this query, so that its
    -- time is the same.
    IF user_id IS NULL AND reason IS NULL THEN
        SELECT u.id, u.security_stamp, u.email, u.email_verified, k.client_id, now() + r.session_lifetime, u.has_totp,
               c.region, c.source
          INTO user_id, v_stamp, email, email_verified, v_client_id, v_expires_at, v_has_totp, v_region, v_asked_from
          FROM postern.login_code AS c, postern.user_account AS u, postern.client AS k, postern.realm AS r
         WHERE c.realm_id = p_realm AND c.email_key = p_email_key AND v_codes @> ARRAY[c.id]
           AND c.expires_at > now() AND (c.client IS NULL OR c.client = p_client)
           AND EXISTS (SELECT FROM unnest(p_keyed) AS x (keyed) WHERE c.mac = sha256(c.salt || x.keyed))
           AND u.realm_id = p_realm AND u.id = c.user_id AND u.enabled
           AND (c.is_test OR EXISTS (SELECT FROM postern.user_identifier AS i
                                      WHERE i.realm_id = p_realm AND i.proven_key = p_email_key AND i.user_id = u.id))
           AND (u.has_totp OR p_factor IS NOT NULL OR v_falls_short)
           AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
           AND r.id = p_realm AND r.enabled
           AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled)
         LIMIT 1;
        IF FOUND THEN
            SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
              FROM postern.check_second_factor(p_realm, user_id, v_has_totp, p_factor, p_totp_step, p_recovery,
                                               p_client, p_session, p_source) AS s;
            IF outcome = 'proved' THEN
                DELETE FROM postern.login_code AS d WHERE d.realm_id = p_realm AND d.email_key = p_email_key;
                IF NOT FOUND THEN
                    user_id := NULL;
                END IF;
                outcome := 'refused';
            ELSE
                -- The first factor was right, so its try is given back.
                IF p_handle IS NOT NULL THEN
                    UPDATE postern.auth_session AS a SET attempts = a.attempts - 1
                     WHERE a.realm_id = p_realm AND a.id = p_handle;
                ELSE
                    UPDATE postern.code_guard AS g
                       SET failures_tat = g.failures_tat - v_step, consecutive = v_consecutive,
                           locked_until = v_locked_until
                     WHERE g.realm_id = p_realm AND g.email_key = p_email_key;
                END IF;
                compared := 0;
                user_id := NULL;
                email := NULL;
                email_verified := NULL;
                RETURN;
            END IF;
        END IF;
    END IF;

    IF user_id IS NOT NULL THEN
        compared := 0;
        IF v_region IS NOT NULL THEN
            PERFORM postern.give_back(p_realm, p_email_key, v_region, v_asked_from),
                    postern.confirm_identifier(p_realm, user_id, p_email_key);
        END IF;
        IF v_device IS NOT NULL THEN
            IF v_consecutive > 0 OR v_locked_until IS NOT NULL THEN
                UPDATE postern.device_guard AS g SET consecutive = 0, locked_until = NULL
                 WHERE g.realm_id = p_realm AND g.user_id = redeem_code.user_id AND g.device = v_device;
            END IF;
        ELSIF p_handle IS NULL OR v_consecutive > 0 OR v_locked_until IS NOT NULL THEN
            UPDATE postern.code_guard AS g
               SET consecutive = 0, locked_until = NULL,
                   failures_tat = CASE WHEN p_handle IS NULL THEN g.failures_tat - v_step ELSE g.failures_tat END
             WHERE g.realm_id = p_realm AND g.email_key = p_email_key;
        END IF;
        v_opened := postern.open_session(
            p_realm, p_client, v_client_id, user_id, v_stamp, v_expires_at,
            ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
                p_refresh_lifetime, p_source, p_server_key)::postern.new_session, NULL, NULL, NULL);
        outcome := 'ok';
        auth_time := db_now;
        refresh_expires_at := v_opened.refresh_expires_at;
        session_expires_at := v_opened.expires_at;
        RETURN;
    END IF;

    PERFORM postern.require_client(p_realm, p_client, p_permission);
    v_refusal := postern.refuse_code(p_realm, p_client, p_email_key, p_handle, v_codes, p_keyed, p_token_salt, p_source,
                                     v_device, v_consecutive, reason);
    reason := v_refusal.because;
    compared := v_refusal.compared;
END
$$;
COMMENT ON FUNCTION postern.redeem_code IS
    'Redeems a one-time code: counts, compares, consumes and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_code TO postern_app;

RESET ROLE;
