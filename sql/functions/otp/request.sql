-- A recorded request for a code is decided by a worker. record_sent_request records it.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:cocoar:otp', 'Sign in by a code sent to a mailbox')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('native-otp', 'target', 5, interval '60 minutes', 5, 'enforce'),
    ('native-otp', 'target-total', 10, interval '60 minutes', 10, 'enforce'),
    ('native-otp', 'source', 3000, interval '60 minutes', 500, 'enforce'),
    ('native-otp', 'client', 6000, interval '60 minutes', 6000, 'enforce'),
    ('native-otp', 'app', 30000, interval '60 minutes', 30000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('login_code', 't.expires_at < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- A code is sent to a confirmed user (kind otp). It is also sent to an address without a confirmed user, to register
-- it: for kind otp on the host of an App with posture JitOnOtp, and for kind register where the posture is
-- ExplicitEndpoint, and for every client of Cotter's wire. A disabled user gets no code. Each request gets a code of
-- its own, which belongs to its handle.
-- Outcomes: sent; cooldown (this handle was sent a code less than resend_cooldown ago); limited (a wrong hint and an
-- address without permits, too many registrations from one source, or no permit for a message to a phone); closed
-- (after a hundred wrong codes); ignored (no recipient); busy (another worker decides for this address or this
-- source now: the request stays pending); test_identity (nothing is sent: the handle opens the fixed code).
CREATE OR REPLACE FUNCTION postern.decide_code(
    p_realm uuid, p_request bytea, p_code_id uuid, p_salt bytea, p_keyed bytea, p_mail_id uuid, p_payload bytea,
    p_template text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
    v_user record;
    v_registers boolean;
    v_admitted boolean;
    v_device uuid;
    v_outcome text;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.kind, a.email, a.address_key, a.client, a.app, a.first_name, a.last_name, a.locale, a.source, a.code_ids,
           a.jkt, a.page_browser, a.channel, a.region, a.expires_at > now() AS live, r.otp_lifetime, r.resend_cooldown,
           p.registration,
           a.kind = 'otp' AND postern.speaks_cotter(k) AS is_open_to_all,
           r.enabled AND (r.native_grants_enabled AND coalesce(p.native_grants_enabled, a.app IS NULL)
                          OR r.hosted_enabled AND coalesce(p.hosted_enabled, a.app IS NULL)) AS open
      INTO v_request
      FROM postern.sign_in_request AS a JOIN postern.realm AS r ON r.id = a.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
      LEFT JOIN postern.client AS k ON k.realm_id = a.realm_id AND k.id = a.client
     WHERE a.realm_id = p_realm AND a.id = p_request AND a.pending AND a.kind IN ('otp', 'register');
    IF NOT FOUND THEN
        RETURN 'ignored';
    END IF;
    IF NOT pg_try_advisory_xact_lock(postern.lock_of_requests(p_realm, v_request.address_key))
       OR v_request.channel IS NOT NULL
          AND NOT pg_try_advisory_xact_lock(postern.lock_of_message_permits(p_realm)) THEN
        RETURN 'busy';
    END IF;
    SELECT a.user_id AS id, a.value AS email, u.enabled, u.enabled AND a.proven AS confirmed,
           -- A number that may have passed to another person. With a second factor its owner signs in all the same;
           -- else the code registers where the posture lets it.
           a.kind = 'phone' AND a.proved_at < postern.stale_before(p_realm)
               AND (v_request.kind = 'register' OR NOT u.has_totp) AS stale
      INTO v_user
      FROM postern.account_of(p_realm, v_request.address_key) AS a
      JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = a.user_id;
    -- The foreign key of the code would wait for a transaction that deletes the account. The worker's batch has
    -- requests of all realms, which would wait too.
    IF v_user.id IS NOT NULL AND NOT postern.try_hold_user(p_realm, v_user.id) THEN
        RETURN 'busy';
    END IF;
    v_registers := (NOT coalesce(v_user.confirmed, false) OR v_user.stale) AND coalesce(v_user.enabled, true)
        AND v_request.live AND v_request.open
        AND coalesce(v_request.is_open_to_all
                     OR v_request.registration = CASE v_request.kind WHEN 'register' THEN 'ExplicitEndpoint'
                                                 ELSE 'JitOnOtp' END, false);
    IF v_registers AND NOT pg_try_advisory_xact_lock(postern.lock_of_registrations(p_realm, v_request.source)) THEN
        RETURN 'busy';
    END IF;
    -- For known and unknown addresses, so that permits do not reveal which addresses have accounts.
    SELECT t.admitted, t.device INTO v_admitted, v_device
      FROM postern.admit_request(p_realm, CASE WHEN v_request.channel IS NULL THEN 'native-otp' ELSE 'phone-otp' END,
                                 p_request, v_user.id) AS t;
    IF postern.answer_test_identity(p_realm, p_request, v_request.address_key) THEN
        RETURN 'test_identity';
    END IF;
    v_outcome := CASE
        WHEN NOT (v_registers OR v_request.kind = 'otp' AND coalesce(v_user.confirmed, false)) OR NOT v_request.live
            OR NOT v_request.open
            THEN 'ignored'
        WHEN EXISTS (SELECT FROM postern.login_code AS c
                      WHERE c.realm_id = p_realm AND c.address_key = v_request.address_key
                        AND v_request.code_ids @> ARRAY[c.id]
                        AND c.expires_at > now() AND c.created_at > now() - v_request.resend_cooldown)
            THEN 'cooldown'
        WHEN NOT v_admitted THEN 'limited'
        WHEN v_device IS NULL AND EXISTS (SELECT FROM postern.code_guard AS g
                                           WHERE g.realm_id = p_realm AND g.address_key = v_request.address_key
                                             AND g.locked_until > now())
          OR EXISTS (SELECT FROM postern.device_guard AS g
                      WHERE g.realm_id = p_realm AND g.user_id = v_user.id AND g.device = v_device
                        AND g.locked_until > now())
            THEN 'closed'
        -- A bound on live codes, independent of the realm's limits: strangers cannot fill the table, and a device
        -- replaces only its own codes.
        WHEN v_device IS NULL AND (SELECT count(*) FROM postern.login_code AS c
                                    WHERE c.realm_id = p_realm AND c.address_key = v_request.address_key
                                      AND c.device IS NULL
                                      AND c.expires_at > now()) >= 32
            THEN 'limited'
        WHEN v_registers AND NOT postern.admit_registration(p_realm, v_request.source) THEN 'limited' END;
    IF v_outcome IS NOT NULL THEN
        UPDATE postern.sign_in_request AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN v_outcome;
    END IF;
    -- Keeps the previous code of this handle, for a mail that arrives late, and the eight newest codes of this device.
    DELETE FROM postern.login_code AS c
     WHERE c.realm_id = p_realm AND c.address_key = v_request.address_key AND NOT c.is_test
       AND (c.expires_at <= now()
            OR v_request.code_ids[:cardinality(v_request.code_ids) - 1] @> ARRAY[c.id]
            OR c.device = v_device AND c.id NOT IN (SELECT k.id FROM postern.login_code AS k
                                                     WHERE k.realm_id = p_realm
                                                         AND k.address_key = v_request.address_key
                                                       AND k.device = v_device
                                                     ORDER BY k.created_at DESC, k.id LIMIT 7));
    INSERT INTO postern.login_code (realm_id, address_key, id, user_id, client, device, expires_at, salt, mac, app,
                                    email,
                                    first_name, last_name, locale, region, source, jkt,
                                    page_browser)
    VALUES (p_realm, v_request.address_key, p_code_id, CASE WHEN NOT v_registers THEN v_user.id END, v_request.client,
            v_device, now() + v_request.otp_lifetime, p_salt, sha256(p_salt || p_keyed),
            CASE WHEN v_registers THEN v_request.app END, CASE WHEN v_registers
                THEN coalesce(v_user.email, v_request.email) END,
            CASE WHEN v_registers THEN v_request.first_name END, CASE WHEN v_registers THEN v_request.last_name END,
            CASE WHEN v_registers THEN v_request.locale END,
            v_request.region, CASE WHEN v_request.region IS NOT NULL THEN v_request.source END,
            v_request.jkt, v_request.page_browser);
    UPDATE postern.sign_in_request AS a
       SET pending = false, code_ids = a.code_ids[greatest(cardinality(a.code_ids), 1):] || p_code_id
     WHERE a.realm_id = p_realm AND a.id = p_request;
    IF NOT postern.queue_message(
        p_realm, p_mail_id, coalesce(v_request.channel, 'email'), coalesce(v_user.email, v_request.email), p_template,
        CASE WHEN v_registers THEN 'register' ELSE 'sign-in' END, p_payload, p_request) THEN
        RETURN 'limited';
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id)
    VALUES (p_realm, CASE WHEN v_registers THEN 'registration_requested' ELSE 'otp_requested' END, v_request.client,
            v_user.id);
    RETURN 'sent';
END
$$;
COMMENT ON FUNCTION postern.decide_code IS
    'Decides a recorded request: makes its code and queues the mail, or does nothing';
GRANT EXECUTE ON FUNCTION postern.decide_code TO postern_app;

RESET ROLE;
