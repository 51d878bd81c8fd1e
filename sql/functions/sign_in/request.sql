-- A request for a code or a link: recorded by the node that gets it, decided later by a worker.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('sign_in_request', 't.expires_at < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Returns the new handle, or that to send again for when it can be used again: it must be of the same address and kind,
-- and keeps its tries. hint_user, hint_session: docs/decisions/0025. sends: the messages asked for with the handle, but
-- for those within the cooldown. Names that could not be stored are dropped. Never reads user_account: the same work
-- for every address.
CREATE OR REPLACE FUNCTION postern.record_request(
    p_caller postern.caller, p_request postern.new_request, p_brake postern.budget, OUT handle bytea, OUT sends integer)
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_expires_at timestamptz := now() + make_interval(secs => p_request.lifetime);
    v_key bytea := (p_caller.proof).key;
BEGIN
    IF p_request.resend_of IS NOT NULL THEN
        UPDATE postern.sign_in_request AS a
           SET pending = true, expires_at = v_expires_at, source = p_caller.source,
               -- The page of a link says when it was asked for.
               created_at = CASE WHEN a.kind = 'magic' THEN now() ELSE a.created_at END,
               first_name = coalesce(postern.person_name(p_request.first_name), a.first_name),
               last_name = coalesce(postern.person_name(p_request.last_name), a.last_name),
               hint_user = coalesce(p_request.hint_user, a.hint_user),
               hint_session = coalesce(p_request.hint_session, a.hint_session),
               channel = p_request.channel, region = p_request.region,
               sends = CASE WHEN a.last_send_at > now() - r.resend_cooldown THEN a.sends ELSE a.sends + 1 END,
               last_send_at = CASE WHEN a.last_send_at > now() - r.resend_cooldown THEN a.last_send_at ELSE now() END
          FROM postern.realm AS r
          LEFT JOIN postern.rate_bucket AS b ON b.realm_id = v_realm AND b.key = 'token|wrong-codes'
         WHERE a.realm_id = v_realm AND a.id = p_request.resend_of AND a.address_key = p_request.address_key
           AND a.kind = p_request.kind AND a.jkt IS NOT DISTINCT FROM v_key
           AND a.client IS NOT DISTINCT FROM p_caller.client AND a.app IS NOT DISTINCT FROM p_caller.app
           AND a.expires_at > now() AND r.id = v_realm
           -- A handle that was answered, or has no tries left, would open nothing: the request gets a new handle.
           AND a.confirmed_user IS NULL AND NOT a.denied
           AND a.attempts < CASE WHEN a.device IS NULL
                                  AND postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst)
                                 THEN 1 ELSE r.otp_attempts END
        RETURNING a.id, a.sends INTO handle, sends;
        IF FOUND THEN
            RETURN;
        END IF;
        -- The new handle is for the person who gave the names to the former one.
        SELECT coalesce(p_request.first_name, a.first_name), coalesce(p_request.last_name, a.last_name)
          INTO p_request.first_name, p_request.last_name
          FROM (VALUES (p_request.resend_of)) AS f (id)
          LEFT JOIN postern.sign_in_request AS a
                 ON a.realm_id = v_realm AND a.id = f.id AND a.address_key = p_request.address_key
                AND a.kind = p_request.kind AND a.client IS NOT DISTINCT FROM p_caller.client
                AND a.app IS NOT DISTINCT FROM p_caller.app;
    END IF;
    handle := p_request.id;
    sends := 1;
    INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, client, app, first_name, last_name,
                                         source, hint_user, hint_session, expires_at, channel, region, sends,
                                         last_send_at, locale, page_origin, page_browser, jkt)
    VALUES (v_realm, p_request.id, p_request.kind, p_request.address, p_request.address_key, p_caller.client,
            p_caller.app, postern.person_name(p_request.first_name), postern.person_name(p_request.last_name),
            p_caller.source, p_request.hint_user, p_request.hint_session, v_expires_at, p_request.channel,
            p_request.region, 1, now(), p_request.locale, p_request.page_origin, p_request.page_browser, v_key);
END
$$;
COMMENT ON FUNCTION postern.record_request IS 'Records a request for a code or a link and returns its handle';
GRANT EXECUTE ON FUNCTION postern.record_request TO postern_app;

-- What a client asked for is for that client, what an app asked for without saying which for every client. What a page
-- asked for without a client is for a purpose of the host itself (docs/decisions/0061), and for no client.
CREATE OR REPLACE FUNCTION postern.is_for_client(p_asked_by uuid, p_page_browser bytea, p_client uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (coalesce(p_asked_by, CASE WHEN p_page_browser IS NULL THEN p_client END) = p_client) IS TRUE;
COMMENT ON FUNCTION postern.is_for_client IS 'Whether a client may redeem what was asked for';
GRANT EXECUTE ON FUNCTION postern.is_for_client TO postern_app;

CREATE OR REPLACE FUNCTION postern.try_hold_handle(p_realm uuid, p_handle bytea) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM postern.sign_in_request AS a
      WHERE a.realm_id = p_realm AND a.id = p_handle FOR NO KEY UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM postern.sign_in_request AS a
                                 WHERE a.realm_id = p_realm AND a.id = p_handle);
END
$$;
COMMENT ON FUNCTION postern.try_hold_handle IS
    'Locks the row of a handle, if there is one; false when another transaction has it';
GRANT EXECUTE ON FUNCTION postern.try_hold_handle TO postern_app;

