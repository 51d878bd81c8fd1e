-- urn:cocoar:magic: a link is asked for, made by the worker, shown, confirmed, redeemed or polled for. One call each.
-- Whoever ends a link holds the lock of its user, so that of a redemption, a confirmation and a new link at once each sees the others.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.lock_links(p_realm uuid, p_user uuid) RETURNS void
LANGUAGE sql
AS $$ SELECT pg_advisory_xact_lock(hashtextextended(p_user::text, uuid_hash_extended(p_realm, 4))) $$;
COMMENT ON FUNCTION postern.lock_links(uuid, uuid) IS 'Waits for whoever is ending a link of this user, known or not';

-- Two digits that the device that asked shows and the page offers. Only the server sees an id: outside it is sealed.
CREATE OR REPLACE FUNCTION postern.match_number(p_handle bytea) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT 10 + (get_byte(h, 0) * 256 + get_byte(h, 1)) % 90 FROM sha256('match number'::bytea || p_handle) AS h $$;
COMMENT ON FUNCTION postern.match_number(bytea) IS 'The number of a handle, 10 to 99';

-- Records a request; never reads user_account, the same work for every address.
CREATE OR REPLACE FUNCTION postern.request_link(
    p_realm uuid, p_id bytea, p_resend_of bytea, p_email text, p_email_key text, p_client uuid, p_source text, p_lifetime integer,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[], p_app text DEFAULT NULL,
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
        UPDATE postern.auth_session AS a
           SET pending = true, source = p_source, expires_at = now() + make_interval(secs => p_lifetime)
         WHERE a.realm_id = p_realm AND a.id = p_resend_of AND a.email_key = p_email_key AND a.kind = 'magic'
           AND a.client IS NOT DISTINCT FROM p_client AND a.app IS NOT DISTINCT FROM p_app AND a.expires_at > now()
           -- A handle that was answered is of no more use: its owner gets a new one.
           AND a.confirmed_user IS NULL AND NOT a.denied;
        IF FOUND THEN
            handle := p_resend_of;
            RETURN;
        END IF;
    END IF;
    INSERT INTO postern.auth_session (realm_id, id, kind, email, email_key, client, app, source, expires_at)
    VALUES (p_realm, p_id, 'magic', p_email, p_email_key, p_client, p_app, p_source, now() + make_interval(secs => p_lifetime));
    handle := p_id;
END
$$;
COMMENT ON FUNCTION postern.request_link(uuid, bytea, bytea, text, text, uuid, text, integer, text[], integer[], integer[], double precision[], integer[], text) IS
    'Records a request for a link under the rate limits given; the same work for every address';

-- Outcomes: send (the caller makes a link for user_id and calls add_link in the same transaction), cooldown (the link sent a moment ago to
-- the same asker now belongs to this handle), ignored (nobody to write to), busy (a link of this user is being ended: comes up again).
CREATE OR REPLACE FUNCTION postern.decide_link(p_realm uuid, p_request bytea, OUT outcome text, OUT user_id uuid)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_request record;
    v_user uuid;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.email_key, a.client, a.source, a.expires_at > now() AND a.confirmed_user IS NULL AND NOT a.denied AS live, r.resend_cooldown,
           r.enabled AND r.native_grants_enabled AND coalesce(p.native_grants_enabled, a.app IS NULL) AS open
      INTO v_request
      FROM postern.auth_session AS a JOIN postern.realm AS r ON r.id = a.realm_id
      LEFT JOIN postern.app AS p ON p.realm_id = a.realm_id AND p.slug = a.app
     WHERE a.realm_id = p_realm AND a.id = p_request AND a.pending AND a.kind = 'magic';
    IF NOT FOUND THEN
        outcome := 'ignored';
        RETURN;
    END IF;
    SELECT u.id INTO v_user
      FROM postern.user_account AS u
     WHERE u.realm_id = p_realm AND u.email_key = v_request.email_key AND u.enabled AND u.email_verified
       AND v_request.live AND v_request.open;
    IF NOT FOUND THEN
        outcome := 'ignored';
        UPDATE postern.auth_session AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN;
    END IF;
    -- The same lock as lock_links, but this transaction decides for many users: it must not wait.
    IF NOT pg_try_advisory_xact_lock(hashtextextended(v_user::text, uuid_hash_extended(p_realm, 4))) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- Only for the same asker, or a stranger could take the link, and with it the number, away from whoever asked first.
    UPDATE postern.login_link AS l
       SET handle = p_request
     WHERE l.realm_id = p_realm AND l.user_id = v_user AND l.token_hash = (
               SELECT n.token_hash FROM postern.login_link AS n
                WHERE n.realm_id = p_realm AND n.user_id = v_user AND n.ended IS NULL AND n.expires_at > now()
                  AND n.email_key = v_request.email_key AND n.created_at > now() - v_request.resend_cooldown
                  AND (n.handle = p_request OR n.source = v_request.source)
                  AND (n.client IS NULL OR n.client = v_request.client)
                ORDER BY n.created_at DESC, n.token_hash LIMIT 1);
    IF FOUND THEN
        outcome := 'cooldown';
        UPDATE postern.auth_session AS a SET pending = false WHERE a.realm_id = p_realm AND a.id = p_request;
        RETURN;
    END IF;
    outcome := 'send';
    user_id := v_user;
END
$$;
COMMENT ON FUNCTION postern.decide_link(uuid, bytea) IS 'Decides a recorded request for a link: whom to send one, if anybody';

-- The ten newest live: as many as the default limits let anybody ask for in an hour, so that a stranger's requests push nobody's link out.
CREATE OR REPLACE FUNCTION postern.add_link(p_realm uuid, p_request bytea, p_user uuid, p_token_hash bytea, p_mail_id uuid, p_payload bytea)
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
    RETURNING a.email_key, a.client, a.source, r.magic_link_lifetime, u.email INTO STRICT v_request;
    UPDATE postern.login_link AS l SET ended = 'superseded'
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL
       AND l.token_hash NOT IN (SELECT n.token_hash FROM postern.login_link AS n
                                 WHERE n.realm_id = p_realm AND n.user_id = p_user AND n.ended IS NULL
                                 ORDER BY n.created_at DESC, n.token_hash LIMIT 9);
    INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, client, email_key, source, expires_at)
    VALUES (p_realm, p_user, p_token_hash, p_request, v_request.client, v_request.email_key, v_request.source, now() + v_request.magic_link_lifetime);
    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload) VALUES (p_realm, p_mail_id, v_request.email, 'magic-link', p_payload);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id) VALUES (p_realm, 'link_requested', v_request.client, p_user);
