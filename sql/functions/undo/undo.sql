-- The owner takes back a factor that somebody added, by the link in the notice about it.
SET LOCAL ROLE postern_owner;

-- p_kind: passkey, totp, identifier or device; p_target: its id. p_label: what the page calls it: the AAGUID of a
-- passkey, an identifier (masked), or NULL. Returns what
-- the notice's detail says of it: undo, the id, and origin, where the page is.
CREATE OR REPLACE FUNCTION postern.offer_undo(
    p_realm uuid, p_user uuid, p_kind text, p_target uuid, p_label text, p_source text)
RETURNS jsonb
LANGUAGE sql
AS $$
    INSERT INTO postern.undo_link AS l (realm_id, user_id, kind, target, label, source)
    VALUES (p_realm, p_user, p_kind, p_target, coalesce(p_label, ''), p_source)
    RETURNING jsonb_build_object('undo', l.id, 'origin', (
                  SELECT coalesce(r.public_origin, 'https://' || r.primary_domain)
                    FROM postern.realm AS r WHERE r.id = p_realm))
$$;
COMMENT ON FUNCTION postern.offer_undo IS
    'Offers, for seven days, to take an added factor away; for the notice about it';
GRANT EXECUTE ON FUNCTION postern.offer_undo TO postern_app;

-- What the page says. Changes nothing but the limits. Outcomes: shown, gone (used, expired, unknown, or the factor is
-- not there any more), rate_limited.
CREATE OR REPLACE FUNCTION postern.undo_page(
    p_realm uuid, p_id uuid,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT kind text, OUT label text, OUT added_at double precision, OUT source text,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
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
COMMENT ON FUNCTION postern.undo_page IS 'What an undo link would take away; changes nothing but the rate limits';
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
        ELSE false END
$$;
COMMENT ON FUNCTION postern.has_factor IS 'Whether a user still has a factor';
GRANT EXECUTE ON FUNCTION postern.has_factor TO postern_app;

-- What the user lost since a factor was added, as undo_link.removed has it. A proof is as old as it was; what another
-- account has proven meanwhile stays there.
CREATE OR REPLACE FUNCTION postern.give_back_identifiers(p_realm uuid, p_user uuid, p_removed jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_lost record;
    v_id uuid;
BEGIN
    FOR v_lost IN
        SELECT x.value, x.proved_at FROM jsonb_to_recordset(p_removed) AS x (value text, proved_at timestamptz)
    LOOP
        BEGIN
            v_id := postern.prove_identifier(
                p_realm, p_user, CASE WHEN postern.is_phone(v_lost.value) THEN 'phone' ELSE 'email' END, v_lost.value);
            UPDATE postern.user_identifier AS i SET proved_at = v_lost.proved_at
             WHERE i.realm_id = p_realm AND i.id = v_id;
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.give_back_identifiers IS
    'Gives a user identifiers that were removed, unless they are taken';

-- Takes the factor away and ends all access of the account, once. What its user removed after an identifier was added
-- comes back with the undo of that identifier. Outcomes: undone, gone, rate_limited.
-- SECURITY DEFINER: it removes what the app role may only add, and makes a new security stamp.
CREATE OR REPLACE FUNCTION postern.undo_factor(
    p_realm uuid, p_id uuid, p_source text,
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_link record;
    v_identifier record;
    v_passkey record;
    v_ended integer;
    v_detail jsonb;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    UPDATE postern.undo_link AS l SET used_at = now()
     WHERE l.realm_id = p_realm AND l.id = p_id AND l.used_at IS NULL AND l.expires_at > now()
       AND postern.has_factor(p_realm, l.user_id, l.kind, l.target)
    RETURNING l.user_id, l.kind, l.target, l.removed INTO v_link;
    IF NOT FOUND THEN
        outcome := 'gone';
        RETURN;
    END IF;
    outcome := 'undone';
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
        DELETE FROM postern.totp_factor AS x WHERE x.realm_id = p_realm AND x.user_id = v_link.user_id
           AND x.id = v_link.target;
        PERFORM postern.queue_notice(p_realm, v_link.user_id, 'totp-removed');
    ELSIF v_link.kind = 'device' THEN
        PERFORM postern.remove_device(p_realm, NULL, v_link.user_id, v_link.target, p_source);
    ELSE
        SELECT i.kind, i.value, i.proven_key IS NOT NULL AS proven INTO v_identifier
          FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.id = v_link.target;
        PERFORM postern.remove_identifier(p_realm, v_link.target),
                postern.give_back_identifiers(p_realm, v_link.user_id, v_link.removed);
        PERFORM postern.tell_of_removed_identifier(p_realm, v_link.user_id, v_identifier.kind, v_identifier.value,
                                                   v_identifier.proven);
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, user_id, source, detail)
    VALUES (p_realm, 'factor_undone', v_link.user_id, p_source, v_detail),
           (p_realm, 'user_signed_out', v_link.user_id, p_source,
            jsonb_build_object('reason', 'factor_undone', 'sessions', v_ended));
END
$$;
COMMENT ON FUNCTION postern.undo_factor IS
    'Takes an added factor away and ends every session, code and link of the account; once per link';
GRANT EXECUTE ON FUNCTION postern.undo_factor TO postern_app;

RESET ROLE;
