-- urn:cocoar:magic: a link is redeemed by its token.
SET LOCAL ROLE postern_owner;

-- By the token itself: the app opened the link. p_handle: the request that the link must belong to, if the app says so.
-- A wrong token ends nothing. Outcomes: ok, refused (reason is for logs only), rate_limited, busy, and those of a
-- second factor.
CREATE OR REPLACE FUNCTION postern.redeem_link(
    p_caller postern.caller, p_permits postern.permits, p_new postern.new_session, p_user uuid, p_token_hash bytea,
    p_handle bytea, p_second postern.second_factor_proof)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_handle bytea;
    v_candidate postern.candidate;
    v postern.sign_in_result := postern.admit(p_caller, p_permits);
BEGIN
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    -- A request without a valid link takes no lock, so that a stranger cannot block the owner of a link.
    IF NOT EXISTS (SELECT FROM postern.login_link AS l
                    WHERE l.realm_id = v_realm AND l.user_id = p_user AND l.token_hash = p_token_hash) THEN
        RETURN postern.refuse_sign_in(p_caller, p_new, v, 'unknown');
    END IF;
    IF NOT postern.try_lock_links(v_realm, p_user) THEN
        v.outcome := 'busy';
        RETURN v;
    END IF;
    SELECT u.id, u.security_stamp, u.has_totp, s.client_id, s.session_end, l.address_key, l.device,
           '{"link": "opened"}', l.handle
      INTO v_candidate.user_id, v_candidate.security_stamp, v_candidate.has_totp, v_candidate.client_id,
           v_candidate.session_end, v_candidate.address_key, v_candidate.device, v_candidate.detail, v_handle
      FROM postern.login_link AS l, postern.user_account AS u,
           postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s
     WHERE l.realm_id = v_realm AND l.user_id = p_user AND l.token_hash = p_token_hash
       AND l.ended IS NULL AND l.expires_at > now() AND postern.is_for_client(l.client, l.page_browser, p_caller.client)
       AND (p_handle IS NULL OR l.handle = p_handle)
       AND u.realm_id = v_realm AND u.id = p_user AND u.enabled
       AND postern.has_identifier(v_realm, u.id, l.address_key)
       AND u.security_stamp = l.security_stamp;
    IF NOT FOUND THEN
        RETURN postern.refuse_sign_in(
            p_caller, p_new, v,
            coalesce((SELECT CASE WHEN l.ended IS NOT NULL THEN l.ended WHEN l.expires_at <= now() THEN 'expired'
                                  WHEN NOT postern.is_for_client(l.client, l.page_browser, p_caller.client)
                                      THEN 'client'
                                  WHEN l.handle <> p_handle THEN 'handle' ELSE 'disabled' END
                        FROM postern.login_link AS l
                       WHERE l.realm_id = v_realm AND l.user_id = p_user AND l.token_hash = p_token_hash),
                     'unknown'));
    END IF;
    IF NOT postern.try_hold_handle(v_realm, v_handle) THEN
        v.outcome := 'busy';
        RETURN v;
    END IF;
    v := postern.ask_second_factor(p_caller, p_new, v_candidate, p_second, v);
    IF v.outcome IS NOT NULL THEN
        RETURN v;
    END IF;
    -- All links of the user go with the right one; its handle has nothing to poll for any more.
    UPDATE postern.login_link AS l
       SET ended = CASE WHEN l.token_hash = p_token_hash THEN 'redeemed' ELSE 'superseded' END
     WHERE l.realm_id = v_realm AND l.user_id = p_user AND l.ended IS NULL;
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity'
     WHERE a.realm_id = v_realm AND a.id = v_handle;
    PERFORM postern.confirm_identifier(v_realm, p_user, v_candidate.address_key);
    RETURN postern.sign_in(p_caller, p_new, v_candidate, v);
END
$$;
COMMENT ON FUNCTION postern.redeem_link IS 'Redeems a link by its token: consumes it and opens the session in one call';
GRANT EXECUTE ON FUNCTION postern.redeem_link TO postern_app;

RESET ROLE;
