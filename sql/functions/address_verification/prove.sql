-- Proof of an address without an account: a code is sent there, or a signed-in browser shares what its user has proven.
-- No account is looked up for the address, and none is changed.
SET LOCAL ROLE postern_owner;

-- When the user of a browser session proved an address in it; NULL: another address, or longer ago than p_max_age
-- seconds (NULL: sso_idle of the realm).
CREATE OR REPLACE FUNCTION postern.address_proved_at(
    p_realm uuid, p_session postern.browser_session, p_address_key text, p_max_age integer) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT x.at
      FROM (VALUES ('email', p_session.email_proved_at), ('phone', p_session.phone_proved_at)) AS x (kind, at)
      JOIN postern.user_identifier AS i ON i.realm_id = p_realm AND i.proven_key = p_address_key
      JOIN postern.realm AS r ON r.id = p_realm
     WHERE i.user_id = p_session.user_id AND i.kind = x.kind
       AND postern.address_key(p_session.proofs -> x.kind ->> 'value') = p_address_key
       AND x.at >= now() - coalesce(make_interval(secs => p_max_age), r.sso_idle)
$$;
COMMENT ON FUNCTION postern.address_proved_at IS 'When an address was proven in a browser session, if recently';
GRANT EXECUTE ON FUNCTION postern.address_proved_at TO postern_app;

