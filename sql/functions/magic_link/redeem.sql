-- urn:cocoar:magic: a link is redeemed by its token.
SET LOCAL ROLE postern_owner;

-- By the token itself: the app opened the link. p_handle: the request that the link must belong to, if the app says so.
-- A wrong token ends nothing. Outcomes: ok, refused (reason is for logs only), rate_limited, busy, and those of a
-- second factor.
CREATE OR REPLACE FUNCTION postern.redeem_link(
    p_realm uuid, p_client uuid, p_permission text, p_user uuid, p_token_hash bytea, p_handle bytea, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
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
    v_link record;
    v_spent record;
    v_opened record;
BEGIN
    db_now := date_part('epoch', now());
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    outcome := 'refused';
    -- A request without a valid link takes no lock, so that a stranger cannot block the owner of a link.
    IF NOT EXISTS (SELECT FROM postern.login_link AS l
                    WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash) THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        reason := 'unknown';
        RETURN;
    END IF;
    IF NOT postern.try_lock_links(p_realm, p_user) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    SELECT u.id, u.security_stamp, l.address_key, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end,
           l.handle, l.device
      INTO v_link
      FROM postern.login_link AS l, postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash
       AND l.ended IS NULL AND l.expires_at > now() AND (l.client IS NULL OR l.client = p_client)
       AND (p_handle IS NULL OR l.handle = p_handle)
       AND u.realm_id = p_realm AND u.id = p_user AND u.enabled
       AND postern.has_identifier(p_realm, u.id, l.address_key)
       AND u.security_stamp = l.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled
       AND postern.is_switched_on(p_permission, r.native_grants_enabled, r.hosted_enabled);
    IF v_link.id IS NOT NULL
       AND (NOT postern.try_hold_handle(p_realm, v_link.handle) OR NOT postern.try_hold_user(p_realm, p_user)) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- What is refused up to here leaves the link alive.
    IF v_link.id IS NOT NULL AND (v_link.has_totp OR p_factor IS NOT NULL OR postern.falls_short(p_amr)) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_link.id, v_link.has_totp, p_factor, p_totp_step, p_recovery,
                                           p_client, p_session, p_source) AS s;
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
                UPDATE postern.sign_in_request AS a SET expires_at = '-infinity'
                 WHERE a.realm_id = p_realm AND a.id = v_spent.handle;
            END IF;
        END LOOP;
    END IF;
    IF outcome = 'ok' THEN
        user_id := v_link.id;
        PERFORM postern.confirm_identifier(p_realm, user_id, v_link.address_key);
        v_opened := postern.open_session(
            p_realm, p_client, v_link.client_id, user_id, v_link.security_stamp, v_link.session_end,
            ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
                p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
            jsonb_build_object('link', 'opened'), v_link.address_key, v_link.device);
        session_expires_at := v_opened.expires_at;
        RETURN;
    END IF;
    PERFORM postern.require_client(p_realm, p_client, p_permission);
    reason := coalesce((SELECT CASE WHEN l.ended IS NOT NULL THEN l.ended WHEN l.expires_at <= now() THEN 'expired'
                                    WHEN l.client <> p_client THEN 'client' WHEN l.handle <> p_handle THEN 'handle'
                                    ELSE 'disabled' END
                          FROM postern.login_link AS l
                         WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash), 'unknown');
END
$$;
COMMENT ON FUNCTION postern.redeem_link IS 'Redeems a link by its token: consumes it and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_link TO postern_app;

RESET ROLE;
