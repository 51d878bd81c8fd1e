-- urn:openid:params:grant-type:ciba: the client polls for an approval, which opens its session once.
SET LOCAL ROLE postern_owner;

-- Outcomes: approved, pending, slow_down, denied, expired, refused (reason is for logs only), busy (another transaction
-- holds the row: call again). p_expires: the end that the client's handle names, of a row that is gone.
-- The row is locked to the end of the transaction: polls go one after another, and an answer comes before or after.
CREATE OR REPLACE FUNCTION postern.poll_authentication(
    p_realm uuid, p_client uuid, p_id uuid, p_expires double precision,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT security_stamp uuid, OUT decided_at timestamptz,
    OUT decided_by uuid, OUT cotter boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_asked postern.device_request;
    v_early boolean;
BEGIN
    SELECT t.* INTO v_asked FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.kind = 'approval' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- A quarter of a second is the network's, which may delay one poll more than the next.
    v_early := coalesce(now() < v_asked.polled_at + make_interval(secs => v_asked.poll_interval - 0.25), false);
    reason := CASE WHEN v_asked.client <> p_client THEN 'client'
                   WHEN v_asked.jkt <> coalesce(postern.proof_key(), '') THEN 'key' END;
    outcome := CASE WHEN reason IS NOT NULL THEN 'refused'
                    WHEN v_asked.id IS NULL AND to_timestamp(p_expires) > now() THEN 'refused'
                    WHEN v_asked.id IS NULL OR v_asked.expires_at <= now() THEN 'expired'
                    WHEN v_asked.state = 'redeemed' THEN 'refused'
                    WHEN v_asked.state = 'passed' THEN 'approved'
                    WHEN v_asked.state = 'failed' THEN 'denied'
                    WHEN v_early THEN 'slow_down' ELSE 'pending' END;
    IF outcome = 'approved' THEN
        user_id := v_asked.user_id;
        security_stamp := v_asked.security_stamp;
        decided_at := v_asked.decided_at;
        decided_by := v_asked.decided_by;
        cotter := v_asked.event_id IS NOT NULL;
    ELSIF outcome IN ('slow_down', 'pending') THEN
        UPDATE postern.device_request AS t
           SET polled_at = CASE WHEN v_early THEN t.polled_at ELSE now() END,
               poll_interval = CASE WHEN v_early THEN least(t.poll_interval + 5, 60) ELSE t.poll_interval END
         WHERE t.realm_id = p_realm AND t.id = p_id;
    ELSIF outcome = 'refused' THEN
        reason := coalesce(reason, v_asked.state::text, 'unknown');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.poll_authentication IS 'Where a request for approval stands, for the client that polls';
GRANT EXECUTE ON FUNCTION postern.poll_authentication TO postern_app;

CREATE OR REPLACE FUNCTION postern.use_authentication(p_realm uuid, p_id uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM FROM postern.move_device_request(p_realm, p_id, '{passed}', 'redeemed');
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.use_authentication IS 'Uses up an approval; false when it was used before or has expired';
GRANT EXECUTE ON FUNCTION postern.use_authentication TO postern_app;

-- Outcomes: ok, pending, slow_down, denied, expired, refused, rate_limited, busy, and those of a second factor.
-- auth_time: when the approval was given.
CREATE OR REPLACE FUNCTION postern.redeem_authentication(
    p_realm uuid, p_client uuid, p_permission text, p_id uuid, p_expires double precision, p_session uuid,
    p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    p_factor uuid, p_totp_step bigint, p_recovery bytea[],
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision, OUT auth_time double precision,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[],
    OUT factor uuid, OUT sealed_seed bytea, OUT last_step_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_polled record;
    v_user record;
BEGIN
    db_now := date_part('epoch', now());
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    PERFORM postern.use_proof(p_realm);
    v_polled := postern.poll_authentication(p_realm, p_client, p_id, p_expires);
    outcome := v_polled.outcome;
    reason := v_polled.reason;
    IF outcome <> 'approved' THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        RETURN;
    END IF;
    outcome := 'refused';
    SELECT u.id, u.security_stamp, u.has_totp, k.client_id, now() + r.session_lifetime AS session_end
      INTO v_user
      FROM postern.user_account AS u, postern.client AS k, postern.realm AS r
     WHERE u.realm_id = p_realm AND u.id = v_polled.user_id AND u.enabled
       AND u.security_stamp = v_polled.security_stamp
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND r.approvals_enabled;
    IF NOT FOUND THEN
        PERFORM postern.require_client(p_realm, p_client, p_permission);
        reason := 'disabled';
        RETURN;
    END IF;
    IF NOT postern.try_hold_user(p_realm, v_user.id) THEN
        outcome := 'busy';
        RETURN;
    END IF;
    -- What is refused up to here leaves the approval alive.
    IF v_user.has_totp OR p_factor IS NOT NULL OR postern.falls_short(p_amr) THEN
        SELECT s.outcome, s.factor, s.sealed_seed, s.last_step_at INTO outcome, factor, sealed_seed, last_step_at
          FROM postern.check_second_factor(p_realm, v_user.id, v_user.has_totp, p_factor, p_totp_step, p_recovery,
                                           p_client, p_session, p_source) AS s;
        IF outcome <> 'proved' THEN
            RETURN;
        END IF;
        outcome := 'refused';
    END IF;
    IF NOT postern.use_authentication(p_realm, p_id) THEN
        reason := 'redeemed';
        RETURN;
    END IF;
    outcome := 'ok';
    user_id := v_user.id;
    auth_time := date_part('epoch', v_polled.decided_at);
    SELECT o.expires_at INTO session_expires_at
      FROM postern.open_client_session(
        p_realm, p_client, v_user.client_id, user_id, v_user.security_stamp, v_user.session_end,
        ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
            p_refresh_lifetime, p_source, p_server_key)::postern.new_session,
        jsonb_build_object('approval_id', p_id, 'approved_by', v_polled.decided_by), v_polled.decided_at, NULL,
        NULL) AS o;
    IF v_polled.cotter THEN
        UPDATE postern.session AS s SET cotter = true WHERE s.realm_id = p_realm AND s.id = p_session;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.redeem_authentication IS
    'The state of a request for approval; after an approval it opens the session of the client, once';
GRANT EXECUTE ON FUNCTION postern.redeem_authentication TO postern_app;

RESET ROLE;
