-- urn:cocoar:magic: a link is requested, made by the worker, shown, confirmed, redeemed or polled for. One call each.
-- No call waits for a lock of a link or a handle. It returns busy and has consumed nothing; the server tries again and
-- holds no connection meanwhile.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.lock_links(p_realm uuid, p_user uuid) RETURNS void
LANGUAGE sql
AS $$ SELECT pg_advisory_xact_lock(hashtextextended(p_user::text, uuid_hash_extended(p_realm, 4))) $$;
COMMENT ON FUNCTION postern.lock_links(uuid, uuid) IS
    'Waits for the lock under which links of this user end; for administrators and owners who end all access';

CREATE OR REPLACE FUNCTION postern.try_lock_links(p_realm uuid, p_user uuid) RETURNS boolean
LANGUAGE sql
AS $$ SELECT pg_try_advisory_xact_lock(hashtextextended(p_user::text, uuid_hash_extended(p_realm, 4))) $$;
COMMENT ON FUNCTION postern.try_lock_links(uuid, uuid) IS
    'Takes the lock under which links of this user end, known or not; false when another transaction has it';

CREATE OR REPLACE FUNCTION postern.try_hold_handle(p_realm uuid, p_handle bytea) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.id = p_handle FOR NO KEY UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM postern.auth_session AS a WHERE a.realm_id = p_realm AND a.id = p_handle);
END
$$;
COMMENT ON FUNCTION postern.try_hold_handle(uuid, bytea) IS
    'Locks the row of a handle, if there is one; false when another transaction has it';

