-- Signed-in browsers: opened by the statement that redeems a factor on a page.
SET LOCAL ROLE postern_owner;

-- An App that is gone serves nothing.
CREATE OR REPLACE FUNCTION postern.app_serves(p_realm uuid, p_app text, p_permission text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM postern.app AS a
                    WHERE a.realm_id = p_realm AND a.slug = p_app
                      AND CASE p_permission WHEN 'gt:authorization_code' THEN a.hosted_enabled
                                            ELSE a.native_grants_enabled END);
END
$$;
COMMENT ON FUNCTION postern.app_serves IS 'Whether an App has its own switch on for a permission';
GRANT EXECUTE ON FUNCTION postern.app_serves TO postern_app;

-- The permission decides which switch applies: gt:authorization_code the one of the pages, any other that of native
-- grants. On the host of an App (p_app) that App's own counts as well.
CREATE OR REPLACE FUNCTION postern.is_switched_on(r postern.realm, p_permission text, p_app text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_permission = 'gt:authorization_code' THEN (r).hosted_enabled ELSE (r).native_grants_enabled END
       AND (p_app IS NULL OR postern.app_serves((r).id, p_app, p_permission));
COMMENT ON FUNCTION postern.is_switched_on IS
    'Whether a sign-in under this permission is switched on: the pages, or the native grants';
GRANT EXECUTE ON FUNCTION postern.is_switched_on TO postern_app;

-- The client of a caller that may sign in its users now, and when a session that is opened now ends at the latest, with
-- what else a sign-in asks of the realm; no row otherwise. PostgreSQL puts it into the statements in place of the call.
CREATE OR REPLACE FUNCTION postern.serving(
    p_realm uuid, p_client uuid, p_permission text, p_app text, OUT client_id text, OUT session_end timestamptz,
    OUT otp_attempts integer, OUT ceremony_lifetime interval)
RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT k.client_id, now() + r.session_lifetime, r.otp_attempts, r.ceremony_lifetime
      FROM postern.client AS k, postern.realm AS r
     WHERE k.realm_id = p_realm AND k.id = p_client AND k.enabled AND p_permission = ANY (k.permissions)
       AND r.id = p_realm AND r.enabled AND postern.is_switched_on(r, p_permission, p_app)
$$;
COMMENT ON FUNCTION postern.serving IS 'A client that may sign in its users now, with the end of a session';
GRANT EXECUTE ON FUNCTION postern.serving TO postern_app;

-- Ends with idle time, absolute time, ended_at, or a new security stamp.
CREATE OR REPLACE FUNCTION postern.live_browser_session(p_realm uuid, p_cookie_hash bytea, p_host text)
RETURNS SETOF postern.browser_session
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT b.*
      FROM postern.browser_session AS b, postern.user_account AS u
     WHERE b.realm_id = p_realm AND b.cookie_hash = p_cookie_hash AND b.host = p_host AND b.ended_at IS NULL
       AND b.expires_at > now() AND b.idle_expires_at > now()
       AND u.realm_id = p_realm AND u.id = b.user_id AND u.enabled AND u.security_stamp = b.security_stamp
$$;
COMMENT ON FUNCTION postern.live_browser_session IS 'The live browser session that a cookie names on a host';
GRANT EXECUTE ON FUNCTION postern.live_browser_session TO postern_app;

-- Live or ended: as long as its row is kept, the account knows the browser (docs/decisions/0025).
CREATE OR REPLACE FUNCTION postern.browser_device(
    p_realm uuid, p_cookie_hash bytea, p_host text, OUT session uuid, OUT user_id uuid)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT b.id, b.user_id INTO session, user_id
      FROM postern.browser_session AS b
     WHERE b.realm_id = p_realm AND b.cookie_hash = p_cookie_hash AND b.host = p_host;
END
$$;
COMMENT ON FUNCTION postern.browser_device IS
    'The browser session that a cookie names or named on a host, live or ended, and its user';
GRANT EXECUTE ON FUNCTION postern.browser_device TO postern_app;

-- Without single sign-on a browser session lives as long as one sign-in may take, and only the page knows its cookie.
CREATE OR REPLACE FUNCTION postern.browser_session_idle(r postern.realm) RETURNS interval
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN r.sso_idle = interval '0' THEN r.sign_in_lifetime ELSE r.sso_idle END;
COMMENT ON FUNCTION postern.browser_session_idle IS 'The idle time of the browser sessions of a realm';
GRANT EXECUTE ON FUNCTION postern.browser_session_idle TO postern_app;

-- The methods of a browser session after a further proof by p_amr that a request (or NULL) asked for.
CREATE OR REPLACE FUNCTION postern.proven_methods(
    b postern.browser_session, p_amr text[], p_request postern.code_request) RETURNS text[]
LANGUAGE sql STABLE
RETURN CASE WHEN postern.wants_sign_in(b.proven_at, p_request) THEN p_amr
            ELSE b.amr || ARRAY(SELECT m FROM unnest(p_amr) AS m WHERE m <> ALL (b.amr)) END;
COMMENT ON FUNCTION postern.proven_methods IS 'The methods that a browser session stands for after a further proof';
GRANT EXECUTE ON FUNCTION postern.proven_methods TO postern_app;

-- A weaker proof does not change it. Otherwise an old passkey and a new code by mail would pass max_age as a new
-- passkey.
CREATE OR REPLACE FUNCTION postern.proven_at(
    b postern.browser_session, p_amr text[], p_request postern.code_request) RETURNS timestamptz
LANGUAGE sql STABLE
RETURN CASE WHEN postern.acr_level(p_amr) >= postern.acr_level(postern.proven_methods(b, p_amr, p_request)) THEN now()
            ELSE b.proven_at END;
COMMENT ON FUNCTION postern.proven_at IS
    'When methods as strong as those of a browser session were last proven, after a further proof';
GRANT EXECUTE ON FUNCTION postern.proven_at TO postern_app;

-- The end of a sign-in on a page: a proof by the user of the live session that the browser showed adds to that session,
-- under a new cookie; any other user replaces it. When the request wanted a newer sign-in than the session's, the
-- session is as strong as this proof alone: what was proven before is not proven again. Answers the authorization
-- request if nothing else is due.
CREATE OR REPLACE FUNCTION postern.sign_in_on_page(
    p_caller postern.caller, p_new postern.new_session, p_candidate postern.candidate,
    p_result postern.sign_in_result)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm_id uuid := p_caller.realm;
    v_user uuid := p_candidate.user_id;
    v_page postern.page_sign_in := p_new.page;
    v_request postern.code_request := v_page.request;
    v_session postern.browser_session;
    v_realm postern.realm;
    v_proofs jsonb := '{}';
    v_held record;
    v_holds boolean := false;
    v_amr text[] := p_new.amr;
BEGIN
    IF v_page.value IS NOT NULL THEN
        v_proofs := jsonb_build_object(
            v_page.proves, jsonb_build_object('value', v_page.value, 'method', v_page.method));
    END IF;
    IF v_page.held_handle IS NOT NULL THEN
        v_held := postern.use_held_number(v_realm_id, v_user, v_page.held_handle);
        v_holds := v_held.identifier IS NOT NULL;
        IF v_holds THEN
            v_amr := v_amr || ARRAY(SELECT m FROM unnest(v_held.amr) AS m WHERE m <> ALL (v_amr));
            v_proofs := v_proofs || jsonb_build_object(
                'phone', jsonb_build_object('value', v_held.value, 'method', 'OTP'));
        END IF;
    END IF;
    SELECT r.* INTO v_realm FROM postern.realm AS r WHERE r.id = v_realm_id;
    -- Once: a stranger who signs in later must not choose the language in which the owner is told.
    UPDATE postern.user_account AS u SET locale = v_page.locale
     WHERE u.realm_id = v_realm_id AND u.id = v_user AND u.locale IS NULL AND v_page.locale IS NOT NULL;
    IF v_page.former IS NOT NULL THEN
        SELECT b.* INTO v_session FROM postern.live_browser_session(v_realm_id, v_page.former, v_page.host) AS b;
        IF v_session.user_id <> v_user THEN
            PERFORM postern.end_browser_session(v_realm_id, v_session.id, 'replaced', p_caller.source);
            v_session := NULL;
        END IF;
    END IF;
    IF v_session.id IS NOT NULL THEN
        UPDATE postern.browser_session AS b
           SET cookie_hash = v_page.cookie, cookie_set_at = now(), auth_time = now(), last_used_at = now(),
               idle_expires_at = now() + postern.browser_session_idle(v_realm),
               amr = postern.proven_methods(b, v_amr, v_request), factor = coalesce(p_candidate.factor, b.factor),
               proven_at = postern.proven_at(b, v_amr, v_request),
               email_proved_at = CASE WHEN v_page.proves = 'email' THEN now() ELSE b.email_proved_at END,
               phone_proved_at = CASE WHEN v_page.proves = 'phone' OR v_holds THEN now() ELSE b.phone_proved_at END,
               proofs = b.proofs || v_proofs
         WHERE b.realm_id = v_realm_id AND b.id = v_session.id
        RETURNING b.* INTO v_session;
    ELSE
        INSERT INTO postern.browser_session AS b (realm_id, id, user_id, security_stamp, cookie_hash, host, amr,
                                                  idle_expires_at, expires_at, email_proved_at, phone_proved_at,
                                                  user_agent, proofs, factor)
        VALUES (v_realm_id, p_new.id, v_user, p_candidate.security_stamp, v_page.cookie, v_page.host, v_amr,
                now() + postern.browser_session_idle(v_realm), now() + v_realm.sso_absolute,
                CASE WHEN v_page.proves = 'email' THEN now() END,
                CASE WHEN v_page.proves = 'phone' OR v_holds THEN now() END,
                p_caller.user_agent, v_proofs, p_candidate.factor)
        RETURNING b.* INTO v_session;
    END IF;
    v_request.proved := true;
    p_result.page_outcome := postern.answer_request(v_realm_id, v_session, v_request);
    p_result.session_expires_at := date_part('epoch', least(v_session.expires_at, v_session.idle_expires_at));
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (v_realm_id, 'sign_in', p_caller.client, v_user, v_session.id, p_caller.source,
            coalesce(p_candidate.detail, '{}') || jsonb_build_object('page', v_page.host, 'amr', p_new.amr));
    IF v_page.accepts_terms THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source)
        VALUES (v_realm_id, 'terms_accepted', p_caller.client, v_user, p_caller.source);
    END IF;
    RETURN p_result;
END
$$;
COMMENT ON FUNCTION postern.sign_in_on_page IS
    'Opens or extends the session of a browser whose user has proven a factor, and answers its authorization request';
GRANT EXECUTE ON FUNCTION postern.sign_in_on_page TO postern_app;

RESET ROLE;
