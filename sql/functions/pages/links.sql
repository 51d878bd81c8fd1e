-- What pages add to links: the browser that asked can go on where the link is opened, and waits for it.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.keep_page(p_realm uuid, p_handle bytea, p_browser bytea, p_state bytea)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.sign_in_request AS a SET page_browser = p_browser, page_state = p_state
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.expires_at > now();
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.keep_page IS
    'Notes which browser''s page asked for a link, with the sealed state of the page';
GRANT EXECUTE ON FUNCTION postern.keep_page TO postern_app;

-- The person uses another address: what was asked for with the handle opens nothing any more. Waits for the handle's
-- row alone. A code that another statement holds is being redeemed, or ends there.
CREATE OR REPLACE FUNCTION postern.give_up_request(p_realm uuid, p_handle bytea) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
    v_proof record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.sign_in_request AS a SET pending = false, expires_at = '-infinity'
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.expires_at > now()
    RETURNING a.address_key, a.code_ids, a.message INTO v_request;
    DELETE FROM postern.login_code AS c
     WHERE c.realm_id = p_realm AND c.address_key = v_request.address_key
       AND c.id IN (SELECT k.id FROM postern.login_code AS k
                     WHERE k.realm_id = p_realm AND k.address_key = v_request.address_key
                       AND k.id = ANY (v_request.code_ids) AND NOT k.is_test
                       FOR UPDATE SKIP LOCKED);
    UPDATE postern.login_link AS l SET ended = 'superseded'
     WHERE (l.realm_id, l.user_id, l.token_hash) IN (
        SELECT k.realm_id, k.user_id, k.token_hash
          FROM postern.user_identifier AS i
          JOIN postern.login_link AS k ON k.realm_id = i.realm_id AND k.user_id = i.user_id
         WHERE i.realm_id = p_realm AND i.proven_key = v_request.address_key AND k.handle = p_handle
           AND k.ended IS NULL
           FOR UPDATE OF k SKIP LOCKED);
    -- A proof without an account has the same id.
    UPDATE postern.address_verification AS p SET expires_at = now(), code_mac = NULL, code_salt = NULL
     WHERE p.realm_id = p_realm AND p.id = encode(p_handle, 'hex')::uuid AND p.proved_at IS NULL
       AND p.expires_at > now()
    RETURNING p.id, p.message INTO v_proof;
    PERFORM postern.supersede_message(p_realm, coalesce(v_request.message, v_proof.message));
    RETURN v_request.address_key IS NOT NULL OR v_proof.id IS NOT NULL;
END
$$;
COMMENT ON FUNCTION postern.give_up_request IS 'Ends a request for a code or a link whose person uses another address';
GRANT EXECUTE ON FUNCTION postern.give_up_request TO postern_app;

-- state is NULL unless this browser asked for this link and can go on with it. confirmed: its number was typed
-- elsewhere, so that the handle signs in and no longer the link.
CREATE OR REPLACE FUNCTION postern.page_of_link(
    p_realm uuid, p_user uuid, p_token_hash bytea, p_browser bytea, OUT state bytea, OUT confirmed boolean)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT a.page_state, l.ended IS NOT NULL INTO state, confirmed
      FROM postern.login_link AS l
      JOIN postern.sign_in_request AS a ON a.realm_id = l.realm_id AND a.id = l.handle
     WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.token_hash = p_token_hash AND a.page_browser = p_browser
       AND (l.ended IS NULL AND postern.link_end(l) IS NULL
            OR l.ended = 'confirmed' AND a.confirmed_user = p_user AND NOT a.denied AND a.expires_at > now());
END
$$;
COMMENT ON FUNCTION postern.page_of_link IS 'The state of the page of this browser that asked for a link';
GRANT EXECUTE ON FUNCTION postern.page_of_link TO postern_app;

-- How the link of a handle stands, for a page that waits: pending, confirmed, denied or expired. Changes nothing but
-- the limits. Outcomes: told, rate_limited.
CREATE OR REPLACE FUNCTION postern.link_state(
    p_realm uuid, p_handle bytea,
    p_permits postern.permits,
    OUT outcome text, OUT state text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'told';
    SELECT CASE WHEN a.denied THEN 'denied' WHEN a.expires_at <= now() THEN 'expired'
                WHEN a.confirmed_user IS NOT NULL THEN 'confirmed' ELSE 'pending' END
      INTO state
      FROM postern.sign_in_request AS a WHERE a.realm_id = p_realm AND a.id = p_handle AND a.kind = 'magic';
    state := coalesce(state, 'expired');
END
$$;
COMMENT ON FUNCTION postern.link_state IS 'Whether the link of a handle was opened, for a page that waits';
GRANT EXECUTE ON FUNCTION postern.link_state TO postern_app;

-- The user of a live browser session, as session_owner says it of a client's session.
CREATE OR REPLACE FUNCTION postern.browser_session_owner(
    p_realm uuid, p_session uuid, OUT id uuid, OUT email text, OUT email_verified boolean, OUT client uuid,
    OUT proved boolean)
LANGUAGE sql STABLE
AS $$
    SELECT u.id, u.email, u.email_verified, NULL::uuid, 'mfa' = ANY (b.amr)
      FROM postern.browser_session AS b JOIN postern.user_account AS u ON u.realm_id = b.realm_id AND u.id = b.user_id
     WHERE b.realm_id = p_realm AND b.id = p_session AND b.ended_at IS NULL AND b.expires_at > now()
       AND b.idle_expires_at > now() AND u.enabled AND u.security_stamp = b.security_stamp
$$;
COMMENT ON FUNCTION postern.browser_session_owner IS 'The user of a live browser session; NULL when it has ended';
GRANT EXECUTE ON FUNCTION postern.browser_session_owner TO postern_app;

RESET ROLE;