-- An account that is being deleted would make the session's foreign key wait.
CREATE OR REPLACE FUNCTION postern.try_hold_user(p_realm uuid, p_user uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user FOR KEY SHARE SKIP LOCKED;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.try_hold_user(uuid, uuid) IS
    'Keeps a user from being deleted until the transaction ends; false when the user is being deleted or gone';

-- Two digits that the requesting device shows and that are typed on the page. Outside the server the handle's id exists
-- only sealed.
CREATE OR REPLACE FUNCTION postern.match_number(p_handle bytea) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 10 + (get_byte(h, 0) * 256 + get_byte(h, 1)) % 90 FROM sha256('match number'::bytea || p_handle) AS h $$;
COMMENT ON FUNCTION postern.match_number(bytea) IS 'The number of a handle, 10 to 99';

-- Records a request; never reads user_account, the same work for every address. Outcomes: accepted, rate_limited, busy.
CREATE OR REPLACE FUNCTION postern.record_link_request(
    p_realm uuid, p_id bytea, p_resend_of bytea, p_email text, p_email_key text, p_client uuid, p_source text,
    p_lifetime integer, p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[],
    p_burst integer[], p_app text, p_hint_user uuid, p_hint_session uuid,
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
        IF NOT postern.try_hold_handle(p_realm, p_resend_of) THEN
            outcome := 'busy';
            RETURN;
        END IF;
        UPDATE postern.auth_session AS a
           SET pending = true, created_at = now(), expires_at = now() + make_interval(secs => p_lifetime), source = p_source,
               hint_user = coalesce(p_hint_user, a.hint_user), hint_session = coalesce(p_hint_session, a.hint_session)
         WHERE a.realm_id = p_realm AND a.id = p_resend_of AND a.email_key = p_email_key AND a.kind = 'magic'
           AND a.client IS NOT DISTINCT FROM p_client AND a.app IS NOT DISTINCT FROM p_app AND a.expires_at > now()
           -- A handle that was answered cannot be used again: the request gets a new handle.
           AND a.confirmed_user IS NULL AND NOT a.denied;
        IF FOUND THEN
            handle := p_resend_of;
            RETURN;
        END IF;
    END IF;
    INSERT INTO postern.auth_session (realm_id, id, kind, email, email_key, client, app, source, hint_user, hint_session,
                                      expires_at)
    VALUES (p_realm, p_id, 'magic', p_email, p_email_key, p_client, p_app, p_source, p_hint_user, p_hint_session,
            now() + make_interval(secs => p_lifetime));
    handle := p_id;
END
$$;
COMMENT ON FUNCTION postern.record_link_request(uuid, bytea, bytea, text, text, uuid, text, integer, text[], integer[],
    integer[], double precision[], integer[], text, uuid, uuid) IS
    'Records a request for a link under the rate limits given; the same work for every address';

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
    SELECT a.email_key, a.source, a.created_at, r.resend_cooldown,
           a.expires_at > now() AND a.confirmed_user IS NULL AND NOT a.denied AS live,
           r.enabled AND r.native_grants_enabled AND coalesce(p.native_grants_enabled, a.app IS NULL) AS open,
           coalesce(p.display_name, k.display_name, r.display_name) AS asked_by
      INTO v_request
      FROM postern.auth_session AS a JOIN postern.realm AS r ON r.id = a.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
      LEFT JOIN postern.client AS k ON k.realm_id = a.realm_id AND k.id = a.client
     WHERE a.realm_id = p_realm AND a.id = p_request AND a.pending AND a.kind = 'magic';
    IF NOT FOUND THEN
        outcome := 'ignored';
        RETURN;
    END IF;
    -- The lock under which codes are decided too: this transaction decides for many addresses and must not wait.
    IF NOT pg_try_advisory_xact_lock(hashtextextended(v_request.email_key, uuid_hash_extended(p_realm, 1))) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT u.id INTO v_user
      FROM postern.user_account AS u
     WHERE u.realm_id = p_realm AND u.email_key = v_request.email_key AND u.enabled AND u.email_verified;
    IF FOUND AND NOT postern.try_hold_user(p_realm, v_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT d.admitted, d.device INTO v_admitted, v_device
      FROM postern.admit_request(p_realm, 'magic-link', p_request, v_user) AS d;
    outcome := CASE
        WHEN v_user IS NULL OR NOT v_admitted OR NOT v_request.live OR NOT v_request.open THEN 'ignored'
        WHEN EXISTS (SELECT FROM postern.login_link AS l
                      WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.handle = p_request AND l.ended IS NULL
                        AND l.expires_at > now() AND l.created_at > now() - v_request.resend_cooldown) THEN 'cooldown'
        -- The owner answered "This was not me" to a link less than 15 minutes ago.
        WHEN v_device IS NULL AND EXISTS (
                SELECT FROM postern.login_link AS l
                 WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.ended = 'disowned' AND l.expires_at > now()) THEN 'ignored'
        -- Live links are bounded by refusing new links of the same requester, never by ending one: strangers together
        -- have a hundred, each known device twenty. The default limits allow fewer.
        WHEN (SELECT count(*) FROM postern.login_link AS l
               WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.ended IS NULL AND l.expires_at > now()
                 AND l.device IS NOT DISTINCT FROM v_device) >= CASE WHEN v_device IS NULL THEN 100 ELSE 20 END THEN 'ignored'
        ELSE 'send' END;
    IF outcome <> 'send' THEN
        UPDATE postern.auth_session AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN;
    END IF;
    user_id := v_user;
    asked_by := v_request.asked_by;
    asked_at := date_part('epoch', v_request.created_at);
    source := v_request.source;
END
$$;
COMMENT ON FUNCTION postern.decide_link_request(uuid, bytea) IS
    'Decides a recorded request for a link: the recipient, if any, and what the mail says about the request';

CREATE OR REPLACE FUNCTION postern.add_link(
    p_realm uuid, p_request bytea, p_user uuid, p_token_hash bytea, p_mail_id uuid, p_payload bytea)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.auth_session AS a SET pending = false
      FROM postern.realm AS r, postern.user_account AS u
     WHERE a.realm_id = p_realm AND a.id = p_request AND r.id = p_realm AND u.realm_id = p_realm AND u.id = p_user
    RETURNING a.email_key, a.client, a.app, a.source, a.created_at, r.magic_link_lifetime, u.email, u.security_stamp,
              a.device INTO STRICT v_request;
    INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, client, app, email_key, source, device,
                                    security_stamp, asked_at, expires_at)
    VALUES (p_realm, p_user, p_token_hash, p_request, v_request.client, v_request.app, v_request.email_key,
            coalesce(v_request.source, 'unknown'), v_request.device, v_request.security_stamp, v_request.created_at,
            now() + v_request.magic_link_lifetime);
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload)
    VALUES (p_realm, p_mail_id, v_request.email, 'magic-link', p_payload);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id)
    VALUES (p_realm, 'link_requested', v_request.client, p_user);
