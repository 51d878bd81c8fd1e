-- The owner undoes what somebody did to the account, by the link in the notice about it.
SET LOCAL ROLE postern_owner;

-- For the detail of a notice (postern.queue_notice), which makes a link for each address that it goes to. p_kind:
-- passkey, totp, identifier, device, phone-key (was added; p_target is its id) or removal (p_target is the id that the
-- identifier had). p_label: what the page calls it: the AAGUID of a passkey, an identifier (masked), or NULL. p_before:
-- only addresses that were the account's before that time get a link; NULL: all.
CREATE OR REPLACE FUNCTION postern.offer_undo(
    p_realm uuid, p_user uuid, p_kind text, p_target uuid, p_label text, p_source text,
    p_before timestamptz DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql IMMUTABLE
AS $$
    SELECT jsonb_build_object('offer', jsonb_build_object(
               'kind', p_kind, 'target', p_target, 'label', p_label, 'source', p_source, 'before', p_before))
$$;
COMMENT ON FUNCTION postern.offer_undo IS
    'Offers, for seven days, to undo a change of an account; for the notice about it';
GRANT EXECUTE ON FUNCTION postern.offer_undo TO postern_app;

-- Since when an address or number is an account's. A removed one counts while its removal is contested.
CREATE OR REPLACE FUNCTION postern.proven_since(p_realm uuid, p_user uuid, p_key text) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT least(i.added_at, i.proved_at)
      FROM postern.user_identifier AS i
     WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.key = p_key AND i.proven_key IS NOT NULL
     UNION ALL
    SELECT least(r.added_at, r.proved_at)
      FROM postern.removed_identifier AS r
     WHERE r.realm_id = p_realm AND r.user_id = p_user AND r.key = p_key AND r.is_contested
     LIMIT 1
$$;
COMMENT ON FUNCTION postern.proven_since IS 'Since when an address is proven for an account; NULL: it is not';
GRANT EXECUTE ON FUNCTION postern.proven_since TO postern_app;

-- p_offer: as offer_undo made it. Returns what the notice's detail says of the link: undo, its id, and origin, where
-- the page is; nothing for an address that gets none.
CREATE OR REPLACE FUNCTION postern.undo_link_for(p_realm uuid, p_user uuid, p_offer jsonb, p_recipient text)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_key text := postern.address_key(p_recipient);
    v_since timestamptz := postern.proven_since(p_realm, p_user, v_key);
    v_id uuid;
BEGIN
    IF p_offer IS NULL OR v_since IS NULL OR v_since >= (p_offer ->> 'before')::timestamptz THEN
        RETURN '{}';
    END IF;
    INSERT INTO postern.undo_link AS l (realm_id, user_id, kind, target, label, source, sent_to, proven_at)
    VALUES (p_realm, p_user, p_offer ->> 'kind', (p_offer ->> 'target')::uuid, coalesce(p_offer ->> 'label', ''),
            p_offer ->> 'source', v_key, v_since)
    RETURNING l.id INTO v_id;
    RETURN jsonb_build_object('undo', v_id, 'origin', (
               SELECT coalesce(r.public_origin, 'https://' || r.primary_domain)
                 FROM postern.realm AS r WHERE r.id = p_realm));
END
$$;
COMMENT ON FUNCTION postern.undo_link_for IS 'Makes the undo link of one address that a notice goes to';
GRANT EXECUTE ON FUNCTION postern.undo_link_for TO postern_app;

-- What the page says. Changes nothing but the limits. Outcomes: shown, gone (used, expired, unknown, or the factor is
-- not there any more), rate_limited.
CREATE OR REPLACE FUNCTION postern.undo_page(
    p_realm uuid, p_id uuid,
    p_permits postern.permits,
    OUT outcome text, OUT kind text, OUT label text, OUT added_at double precision, OUT source text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    SELECT l.kind, l.label, date_part('epoch', l.created_at), l.source INTO kind, label, added_at, source
      FROM postern.undo_link AS l
     WHERE l.realm_id = p_realm AND l.id = p_id AND l.used_at IS NULL AND l.expires_at > now()
       AND postern.has_factor(p_realm, l.user_id, l.kind, l.target);
    outcome := CASE WHEN FOUND THEN 'shown' ELSE 'gone' END;
END
$$;
COMMENT ON FUNCTION postern.undo_page IS 'What an undo link would undo; changes nothing but the rate limits';
GRANT EXECUTE ON FUNCTION postern.undo_page TO postern_app;

-- SECURITY DEFINER: the app role does not read keys of devices.
CREATE OR REPLACE FUNCTION postern.has_factor(p_realm uuid, p_user uuid, p_kind text, p_target uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT CASE p_kind
        WHEN 'passkey' THEN EXISTS (SELECT FROM postern.passkey AS x
                                     WHERE x.realm_id = p_realm AND x.user_id = p_user AND x.id = p_target)
        WHEN 'totp' THEN EXISTS (SELECT FROM postern.totp_factor AS x
                                  WHERE x.realm_id = p_realm AND x.user_id = p_user AND x.id = p_target)
        WHEN 'identifier' THEN EXISTS (SELECT FROM postern.user_identifier AS x
                                        WHERE x.realm_id = p_realm AND x.user_id = p_user AND x.id = p_target)
        WHEN 'device' THEN EXISTS (SELECT FROM postern.device_key AS x
                                    WHERE x.realm_id = p_realm AND x.user_id = p_user AND x.id = p_target)
        WHEN 'phone-key' THEN EXISTS (SELECT FROM postern.device_key AS x
                                       WHERE x.realm_id = p_realm AND x.id = p_target
                                         AND postern.phone_of_user(x, p_user) IS NOT NULL)
        WHEN 'removal' THEN EXISTS (SELECT FROM postern.removed_identifier AS x
                                     WHERE x.realm_id = p_realm AND x.user_id = p_user AND x.id = p_target
                                       AND NOT EXISTS (SELECT FROM postern.user_identifier AS i
                                                        WHERE i.realm_id = p_realm AND i.proven_key = x.key))
        ELSE false END
$$;
COMMENT ON FUNCTION postern.has_factor IS 'Whether what an undo link is about can still be undone';
GRANT EXECUTE ON FUNCTION postern.has_factor TO postern_app;

-- A removed identifier is the account's again, proven when it was; the primary one if it was. Returns its new id; NULL:
-- another account has proven it meanwhile.
CREATE OR REPLACE FUNCTION postern.give_back_identifier(p_realm uuid, p_removed uuid) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_lost postern.removed_identifier;
    v_id uuid;
BEGIN
    SELECT r.* INTO v_lost FROM postern.removed_identifier AS r WHERE r.realm_id = p_realm AND r.id = p_removed;
    BEGIN
        v_id := postern.prove_identifier(p_realm, v_lost.user_id, v_lost.kind, v_lost.value);
    EXCEPTION WHEN unique_violation THEN
        RETURN NULL;
    END;
    UPDATE postern.user_identifier AS i SET added_at = v_lost.added_at, proved_at = v_lost.proved_at
     WHERE i.realm_id = p_realm AND i.id = v_id;
    IF v_lost.was_primary THEN
        PERFORM postern.make_primary(p_realm, v_lost.user_id, v_lost.kind, v_id);
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.give_back_identifier IS
    'Gives an account an identifier that it has lost; NULL when another account has it';

-- Undoes one change and ends all access of the account, once. It takes away what was added, and with an identifier
-- gives back what was removed in contest since; or it gives back what was removed. What is older than the undone change
-- stays. Of two addresses that undo each other's changes the one that was proven longer ago wins: the links of the
-- other end, and it gets no new one. Outcomes: undone, restored (a removal), gone, rate_limited.
-- SECURITY DEFINER: it removes what the app role may only add, and makes a new security stamp.
CREATE OR REPLACE FUNCTION postern.undo_factor(
    p_realm uuid, p_id uuid, p_source text,
    p_permits postern.permits,
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_user uuid := (SELECT l.user_id FROM postern.undo_link AS l WHERE l.realm_id = p_realm AND l.id = p_id);
    v_link postern.undo_link;
    v_passkey record;
    v_ended integer;
    v_detail jsonb;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    -- Before the link, as whatever ends links does (postern.hold_session_owner).
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = v_user FOR NO KEY UPDATE;
    UPDATE postern.undo_link AS l SET used_at = now()
     WHERE l.realm_id = p_realm AND l.id = p_id AND l.used_at IS NULL AND l.expires_at > now()
       AND postern.has_factor(p_realm, l.user_id, l.kind, l.target)
    RETURNING l.* INTO v_link;
    IF NOT FOUND THEN
        outcome := 'gone';
        RETURN;
    END IF;
    outcome := CASE v_link.kind WHEN 'removal' THEN 'restored' ELSE 'undone' END;
    UPDATE postern.user_account AS u SET security_stamp = gen_random_uuid()
     WHERE u.realm_id = p_realm AND u.id = v_link.user_id;
    v_ended := postern.end_access(p_realm, v_link.user_id);
    v_detail := jsonb_build_object('kind', v_link.kind, 'target', v_link.target);
    IF v_link.kind = 'passkey' THEN
        DELETE FROM postern.passkey AS x WHERE x.realm_id = p_realm AND x.id = v_link.target
        RETURNING x.aaguid, x.transports INTO v_passkey;
        v_detail := v_detail || jsonb_build_object('transports', v_passkey.transports);
        PERFORM postern.queue_notice(p_realm, v_link.user_id, 'passkey-removed',
                                     jsonb_strip_nulls(jsonb_build_object('aaguid', v_passkey.aaguid)));
    ELSIF v_link.kind = 'totp' THEN
        DELETE FROM postern.totp_factor AS x
         WHERE x.realm_id = p_realm AND x.user_id = v_link.user_id AND x.id = v_link.target;
        PERFORM postern.queue_notice(p_realm, v_link.user_id, 'totp-removed');
    ELSIF v_link.kind = 'device' THEN
        PERFORM postern.remove_device(p_realm, NULL, v_link.user_id, v_link.target, p_source);
    ELSIF v_link.kind = 'phone-key' THEN
        -- A trusted device stays one.
        PERFORM postern.unbind_phone(p_realm, v_link.target, 'owner', p_user => v_link.user_id),
                postern.queue_notice(p_realm, v_link.user_id, 'device-removed');
    ELSE
        PERFORM postern.undo_of_identifier(v_link, p_source);
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, user_id, source, detail)
    VALUES (p_realm, 'factor_undone', v_link.user_id, p_source, v_detail),
           (p_realm, 'user_signed_out', v_link.user_id, p_source,
            jsonb_build_object('reason', 'factor_undone', 'sessions', v_ended));
END
$$;
COMMENT ON FUNCTION postern.undo_factor IS
    'Undoes a change of an account and ends every session, code and link of it; once per link';
GRANT EXECUTE ON FUNCTION postern.undo_factor TO postern_app;

CREATE OR REPLACE FUNCTION postern.undo_of_identifier(p_link postern.undo_link, p_source text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_link.realm_id;
    v_user uuid := p_link.user_id;
    v_lost record;
    v_id uuid;
BEGIN
    -- Links of addresses that were proven after the one that undoes.
    UPDATE postern.undo_link AS l SET used_at = now()
     WHERE l.realm_id = v_realm AND l.user_id = v_user AND l.used_at IS NULL AND l.proven_at > p_link.proven_at;
    IF p_link.kind = 'identifier' THEN
        SELECT i.kind, i.value, i.proven_key IS NOT NULL AS proven INTO v_lost
          FROM postern.user_identifier AS i WHERE i.realm_id = v_realm AND i.id = p_link.target;
        PERFORM postern.contest_removal(v_realm, p_link.target, p_link.proven_at),
                postern.remove_identifier(v_realm, p_link.target);
        PERFORM postern.tell_of_removed_identifier(
            v_realm, v_user, v_lost.kind, v_lost.value, v_lost.proven,
            postern.offer_undo(v_realm, v_user, 'removal', p_link.target, postern.masked_identifier(v_lost.value),
                               p_source, p_link.proven_at));
    END IF;
    FOR v_lost IN
        SELECT r.id, postern.masked_identifier(r.value) AS masked FROM postern.removed_identifier AS r
         WHERE r.realm_id = v_realm AND r.user_id = v_user
           AND CASE p_link.kind WHEN 'removal' THEN r.id = p_link.target
                    ELSE r.is_contested AND r.id <> p_link.target AND r.removed_at > p_link.created_at
                         AND r.added_at < p_link.created_at END
    LOOP
        v_id := postern.give_back_identifier(v_realm, v_lost.id);
        CONTINUE WHEN v_id IS NULL;
        PERFORM postern.queue_notice(
            v_realm, v_user, 'identifier-added', jsonb_build_object('identifier', v_lost.masked)
            || postern.offer_undo(v_realm, v_user, 'identifier', v_id, v_lost.masked, p_source, p_link.proven_at));
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.undo_of_identifier IS
    'Removes an added identifier and gives back what was lost since, or gives back a removed one; tells all addresses';

RESET ROLE;
