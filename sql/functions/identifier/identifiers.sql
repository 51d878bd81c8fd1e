-- Identifiers of people: whose an address is, how it becomes a user's, how it goes. Callers hold the lock of the
-- address or the row of the realm; what they cannot exclude, the constraints of user_identifier decide.
-- SECURITY DEFINER, since the app role may read the table only.
SET LOCAL ROLE postern_owner;

-- The account that a code for an address signs in to (proven), or that it would confirm: one whose only identifiers are
-- unproven, such as one that an administrator has put. No row: a code would register a new account. An unproven
-- identifier of an account that has a proven one opens nothing: the person who receives messages there may not be
-- the owner of the account.
CREATE OR REPLACE FUNCTION postern.account_of(p_realm uuid, p_key text)
RETURNS TABLE (user_id uuid, identifier uuid, kind text, value text, proven boolean, proved_at timestamptz)
-- One row at most: a plan for many reads the accounts of the whole realm.
LANGUAGE plpgsql STABLE ROWS 1
AS $$
BEGIN
    RETURN QUERY
    SELECT i.user_id, i.id, i.kind, i.value, true, i.proved_at
      FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.proven_key = p_key;
    IF FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT i.user_id, i.id, i.kind, i.value, false, NULL::timestamptz
      FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.key = p_key AND i.proven_key IS NULL
       AND NOT EXISTS (SELECT FROM postern.user_identifier AS o
                        WHERE o.realm_id = p_realm AND o.user_id = i.user_id AND o.proven_key IS NOT NULL OFFSET 0)
     ORDER BY NOT i.is_primary, i.added_at, i.id LIMIT 1;
END
$$;
COMMENT ON FUNCTION postern.account_of IS
    'The account that a code sent to an address signs in to (proven) or confirms; no row when there is none';
GRANT EXECUTE ON FUNCTION postern.account_of TO postern_app;

-- Another user who has proven the identifier, or whose primary address it is.
CREATE OR REPLACE FUNCTION postern.identifier_holder(p_realm uuid, p_key text, p_except uuid) RETURNS uuid
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(
        (SELECT i.user_id FROM postern.user_identifier AS i
          WHERE i.realm_id = p_realm AND i.proven_key = p_key AND i.user_id IS DISTINCT FROM p_except),
        (SELECT u.id FROM postern.user_account AS u
          WHERE u.realm_id = p_realm AND u.address_key = p_key AND u.id IS DISTINCT FROM p_except))
$$;
COMMENT ON FUNCTION postern.identifier_holder IS
    'Another user who has an address or phone number, proven or as primary address; NULL when there is none';