END
$$;
COMMENT ON FUNCTION postern.add_link(uuid, bytea, uuid, bytea, uuid, bytea) IS
    'Stores a new link and queues its mail; after decide_link_request said send, in its transaction';

-- What the page shows about the request, also for a link that has ended: only the POST of the page reveals whether a
-- link is valid. Changes nothing but the limits. Outcomes: shown, rate_limited. asked_by is NULL when the link does not
-- exist.
CREATE OR REPLACE FUNCTION postern.link_page(
    p_realm uuid, p_user uuid, p_token_hash bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT asked_by text, OUT asked_at double precision, OUT source text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
          FROM postern.take_realm_permits(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF limit_ord IS NOT NULL THEN
            outcome := 'rate_limited';
            RETURN;
        END IF;
    END IF;
    outcome := 'shown';
    SELECT coalesce(p.display_name, k.display_name, r.display_name),
           date_part('epoch', coalesce(l.asked_at, l.created_at)), l.source
      INTO asked_by, asked_at, source
      FROM postern.login_link AS l JOIN postern.realm AS r ON r.id = l.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = l.realm_id AND p.slug = l.app
      LEFT JOIN postern.client AS k ON k.realm_id = l.realm_id AND k.id = l.client
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
END
$$;
COMMENT ON FUNCTION postern.link_page(uuid, uuid, bytea, text[], integer[], integer[], double precision[], integer[]) IS
    'Who requested a link, when and from where; changes nothing but the rate limits';

-- The answer of the page's form. p_number NULL: the owner says that the request is not theirs. Outcomes: confirmed,
-- denied (the wrong number, or NULL), answered (confirmed or denied before), redeemed, superseded (ended by another
-- sign-in or a new security stamp), expired, unknown, rate_limited, busy. Only the first two end anything.
CREATE OR REPLACE FUNCTION postern.confirm_link(
    p_realm uuid, p_user uuid, p_token_hash bytea, p_number integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_link record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF cardinality(p_keys) > 0 THEN
        SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
          FROM postern.take_realm_permits(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
        IF limit_ord IS NOT NULL THEN
            outcome := 'rate_limited';
            RETURN;
        END IF;
    END IF;
    -- A request without a valid link takes no lock, so that a stranger cannot block the owner of a link.
    IF NOT EXISTS (SELECT FROM postern.login_link AS l
                    WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash) THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    IF NOT postern.try_lock_links(p_realm, p_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT l.handle, l.client, l.expires_at > now() AS live, u.security_stamp,
           CASE WHEN l.ended IN ('confirmed', 'denied', 'disowned') THEN 'answered'
                WHEN l.ended IS NULL AND l.security_stamp IS DISTINCT FROM u.security_stamp THEN 'superseded'
                ELSE l.ended END AS ended,
           u.id IS NOT NULL AND r.enabled AND r.native_grants_enabled AS usable
      INTO v_link
      FROM postern.login_link AS l JOIN postern.realm AS r ON r.id = l.realm_id
      LEFT JOIN postern.user_account AS u ON u.realm_id = l.realm_id AND u.id = l.user_id AND u.enabled AND u.email_key = l.email_key
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
    outcome := CASE WHEN NOT FOUND OR NOT v_link.usable THEN 'unknown' WHEN v_link.ended IS NOT NULL THEN v_link.ended
                    WHEN NOT v_link.live THEN 'expired'
                    WHEN NOT postern.try_hold_handle(p_realm, v_link.handle) OR NOT postern.try_hold_user(p_realm, p_user)
                         THEN 'busy' END;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    IF p_number IS NOT DISTINCT FROM postern.match_number(v_link.handle) THEN
        -- A moment is left to poll, however late the answer came.
        UPDATE postern.auth_session AS a
           SET confirmed_user = p_user, confirmed_stamp = v_link.security_stamp,
               expires_at = greatest(a.expires_at, now() + interval '1 minute')
         WHERE a.realm_id = p_realm AND a.id = v_link.handle AND a.kind = 'magic' AND a.expires_at > now() AND NOT a.denied;
        IF NOT FOUND THEN
            outcome := 'expired';
            RETURN;
        END IF;
        outcome := 'confirmed';
        UPDATE postern.login_link AS l
           SET ended = CASE WHEN l.token_hash = p_token_hash THEN 'confirmed' ELSE 'superseded' END
         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL;
    ELSE
        outcome := 'denied';
        -- All links of this handle: it is the handle that was refused.
        UPDATE postern.login_link AS l
           SET ended = CASE WHEN p_number IS NULL THEN 'disowned' ELSE 'denied' END,
               -- While the row lives, requests of strangers send no link.
               expires_at = CASE WHEN p_number IS NULL THEN greatest(l.expires_at, now() + interval '15 minutes') ELSE l.expires_at END
         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.handle = v_link.handle AND l.ended IS NULL;
        UPDATE postern.auth_session AS a SET denied = true
         WHERE a.realm_id = p_realm AND a.id = v_link.handle AND a.confirmed_user IS NULL;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES (p_realm, 'link_' || outcome, v_link.client, p_user, p_source,
            CASE WHEN p_number IS NULL THEN jsonb_build_object('reason', 'disowned') END);
END
$$;
COMMENT ON FUNCTION postern.confirm_link(uuid, uuid, bytea, integer, text, text[], integer[], integer[], double precision[], integer[]) IS
    'Confirms a link by the number that the requesting device shows, or ends it';

-- An earlier form without the key of the session. No server calls it: only the functions of this file do.
DROP FUNCTION IF EXISTS postern.open_link_session(uuid, uuid, text, uuid, uuid, text, timestamptz, uuid, bytea, bytea,
    text[], text[], text[], integer, integer, text, text);
-- What both ways of a link end in: the session, the end of a lockout of codes, the proof of the mailbox, the audit.
CREATE OR REPLACE FUNCTION postern.open_link_session(
    p_realm uuid, p_client uuid, p_client_id text, p_user uuid, p_stamp uuid, p_email_key text, p_session_end timestamptz,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea, p_device uuid, p_way text)
RETURNS double precision
LANGUAGE plpgsql
AS $$
DECLARE
    v_expires_at timestamptz := p_session_end;
    v_refresh_expires_at timestamptz;
BEGIN
    IF p_refresh_hash IS NULL THEN
        -- Nothing can prolong it: the session ends with its access token.
        v_expires_at := least(v_expires_at, now() + make_interval(secs => p_access_lifetime));
    ELSE
        v_refresh_expires_at := least(v_expires_at, now() + make_interval(secs => p_refresh_lifetime));
    END IF;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, refresh_expires_at,
                                 token_salt, current_hash, scope, resource, amr, server_key)
    VALUES (p_realm, p_session, p_user, p_client, p_client_id, p_stamp, now(), v_expires_at, v_refresh_expires_at,
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_server_key);
    PERFORM postern.forget_wrong_codes(p_realm, p_email_key, p_user, p_device);
    UPDATE postern.user_account AS u SET email_verified = true WHERE u.realm_id = p_realm AND u.id = p_user AND NOT u.email_verified;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'sign_in', p_client, p_user, p_session, p_source, jsonb_build_object('link', p_way));
    RETURN date_part('epoch', v_expires_at);
END
$$;
COMMENT ON FUNCTION postern.open_link_session(uuid, uuid, text, uuid, uuid, text, timestamptz, uuid, bytea, bytea,
    text[], text[], text[], integer, integer, text, bytea, uuid, text) IS
    'Opens the session of a link that was redeemed or confirmed';

-- By the token itself: the app opened the link. p_handle: the request that the link must belong to, if the app says so.
-- A wrong token ends nothing. Outcomes: ok, refused (reason is for logs only), rate_limited, busy, and those of a second factor.
CREATE OR REPLACE FUNCTION postern.redeem_link(
    p_realm uuid, p_client uuid, p_permission text, p_user uuid, p_token_hash bytea, p_handle bytea, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
    p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_link record;
    v_spent record;
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
    -- A request without a valid link takes no lock, so that a stranger cannot block the owner of a link.
    IF NOT EXISTS (SELECT FROM postern.login_link AS l
                    WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash) THEN
        reason := 'unknown';
        RETURN;
    END IF;
    IF NOT postern.try_lock_links(p_realm, p_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT u.id, u.security_stamp, u.email_key, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end, l.handle,
           l.device
      INTO v_link
      FROM postern.login_link AS l, postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash
       AND l.ended IS NULL AND l.expires_at > now() AND (l.client IS NULL OR l.client = p_client)
       AND (p_handle IS NULL OR l.handle = p_handle)
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.email_key = l.email_key
       AND u.security_stamp = l.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.native_grants_enabled;
    IF v_link.id IS NOT NULL
       AND (NOT postern.try_hold_handle(p_realm, v_link.handle) OR NOT postern.try_hold_user(p_realm, p_user)) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- What is refused up to here leaves the link alive.
    IF v_link.id IS NOT NULL AND (v_link.has_totp OR p_factor IS NOT NULL) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_link.id, v_link.has_totp, p_factor, p_totp_step, p_recovery, p_client,
                                           p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
        outcome := 'refused';
    END IF;
    IF v_link.id IS NOT NULL THEN
        -- All links of the user go with the right one; its handle has nothing to poll for any more.
        FOR v_spent IN
            UPDATE postern.login_link AS l
               SET ended = CASE WHEN l.token_hash = p_token_hash THEN 'redeemed' ELSE 'superseded' END
             WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL
            RETURNING l.token_hash, l.handle
        LOOP
            IF v_spent.token_hash = p_token_hash THEN
                outcome := 'ok';
                UPDATE postern.auth_session AS a SET expires_at = '-infinity' WHERE a.realm_id = p_realm AND a.id = v_spent.handle;
            END IF;
        END LOOP;
    END IF;
    IF outcome = 'ok' THEN
        user_id := v_link.id;
        session_expires_at := postern.open_link_session(
            p_realm, p_client, v_link.client_id, v_link.id, v_link.security_stamp, v_link.email_key, v_link.session_end, p_session,
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source,
            p_server_key, v_link.device, 'opened');
        RETURN;
    END IF;
    reason := coalesce((SELECT CASE WHEN l.ended IS NOT NULL THEN l.ended WHEN l.expires_at <= now() THEN 'expired'
                                    WHEN l.client <> p_client THEN 'client' WHEN l.handle <> p_handle THEN 'handle'
                                    ELSE 'disabled' END
                          FROM postern.login_link AS l
                         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash), 'unknown');
END
$$;
COMMENT ON FUNCTION postern.redeem_link IS
    'Redeems a link by its token: consumes it and opens the session in one call';

-- By the device that asked (RFC 8628 section 3.5). Outcomes: ok, pending, slow_down, denied, refused, rate_limited, busy, and those
-- of a second factor. A handle of an address without an account goes the same way as one whose link was not answered.
CREATE OR REPLACE FUNCTION postern.poll_link(
    p_realm uuid, p_client uuid, p_permission text, p_handle bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
    p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text;
    v_asked record;
    v_user record;
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
    -- The row is held to the end: polls of one handle go one after another, and a confirmation comes before or after.
    SELECT a.client, a.email_key, a.confirmed_user, a.confirmed_stamp, a.device, a.denied,
           a.expires_at > now() AS live,
           -- A quarter of a second is the network's, which may delay one poll more than the next.
           now() < a.polled_at + make_interval(secs => a.poll_interval - 0.25) AS early
      INTO v_asked
      FROM postern.auth_session AS a
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.kind = 'magic'
       FOR NO KEY UPDATE OF a SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM postern.auth_session AS a
                              WHERE a.realm_id = p_realm AND a.id = p_handle AND a.kind = 'magic') THEN
        outcome := 'busy';
        RETURN;
    END IF;
    reason := CASE WHEN v_asked.live IS NULL THEN 'unknown' WHEN NOT v_asked.live THEN 'expired'
                   WHEN v_asked.client <> p_client THEN 'client' END;
    IF reason IS NOT NULL THEN
        RETURN;
    ELSIF v_asked.denied THEN
        outcome := 'denied';
        RETURN;
    ELSIF v_asked.confirmed_user IS NULL THEN
        outcome := CASE WHEN v_asked.early THEN 'slow_down' ELSE 'pending' END;
        UPDATE postern.auth_session AS a
           SET polled_at = CASE WHEN v_asked.early THEN a.polled_at ELSE now() END,
               poll_interval = CASE WHEN v_asked.early THEN least(a.poll_interval + 5, 60) ELSE a.poll_interval END
         WHERE a.realm_id = p_realm AND a.id = p_handle;
        RETURN;
    END IF;
    SELECT u.id, u.security_stamp, u.email_key, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end
      INTO v_user
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE u.realm_id = p_realm AND u.id = v_asked.confirmed_user AND u.enabled AND u.email_key = v_asked.email_key
       AND u.security_stamp = v_asked.confirmed_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.native_grants_enabled;
    IF NOT FOUND THEN
        reason := 'disabled';
        RETURN;
    END IF;
    IF NOT postern.try_hold_user(p_realm, v_user.id) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- What is refused up to here leaves the confirmation alive.
    IF v_user.has_totp OR p_factor IS NOT NULL THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_user.id, v_user.has_totp, p_factor, p_totp_step, p_recovery, p_client,
                                           p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
        outcome := 'refused';
    END IF;
    -- Earlier than any clock: a poll that began before this one must not find it alive.
    UPDATE postern.auth_session AS a SET expires_at = '-infinity' WHERE a.realm_id = p_realm AND a.id = p_handle AND a.expires_at > now();
    IF NOT FOUND THEN
        reason := 'expired';
        RETURN;
    END IF;
    outcome := 'ok';
    user_id := v_user.id;
    session_expires_at := postern.open_link_session(
        p_realm, p_client, v_user.client_id, v_user.id, v_user.security_stamp, v_user.email_key, v_user.session_end, p_session,
        p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, p_server_key,
        v_asked.device, 'confirmed');
END
$$;
COMMENT ON FUNCTION postern.poll_link IS
    'The state of a link, for the device that requested it; after a confirmation it opens the session, once';

-- Kept for older binaries.

CREATE OR REPLACE FUNCTION postern.request_link(
    p_realm uuid, p_id bytea, p_resend_of bytea, p_email text, p_email_key text, p_client uuid, p_source text, p_lifetime integer,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[], p_app text DEFAULT NULL,
    OUT outcome text, OUT handle bytea, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT r.outcome, r.handle, r.limit_ord, r.retry_after, r.granted INTO outcome, handle, limit_ord, retry_after, granted
      FROM postern.record_link_request(p_realm, p_id, p_resend_of, p_email, p_email_key, p_client, p_source, p_lifetime,
                                       p_keys, p_wanted, p_permits, p_per, p_burst, p_app, NULL, NULL) AS r;
    PERFORM postern.refuse_busy(outcome);
END
$$;
COMMENT ON FUNCTION postern.request_link(uuid, bytea, bytea, text, text, uuid, text, integer, text[], integer[], integer[], double precision[], integer[], text) IS
    'record_link_request without a hint';

CREATE OR REPLACE FUNCTION postern.decide_link(p_realm uuid, p_request bytea, OUT outcome text, OUT user_id uuid)
LANGUAGE sql
AS $$ SELECT d.outcome, d.user_id FROM postern.decide_link_request(p_realm, p_request) AS d $$;
COMMENT ON FUNCTION postern.decide_link(uuid, bytea) IS 'decide_link_request without what the mail says';

-- The three numbers of an older page: the right one is among them only while an older binary shows the page.
CREATE OR REPLACE FUNCTION postern.link_number(p_realm uuid, p_user uuid, p_token_hash bytea)
RETURNS integer
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN (SELECT postern.match_number(l.handle) FROM postern.login_link AS l
             WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash);
END
$$;
COMMENT ON FUNCTION postern.link_number(uuid, uuid, bytea) IS 'The right number of a link, also of one that has ended; NULL for none';

-- An older binary does not know the outcome busy: an error that it answers with 503 takes its place.
CREATE OR REPLACE FUNCTION postern.refuse_busy(p_outcome text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_outcome = 'busy' THEN
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'another request of this account is under way';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.refuse_busy(text) IS 'Raises lock_not_available when a statement answered busy';

CREATE OR REPLACE FUNCTION postern.redeem_magic(
    p_realm uuid, p_client uuid, p_permission text, p_user uuid, p_token_hash bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT r.* INTO outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted, factor, sealed_seed,
                    last_step_at
      FROM postern.redeem_link(p_realm, p_client, p_permission, p_user, p_token_hash, NULL, p_session, p_token_salt, p_refresh_hash,
                               p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, NULL, p_keys, p_wanted,
                               p_permits, p_per, p_burst, p_factor, p_totp_step, p_recovery) AS r;
    PERFORM postern.refuse_busy(outcome);
END
$$;
COMMENT ON FUNCTION postern.redeem_magic IS 'redeem_link without the key of the session and the handle';

CREATE OR REPLACE FUNCTION postern.poll_magic(
    p_realm uuid, p_client uuid, p_permission text, p_handle bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer, p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision, OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT r.* INTO outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted, factor, sealed_seed,
                    last_step_at
      FROM postern.poll_link(p_realm, p_client, p_permission, p_handle, p_session, p_token_salt, p_refresh_hash,
                             p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, NULL, p_keys, p_wanted,
                             p_permits, p_per, p_burst, p_factor, p_totp_step, p_recovery) AS r;
    PERFORM postern.refuse_busy(outcome);
END
$$;
COMMENT ON FUNCTION postern.poll_magic IS 'poll_link without the key of the session';

DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p
              WHERE p.pronamespace = 'postern'::regnamespace
                AND p.proname IN ('lock_links', 'try_lock_links', 'try_hold_handle', 'try_hold_user', 'match_number',
                                  'record_link_request', 'decide_link_request', 'add_link', 'link_page',
                                  'confirm_link', 'open_link_session', 'redeem_link', 'poll_link', 'request_link', 'decide_link',
                                  'link_number', 'refuse_busy', 'redeem_magic', 'poll_magic') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO postern_app', f);
    END LOOP;
END
$$;

RESET ROLE;
