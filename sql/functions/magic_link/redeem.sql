-- urn:cocoar:magic: a link is redeemed, or polled for by the device that asked. One call each, none of which waits.
SET LOCAL ROLE postern_owner;

-- What both ways of a link end in: the session, the end of a lockout of codes, the proof of the mailbox, the audit.
CREATE OR REPLACE FUNCTION postern.open_link_session(
    p_realm uuid, p_client uuid, p_client_id text, p_user uuid, p_stamp uuid, p_email_key text,
        p_session_end timestamptz,
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
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                                 refresh_expires_at,
                                 token_salt, current_hash, scope, resource, amr, server_key)
    VALUES (p_realm, p_session, p_user, p_client, p_client_id, p_stamp, now(), v_expires_at, v_refresh_expires_at,
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_server_key);
    PERFORM postern.forget_wrong_codes(p_realm, p_email_key, p_user, p_device);
    UPDATE postern.user_account AS u SET email_verified = true WHERE u.realm_id = p_realm AND u.id = p_user
        AND NOT u.email_verified;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'sign_in', p_client, p_user, p_session, p_source, jsonb_build_object('link', p_way));
    RETURN date_part('epoch', v_expires_at);
END
$$;
COMMENT ON FUNCTION postern.open_link_session IS 'Opens the session of a link that was redeemed or confirmed';
GRANT EXECUTE ON FUNCTION postern.open_link_session TO postern_app;

-- By the token itself: the app opened the link. p_handle: the request that the link must belong to, if the app says so.
-- A wrong token ends nothing. Outcomes: ok, refused (reason is for logs only), rate_limited, busy, and those of a
-- second factor.
CREATE OR REPLACE FUNCTION postern.redeem_link(
    p_realm uuid, p_client uuid, p_permission text, p_user uuid, p_token_hash bytea, p_handle bytea, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
        p_access_lifetime integer,
    p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
        OUT session_expires_at double precision,
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
    SELECT u.id, u.security_stamp, u.email_key, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end,
           l.handle,
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
          FROM postern.check_second_factor(p_realm, v_link.id, v_link.has_totp, p_factor, p_totp_step, p_recovery,
                                           p_client,
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
                UPDATE postern.auth_session AS a SET expires_at = '-infinity' WHERE a.realm_id = p_realm
                    AND a.id = v_spent.handle;
            END IF;
        END LOOP;
    END IF;
    IF outcome = 'ok' THEN
        user_id := v_link.id;
        session_expires_at := postern.open_link_session(
            p_realm, p_client, v_link.client_id, v_link.id, v_link.security_stamp, v_link.email_key, v_link.session_end,
                p_session,
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
COMMENT ON FUNCTION postern.redeem_link IS 'Redeems a link by its token: consumes it and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_link TO postern_app;

-- By the device that asked (RFC 8628 section 3.5). Outcomes: ok, pending, slow_down, denied, refused, rate_limited,
-- busy, and those of a second factor. A handle of an address without an account goes the same way as one whose link was
-- not answered.
CREATE OR REPLACE FUNCTION postern.poll_link(
    p_realm uuid, p_client uuid, p_permission text, p_handle bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
    p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
        OUT session_expires_at double precision,
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
          FROM postern.check_second_factor(p_realm, v_user.id, v_user.has_totp, p_factor, p_totp_step, p_recovery,
                                           p_client,
                                           p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
        outcome := 'refused';
    END IF;
    -- Earlier than any clock: a poll that began before this one must not find it alive.
    UPDATE postern.auth_session AS a SET expires_at = '-infinity' WHERE a.realm_id = p_realm AND a.id = p_handle
        AND a.expires_at > now();
    IF NOT FOUND THEN
        reason := 'expired';
        RETURN;
    END IF;
    outcome := 'ok';
    user_id := v_user.id;
    session_expires_at := postern.open_link_session(
        p_realm, p_client, v_user.client_id, v_user.id, v_user.security_stamp, v_user.email_key, v_user.session_end,
            p_session,
        p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source,
            p_server_key,
        v_asked.device, 'confirmed');
END
$$;
COMMENT ON FUNCTION postern.poll_link IS
    'The state of a link, for the device that requested it; after a confirmation it opens the session, once';
GRANT EXECUTE ON FUNCTION postern.poll_link TO postern_app;

-- Kept for older binaries.

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
COMMENT ON FUNCTION postern.refuse_busy IS 'Raises lock_not_available when a statement answered busy';
GRANT EXECUTE ON FUNCTION postern.refuse_busy TO postern_app;

CREATE OR REPLACE FUNCTION postern.redeem_magic(
    p_realm uuid, p_client uuid, p_permission text, p_user uuid, p_token_hash bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
        p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
        OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT r.* INTO outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted, factor,
           sealed_seed,
                    last_step_at
      FROM postern.redeem_link(p_realm, p_client, p_permission, p_user, p_token_hash, NULL, p_session, p_token_salt,
                               p_refresh_hash,
                               p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, NULL,
                                   p_keys, p_wanted,
                               p_permits, p_per, p_burst, p_factor, p_totp_step, p_recovery) AS r;
    PERFORM postern.refuse_busy(outcome);
END
$$;
COMMENT ON FUNCTION postern.redeem_magic IS 'redeem_link without the key of the session and the handle';
GRANT EXECUTE ON FUNCTION postern.redeem_magic TO postern_app;

CREATE OR REPLACE FUNCTION postern.poll_magic(
    p_realm uuid, p_client uuid, p_permission text, p_handle bytea, p_session uuid, p_token_salt bytea,
    p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[], p_access_lifetime integer,
        p_refresh_lifetime integer, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid DEFAULT NULL, p_totp_step bigint DEFAULT NULL, p_recovery bytea[] DEFAULT NULL,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
        OUT session_expires_at double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT r.* INTO outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted, factor,
           sealed_seed,
                    last_step_at
      FROM postern.poll_link(p_realm, p_client, p_permission, p_handle, p_session, p_token_salt, p_refresh_hash,
                             p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, NULL, p_keys,
                                 p_wanted,
                             p_permits, p_per, p_burst, p_factor, p_totp_step, p_recovery) AS r;
    PERFORM postern.refuse_busy(outcome);
END
$$;
COMMENT ON FUNCTION postern.poll_magic IS 'poll_link without the key of the session';
GRANT EXECUTE ON FUNCTION postern.poll_magic TO postern_app;

RESET ROLE;