-- Sessions go on: what is removed or exchanged here was the user's own, or was never proven.
CREATE OR REPLACE FUNCTION postern.remove_identifier(p_realm uuid, p_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_removed record;
    v_next uuid;
BEGIN
    SELECT i.user_id, i.kind, i.is_primary INTO v_removed
      FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.id = p_id;
    IF v_removed.is_primary THEN
        SELECT i.id INTO v_next
          FROM postern.user_identifier AS i
         WHERE i.realm_id = p_realm AND i.user_id = v_removed.user_id AND i.kind = v_removed.kind
           AND i.proven_key IS NOT NULL AND i.id <> p_id
         ORDER BY i.added_at, i.id LIMIT 1;
        PERFORM postern.make_primary(p_realm, v_removed.user_id, v_removed.kind, v_next);
    END IF;
    DELETE FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.id = p_id;
END
$$;
COMMENT ON FUNCTION postern.remove_identifier IS
    'Removes an identifier with what was sent to it; the oldest proven one of its kind becomes the primary one';

-- p_id NULL: the user has no primary identifier of that kind.
CREATE OR REPLACE FUNCTION postern.make_primary(p_realm uuid, p_user uuid, p_kind text, p_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_value text;
BEGIN
    UPDATE postern.user_identifier AS i SET is_primary = false
     WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.primary_kind = p_kind AND i.id IS DISTINCT FROM p_id;
    IF p_kind = 'email' THEN
        SELECT i.value INTO v_value FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.id = p_id;
        -- The trigger marks the row.
        UPDATE postern.user_account AS u
           SET email = v_value,
               email_verified = coalesce(postern.is_proven(p_realm, p_user, postern.address_key(v_value)), false)
         WHERE u.realm_id = p_realm AND u.id = p_user AND u.email IS DISTINCT FROM v_value;
    ELSE
        UPDATE postern.user_identifier AS i SET is_primary = true
         WHERE i.realm_id = p_realm AND i.id = p_id AND NOT i.is_primary;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.make_primary IS
    'Makes one of a user''s identifiers the primary one of its kind; sessions go on';

-- An identifier that a user proves at this moment: it is that user's from now on, the primary one if it is the first
-- of its kind, and unproven claims of other users end. Raises unique_violation when another user has proven it.
CREATE OR REPLACE FUNCTION postern.prove_identifier(p_realm uuid, p_user uuid, p_kind text, p_value text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_key text := postern.address_key(p_value);
    v_claim uuid;
    v_id uuid;
BEGIN
    FOR v_claim IN
        SELECT i.id FROM postern.user_identifier AS i
         WHERE i.realm_id = p_realm AND i.key = v_key AND i.proven_key IS NULL AND i.user_id <> p_user
    LOOP
        PERFORM postern.remove_identifier(p_realm, v_claim);
    END LOOP;
    UPDATE postern.user_account AS u SET unproven_until = NULL
     WHERE u.realm_id = p_realm AND u.id = p_user AND u.unproven_until IS NOT NULL;
    IF p_kind = 'email' THEN
        -- The trigger writes the row of a primary address.
        UPDATE postern.user_account AS u SET email = coalesce(u.email, p_value), email_verified = true
         WHERE u.realm_id = p_realm AND u.id = p_user AND coalesce(u.address_key, v_key) = v_key
           AND (u.email IS NULL OR NOT u.email_verified);
    END IF;
    INSERT INTO postern.user_identifier AS i (realm_id, user_id, kind, value, is_primary, proved_at)
    VALUES (p_realm, p_user, p_kind, p_value,
            p_kind = 'phone' AND NOT EXISTS (SELECT FROM postern.user_identifier AS o
                                              WHERE o.realm_id = p_realm AND o.user_id = p_user
                                                AND o.primary_kind = p_kind),
            now())
        ON CONFLICT (realm_id, user_id, key) DO UPDATE
       SET proved_at = CASE WHEN i.kind = 'email' THEN coalesce(i.proved_at, excluded.proved_at)
                            ELSE excluded.proved_at END
    RETURNING i.id INTO v_id;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.prove_identifier IS
    'Gives a user an identifier that was proven just now; unproven claims of others end. Returns its id';
GRANT EXECUTE ON FUNCTION postern.prove_identifier TO postern_app;

-- A code or a link shows that its user receives messages at an address that is the user's already. A phone number is
-- proven anew: numbers pass to other people.
CREATE OR REPLACE FUNCTION postern.confirm_identifier(p_realm uuid, p_user uuid, p_key text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_known record;
BEGIN
    SELECT i.kind, i.value, i.proved_at INTO v_known
      FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.key = p_key;
    IF v_known.proved_at IS NULL AND v_known.kind IS NOT NULL
        OR v_known.kind = 'phone' AND v_known.proved_at < now() - interval '1 hour' THEN
        PERFORM postern.prove_identifier(p_realm, p_user, v_known.kind, v_known.value);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.confirm_identifier IS
    'An identifier of a user is proven, or a phone number proven again, by a sign-in with it';
GRANT EXECUTE ON FUNCTION postern.confirm_identifier TO postern_app;

-- A phone number that its holder last proved long ago goes to the person who proves it now. Codes that were sent there
-- stay: one of them is being redeemed. The holder keeps sessions and other ways to sign in, and is told.
CREATE OR REPLACE FUNCTION postern.release_number(p_realm uuid, p_holder uuid, p_phone text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_id uuid;
BEGIN
    -- Unproven, so that its removal takes no code with it.
    UPDATE postern.user_identifier AS i SET proved_at = NULL
     WHERE i.realm_id = p_realm AND i.user_id = p_holder AND i.proven_key = p_phone AND i.kind = 'phone'
       AND i.proved_at < postern.stale_before(p_realm)
    RETURNING i.id INTO v_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM postern.remove_identifier(p_realm, v_id);
    INSERT INTO postern.audit_event (realm_id, event, user_id, detail)
    VALUES (p_realm, 'identifier_moved', p_holder, jsonb_build_object('identifier', v_id, 'kind', 'phone'));
    PERFORM postern.queue_notice(p_realm, p_holder, 'identifier-moved',
                                 jsonb_build_object('identifier', postern.masked_identifier(p_phone)));
END
$$;
COMMENT ON FUNCTION postern.release_number IS
    'Takes a phone number from a holder who has not proven it for long, and tells the holder';
GRANT EXECUTE ON FUNCTION postern.release_number TO postern_app;

-- The account that a first proof of an address makes. Names that cannot be stored are the caller's to drop.
CREATE OR REPLACE FUNCTION postern.create_user(
    p_realm uuid, p_kind text, p_value text, p_first_name text, p_last_name text, p_locale text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user uuid;
BEGIN
    INSERT INTO postern.user_account AS u (realm_id, email_verified, first_name, last_name, locale)
    VALUES (p_realm, false, p_first_name, p_last_name, p_locale)
    RETURNING u.id INTO v_user;
    PERFORM postern.prove_identifier(p_realm, v_user, p_kind, p_value);
    RETURN v_user;
END
$$;
COMMENT ON FUNCTION postern.create_user IS 'Makes the account of somebody who has just proven an address';
GRANT EXECUTE ON FUNCTION postern.create_user TO postern_app;

RESET ROLE;
