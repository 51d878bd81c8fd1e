-- What every sign-in has in common. A grant finds a candidate and spends what was presented:
--   v := postern.admit(p_caller, p_permits)                       unless v.outcome says that this is the end:
--   find the candidate, or RETURN postern.refuse_sign_in(p_caller, p_new, v, reason)
--   v := postern.ask_second_factor(p_caller, p_new, candidate, p_second, v)          as above:
--   spend the factor, or refuse
--   RETURN postern.sign_in(p_caller, p_new, candidate, v)
SET LOCAL ROLE postern_owner;

-- Whether acr_values asked for more than the methods of the sign-in prove. Then the first factor is not consumed; an
-- account with a second one is asked for it.
CREATE OR REPLACE FUNCTION postern.falls_short(p_new postern.new_session) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce((p_new).level > postern.acr_level((p_new).amr), false);
COMMENT ON FUNCTION postern.falls_short IS 'Whether the request asks for a stronger sign-in than its methods are';
GRANT EXECUTE ON FUNCTION postern.falls_short TO postern_app;

-- The session that the same request opened within the last minute, whose answer was lost: its id is derived from the
-- request, its key and its client. It lives, its refresh token is unused, and its user was not signed out since. Else
-- the outcome is refused.
CREATE OR REPLACE FUNCTION postern.repeat_sign_in(
    p_caller postern.caller, p_new postern.new_session, p_result postern.sign_in_result, p_reason text)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_new.is_repeatable THEN
        SELECT 'ok', s.amr, s.user_id, date_part('epoch', s.auth_time), date_part('epoch', s.expires_at)
          INTO p_result.outcome, p_result.repeated, p_result.user_id, p_result.auth_time,
               p_result.session_expires_at
          FROM postern.session AS s
          JOIN postern.user_account AS u ON u.realm_id = s.realm_id AND u.id = s.user_id
         WHERE s.realm_id = p_caller.realm AND s.id = p_new.id AND s.client = p_caller.client
           AND s.created_at > now() - interval '60 seconds' AND s.expires_at > now() AND s.revoked_at IS NULL
           AND s.generation = 0 AND s.current_hash IS NOT DISTINCT FROM p_new.refresh_hash
           AND s.token_salt = p_new.token_salt AND s.scope = p_new.scope AND s.resource = p_new.resource
           AND u.enabled AND u.security_stamp = s.security_stamp;
        IF FOUND THEN
            RETURN p_result;
        END IF;
    END IF;
    p_result.outcome := 'refused';
    p_result.reason := p_reason;
    RETURN p_result;
END
$$;
COMMENT ON FUNCTION postern.repeat_sign_in IS
    'The answer to a request without a candidate: the session that it opened a moment ago, or a refusal';
GRANT EXECUTE ON FUNCTION postern.repeat_sign_in TO postern_app;

CREATE OR REPLACE FUNCTION postern.refuse_sign_in(
    p_caller postern.caller, p_new postern.new_session, p_result postern.sign_in_result, p_reason text)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.require_client(p_caller);
    RETURN postern.repeat_sign_in(p_caller, p_new, p_result, p_reason);
END
$$;
COMMENT ON FUNCTION postern.refuse_sign_in IS
    'Ends a sign-in that has no candidate; exceptions of require_client when its client may not ask at all';
GRANT EXECUTE ON FUNCTION postern.refuse_sign_in TO postern_app;

