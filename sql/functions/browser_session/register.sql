-- Registration on a page that asks for names: the address is proven first, the account is made when they are given.
SET LOCAL ROLE postern_owner;

-- Called for a registration code that was right. On a page that asks a new user for names (p_handle: the handle of the
-- code) the code is spent here, and the handle remembers the proof.
CREATE OR REPLACE FUNCTION postern.asks_profile(
    p_realm uuid, p_handle bytea, p_address_key text, p_code uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_handle IS NULL OR EXISTS (SELECT FROM postern.user_identifier AS i
                                    WHERE i.realm_id = p_realm AND i.proven_key = p_address_key) THEN
        RETURN false;
    END IF;
    UPDATE postern.sign_in_request AS a
       SET proved_at = now(), expires_at = now() + r.sign_in_lifetime
      FROM postern.realm AS r
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.code_ids @> ARRAY[p_code] AND r.id = p_realm;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.address_key = p_address_key;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.asks_profile IS
    'Whether the page asks for names before this registration code makes an account; then the code is spent';
GRANT EXECUTE ON FUNCTION postern.asks_profile TO postern_app;

-- Makes the account of a handle whose address was proven, once, and signs in on the page of p_new. A phone number that
-- another account has not used for long moves to it, where the posture or the client registers. page_outcome is
-- registration-closed when the posture has changed since.
CREATE OR REPLACE FUNCTION postern.register_on_page(
    p_caller postern.caller, p_new postern.new_session, p_handle bytea, p_first text, p_last text)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_asked record;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, NULL);
BEGIN
    v.outcome := 'refused';
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity', proved_at = NULL
      FROM postern.client AS k, postern.realm AS r
     WHERE a.realm_id = v_realm AND a.id = p_handle AND a.proved_at IS NOT NULL AND a.expires_at > now()
       AND a.client = p_caller.client
       AND k.realm_id = v_realm AND k.id = p_caller.client AND k.enabled AND p_caller.permission = ANY (k.permissions)
       AND (postern.speaks_cotter(k) OR EXISTS (SELECT FROM postern.app AS p
                                                 WHERE p.realm_id = v_realm AND p.slug = a.app
                                                   AND p.registration <> 'Off'))
       AND r.id = v_realm AND r.enabled AND r.hosted_enabled
    RETURNING a.email, a.app, a.locale, k.client_id, now() + r.session_lifetime AS session_end INTO v_asked;
    IF NOT FOUND THEN
        v.reason := 'expired';
        IF EXISTS (SELECT FROM postern.sign_in_request AS a
                    WHERE a.realm_id = v_realm AND a.id = p_handle AND a.proved_at IS NOT NULL
                      AND a.expires_at > now() AND a.client = p_caller.client
                      AND NOT EXISTS (SELECT FROM postern.app AS p
                                       WHERE p.realm_id = v_realm AND p.slug = a.app AND p.registration <> 'Off')) THEN
            v.reason := 'registration closed';
            v.page_outcome := 'registration-closed';
        END IF;
        RETURN v;
    END IF;
    -- Apart from the next statement, which would not see the row.
    v_candidate.user_id := postern.register_user(
        v_realm, p_caller.client, v_asked.email, postern.person_name(p_first), postern.person_name(p_last),
        v_asked.app, v_asked.locale, p_caller.source, p_is_new => true);
    SELECT u.id, u.security_stamp, u.has_totp
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp
      FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = v_candidate.user_id;
    -- Made meanwhile in another way, and protected since.
    IF v_candidate.user_id IS NULL OR v_candidate.has_totp THEN
        v.reason := 'exists';
        RETURN v;
    END IF;
    RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
END
$$;
COMMENT ON FUNCTION postern.register_on_page IS
    'Makes the account of a proven address with the names that a page asked for, and signs in';
GRANT EXECUTE ON FUNCTION postern.register_on_page TO postern_app;

RESET ROLE;
