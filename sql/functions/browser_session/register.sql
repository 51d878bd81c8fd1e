-- Registration on a page that asks for names: the address is proven first, the account is made when they are given.
SET LOCAL ROLE postern_owner;

-- Called for a registration code that was right. On a page that asks a new user for names (profile_handle: the handle
-- of the code) the code is spent here, the handle remembers the proof, and postern.page_outcome is profile.
CREATE OR REPLACE FUNCTION postern.asks_profile(p_realm uuid, p_address_key text, p_code uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_handle bytea := decode(postern.page() ->> 'profile_handle', 'hex');
BEGIN
    IF v_handle IS NULL OR EXISTS (SELECT FROM postern.user_identifier AS i
                                    WHERE i.realm_id = p_realm AND i.proven_key = p_address_key) THEN
        RETURN false;
    END IF;
    UPDATE postern.sign_in_request AS a
       SET proved_at = now(), expires_at = now() + r.sign_in_lifetime
      FROM postern.realm AS r
     WHERE a.realm_id = p_realm AND a.id = v_handle AND a.code_ids @> ARRAY[p_code] AND r.id = p_realm;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.address_key = p_address_key;
    PERFORM set_config('postern.page_outcome', 'profile', true);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.asks_profile IS
    'Whether the page asks for names before this registration code makes an account; then the code is spent';
GRANT EXECUTE ON FUNCTION postern.asks_profile TO postern_app;

-- Makes the account of a handle whose address was proven, once, and opens the browser session of the statement. A phone
-- number that another account has not used for long moves to it, where the posture or the client registers.
-- Outcomes: ok, refused (reason is for logs only). When the posture has changed since, postern.page_outcome is
-- registration-closed.
CREATE OR REPLACE FUNCTION postern.register_on_page(
    p_realm uuid, p_client uuid, p_handle bytea, p_first text, p_last text,
    p_session uuid, p_token_salt bytea, p_refresh_hash bytea, p_scope text[], p_resource text[], p_amr text[],
    p_access_lifetime integer, p_refresh_lifetime integer, p_source text, p_server_key bytea,
    OUT outcome text, OUT reason text, OUT user_id uuid, OUT db_now double precision,
    OUT session_expires_at double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_asked record;
    v_id uuid;
    v_user record;
    v_opened record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    db_now := date_part('epoch', now());
    outcome := 'refused';
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity', proved_at = NULL
      FROM postern.client AS k, postern.realm AS r
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.proved_at IS NOT NULL AND a.expires_at > now()
       AND a.client = p_client
       AND k.realm_id = p_realm AND k.id = p_client AND k.enabled AND 'gt:authorization_code' = ANY (k.permissions)
       AND (postern.speaks_cotter(k) OR EXISTS (SELECT FROM postern.app AS p
                                                 WHERE p.realm_id = p_realm AND p.slug = a.app
                                                   AND p.registration <> 'Off'))
       AND r.id = p_realm AND r.enabled AND r.hosted_enabled
    RETURNING a.email, a.app, a.locale, k.client_id, now() + r.session_lifetime AS session_end INTO v_asked;
    IF NOT FOUND THEN
        reason := 'expired';
        IF EXISTS (SELECT FROM postern.sign_in_request AS a
                    WHERE a.realm_id = p_realm AND a.id = p_handle AND a.proved_at IS NOT NULL
                      AND a.expires_at > now() AND a.client = p_client
                      AND NOT EXISTS (SELECT FROM postern.app AS p
                                       WHERE p.realm_id = p_realm AND p.slug = a.app AND p.registration <> 'Off')) THEN
            reason := 'registration closed';
            PERFORM set_config('postern.page_outcome', 'registration-closed', true);
        END IF;
        RETURN;
    END IF;
    -- Apart from the next statement, which would not see the row.
    v_id := postern.register_user(p_realm, p_client, v_asked.email, postern.person_name(p_first),
                                  postern.person_name(p_last), v_asked.app, v_asked.locale, p_source,
                                  p_is_new => true);
    SELECT u.id, u.security_stamp, u.has_totp INTO v_user
      FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = v_id;
    -- Made meanwhile in another way, and protected since.
    IF v_user.id IS NULL OR v_user.has_totp THEN
        reason := 'exists';
        RETURN;
    END IF;
    v_opened := postern.open_session(
        p_realm, p_client, v_asked.client_id, v_user.id, v_user.security_stamp, v_asked.session_end,
        ROW(p_session, p_token_salt, p_refresh_hash, p_scope, p_resource, p_amr, p_access_lifetime,
            p_refresh_lifetime, p_source, p_server_key)::postern.new_session, NULL, NULL, NULL);
    outcome := 'ok';
    user_id := v_user.id;
    session_expires_at := v_opened.expires_at;
END
$$;
COMMENT ON FUNCTION postern.register_on_page IS
    'Makes the account of a proven address with the names that a page asked for, and signs in';
GRANT EXECUTE ON FUNCTION postern.register_on_page TO postern_app;

RESET ROLE;
