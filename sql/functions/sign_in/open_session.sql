-- What every sign-in ends in.
SET LOCAL ROLE postern_owner;

-- p_end: when the session ends at the latest. p_detail: of the audit event, what signed in.
-- p_email_key: not NULL for a sign-in by other means than a code, which ends the count of wrong codes of the user's
-- addresses, or of the known device p_device. NULL: the caller has done it.
-- On a page (postern.page) the browser's session is opened instead, or the one that it showed is extended; expires_at
-- is its end.
CREATE OR REPLACE FUNCTION postern.open_session(
    p_realm uuid, p_client uuid, p_client_id text, p_user uuid, p_stamp uuid, p_end timestamptz,
    p_new postern.new_session, p_detail jsonb, p_email_key text, p_device uuid,
    OUT expires_at double precision, OUT refresh_expires_at double precision)
LANGUAGE plpgsql
AS $$
DECLARE
    v_page jsonb := postern.page();
BEGIN
    IF p_email_key IS NOT NULL THEN
        PERFORM postern.forget_wrong_codes(p_realm, p_email_key, p_user, p_device);
    END IF;
    IF v_page IS NULL THEN
        SELECT o.expires_at, o.refresh_expires_at INTO expires_at, refresh_expires_at
          FROM postern.open_client_session(p_realm, p_client, p_client_id, p_user, p_stamp, p_end, p_new, p_detail,
                                           now(), NULL, NULL) AS o;
        RETURN;
    END IF;
    expires_at := date_part('epoch', postern.open_browser_session(p_realm, p_user, p_stamp, p_new, v_page));
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    SELECT p_realm, 'sign_in', p_client, p_user, b.id, p_new.source,
           coalesce(p_detail, '{}') || jsonb_build_object('page', v_page ->> 'host', 'amr', p_new.amr)
      -- By its cookie: an extended session keeps its id.
      FROM postern.browser_session AS b
     WHERE b.realm_id = p_realm AND b.cookie_hash = decode(v_page ->> 'cookie', 'hex');
    IF (v_page ->> 'accepts_terms')::boolean THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source)
        VALUES (p_realm, 'terms_accepted', p_client, p_user, p_new.source);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.open_session IS
    'Opens the session of a user who has signed in, and resets wrong codes; says when it ends';
GRANT EXECUTE ON FUNCTION postern.open_session TO postern_app;

-- The session of a client: lifetimes, row and audit. p_auth_time: when the user signed in. p_browser_session, p_acr: of
-- a session that an authorization code opens, else NULL; then acr is what postern.opened_for says.
CREATE OR REPLACE FUNCTION postern.open_client_session(
    p_realm uuid, p_client uuid, p_client_id text, p_user uuid, p_stamp uuid, p_end timestamptz,
    p_new postern.new_session, p_detail jsonb, p_auth_time timestamptz, p_browser_session uuid, p_acr text,
    OUT expires_at double precision, OUT refresh_expires_at double precision)
LANGUAGE plpgsql
AS $$
DECLARE
    v_expires_at timestamptz := p_end;
    v_refresh_expires_at timestamptz;
    v_acr text;
BEGIN
    IF p_new.refresh_hash IS NULL THEN
        -- Nothing can prolong it: the session ends with its access token.
        v_expires_at := least(p_end, now() + make_interval(secs => p_new.access_lifetime));
    ELSE
        v_refresh_expires_at := least(p_end, now() + make_interval(secs => p_new.refresh_lifetime));
    END IF;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                                 refresh_expires_at, token_salt, current_hash, scope, resource, amr, server_key,
                                 browser_session, acr, device)
    VALUES (p_realm, p_new.id, p_user, p_client, p_client_id, p_stamp, p_auth_time, v_expires_at,
            v_refresh_expires_at, p_new.token_salt, p_new.refresh_hash, p_new.scope, p_new.resource, p_new.amr,
            p_new.server_key, p_browser_session,
            coalesce(p_acr, NULLIF(current_setting('postern.acr', true), '')), (p_detail ->> 'device')::uuid)
    RETURNING acr INTO v_acr;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'sign_in', p_client, p_user, p_new.id, p_new.source,
            jsonb_strip_nulls(coalesce(p_detail, '{}') || jsonb_build_object('amr', p_new.amr, 'acr', v_acr)));
    expires_at := date_part('epoch', v_expires_at);
    refresh_expires_at := date_part('epoch', v_refresh_expires_at);
END
$$;
COMMENT ON FUNCTION postern.open_client_session IS 'Opens the session of a user at a client; says when it ends';
GRANT EXECUTE ON FUNCTION postern.open_client_session TO postern_app;

-- Used in place of p_source in a statement that opens a session. It puts the user agent into a setting that the
-- column's default reads, so that no function that opens a session needs a parameter for it. One expression, as
-- with_dpop_proof is. p_app: the App on whose host the request came, whose switch counts (postern.is_switched_on).
CREATE OR REPLACE FUNCTION postern.opened_from(p_source text, p_user_agent text, p_app text DEFAULT NULL) RETURNS text
LANGUAGE sql
RETURN CASE WHEN set_config('postern.user_agent', coalesce(p_user_agent, ''), true) IS NOT NULL
             AND (p_app IS NULL OR set_config('postern.app', p_app, true) IS NOT NULL) THEN p_source END;
COMMENT ON FUNCTION postern.opened_from IS
    'The source as it is; the session opened by this statement notes the user agent';
GRANT EXECUTE ON FUNCTION postern.opened_from TO postern_app;

-- The same for a sign-in that can be asked for a context. p_acr: what the session says if its methods suffice; NULL:
-- what amr says. p_level: the least that will do (postern.acr_level); NULL: anything.
CREATE OR REPLACE FUNCTION postern.opened_for(
    p_source text, p_user_agent text, p_acr text, p_level integer, p_app text DEFAULT NULL)
RETURNS text
LANGUAGE sql
RETURN CASE WHEN p_level IS NULL
              OR (set_config('postern.acr', coalesce(p_acr, ''), true)
                  || set_config('postern.level', p_level::text, true)) IS NOT NULL
            THEN postern.opened_from(p_source, p_user_agent, p_app) END;
COMMENT ON FUNCTION postern.opened_for IS
    'The source as it is; the session opened by this statement notes the user agent and the context asked for';
GRANT EXECUTE ON FUNCTION postern.opened_for TO postern_app;

RESET ROLE;
