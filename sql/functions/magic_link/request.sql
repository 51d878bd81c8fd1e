-- A recorded request for a link is decided by a worker, and the link is made and mailed. record_sent_request records
-- it.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:cocoar:magic', 'Sign in by a link sent to a mailbox')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('magic-link', 'target', 5, interval '60 minutes', 5, 'enforce'),
    ('magic-link', 'target-total', 10, interval '60 minutes', 10, 'enforce'),
    ('magic-link', 'source', 3000, interval '60 minutes', 500, 'enforce'),
    ('magic-link', 'client', 6000, interval '60 minutes', 6000, 'enforce'),
    ('magic-link', 'app', 30000, interval '60 minutes', 30000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('login_link', 't.expires_at < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Outcomes: send (the caller makes a link for user_id and calls add_link in the same transaction); cooldown (a link was
-- sent for this handle a moment ago); ignored (no mail); busy (another worker decides for this address, or the user is
-- being deleted: the request stays pending).
-- A request gets a link of its own; another handle's link is neither moved nor ended.
CREATE OR REPLACE FUNCTION postern.decide_link_request(
    p_realm uuid, p_request bytea,
    OUT outcome text, OUT user_id uuid, OUT asked_by text, OUT asked_at double precision, OUT source text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_request record;
    v_user uuid;
    v_admitted boolean;
    v_device uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.email, a.address_key, a.source, a.created_at, a.channel, r.resend_cooldown,
           postern.speaks_cotter(k) AS is_open_to_all,
           a.expires_at > now() AND a.confirmed_user IS NULL AND NOT a.denied AS live,
           r.enabled AND (r.native_grants_enabled AND coalesce(p.native_grants_enabled, a.app IS NULL)
                          OR r.hosted_enabled AND coalesce(p.hosted_enabled, a.app IS NULL)) AS open,
           coalesce(p.display_name, k.display_name, r.display_name) AS asked_by
      INTO v_request
      FROM postern.sign_in_request AS a JOIN postern.realm AS r ON r.id = a.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
      LEFT JOIN postern.client AS k ON k.realm_id = a.realm_id AND k.id = a.client
     WHERE a.realm_id = p_realm AND a.id = p_request AND a.pending AND a.kind = 'magic';
    IF NOT FOUND THEN
        outcome := 'ignored';
        RETURN;
    END IF;
    -- The lock under which codes are decided too: this transaction decides for many addresses and must not wait.
    IF NOT pg_try_advisory_xact_lock(postern.lock_of_requests(p_realm, v_request.address_key))
       OR v_request.channel IS NOT NULL
          AND NOT pg_try_advisory_xact_lock(postern.lock_of_message_permits(p_realm)) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT u.id INTO v_user
      FROM postern.user_identifier AS i
      JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = i.user_id AND u.enabled
     WHERE i.realm_id = p_realm AND i.proven_key = v_request.address_key
       -- A link has no place for a second proof.
       AND (i.kind = 'email' OR i.proved_at >= postern.stale_before(p_realm));
    IF v_user IS NULL AND v_request.is_open_to_all AND v_request.live AND v_request.open THEN
        IF NOT pg_try_advisory_xact_lock(postern.lock_of_registrations(p_realm, v_request.source)) THEN
            outcome := 'busy';
            RETURN;
        END IF;
        v_user := postern.claim_user(p_realm, v_request.email, v_request.source);
    ELSIF v_user IS NOT NULL AND NOT postern.try_hold_user(p_realm, v_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT d.admitted, d.device INTO v_admitted, v_device
      FROM postern.admit_request(p_realm, CASE WHEN v_request.channel IS NULL THEN 'magic-link' ELSE 'phone-otp' END,
                                 p_request, v_user) AS d;
    outcome := CASE
        WHEN v_user IS NULL OR NOT v_admitted OR NOT v_request.live OR NOT v_request.open THEN 'ignored'
        WHEN EXISTS (SELECT FROM postern.login_link AS l
                      WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.handle = p_request AND l.ended IS NULL
                        AND l.expires_at > now() AND l.created_at > now() - v_request.resend_cooldown) THEN 'cooldown'
        -- The owner answered "This was not me" to a link less than 15 minutes ago.
        WHEN v_device IS NULL AND EXISTS (
                SELECT FROM postern.login_link AS l
                 WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.ended = 'disowned' AND l.expires_at > now())
                     THEN 'ignored'
        -- Live links are bounded by refusing new links of the same requester, never by ending one: strangers together
        -- have a hundred, each known device twenty. The default limits allow fewer.
        WHEN (SELECT count(*) FROM postern.login_link AS l
               WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.ended IS NULL AND l.expires_at > now()
                 AND l.device IS NOT DISTINCT FROM v_device) >= CASE WHEN v_device IS NULL THEN 100 ELSE 20 END
                     THEN 'ignored'
        ELSE 'send' END;
    IF outcome <> 'send' THEN
        UPDATE postern.sign_in_request AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN;
    END IF;
    user_id := v_user;
    asked_by := v_request.asked_by;
    asked_at := date_part('epoch', v_request.created_at);
    source := v_request.source;
END
$$;
COMMENT ON FUNCTION postern.decide_link_request IS
    'Decides a recorded request for a link: the recipient, if any, and what the mail says about the request';
GRANT EXECUTE ON FUNCTION postern.decide_link_request TO postern_app;

CREATE OR REPLACE FUNCTION postern.add_link(
    p_realm uuid, p_request bytea, p_user uuid, p_token_hash bytea, p_mail_id uuid, p_payload bytea)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.sign_in_request AS a SET pending = false
      FROM postern.realm AS r, postern.user_account AS u
     WHERE a.realm_id = p_realm AND a.id = p_request AND r.id = p_realm AND u.realm_id = p_realm AND u.id = p_user
    RETURNING a.address_key, a.client, a.app, a.source, a.created_at, a.channel, r.magic_link_lifetime,
        u.security_stamp, a.page_browser,
              a.device,
              a.email, (SELECT i.value FROM postern.user_identifier AS i
                         WHERE i.realm_id = p_realm AND i.proven_key = a.address_key) AS proven
         INTO STRICT v_request;
    INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, client, app, address_key, source, device,
                                    security_stamp, asked_at, expires_at, page_browser)
    VALUES (p_realm, p_user, p_token_hash, p_request, v_request.client, v_request.app, v_request.address_key,
            coalesce(v_request.source, 'unknown'), v_request.device, v_request.security_stamp, v_request.created_at,
            now() + v_request.magic_link_lifetime, v_request.page_browser);
    -- To the address as the account has it, which may be spelled otherwise than in the request. The first link to an
    -- address is as a code that registers.
    IF NOT postern.queue_message(
        p_realm, p_mail_id, coalesce(v_request.channel, 'email'), coalesce(v_request.proven, v_request.email),
        'magic-link', CASE WHEN v_request.proven IS NULL THEN 'register' ELSE 'sign-in' END, p_payload, p_request) THEN
        RETURN;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id)
    VALUES (p_realm, 'link_requested', v_request.client, p_user);
END
$$;
COMMENT ON FUNCTION postern.add_link IS
    'Stores a new link and queues its mail; after decide_link_request said send, in its transaction';
GRANT EXECUTE ON FUNCTION postern.add_link TO postern_app;

RESET ROLE;