-- What this refuses leaves the first factor alive. outcome is NULL when the sign-in may go on: the account has no
-- second factor and none is wanted, or it was right, and is spent in the caller's transaction. Without p_second:
-- second_factor, with the data to compare what is presented with; unmet when the account has none. With it:
-- second_factor_wrong, which is counted, or second_factor_gone when it was removed between two calls.
-- The account is held: one that is being deleted would make the session's foreign key wait.
CREATE OR REPLACE FUNCTION postern.ask_second_factor(
    p_caller postern.caller, p_new postern.new_session, p_candidate postern.candidate,
    p_second postern.second_factor_proof, p_result postern.sign_in_result)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT postern.try_hold_user(p_caller.realm, p_candidate.user_id) THEN
        p_result.outcome := 'busy';
    ELSIF p_candidate.has_totp AND p_second.factor IS NOT NULL THEN
        IF NOT postern.use_second_factor(p_caller.realm, p_candidate.user_id, p_second, p_caller.client, p_new.id,
                                         p_caller.source) THEN
            p_result.outcome := 'second_factor_wrong';
        END IF;
    ELSIF p_candidate.has_totp OR p_second.factor IS NOT NULL OR postern.falls_short(p_new) THEN
        SELECT f.id, postern.second_factor_material(p_caller.realm, p_candidate.user_id, f.sealed_seed),
               date_part('epoch', f.last_step_at)
          INTO p_result.factor, p_result.sealed_seed, p_result.last_step_at
          FROM postern.totp_factor AS f
         WHERE f.realm_id = p_caller.realm AND f.user_id = p_candidate.user_id;
        p_result.outcome := CASE WHEN FOUND THEN 'second_factor'
                                 WHEN p_candidate.has_totp OR p_second.factor IS NOT NULL THEN 'second_factor_gone'
                                 ELSE 'unmet' END;
    END IF;
    RETURN p_result;
END
$$;
COMMENT ON FUNCTION postern.ask_second_factor IS
    'Asks for the second factor of an account that has one, or of a request that wants one, or spends it';
GRANT EXECUTE ON FUNCTION postern.ask_second_factor TO postern_app;

-- Opens the session of a user who has signed in: of a client, or on a page that of the browser.
CREATE OR REPLACE FUNCTION postern.sign_in(
    p_caller postern.caller, p_new postern.new_session, p_candidate postern.candidate,
    p_result postern.sign_in_result)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_auth_time timestamptz := coalesce(p_candidate.auth_time, now());
    v_expires_at timestamptz := p_candidate.session_end;
    v_refresh_expires_at timestamptz;
BEGIN
    IF p_candidate.address_key IS NOT NULL THEN
        PERFORM postern.forget_wrong_codes(p_caller.realm, p_candidate.address_key, p_candidate.user_id,
                                           p_candidate.device);
    END IF;
    p_result.outcome := 'ok';
    p_result.user_id := p_candidate.user_id;
    p_result.auth_time := date_part('epoch', v_auth_time);
    IF (p_new.page).host IS NOT NULL THEN
        RETURN postern.sign_in_on_page(p_caller, p_new, p_candidate, p_result);
    END IF;
    IF p_new.refresh_hash IS NULL THEN
        -- Nothing can prolong it: the session ends with its access token.
        v_expires_at := least(v_expires_at, now() + make_interval(secs => p_new.access_lifetime));
    ELSE
        v_refresh_expires_at := least(v_expires_at, now() + make_interval(secs => p_new.refresh_lifetime));
    END IF;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                                 refresh_expires_at, token_salt, current_hash, scope, resource, amr, server_key,
                                 browser_session, acr, factor, user_agent, jkt)
    VALUES (p_caller.realm, p_new.id, p_candidate.user_id, p_caller.client, p_candidate.client_id,
            p_candidate.security_stamp, v_auth_time, v_expires_at, v_refresh_expires_at, p_new.token_salt,
            p_new.refresh_hash, p_new.scope, p_new.resource, p_new.amr, p_new.server_key,
            p_candidate.browser_session, p_new.acr, p_candidate.factor, p_caller.user_agent,
            CASE WHEN (p_caller.proof).binds THEN (p_caller.proof).key END)
        ON CONFLICT (realm_id, id) DO NOTHING;
    IF NOT FOUND THEN
        -- Two of the same request at once.
        RETURN postern.repeat_sign_in(p_caller, p_new, p_result, 'repeated');
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_caller.realm, 'sign_in', p_caller.client, p_candidate.user_id, p_new.id, p_caller.source,
            CASE WHEN p_candidate.detail IS NULL AND p_new.acr IS NULL THEN jsonb_build_object('amr', p_new.amr)
                 ELSE jsonb_strip_nulls(coalesce(p_candidate.detail, '{}')
                                        || jsonb_build_object('amr', p_new.amr, 'acr', p_new.acr)) END);
    p_result.session_expires_at := date_part('epoch', v_expires_at);
    RETURN p_result;
END
$$;
COMMENT ON FUNCTION postern.sign_in IS 'Opens the session of a user who has signed in; says when it ends';
GRANT EXECUTE ON FUNCTION postern.sign_in TO postern_app;

RESET ROLE;
