-- Signed-in browsers: opened by the statement that redeems a factor on a page.
SET LOCAL ROLE postern_owner;

-- Pages redeem a factor with the statements of the native grants. In place of the session of a client, open_session
-- then opens what this setting describes; so a factor is counted, compared and consumed in one way only
-- (docs/decisions/0031). p_page: an object with
--   cookie, former: SHA-256 (hex) of the cookie that the browser gets, and of the one it showed, or null;
--   host: whose page it is; proves: email, phone or passkey; locale: the language of the page;
--   proofs: {"email" or "phone": {"value", "method"}}, the address as it was typed, or null;
--   profile_handle: of the code, where a new user is asked for names first; or null;
--   number_handle: of the code of a phone number, which waits there for one more proof if it is stale; or null;
--   held_handle: of a number that waits for this proof; or null;
--   accepts_terms: the person accepted the terms on the way here;
--   request: the authorization request, as postern.answer_request takes it, or null.
CREATE OR REPLACE FUNCTION postern.opened_on_page(p_source text, p_user_agent text, p_page jsonb) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.user_agent', coalesce(p_user_agent, ''), true),
            set_config('postern.page', p_page::text, true), set_config('postern.page_outcome', '', true);
    RETURN p_source;
END
$$;
COMMENT ON FUNCTION postern.opened_on_page IS
    'The source as it is; the sign-in of this statement opens the browser session that p_page describes';
GRANT EXECUTE ON FUNCTION postern.opened_on_page TO postern_app;

CREATE OR REPLACE FUNCTION postern.page() RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('postern.page', true), '')::jsonb;
COMMENT ON FUNCTION postern.page IS 'What the sign-in of this statement opens on a page; NULL: it is a native grant''s';
GRANT EXECUTE ON FUNCTION postern.page TO postern_app;

-- The App whose host the statement's request came by (postern.opened_from). One that is gone serves nothing.
CREATE OR REPLACE FUNCTION postern.app_serves(p_permission text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM postern.app AS a
                    WHERE a.realm_id = current_setting('postern.realm')::uuid
                      AND a.slug = current_setting('postern.app')
                      AND CASE p_permission WHEN 'gt:authorization_code' THEN a.hosted_enabled
                                            ELSE a.native_grants_enabled END);
END
$$;
COMMENT ON FUNCTION postern.app_serves IS 'Whether the App of this statement has its own switch on';
GRANT EXECUTE ON FUNCTION postern.app_serves TO postern_app;

-- The permission decides which switch applies: gt:authorization_code the one of the pages, any other that of native
-- grants. On the host of an App that App's own counts as well.
CREATE OR REPLACE FUNCTION postern.is_switched_on(p_permission text, p_native boolean, p_hosted boolean)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_permission = 'gt:authorization_code' THEN p_hosted ELSE p_native END
       AND (coalesce(current_setting('postern.app', true), '') = '' OR postern.app_serves(p_permission));
COMMENT ON FUNCTION postern.is_switched_on IS
    'Whether a sign-in under this permission is switched on: the pages, or the native grants';
GRANT EXECUTE ON FUNCTION postern.is_switched_on TO postern_app;

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
CREATE OR REPLACE FUNCTION postern.proven_methods(b postern.browser_session, p_amr text[], p_request jsonb)
RETURNS text[]
LANGUAGE sql STABLE
RETURN CASE WHEN postern.wants_sign_in(b.proven_at, p_request) THEN p_amr
            ELSE b.amr || ARRAY(SELECT m FROM unnest(p_amr) AS m WHERE m <> ALL (b.amr)) END;
COMMENT ON FUNCTION postern.proven_methods IS 'The methods that a browser session stands for after a further proof';
GRANT EXECUTE ON FUNCTION postern.proven_methods TO postern_app;

-- A weaker proof does not change it. Otherwise an old passkey and a new code by mail would pass max_age as a new
-- passkey.
CREATE OR REPLACE FUNCTION postern.proven_at(b postern.browser_session, p_amr text[], p_request jsonb)
RETURNS timestamptz
LANGUAGE sql STABLE
RETURN CASE WHEN postern.acr_level(p_amr) >= postern.acr_level(postern.proven_methods(b, p_amr, p_request)) THEN now()
            ELSE b.proven_at END;
COMMENT ON FUNCTION postern.proven_at IS
    'When methods as strong as those of a browser session were last proven, after a further proof';
GRANT EXECUTE ON FUNCTION postern.proven_at TO postern_app;