END
$$;
COMMENT ON FUNCTION postern.add_link(uuid, bytea, uuid, bytea, uuid, bytea) IS 'Stores a new link and queues its mail; after decide_link said send, in its transaction';

-- What the page shows: changes nothing, however often it is asked.
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

-- The answer of the page's form. Outcomes: confirmed, denied (the wrong number, or none), answered (confirmed or denied
-- before), redeemed, superseded, expired, unknown. Only the first two end anything.
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
    PERFORM postern.lock_links(p_realm, p_user);
    SELECT l.handle, l.client, CASE WHEN l.ended IN ('confirmed', 'denied') THEN 'answered' ELSE l.ended END AS ended,
           l.expires_at > now() AS live, u.id IS NOT NULL AND r.enabled AND r.native_grants_enabled AS usable
      INTO v_link
      FROM postern.login_link AS l JOIN postern.realm AS r ON r.id = l.realm_id
      LEFT JOIN postern.user_account AS u ON u.realm_id = l.realm_id AND u.id = l.user_id AND u.enabled AND u.email_key = l.email_key
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
    outcome := CASE WHEN NOT FOUND OR NOT v_link.usable THEN 'unknown' WHEN v_link.ended IS NOT NULL THEN v_link.ended
                    WHEN NOT v_link.live THEN 'expired' END;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    IF p_number IS NOT DISTINCT FROM postern.match_number(v_link.handle) THEN
        -- A moment is left to poll, however late the answer came.
        UPDATE postern.auth_session AS a
           SET confirmed_user = p_user, expires_at = greatest(a.expires_at, now() + interval '1 minute')
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
        UPDATE postern.login_link AS l SET ended = 'denied' WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash;
        UPDATE postern.auth_session AS a SET denied = true
         WHERE a.realm_id = p_realm AND a.id = v_link.handle AND a.confirmed_user IS NULL;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source)
    VALUES (p_realm, 'link_' || outcome, v_link.client, p_user, p_source);
END
$$;
COMMENT ON FUNCTION postern.confirm_link(uuid, uuid, bytea, integer, text, text[], integer[], integer[], double precision[], integer[]) IS
    'Confirms a link by the number its asker shows, or ends it';

