-- A phone number that its account has not used for long may have passed to another person: on a page its code is not
-- enough. The proof waits on the handle of the code until the person proves an e-mail address or a passkey of that
-- account as well (postern.use_held_number), or takes the number to a new account (postern.register_on_page).
SET LOCAL ROLE postern_owner;

-- Called for a code that signed no user in. When it is right and its number is stale, the code is spent, and the handle
-- (number_handle of the page) remembers the proof. An account that has TOTP and neither an address nor a passkey is
-- asked for TOTP instead.
CREATE OR REPLACE FUNCTION postern.asks_second_proof(
    p_caller postern.caller, p_handle bytea, p_phone text, p_codes uuid[], p_keyed bytea[]) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_code record;
BEGIN
    IF p_handle IS NULL THEN
        RETURN false;
    END IF;
    SELECT c.id, c.region, c.source INTO v_code
      FROM postern.login_code AS c, postern.user_identifier AS i, postern.user_account AS u,
           postern.serving(v_realm, p_caller.client, p_caller.permission, p_caller.app) AS s
     WHERE c.realm_id = v_realm AND c.address_key = p_phone AND c.id = ANY (p_codes) AND NOT c.is_test
       AND c.expires_at > now() AND postern.is_for_client(c.client, c.page_browser, p_caller.client)
       AND EXISTS (SELECT FROM unnest(p_keyed) AS o (keyed) WHERE c.mac = sha256(c.salt || o.keyed))
       AND i.realm_id = v_realm AND i.proven_key = p_phone AND i.kind = 'phone'
       AND i.proved_at < postern.stale_before(v_realm)
       AND u.realm_id = v_realm AND u.id = i.user_id AND u.enabled
       AND (NOT u.has_totp
            OR EXISTS (SELECT FROM postern.user_identifier AS o
                        WHERE o.realm_id = v_realm AND o.user_id = u.id AND o.kind = 'email'
                          AND o.proven_key IS NOT NULL OFFSET 0)
            OR EXISTS (SELECT FROM postern.passkey AS p WHERE p.realm_id = v_realm AND p.user_id = u.id))
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.sign_in_request AS a
       SET proved_at = now(), expires_at = now() + r.sign_in_lifetime
      FROM postern.realm AS r
     WHERE a.realm_id = v_realm AND a.id = p_handle AND a.code_ids @> ARRAY[v_code.id] AND r.id = v_realm;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM postern.login_code AS c WHERE c.realm_id = v_realm AND c.address_key = p_phone;
    PERFORM postern.give_back(v_realm, p_phone, v_code.region, v_code.source);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.asks_second_proof IS
    'Whether a right code of a stale phone number waits for one more proof of its account; then the code is spent';
GRANT EXECUTE ON FUNCTION postern.asks_second_proof TO postern_app;

-- Ends the wait of a number, once, if it is the user's: it is proven again from now on. Otherwise all are NULL: a proof
-- of another account says nothing about the number.
CREATE OR REPLACE FUNCTION postern.use_held_number(
    p_realm uuid, p_user uuid, p_handle bytea, OUT identifier uuid, OUT value text, OUT amr text[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_channel text;
BEGIN
    UPDATE postern.sign_in_request AS a SET expires_at = '-infinity', proved_at = NULL
      FROM postern.user_identifier AS i
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.proved_at IS NOT NULL AND a.expires_at > now()
       AND i.realm_id = p_realm AND i.user_id = p_user AND i.proven_key = a.address_key AND i.kind = 'phone'
    RETURNING i.id, i.value, a.channel INTO identifier, value, v_channel;
    IF FOUND THEN
        amr := coalesce((postern.channel_of(v_channel)).amr, '{otp}');
        PERFORM postern.confirm_identifier(p_realm, p_user, value);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.use_held_number IS
    'Proves a held phone number again for its user; NULL when it is not held, or not the user''s';
GRANT EXECUTE ON FUNCTION postern.use_held_number TO postern_app;

RESET ROLE;
