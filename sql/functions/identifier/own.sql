-- A user's own identifiers: listed, added with a proof, made primary, removed.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.own_identifiers(p_realm uuid, p_user uuid, p_id uuid)
RETURNS TABLE (id uuid, kind text, value text, is_primary boolean, proved_at double precision)
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN QUERY
    SELECT i.id, i.kind, i.value, i.is_primary, date_part('epoch', i.proved_at)
      FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.proven_key IS NOT NULL AND (p_id IS NULL OR i.id = p_id)
     ORDER BY i.kind, NOT i.is_primary, i.added_at, i.id;
END
$$;
COMMENT ON FUNCTION postern.own_identifiers IS 'The proven identifiers of a user, or the one of an id';
GRANT EXECUTE ON FUNCTION postern.own_identifiers TO postern_app;

-- Sends a code to an address that a signed-in user wants to add. Whether another account holds it is not looked at: the
-- answer is the same, and its owner gets a code in any case. The code is kept on the handle: it signs no user in.
-- Outcomes: sent, cooldown (this handle was sent a
-- code a moment ago), send_limit, too_many (five identifiers of the kind), rate_limited.
CREATE OR REPLACE FUNCTION postern.begin_identifier(
    p_caller postern.caller, p_permits postern.permits, p_user uuid, p_request postern.new_request, p_salt bytea,
    p_keyed bytea, p_mail_id uuid, p_payload bytea,
    OUT outcome text, OUT handle bytea, OUT sends_left integer, OUT limit_ord integer,
    OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_set text := set_config('postern.realm', v_realm::text, true);
    v_before record;
BEGIN
    SELECT a.sends, a.last_send_at > now() - r.resend_cooldown AS cools INTO v_before
      FROM postern.sign_in_request AS a JOIN postern.realm AS r ON r.id = v_realm
     WHERE a.realm_id = v_realm AND a.id = p_request.resend_of AND a.kind = 'identifier' AND a.user_id = p_user
       AND a.address_key = p_request.address_key AND a.expires_at > now() AND a.attempts < r.otp_attempts;
    handle := CASE WHEN v_before.sends IS NULL THEN p_request.id ELSE p_request.resend_of END;
    IF v_before.cools THEN
        outcome := 'cooldown';
        sends_left := greatest(p_request.sends - v_before.sends, 0);
        RETURN;
    END IF;
    IF v_before.sends >= p_request.sends THEN
        outcome := 'send_limit';
        RETURN;
    END IF;
    IF (SELECT count(*) FROM postern.user_identifier AS i
         WHERE i.realm_id = v_realm AND i.user_id = p_user AND i.key <> p_request.address_key
           AND i.kind = CASE WHEN p_request.channel IS NULL THEN 'email' ELSE 'phone' END) >= 5 THEN
        outcome := 'too_many';
        RETURN;
    END IF;
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(v_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    outcome := 'sent';
    INSERT INTO postern.sign_in_request AS a (realm_id, id, kind, pending, email, address_key, client, app, source,
                                              user_id, channel, region, sends, last_send_at, code_salt, code_mac,
                                              expires_at, locale, page_origin)
    VALUES (v_realm, handle, 'identifier', false, p_request.address, p_request.address_key, p_caller.client,
            p_caller.app, p_caller.source, p_user, p_request.channel, p_request.region, 1, now(), p_salt,
            sha256(p_salt || p_keyed), now() + make_interval(secs => p_request.lifetime), p_request.locale,
            p_request.page_origin)
        ON CONFLICT (realm_id, id) DO UPDATE
       SET sends = a.sends + 1, last_send_at = now(), channel = excluded.channel, code_salt = excluded.code_salt,
           code_mac = excluded.code_mac, expires_at = excluded.expires_at
    RETURNING greatest(p_request.sends - a.sends, 0) INTO sends_left;
    -- A code for an address that the user has already proven gets the priority of a sign-in code.
    PERFORM postern.queue_message(
        v_realm, p_mail_id, coalesce(p_request.channel, 'email'), p_request.address, 'otp',
        CASE WHEN EXISTS (SELECT FROM postern.user_identifier AS i
                           WHERE i.realm_id = v_realm AND i.proven_key = p_request.address_key AND i.user_id = p_user)
             THEN 'sign-in' ELSE 'identifier' END, p_payload, handle);
END
$$;
COMMENT ON FUNCTION postern.begin_identifier IS
    'Sends a code to an address or phone number that a signed-in user wants to add';
GRANT EXECUTE ON FUNCTION postern.begin_identifier TO postern_app;

-- The try is counted before the comparison, in the statement that compares and consumes. A hundred wrong tries,
-- without a day free of them in between, close this for the user for a day, so that an account is no means to guess at
-- other people's codes. A right code resets nothing: everybody has an address to read one at.
-- Outcomes: added (id), in_use (another account has proven it, or can still take it back; only after the code was
-- right), too_many, refused.
-- p_session: of the caller, a client's or a browser's, which must be alive.
CREATE OR REPLACE FUNCTION postern.add_identifier(
    p_realm uuid, p_user uuid, p_session uuid, p_handle bytea, p_keyed bytea[], p_source text,
    OUT outcome text, OUT id uuid)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_tried record;
    v_holder record;
    v_kind text;
    v_user record;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    outcome := 'refused';
    -- Additions of one user come one after another, so that they can be counted, too.
    v_user := postern.hold_session_owner(p_realm, p_session);
    IF v_user.id IS DISTINCT FROM p_user THEN
        RETURN;
    END IF;
    UPDATE postern.sign_in_request AS a
       SET attempts = a.attempts + 1,
           expires_at = CASE WHEN EXISTS (SELECT FROM unnest(p_keyed) AS k (keyed)
                                           WHERE a.code_mac = sha256(a.code_salt || k.keyed))
                             THEN '-infinity' ELSE a.expires_at END
      FROM postern.realm AS r
     WHERE a.realm_id = p_realm AND a.id = p_handle AND a.kind = 'identifier' AND a.user_id = p_user
       AND a.expires_at > now() AND r.id = p_realm AND a.attempts < r.otp_attempts
       AND NOT EXISTS (SELECT FROM postern.device_guard AS g
                        WHERE g.realm_id = p_realm AND g.user_id = p_user AND g.device = p_user
                          AND g.locked_until > now())
    RETURNING a.email, a.address_key, a.region, a.source, a.channel,
        a.expires_at = '-infinity' AS is_right INTO v_tried;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT v_tried.is_right THEN
        INSERT INTO postern.device_guard AS g (realm_id, user_id, device, consecutive)
        VALUES (p_realm, p_user, p_user, 1)
            ON CONFLICT (realm_id, user_id, device) DO UPDATE
           SET consecutive = CASE WHEN g.locked_until IS NOT NULL OR g.updated_at < now() - interval '24 hours' THEN 1
                                  ELSE g.consecutive + 1 END,
               locked_until = CASE WHEN g.locked_until IS NULL AND g.consecutive >= 99
                                        AND g.updated_at >= now() - interval '24 hours'
                                   THEN now() + interval '24 hours' END,
               updated_at = now();
        RETURN;
    END IF;
    v_kind := CASE WHEN v_tried.channel IS NULL THEN 'email' ELSE 'phone' END;
    IF v_tried.region IS NOT NULL THEN
        PERFORM postern.give_back(p_realm, v_tried.address_key, v_tried.region, v_tried.source);
    END IF;
    SELECT i.user_id, i.id, i.kind = 'phone' AND i.proved_at < postern.stale_before(p_realm) AS stale INTO v_holder
      FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.proven_key = v_tried.address_key;
    IF v_holder.user_id <> p_user AND NOT v_holder.stale
       OR postern.is_contested(p_realm, v_tried.address_key, p_user) THEN
        outcome := 'in_use';
        RETURN;
    END IF;
    IF v_holder.user_id IS DISTINCT FROM p_user
       AND (SELECT count(*) FROM postern.user_identifier AS i
             WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = v_kind
                 AND i.key <> v_tried.address_key) >= 5
        THEN
        outcome := 'too_many';
        RETURN;
    END IF;
    BEGIN
        IF v_holder.user_id <> p_user THEN
            PERFORM postern.release_number(p_realm, v_holder.user_id, v_tried.address_key);
        END IF;
        id := postern.prove_identifier(p_realm, p_user, v_kind, v_tried.email);
    EXCEPTION WHEN unique_violation THEN
        outcome := 'in_use';
        RETURN;
    END;
    outcome := 'added';
    -- Proven again: nothing was added.
    IF v_holder.user_id = p_user THEN
        RETURN;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'identifier_added', v_user.client, p_user, p_session, p_source,
            jsonb_build_object('identifier', id, 'kind', v_kind));
    PERFORM postern.queue_notice(p_realm, p_user, 'identifier-added', postern.app_named(p_realm, v_user.client)
        || jsonb_build_object('identifier', postern.masked_identifier(v_tried.email))
        || postern.offer_undo(p_realm, p_user, 'identifier', id, postern.masked_identifier(v_tried.email), p_source));
END
$$;
COMMENT ON FUNCTION postern.add_identifier IS
    'Adds an identifier to a user by the code that was sent there; a number not proven for long moves to the user';
GRANT EXECUTE ON FUNCTION postern.add_identifier TO postern_app;

CREATE OR REPLACE FUNCTION postern.hold_user(p_realm uuid, p_user uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user AND u.enabled FOR NO KEY UPDATE;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.hold_user IS
    'Locks the row of an enabled user to the end of the transaction; false without one';
GRANT EXECUTE ON FUNCTION postern.hold_user TO postern_app;

-- False when the user has no such proven identifier.
CREATE OR REPLACE FUNCTION postern.set_primary_identifier(p_realm uuid, p_session uuid, p_id uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user record;
    v_kind text;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    SELECT i.kind INTO v_kind FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.user_id = v_user.id AND i.id = p_id AND i.proven_key IS NOT NULL;
    IF FOUND THEN
        PERFORM postern.make_primary(p_realm, v_user.id, v_kind, p_id);
    END IF;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.set_primary_identifier IS
    'Makes a proven identifier of the session''s user the primary one of its kind';
GRANT EXECUTE ON FUNCTION postern.set_primary_identifier TO postern_app;

-- Outcomes: removed, unknown, last_way_in (nothing would be left that finds the account, or that signs in to it: a
-- number that was not proven for long does not, a passkey does).
CREATE OR REPLACE FUNCTION postern.remove_own_identifier(p_realm uuid, p_session uuid, p_id uuid, p_source text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user record;
    v_old record;
    v_offer jsonb;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    v_user := postern.hold_session_owner(p_realm, p_session);
    SELECT i.kind, i.value, least(i.added_at, i.proved_at) AS since INTO v_old FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.user_id = v_user.id AND i.id = p_id AND i.proven_key IS NOT NULL;
    IF NOT FOUND THEN
        RETURN 'unknown';
    END IF;
    IF NOT EXISTS (SELECT FROM postern.user_identifier AS i
                    WHERE i.realm_id = p_realm AND i.user_id = v_user.id AND i.id <> p_id AND i.proven_key IS NOT NULL
                      AND (i.kind = 'email' OR i.proved_at >= postern.stale_before(p_realm)
                           OR EXISTS (SELECT FROM postern.passkey AS p
                                       WHERE p.realm_id = p_realm AND p.user_id = v_user.id))) THEN
        RETURN 'last_way_in';
    END IF;
    -- A session that has proven an address alone, or a factor that the address can still undo, may be a thief's: then
    -- the account can take the address back. Otherwise a person who reads the removed mailbox must not be able to.
    IF NOT coalesce((SELECT postern.proved_more_than_an_address(s, v_old.since) FROM postern.session AS s
                      WHERE s.realm_id = p_realm AND s.id = p_session), false) THEN
        PERFORM postern.contest_removal(p_realm, p_id);
        v_offer := postern.offer_undo(p_realm, v_user.id, 'removal', p_id, postern.masked_identifier(v_old.value),
                                      p_source);
    END IF;
    PERFORM postern.remove_identifier(p_realm, p_id);
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    VALUES (p_realm, 'identifier_removed', v_user.client, v_user.id, p_session, p_source,
            jsonb_build_object('identifier', p_id, 'kind', v_old.kind));
    PERFORM postern.tell_of_removed_identifier(p_realm, v_user.id, v_old.kind, v_old.value, true, v_offer);
    RETURN 'removed';
END
$$;
COMMENT ON FUNCTION postern.remove_own_identifier IS
    'Removes an identifier of the session''s user unless it is the last way in';
GRANT EXECUTE ON FUNCTION postern.remove_own_identifier TO postern_app;

RESET ROLE;
