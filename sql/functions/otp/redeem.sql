-- urn:cocoar:otp, the whole of it in one call.
SET LOCAL ROLE postern_owner;

-- Whether a code may be tried now, and with which codes it is compared. Nothing is counted yet: what is wrong is
-- counted by refuse_code in the same transaction, under the same lock: one try at a time per address, or per known
-- device, so that the next try sees the effects of this one. reason: why nothing is compared: busy (another transaction
-- has the lock), attempts (the handle has no tries left, is none or another device's, or its client or device is
-- locked), locked, brake, budget. codes: with a handle its own, of which the last two count, since a mail may arrive
-- late; with the address alone the three newest that this client may redeem. Never more than the number of tries left
-- of the hundred. consecutive, locked_until: the wrong codes so far. client_id, session_end: as postern.serving; a
-- client that may not ask has no try. p_step: of the failure budget.
CREATE OR REPLACE FUNCTION postern.admit_try(
    p_caller postern.caller, p_address_key text, p_handle bytea, p_device uuid, p_failures postern.budget,
    p_brake postern.budget, p_step interval,
    OUT reason text, OUT codes uuid[], OUT consecutive integer, OUT locked_until timestamptz, OUT client_id text,
    OUT session_end timestamptz)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_client uuid := p_caller.client;
    v_key bytea := (p_caller.proof).key;
    v_attempts integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(postern.lock_of_codes(v_realm, p_address_key, p_device)) THEN
        reason := 'busy';
        RETURN;
    END IF;
    IF p_device IS NOT NULL THEN
        SELECT a.code_ids, CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END,
               g.locked_until, s.client_id, s.session_end
          INTO codes, consecutive, locked_until, client_id, session_end
          FROM postern.sign_in_request AS a
         CROSS JOIN postern.serving(v_realm, v_client, p_caller.permission, p_caller.app) AS s
          LEFT JOIN postern.user_identifier AS i ON i.realm_id = v_realm AND i.proven_key = p_address_key
          LEFT JOIN postern.device_guard AS g
                 ON g.realm_id = v_realm AND g.user_id = i.user_id AND g.device = p_device
         WHERE a.realm_id = v_realm AND a.id = p_handle AND a.address_key = p_address_key AND a.expires_at > now()
           AND a.kind IN ('otp', 'register') AND a.device = p_device AND (a.jkt IS NULL OR a.jkt = v_key)
           AND a.attempts < s.otp_attempts AND coalesce(g.locked_until <= now(), true);
    ELSIF p_handle IS NOT NULL THEN
        SELECT a.code_ids, CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END,
               g.locked_until, s.client_id, s.session_end, a.attempts
          INTO codes, consecutive, locked_until, client_id, session_end, v_attempts
          FROM postern.sign_in_request AS a
         CROSS JOIN postern.serving(v_realm, v_client, p_caller.permission, p_caller.app) AS s
          LEFT JOIN postern.code_guard AS g ON g.realm_id = v_realm AND g.address_key = p_address_key
         WHERE a.realm_id = v_realm AND a.id = p_handle AND a.address_key = p_address_key AND a.expires_at > now()
           AND a.kind IN ('otp', 'register') AND a.device IS NULL AND (a.jkt IS NULL OR a.jkt = v_key)
           AND a.attempts < s.otp_attempts AND coalesce(g.locked_until <= now(), true);
    ELSE
        SELECT CASE WHEN g.locked_until > now() THEN 'locked'
                    WHEN postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst) THEN 'brake'
                    WHEN greatest(g.failures_tat, now()) > now() + (p_failures.burst - 1) * p_step THEN 'budget' END,
               CASE WHEN g.locked_until IS NULL THEN coalesce(g.consecutive, 0) ELSE 0 END, g.locked_until,
               ARRAY(SELECT c.id FROM postern.login_code AS c
                      WHERE c.realm_id = v_realm AND c.address_key = p_address_key AND c.expires_at > now()
                        AND postern.is_for_client(c.client, c.page_browser, v_client)
                        AND (c.jkt IS NULL OR c.jkt = v_key)
                      ORDER BY c.created_at DESC, c.id LIMIT 3), s.client_id, s.session_end
          INTO reason, consecutive, locked_until, codes, client_id, session_end
          FROM postern.serving(v_realm, v_client, p_caller.permission, p_caller.app) AS s
          LEFT JOIN postern.code_guard AS g ON g.realm_id = v_realm AND g.address_key = p_address_key
          LEFT JOIN postern.rate_bucket AS b ON b.realm_id = v_realm AND b.key = 'token|wrong-codes';
    END IF;
    -- The realm's limit of wrong codes leaves each handle its first try.
    IF NOT FOUND OR v_attempts > 0 AND postern.realm_is_braked(v_realm, p_brake) THEN
        reason := 'attempts';
        codes := '{}';
        consecutive := 0;
    ELSIF p_handle IS NOT NULL THEN
        codes := codes[greatest(cardinality(codes) - least(2, greatest(100 - consecutive, 1)) + 1, 1):];
    ELSE
        codes := codes[:greatest(100 - consecutive, 1)];
    END IF;