-- The end of a sign-in on a page, in place of open_session: a proof by the user of the live session that the browser
-- showed adds to that session, under a new cookie; any other user replaces it. When the request wanted a newer sign-in
-- than the session's, the session is as strong as this proof alone: what was proven before is not proven again. Answers
-- the authorization request if nothing else is due. postern.page_outcome then says what was done: see
-- postern.answer_request.
CREATE OR REPLACE FUNCTION postern.open_browser_session(
    p_realm uuid, p_user uuid, p_stamp uuid, p_new postern.new_session, p_factor uuid, p_page jsonb)
RETURNS timestamptz
LANGUAGE plpgsql
AS $$
DECLARE
    v_session postern.browser_session;
    v_realm postern.realm;
    v_proves text := p_page ->> 'proves';
    v_proofs jsonb := coalesce(p_page -> 'proofs', '{}');
    v_held record;
    v_holds boolean := false;
    v_amr text[] := p_new.amr;
    v_request jsonb := CASE WHEN jsonb_typeof(p_page -> 'request') = 'object' THEN p_page -> 'request' END;
BEGIN
    IF p_page ->> 'held_handle' IS NOT NULL THEN
        v_held := postern.use_held_number(p_realm, p_user, decode(p_page ->> 'held_handle', 'hex'));
        v_holds := v_held.identifier IS NOT NULL;
        IF v_holds THEN
            v_amr := v_amr || ARRAY(SELECT m FROM unnest(v_held.amr) AS m WHERE m <> ALL (v_amr));
            v_proofs := v_proofs || jsonb_build_object(
                'phone', jsonb_build_object('value', v_held.value, 'method', 'OTP'));
        END IF;
    END IF;
    SELECT r.* INTO v_realm FROM postern.realm AS r WHERE r.id = p_realm;
    -- Once: a stranger who signs in later must not choose the language in which the owner is told.
    UPDATE postern.user_account AS u SET locale = p_page ->> 'locale'
     WHERE u.realm_id = p_realm AND u.id = p_user AND u.locale IS NULL AND p_page ->> 'locale' IS NOT NULL;
    IF p_page ->> 'former' IS NOT NULL THEN
        SELECT b.* INTO v_session
          FROM postern.live_browser_session(p_realm, decode(p_page ->> 'former', 'hex'), p_page ->> 'host') AS b;
        IF v_session.user_id <> p_user THEN
            PERFORM postern.end_browser_session(p_realm, v_session.id, 'replaced', p_new.source);
            v_session := NULL;
        END IF;
    END IF;
    IF v_session.id IS NOT NULL THEN
        UPDATE postern.browser_session AS b
           SET cookie_hash = decode(p_page ->> 'cookie', 'hex'), cookie_set_at = now(), auth_time = now(),
               last_used_at = now(),
               idle_expires_at = now() + postern.browser_session_idle(v_realm),
               amr = postern.proven_methods(b, v_amr, v_request), factor = coalesce(p_factor, b.factor),
               proven_at = postern.proven_at(b, v_amr, v_request),
               email_proved_at = CASE WHEN v_proves = 'email' THEN now() ELSE b.email_proved_at END,
               phone_proved_at = CASE WHEN v_proves = 'phone' OR v_holds THEN now()
                                      ELSE b.phone_proved_at END,
               proofs = b.proofs || v_proofs
         WHERE b.realm_id = p_realm AND b.id = v_session.id
        RETURNING b.* INTO v_session;
    ELSE
        INSERT INTO postern.browser_session AS b (realm_id, id, user_id, security_stamp, cookie_hash, host, amr,
                                                  idle_expires_at, expires_at, email_proved_at, phone_proved_at,
                                                  user_agent, proofs, factor)
        VALUES (p_realm, p_new.id, p_user, p_stamp, decode(p_page ->> 'cookie', 'hex'), p_page ->> 'host', v_amr,
                now() + postern.browser_session_idle(v_realm), now() + v_realm.sso_absolute,
                CASE WHEN v_proves = 'email' THEN now() END,
                CASE WHEN v_proves = 'phone' OR v_holds THEN now() END,
                NULLIF(current_setting('postern.user_agent', true), ''), v_proofs, p_factor)
        RETURNING b.* INTO v_session;
    END IF;
    PERFORM set_config('postern.page_outcome',
                       postern.answer_request(p_realm, v_session, v_request || '{"proved": true}'), true);
    RETURN least(v_session.expires_at, v_session.idle_expires_at);
END
$$;
COMMENT ON FUNCTION postern.open_browser_session IS
    'Opens or extends the session of a browser whose user has proven a factor, and answers its authorization request';
GRANT EXECUTE ON FUNCTION postern.open_browser_session TO postern_app;

RESET ROLE;