-- What both ways of a link end in: the session, the end of a lockout of codes (contract 4.1, "Codes"), the proof of the mailbox, the audit.
CREATE OR REPLACE FUNCTION postern.open_link_session(
    p_realm uuid, p_client uuid, p_client_id text, p_user uuid, p_stamp uuid, p_email_key text, p_session_end timestamptz,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_way text)
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
                                 token_salt, current_hash, scope, resource, amr)
    VALUES (p_realm, p_session, p_user, p_client, p_client_id, p_stamp, now(), v_expires_at, v_refresh_expires_at,
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr);
    UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
     WHERE g.realm_id = p_realm AND g.email_key = p_email_key AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
    UPDATE postern.user_account AS u SET email_verified = true WHERE u.realm_id = p_realm AND u.id = p_user AND NOT u.email_verified;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'sign_in', p_client, p_user, p_session, p_source, jsonb_build_object('link', p_way));
    RETURN date_part('epoch', v_expires_at);
END
$$;
COMMENT ON FUNCTION postern.open_link_session(uuid, uuid, text, uuid, uuid, text, timestamptz, uuid, bytea, bytea, text[], text[], text[], integer, integer, text, text) IS
    'Opens the session of a link that was redeemed or confirmed';

-- Replaced rather than redefined: arguments and result have changed over time.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.pronamespace = 'postern'::regnamespace AND p.proname IN ('redeem_magic', 'poll_magic') LOOP
        EXECUTE format('DROP FUNCTION %s', f);
    END LOOP;
END
$$;
-- By the token itself: the app opened the link. A wrong token ends nothing. reason is for logs only.
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
    PERFORM postern.lock_links(p_realm, p_user);
    SELECT u.id, u.security_stamp, u.email_key, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end
      INTO v_link
      FROM postern.login_link AS l, postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash
       AND l.ended IS NULL AND l.expires_at > now() AND (l.client IS NULL OR l.client = p_client)
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled AND u.email_key = l.email_key
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.native_grants_enabled;
    -- What is refused up to here leaves the link alive.
    IF v_link.id IS NOT NULL AND (v_link.has_totp OR p_factor IS NOT NULL) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_link.id, v_link.has_totp, p_factor, p_totp_step, p_recovery, p_client, p_session, p_source) AS s;
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
            p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, 'opened');
        RETURN;
    END IF;
    reason := coalesce((SELECT CASE WHEN l.ended IS NOT NULL THEN l.ended WHEN l.expires_at <= now() THEN 'expired'
                                    WHEN l.client <> p_client THEN 'client' ELSE 'disabled' END
                          FROM postern.login_link AS l
                         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash), 'unknown');
END
$$;
COMMENT ON FUNCTION postern.redeem_magic IS
    'Redeems a link by its token: consumes it and opens the session in one call';

-- By the device that asked (RFC 8628 section 3.5). Outcomes: ok, pending, slow_down, denied, refused, rate_limited. A handle of an address
-- nobody has goes the same way as one whose link was not answered.
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
    SELECT a.client, a.email_key, a.confirmed_user, a.denied, a.expires_at > now() AS live,
           -- A quarter of a second is the network's, which may delay one poll more than the next.
           now() < a.polled_at + make_interval(secs => a.poll_interval - 0.25) AS early
      INTO v_asked
      FROM postern.auth_session AS a
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.kind = 'magic'
       FOR NO KEY UPDATE OF a;
    reason := CASE WHEN NOT FOUND THEN 'unknown' WHEN NOT v_asked.live THEN 'expired' WHEN v_asked.client <> p_client THEN 'client' END;
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
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.native_grants_enabled;
    IF NOT FOUND THEN
        reason := 'disabled';
        RETURN;
    END IF;
    -- What is refused up to here leaves the confirmation alive.
    IF v_user.id IS NOT NULL AND (v_user.has_totp OR p_factor IS NOT NULL) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_user.id, v_user.has_totp, p_factor, p_totp_step, p_recovery, p_client, p_session, p_source) AS s;
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
        p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime, p_refresh_lifetime, p_source, 'confirmed');
END
$$;
COMMENT ON FUNCTION postern.poll_magic IS
    'What has become of a link, for the device that asked; after a confirmation the session, once';

DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid::regprocedure FROM pg_proc AS p
              WHERE p.pronamespace = 'postern'::regnamespace
                AND p.proname IN ('lock_links', 'match_number', 'request_link', 'decide_link', 'add_link', 'link_number', 'confirm_link',
                                  'open_link_session', 'redeem_magic', 'poll_magic') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO postern_app', f);
    END LOOP;
END
$$;

RESET ROLE;
