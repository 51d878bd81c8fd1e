-- A request for a code: recorded by whoever serves it, decided later by a worker. Recording never reads user_account.
SET LOCAL ROLE postern_owner;

-- Replaced rather than redefined: it has gained an argument.
DROP FUNCTION IF EXISTS postern.request_code(uuid, bytea, bytea, text, text, text, uuid, text, text, integer, text[], integer[], integer[], double precision[], integer[]);
CREATE OR REPLACE FUNCTION postern.request_code(
    p_realm uuid, p_id bytea, p_resend_of bytea, p_kind text, p_email text, p_email_key text, p_client uuid, p_first text, p_last text,
    p_lifetime integer, p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_app text DEFAULT NULL,
    OUT outcome text, OUT handle bytea, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text;
BEGIN
    v_set := set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
          FROM postern.take_realm_permits(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF limit_ord IS NOT NULL THEN
            outcome := 'rate_limited';
            RETURN;
        END IF;
    END IF;
    outcome := 'accepted';
    IF p_resend_of IS NOT NULL THEN
        -- The same handle again, its tries kept; only for whoever asked for the same address in the same way.
        UPDATE postern.auth_session AS a
           SET pending = true, expires_at = now() + make_interval(secs => p_lifetime),
               first_name = coalesce(p_first, a.first_name), last_name = coalesce(p_last, a.last_name)
         WHERE a.realm_id = p_realm AND a.id = p_resend_of AND a.email_key = p_email_key AND a.kind = p_kind
           AND a.client IS NOT DISTINCT FROM p_client AND a.app IS NOT DISTINCT FROM p_app AND a.expires_at > now()
           -- A handle without tries would open nothing: whoever has one gets a new handle.
           AND a.attempts < (SELECT r.otp_attempts FROM postern.realm AS r WHERE r.id = p_realm);
        IF FOUND THEN
            handle := p_resend_of;
            RETURN;
        END IF;
    END IF;
    INSERT INTO postern.auth_session (realm_id, id, kind, email, email_key, client, app, first_name, last_name, expires_at)
    VALUES (p_realm, p_id, p_kind, p_email, p_email_key, p_client, p_app, p_first, p_last, now() + make_interval(secs => p_lifetime));
    handle := p_id;
END
$$;
COMMENT ON FUNCTION postern.request_code(uuid, bytea, bytea, text, text, text, uuid, text, text, integer, text[], integer[], integer[], double precision[], integer[], text) IS
    'Records a request for a code under the rate limits given; the same work for every address';

-- Who is sent a code: a confirmed user, by kind otp; and an address without a confirmed user, to register it, by kind otp on the host of
-- an App whose posture is JitOnOtp and by kind register where it is ExplicitEndpoint. A disabled user is sent nothing.
-- Outcomes: sent, cooldown (a live code was sent less than resend_cooldown ago: this handle opens it), ignored (nobody to write to),
-- busy (another worker is deciding for this address at this moment: the request stays pending and comes up again),
-- test_identity (nothing is sent: the handle opens the fixed code).
CREATE OR REPLACE FUNCTION postern.decide_otp(
    p_realm uuid, p_request bytea, p_code_id uuid, p_salt bytea, p_keyed bytea, p_mail_id uuid, p_payload bytea, p_template text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
    v_user record;
    v_registers boolean;
    v_recent uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.kind, a.email, a.email_key, a.client, a.app, a.first_name, a.last_name, a.expires_at > now() AS live,
           r.otp_lifetime, r.resend_cooldown, p.registration,
           r.enabled AND r.native_grants_enabled AND coalesce(p.native_grants_enabled, a.app IS NULL) AS open
      INTO v_request
      FROM postern.auth_session AS a JOIN postern.realm AS r ON r.id = a.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
     WHERE a.realm_id = p_realm AND a.id = p_request AND a.pending AND a.kind IN ('otp', 'register');
    IF NOT FOUND THEN
        RETURN 'ignored';
    END IF;
    -- Two requests for one address decided at once would both miss the other's code.
    IF NOT pg_try_advisory_xact_lock(hashtextextended(v_request.email_key, uuid_hash_extended(p_realm, 1))) THEN
        RETURN 'busy';
    END IF;
    IF postern.answer_test_identity(p_realm, p_request, v_request.email_key) THEN
        RETURN 'test_identity';
    END IF;
    SELECT u.id, u.email, u.enabled, u.enabled AND u.email_verified AS confirmed INTO v_user
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.email_key = v_request.email_key;
    v_registers := NOT coalesce(v_user.confirmed, false) AND coalesce(v_user.enabled, true)
        AND coalesce(v_request.registration = CASE v_request.kind WHEN 'register' THEN 'ExplicitEndpoint' ELSE 'JitOnOtp' END, false);
    IF NOT (v_registers OR v_request.kind = 'otp' AND coalesce(v_user.confirmed, false)) OR NOT v_request.live OR NOT v_request.open THEN
        UPDATE postern.auth_session AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN 'ignored';
    END IF;
    SELECT c.id INTO v_recent
      FROM postern.login_code AS c
     WHERE c.realm_id = p_realm AND c.email_key = v_request.email_key
       -- Only a code the asker can redeem: else a stranger naming another client would keep the owner without a code.
       AND (c.client IS NULL OR c.client = v_request.client)
       AND CASE WHEN v_registers THEN c.user_id IS NULL AND c.app = v_request.app ELSE c.user_id = v_user.id END
       AND c.expires_at > now() AND c.created_at > now() - v_request.resend_cooldown
     ORDER BY c.created_at DESC LIMIT 1;
    IF FOUND THEN
        UPDATE postern.auth_session AS a
           SET pending = false, code_ids = CASE WHEN v_recent = ANY (a.code_ids) THEN a.code_ids ELSE a.code_ids || v_recent END
         WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN 'cooldown';
    END IF;
    -- The three newest live.
    DELETE FROM postern.login_code AS c
     WHERE c.realm_id = p_realm AND c.email_key = v_request.email_key
       AND c.id NOT IN (SELECT k.id FROM postern.login_code AS k
                         WHERE k.realm_id = p_realm AND k.email_key = v_request.email_key AND k.expires_at > now()
                         ORDER BY k.created_at DESC, k.id LIMIT 2);
    INSERT INTO postern.login_code (realm_id, email_key, id, user_id, client, expires_at, salt, mac, app, email, first_name, last_name)
    VALUES (p_realm, v_request.email_key, p_code_id, CASE WHEN NOT v_registers THEN v_user.id END, v_request.client,
            now() + v_request.otp_lifetime, p_salt, sha256(p_salt || p_keyed),
            CASE WHEN v_registers THEN v_request.app END, CASE WHEN v_registers THEN coalesce(v_user.email, v_request.email) END,
            CASE WHEN v_registers THEN v_request.first_name END, CASE WHEN v_registers THEN v_request.last_name END);
    UPDATE postern.auth_session AS a SET pending = false, code_ids = a.code_ids || p_code_id WHERE a.realm_id = p_realm AND a.id = p_request;
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload) VALUES (p_realm, p_mail_id, coalesce(v_user.email, v_request.email), p_template, p_payload);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id)
    VALUES (p_realm, CASE WHEN v_registers THEN 'registration_requested' ELSE 'otp_requested' END, v_request.client, v_user.id);
    RETURN 'sent';
END
$$;
COMMENT ON FUNCTION postern.decide_otp(uuid, bytea, uuid, bytea, bytea, uuid, bytea, text) IS
    'Decides a recorded request: makes a code and queues the mail, or points the handle at the code already sent, or does nothing';

REVOKE ALL ON FUNCTION
    postern.request_code(uuid, bytea, bytea, text, text, text, uuid, text, text, integer, text[], integer[], integer[], double precision[], integer[], text),
    postern.decide_otp(uuid, bytea, uuid, bytea, bytea, uuid, bytea, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    postern.request_code(uuid, bytea, bytea, text, text, text, uuid, text, text, integer, text[], integer[], integer[], double precision[], integer[], text),
    postern.decide_otp(uuid, bytea, uuid, bytea, bytea, uuid, bytea, text) TO postern_app;

RESET ROLE;