END
$$;
COMMENT ON FUNCTION postern.admit_try IS 'Whether a code may be tried at an address now, and the codes to compare with';
GRANT EXECUTE ON FUNCTION postern.admit_try TO postern_app;

CREATE OR REPLACE FUNCTION postern.settle_right_code(
    p_caller postern.caller, p_address_key text, p_device uuid, p_user uuid)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_device IS NOT NULL THEN
        UPDATE postern.device_guard AS g SET consecutive = 0, locked_until = NULL
         WHERE g.realm_id = p_caller.realm AND g.user_id = p_user AND g.device = p_device;
    ELSE
        UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
         WHERE g.realm_id = p_caller.realm AND g.address_key = p_address_key;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.settle_right_code IS 'Ends the count of wrong codes of an address or a known device';
GRANT EXECUTE ON FUNCTION postern.settle_right_code TO postern_app;

-- Order: take permits; try the lock of the address (of the device, for the handle of a known device) without waiting;
-- refuse what is locked out; compare; consume and open the session, or count the try and the wrong codes. outcome
-- busy: another transaction tries a code of this address now; nothing was counted or consumed, call again. compared: as
-- in postern.refuse_code. An account with a second factor takes two calls. The first call consumes nothing and returns
-- second_factor with the data to compare the presented code with. The second call (p_second: the result of the
-- comparison) repeats everything and consumes both factors, or returns second_factor_wrong. Neither outcome counts as a
-- try at the first factor, and neither does unmet: the account lacks the second factor that acr_values asks for.
CREATE OR REPLACE FUNCTION postern.redeem_code(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session,
    p_address_key text, p_handle bytea, p_keyed bytea[], p_failures postern.budget, p_brake postern.budget,
    p_second postern.second_factor_proof)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_client uuid := p_caller.client;
    v_wants_second boolean := p_second.factor IS NOT NULL OR postern.falls_short(p_new);
    v_step interval := make_interval(secs => p_failures.per / p_failures.permits);
    v_device uuid;
    v_try record;
    v_candidate postern.candidate;
    v_region text;
    v_asked_from text;
    v_stale boolean;
    v_registered boolean := false;
    v_refusal record;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    v_try := postern.admit_try(p_caller, p_address_key, p_handle, NULL, p_failures, p_brake, v_step);
    IF p_handle IS NOT NULL AND v_try.reason IN ('busy', 'attempts') THEN
        -- Known devices do not wait for strangers.
        SELECT a.device INTO v_device
          FROM postern.sign_in_request AS a WHERE a.realm_id = v_realm AND a.id = p_handle;
        IF v_device IS NOT NULL THEN
            v_try := postern.admit_try(p_caller, p_address_key, p_handle, v_device, p_failures, p_brake, v_step);
        END IF;
    END IF;
    IF v_try.reason = 'busy' THEN
        v.outcome := 'busy';
        RETURN v;
    END IF;

    WHILE v_try.reason IS NULL LOOP
        -- Every try runs this query, so that its time is the same. (@> rather than = ANY: no part of the index
        -- condition, so that the generic plan is chosen and nothing is planned per call. The first key is that of
        -- nearly every code. The address of a test identity is never proven.)
        SELECT u.id, u.security_stamp, u.has_totp, v_try.client_id, v_try.session_end, c.region, c.source,
               NOT c.is_test AND i.kind = 'phone' AND i.proved_at < postern.stale_before(v_realm)
          INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
               v_candidate.session_end, v_region, v_asked_from, v_stale
          FROM postern.login_code AS c
          JOIN postern.user_account AS u ON u.realm_id = v_realm AND u.id = c.user_id AND u.enabled
          JOIN postern.user_identifier AS i
            ON i.realm_id = v_realm AND i.user_id = c.user_id AND i.key = p_address_key
           AND (c.is_test OR i.proven_key IS NOT NULL)
         WHERE c.realm_id = v_realm AND c.address_key = p_address_key AND v_try.codes @> ARRAY[c.id]
           AND c.expires_at > now() AND postern.is_for_client(c.client, c.page_browser, v_client)
           AND (c.mac = sha256(c.salt || p_keyed[1])
                OR EXISTS (SELECT FROM unnest(p_keyed[2:]) AS x (keyed) WHERE c.mac = sha256(c.salt || x.keyed)));
        EXIT WHEN FOUND AND NOT v_stale OR v_registered;
        -- The code of a registration has a user now, who is found by the next pass. A number that its account has not
        -- used for long may have passed to another person: a page asks for one more proof.
        SELECT r.registered, r.page_outcome INTO v_registered, v.page_outcome
          FROM postern.register_by_code(p_caller, p_new.page, p_address_key, v_try.codes, p_keyed) AS r;
        EXIT WHEN NOT v_registered;
    END LOOP;
    -- Without a page the second factor is that proof.
    IF v.page_outcome IS NOT NULL OR v_stale AND NOT (v_candidate.has_totp OR v_wants_second) THEN
        v_candidate.user_id := NULL;
    END IF;

    IF v_candidate.user_id IS NOT NULL AND (v_candidate.has_totp OR v_wants_second) THEN
        v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
        IF v.outcome IS NOT NULL THEN
            RETURN v;
        END IF;
    END IF;
    IF v_candidate.user_id IS NOT NULL THEN
        -- A right code ends all codes of the address: the transaction that deletes them has redeemed it.
        DELETE FROM postern.login_code AS d WHERE d.realm_id = v_realm AND d.address_key = p_address_key;
        IF FOUND THEN
            IF v_region IS NOT NULL THEN
                PERFORM postern.give_back(v_realm, p_address_key, v_region, v_asked_from),
                        postern.confirm_identifier(v_realm, v_candidate.user_id, p_address_key);
            END IF;
            IF v_try.consecutive > 0 OR v_try.locked_until IS NOT NULL THEN
                PERFORM postern.settle_right_code(p_caller, p_address_key, v_device, v_candidate.user_id);
            END IF;
            IF (p_new.page).host IS NOT NULL THEN
                -- A page that begins anew does not wait for this code (postern.asked_before).
                UPDATE postern.sign_in_request AS a SET attempts = a.attempts + 1
                 WHERE a.realm_id = v_realm AND a.id = p_handle;
            END IF;
            RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
        END IF;
    END IF;

    v := postern.refuse_sign_in(p_caller, p_new, v, v_try.reason);
    IF v.outcome = 'ok' THEN
        RETURN v;
    END IF;
    v_refusal := postern.refuse_code(p_caller, p_address_key, p_handle, v_try.codes, p_keyed, p_new.token_salt,
                                     v_device, v_try.consecutive, v_step, v_try.reason);
    v.reason := v_refusal.because;
    v.compared := v_refusal.compared;
    RETURN v;
END
$$;
COMMENT ON FUNCTION postern.redeem_code IS
    'Redeems a one-time code: counts, compares, consumes and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_code TO postern_app;

RESET ROLE;