-- Sends a code, unless the browser's user has proven the address lately. p_resend_of: the proof to send again for.
-- Outcomes: known (share_address may follow; nothing was sent), sent, cooldown (sent a moment ago), send_limit,
-- rate_limited.
CREATE OR REPLACE FUNCTION postern.begin_address_verification(
    p_caller postern.caller, p_permits postern.permits, p_request postern.new_request, p_brake postern.budget,
    p_sealed bytea, p_salt bytea, p_keyed bytea, p_cookie_hash bytea, p_host text, p_max_age integer, p_mail_id uuid,
    p_payload bytea,
    OUT outcome text, OUT id uuid, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := p_caller.realm;
    v_set text := set_config('postern.realm', v_realm::text, true);
    v_resend_of uuid := encode(p_request.resend_of, 'hex');
    v_expires_at timestamptz := now() + make_interval(secs => p_request.lifetime);
    v_before record;
BEGIN
    IF p_cookie_hash IS NOT NULL
       AND EXISTS (SELECT FROM postern.live_browser_session(v_realm, p_cookie_hash, p_host) AS b
                    WHERE postern.address_proved_at(v_realm, b, p_request.address_key, p_max_age) IS NOT NULL) THEN
        outcome := 'known';
        RETURN;
    END IF;
    SELECT p.sends, p.message, p.last_send_at > now() - r.resend_cooldown AS cools INTO v_before
      FROM postern.address_verification AS p JOIN postern.realm AS r ON r.id = v_realm
      LEFT JOIN postern.rate_bucket AS b ON b.realm_id = v_realm AND b.key = 'token|wrong-codes'
     WHERE p.realm_id = v_realm AND p.id = v_resend_of AND p.client = p_caller.client AND p.proved_at IS NULL
       AND p.expires_at > now()
       -- One without tries would refuse the right code too: the code gets a proof of its own.
       AND p.attempts < CASE WHEN postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst)
                             THEN 1 ELSE r.otp_attempts END;
    id := CASE WHEN v_before.sends IS NULL THEN encode(p_request.id, 'hex')::uuid ELSE v_resend_of END;
    IF v_before.cools THEN
        outcome := 'cooldown';
        RETURN;
    ELSIF v_before.sends >= p_request.sends THEN
        outcome := 'send_limit';
        RETURN;
    END IF;
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(v_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'sent';
    INSERT INTO postern.address_verification AS p (realm_id, id, client, expires_at, last_send_at, sends, kind, channel,
                                            region, source, sealed_address, code_salt, code_mac, message)
    VALUES (v_realm, id, p_caller.client, v_expires_at, now(), 1,
            CASE WHEN p_request.channel IS NULL THEN 'email' ELSE 'phone' END, p_request.channel, p_request.region,
            p_caller.source, p_sealed, p_salt, sha256(p_salt || p_keyed), p_mail_id)
        ON CONFLICT ON CONSTRAINT address_verification_pkey DO UPDATE
       SET sends = p.sends + 1, last_send_at = now(), channel = excluded.channel, code_salt = excluded.code_salt,
           code_mac = excluded.code_mac, expires_at = excluded.expires_at, message = excluded.message;
    PERFORM postern.supersede_message(v_realm, v_before.message);
    PERFORM postern.queue_message(
        v_realm, p_mail_id, coalesce(p_request.channel, 'email'), p_request.address, 'otp', 'verify', p_payload,
        p_expires_at => v_expires_at, p_client => p_caller.client, p_app => p_caller.app,
        p_locale => p_request.locale, p_region => p_request.region, p_page_origin => p_request.page_origin);
END
$$;
COMMENT ON FUNCTION postern.begin_address_verification IS
    'Sends a code to an address that is to be proven, unless the browser''s user has proven it lately';
GRANT EXECUTE ON FUNCTION postern.begin_address_verification TO postern_app;

-- The authorization code of a proof. p_request: as for postern.answer_request. Outcomes: issued, closed (client or
-- pages were closed meanwhile), used (the pushed request was answered before).
CREATE OR REPLACE FUNCTION postern.issue_address_code(
    p_realm uuid, p_client uuid, p_id uuid, p_subject uuid, p_proved_at timestamptz, p_amr text[], p_acr text,
    p_request postern.code_request, p_source text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_lifetime interval;
BEGIN
    SELECT r.code_lifetime INTO v_lifetime
      FROM postern.client AS c, postern.realm AS r
     WHERE c.realm_id = p_realm AND c.id = p_client AND c.enabled AND 'gt:authorization_code' = ANY (c.permissions)
       AND r.id = p_realm AND r.enabled AND r.hosted_enabled;
    IF NOT FOUND THEN
        RETURN 'closed';
    ELSIF p_request.pushed IS NOT NULL AND NOT postern.use_pushed_request(p_realm, p_request.pushed) THEN
        RETURN 'used';
    END IF;
    UPDATE postern.address_verification AS p
       SET proved_at = p_proved_at, expires_at = now() + v_lifetime, subject = p_subject, amr = p_amr, acr = p_acr,
           code_hash = p_request.code, redirect_uri = p_request.redirect_uri,
           code_challenge = p_request.challenge, nonce = p_request.nonce, scope = p_request.scope,
           resource = p_request.resource, code_mac = NULL, code_salt = NULL, jkt = p_request.jkt
     WHERE p.realm_id = p_realm AND p.id = p_id;
    INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
    SELECT p_realm, 'address_proven', p_client, p_source,
           jsonb_build_object('kind', p.kind, 'shared', p.browser_session IS NOT NULL)
      FROM postern.address_verification AS p WHERE p.realm_id = p_realm AND p.id = p_id;
    RETURN 'issued';
END
$$;
COMMENT ON FUNCTION postern.issue_address_code IS 'Stores the authorization code of an address that was proven';
GRANT EXECUTE ON FUNCTION postern.issue_address_code TO postern_app;

-- A try at the code of a proof. It is counted before the comparison, on the proof and among the wrong codes of the
-- address: a hundred in a row close both sign-in codes and proofs of the address to strangers for a day, so that a
-- proof is no second way to guess. Outcomes: those of issue_address_code, refused (reason is for logs only),
-- rate_limited. compared: 1 when a code was compared and wrong.
CREATE OR REPLACE FUNCTION postern.prove_address(
    p_realm uuid, p_client uuid, p_id uuid, p_address_key text, p_keyed bytea[], p_subject uuid, p_amr text[],
    p_acr text, p_request postern.code_request, p_source text,
    p_permits postern.permits,
    p_brake postern.budget,
    OUT outcome text, OUT reason text, OUT compared integer, OUT limit_ord integer, OUT retry_after double precision,
    OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_tried record;
    v_wrong integer;
BEGIN
    compared := 0;
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'refused';
    UPDATE postern.address_verification AS p SET attempts = p.attempts + 1
      FROM postern.realm AS r
      LEFT JOIN postern.rate_bucket AS b ON b.realm_id = p_realm AND b.key = 'token|wrong-codes'
     WHERE p.realm_id = p_realm AND p.id = p_id AND p.client = p_client AND p.code_mac IS NOT NULL
       AND p.expires_at > now() AND r.id = p_realm
       AND p.attempts < CASE WHEN postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst)
                             THEN 1 ELSE r.otp_attempts END
    RETURNING p.region, p.source,
              EXISTS (SELECT FROM unnest(p_keyed) AS k (keyed)
                       WHERE p.code_mac = sha256(p.code_salt || k.keyed)) AS is_right
         INTO v_tried;
    IF NOT FOUND THEN
        reason := 'attempts';
        RETURN;
    END IF;
    INSERT INTO postern.code_guard AS g (realm_id, address_key, consecutive) VALUES (p_realm, p_address_key, 1)
        ON CONFLICT (realm_id, address_key) DO UPDATE
       SET consecutive = CASE WHEN g.locked_until IS NULL THEN g.consecutive ELSE 0 END + 1, locked_until = NULL,
           updated_at = now()
     WHERE coalesce(g.locked_until <= now(), true)
    RETURNING g.consecutive INTO v_wrong;
    IF NOT FOUND THEN
        reason := 'locked';
        RETURN;
    ELSIF v_tried.is_right THEN
        UPDATE postern.code_guard AS g SET consecutive = 0
         WHERE g.realm_id = p_realm AND g.address_key = p_address_key;
        IF v_tried.region IS NOT NULL THEN
            PERFORM postern.give_back(p_realm, p_address_key, v_tried.region, v_tried.source);
        END IF;
        outcome := postern.issue_address_code(p_realm, p_client, p_id, p_subject, now(), p_amr, p_acr, p_request,
                                              p_source);
        RETURN;
    END IF;
    reason := 'wrong';
    compared := 1;
    IF v_wrong >= 100 THEN
        reason := 'lockout';
        UPDATE postern.code_guard AS g SET locked_until = now() + interval '24 hours'
         WHERE g.realm_id = p_realm AND g.address_key = p_address_key;
        INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
        VALUES (p_realm, 'code_lockout', p_client, p_source,
                jsonb_build_object('wrong', v_wrong, 'known_device', false));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.prove_address IS
    'Counts and compares the code of an address proof; a right one gets the authorization code';
GRANT EXECUTE ON FUNCTION postern.prove_address TO postern_app;

-- The user of a browser session shares an address that was proven in it. Outcomes: those of issue_address_code, login
-- (there is no such session, or no such proof any more).
CREATE OR REPLACE FUNCTION postern.share_address(
    p_realm uuid, p_client uuid, p_id uuid, p_cookie_hash bytea, p_host text, p_address_key text, p_max_age integer,
    p_sealed bytea, p_subject uuid, p_acr text, p_request postern.code_request, p_source text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
    v_session postern.browser_session;
    v_proved_at timestamptz;
    v_amr text[];
BEGIN
    SELECT b.* INTO v_session FROM postern.live_browser_session(p_realm, p_cookie_hash, p_host) AS b;
    v_proved_at := postern.address_proved_at(p_realm, v_session, p_address_key, p_max_age);
    IF v_proved_at IS NULL THEN
        RETURN 'login';
    END IF;
    -- Of the methods of the session those by which an address is proven.
    v_amr := CASE WHEN postern.is_phone(p_address_key)
                  THEN ARRAY(SELECT m FROM unnest(v_session.amr) AS m WHERE m IN ('otp', 'sms', 'tel'))
                  ELSE '{otp}' END;
    INSERT INTO postern.address_verification (realm_id, id, client, browser_session, expires_at, kind, source,
                                              sealed_address)
    VALUES (p_realm, p_id, p_client, v_session.id, now() + interval '1 minute',
            CASE WHEN postern.is_phone(p_address_key) THEN 'phone' ELSE 'email' END, p_source, p_sealed);
    RETURN postern.issue_address_code(p_realm, p_client, p_id, p_subject, v_proved_at, v_amr, p_acr, p_request,
                                      p_source);
END
$$;
COMMENT ON FUNCTION postern.share_address IS
    'Issues an authorization code for an address that was proven in a browser session';
GRANT EXECUTE ON FUNCTION postern.share_address TO postern_app;

RESET ROLE;