-- An account that is being deleted would make the session's foreign key wait.
CREATE OR REPLACE FUNCTION postern.try_hold_user(p_realm uuid, p_user uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user FOR KEY SHARE SKIP LOCKED;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.try_hold_user IS
    'Keeps a user from being deleted until the transaction ends; false when the user is being deleted or gone';
GRANT EXECUTE ON FUNCTION postern.try_hold_user TO postern_app;

-- A person who goes back to the app and begins again, or types the address once more, waits for one message: the page
-- gets the handle of the first, whose code is right on it. Not one of which a code was typed: it may be spent. Never
-- looks whether there is an account or a code.
CREATE OR REPLACE FUNCTION postern.asked_before(p_caller postern.caller, p_request postern.new_request) RETURNS bytea
LANGUAGE sql STABLE
AS $$
    SELECT a.id
      FROM postern.sign_in_request AS a, postern.realm AS r
     WHERE a.address_key = p_request.address_key AND a.realm_id = p_caller.realm AND r.id = p_caller.realm
       AND a.page_browser = p_request.page_browser AND a.page_origin = p_request.page_origin
       AND a.kind = p_request.kind AND a.channel IS NOT DISTINCT FROM p_request.channel
       AND a.client IS NOT DISTINCT FROM p_caller.client AND a.app IS NOT DISTINCT FROM p_caller.app
       AND a.jkt IS NOT DISTINCT FROM (p_caller.proof).key
       AND a.hint_session IS NOT DISTINCT FROM p_request.hint_session
       AND a.first_name IS NOT DISTINCT FROM postern.person_name(p_request.first_name)
       AND a.last_name IS NOT DISTINCT FROM postern.person_name(p_request.last_name)
       AND a.last_send_at > now() - r.resend_cooldown AND a.expires_at > now()
       AND a.attempts = 0 AND a.proved_at IS NULL AND a.confirmed_user IS NULL AND NOT a.denied
     ORDER BY a.last_send_at DESC, a.id LIMIT 1
$$;
COMMENT ON FUNCTION postern.asked_before IS
    'The handle of the same request of the same browser, whose message was asked for within the cooldown';
GRANT EXECUTE ON FUNCTION postern.asked_before TO postern_app;

-- A request for a code or a link, with a bound on the messages of its handle.
-- A page that begins anew within the cooldown of what its browser asked for is a resend of that.
-- Outcomes: accepted, rate_limited, send_limit (nothing was counted), busy (the handle to be sent again is in use: call
-- again without permits). A resend within the cooldown is accepted, sends nothing and takes no permit. A handle that
-- was answered, or has no tries left, would open nothing: its request gets a new handle at any time (record_request).
CREATE OR REPLACE FUNCTION postern.record_sent_request(
    p_caller postern.caller, p_permits postern.permits, p_request postern.new_request, p_brake postern.budget,
    OUT outcome text, OUT handle bytea, OUT sends_left integer, OUT limit_ord integer,
    OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_set text := set_config('postern.realm', v_realm::text, true);
    v_before record;
    v_request record;
    v postern.sign_in_result;
BEGIN
    IF p_request.resend_of IS NULL AND p_request.page_browser IS NOT NULL THEN
        p_request.resend_of := postern.asked_before(p_caller, p_request);
    END IF;
    IF p_request.resend_of IS NOT NULL THEN
        SELECT a.sends, a.last_send_at > now() - r.resend_cooldown AS cools,
               p_request.channel IS NOT NULL
                   OR a.confirmed_user IS NULL AND NOT a.denied AND a.client IS NOT DISTINCT FROM p_caller.client
                      AND a.app IS NOT DISTINCT FROM p_caller.app
                      AND a.attempts < CASE WHEN a.device IS NULL
                                             AND postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst)
                                            THEN 1 ELSE r.otp_attempts END AS is_open
          INTO v_before
          FROM postern.sign_in_request AS a JOIN postern.realm AS r ON r.id = v_realm
          LEFT JOIN postern.rate_bucket AS b ON b.realm_id = v_realm AND b.key = 'token|wrong-codes'
         WHERE a.realm_id = v_realm AND a.id = p_request.resend_of AND a.address_key = p_request.address_key
           AND a.kind = p_request.kind AND a.jkt IS NOT DISTINCT FROM (p_caller.proof).key AND a.expires_at > now();
        IF v_before.cools AND v_before.is_open THEN
            PERFORM postern.use_proof(v_realm, p_caller.proof);
            outcome := 'accepted';
            handle := p_request.resend_of;
            sends_left := greatest(p_request.sends - v_before.sends, 0);
            RETURN;
        END IF;
        IF v_before.sends >= p_request.sends AND NOT coalesce(v_before.cools, false) THEN
            outcome := 'send_limit';
            RETURN;
        END IF;
    END IF;
    v := postern.admit(p_caller, p_permits);
    outcome := v.outcome;
    limit_ord := v.limit_ord;
    retry_after := v.retry_after;
    granted := v.granted;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    IF p_request.resend_of IS NOT NULL AND NOT postern.try_hold_handle(v_realm, p_request.resend_of) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    outcome := 'accepted';
    v_request := postern.record_request(p_caller, p_request, p_brake);
    handle := v_request.handle;
    sends_left := greatest(p_request.sends - v_request.sends, 0);
END
$$;
COMMENT ON FUNCTION postern.record_sent_request IS
    'Records a request for a code or link by mail or phone, under rate limits; the same work for every address';
GRANT EXECUTE ON FUNCTION postern.record_sent_request TO postern_app;

RESET ROLE;
