-- After an incident: everything that may be a thief's ends, and what is older stays.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.secure_user(
    realm text, email text, since timestamptz, restore_addresses boolean DEFAULT NULL, dry_run boolean DEFAULT NULL)
RETURNS TABLE (what text, id text, detail text, done boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_user uuid := postern.admin_user(v_realm, email);
    v_restores boolean := coalesce(restore_addresses, false);
    v_rows jsonb;
BEGIN
    IF since IS NULL OR since > now() OR NOT isfinite(since) THEN
        PERFORM postern.refuse(format('since %s is not a moment of the past', postern.shown(since::text)),
            'Give the moment from which on a thief may have had access. What was added then or later is removed.');
    END IF;
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = v_user FOR NO KEY UPDATE;
    IF NOT EXISTS (SELECT FROM postern.user_identifier AS i
                    WHERE i.realm_id = v_realm AND i.user_id = v_user AND i.added_at < since)
       AND NOT (v_restores AND EXISTS (SELECT FROM postern.restorable_identifiers(v_realm, v_user, since) AS r
                                        WHERE r.is_free)) THEN
        PERFORM postern.refuse(format('since %s leaves no address of the account', postern.shown(since::text)),
            'Give a later since, add restore_addresses => true if an older address was removed, or close the account '
            'with admin.set_user_enabled(realm, email, false).');
    END IF;
    BEGIN
        v_rows := postern.taken_from_others(v_realm, v_user) || postern.end_all_access(v_realm, v_user)
            || postern.remove_added_since(v_realm, v_user, since)
            || postern.restore_identifiers(v_realm, v_user, since, v_restores);
        IF dry_run THEN
            RAISE EXCEPTION USING ERRCODE = 'PD003', MESSAGE = 'nothing of a dry run is kept';
        END IF;
        IF EXISTS (SELECT FROM jsonb_array_elements(v_rows) AS x WHERE (x ->> 'done')::boolean) THEN
            PERFORM postern.admin_audit(v_realm, 'user_secured', user_id => v_user, detail => (
                        SELECT jsonb_object_agg(c.what, c.count) || jsonb_build_object('since', since)
                          FROM (SELECT x ->> 'what' AS what, count(*) AS count FROM jsonb_array_elements(v_rows) AS x
                                 WHERE (x ->> 'done')::boolean GROUP BY 1) AS c)),
                    postern.queue_notice(v_realm, v_user, 'account-secured');
        END IF;
    EXCEPTION WHEN SQLSTATE 'PD003' THEN
        NULL;
    END;
    RETURN QUERY
    SELECT x ->> 'what', x ->> 'id', x ->> 'detail', (x ->> 'done')::boolean AND NOT coalesce(dry_run, false)
      FROM jsonb_array_elements(v_rows) WITH ORDINALITY AS r (x, place) ORDER BY r.place;
END
$$;
COMMENT ON FUNCTION admin.secure_user IS
'Secures an account after an incident, and says what it did: one row for each thing.
Ends every session, browser session, token, code, link, handle, authorization code, proof of an address, request for
approval, proof of a number and undo link of the account, and its known devices. Removes what was added at or after
since: passkeys, the second factor with its recovery codes, addresses and numbers, trusted devices, keys bound to a
number, consents. What is older stays and works. All addresses that are left get one mail, without an undo link.
A row other-account says that an address of this account was that one''s within the last 30 days. Nothing is done to
that account: find out whose the address is, and secure the right one, by its id.
email: an address, the phone number or the id of the user.
since: the moment from which on a thief may have had access.
restore_addresses: addresses removed at or after since that are older come back as proven, unless another user has them.
They are kept for 30 days. Without it they are listed, not done.
dry_run: lists what the call would do, and does nothing.
Repeated, it does only what is new.
Example: SELECT admin.secure_user(''acme'', ''ada@example.com'', now() - interval ''3 days'', dry_run => true);';

CREATE OR REPLACE FUNCTION postern.secured(p_what text, p_id text, p_detail text, p_done boolean DEFAULT true)
RETURNS jsonb
LANGUAGE sql IMMUTABLE
RETURN jsonb_build_object('what', p_what, 'id', p_id, 'detail', p_detail, 'done', p_done);
COMMENT ON FUNCTION postern.secured IS 'A row of admin.secure_user';

-- A thief who removes an address from its account and proves it in one of his own is who is found by it then.
CREATE OR REPLACE FUNCTION postern.taken_from_others(p_realm uuid, p_user uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(postern.secured('other-account', r.user_id::text, postern.masked_identifier(r.value),
                                              false) ORDER BY r.removed_at), '[]')
      FROM postern.identifier_keys(p_realm, p_user) AS k (key), LATERAL (
          SELECT r.user_id, r.value, r.removed_at FROM postern.removed_identifier AS r
           WHERE r.realm_id = p_realm AND r.key = k.key OFFSET 0) AS r
     WHERE r.user_id <> p_user
$$;
COMMENT ON FUNCTION postern.taken_from_others IS
    'Accounts that have lost an address in the last 30 days that is this one''s now';

-- Ceremonies of an enrolment end with their session; those of a sign-in, offers of devices and states of pages belong
-- to no account until a person has proven something.
CREATE OR REPLACE FUNCTION postern.end_all_access(p_realm uuid, p_user uuid) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_keys text[] := ARRAY(SELECT postern.identifier_keys(p_realm, p_user));
    v_rows jsonb := '[]';
BEGIN
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('session', s.id::text, s.client_id)), '[]') INTO v_rows
      FROM postern.session AS s JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = p_user
     WHERE s.realm_id = p_realm AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > now()
       AND coalesce(s.refresh_expires_at > now(), true) AND s.security_stamp = u.security_stamp;
    WITH x AS (DELETE FROM postern.authorization_code AS c
                WHERE c.realm_id = p_realm AND c.user_id = p_user AND c.used_at IS NULL
               RETURNING c.client, c.expires_at)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('authorization-code', NULL, k.client_id)), '[]') INTO v_rows
      FROM x JOIN postern.client AS k ON k.realm_id = p_realm AND k.id = x.client WHERE x.expires_at > now();
    WITH x AS (UPDATE postern.address_verification AS p SET revoked_at = now()
                WHERE p.realm_id = p_realm AND p.revoked_at IS NULL AND p.expires_at > now()
                  AND p.id = ANY (ARRAY(
                      SELECT v.id FROM postern.browser_session AS b, LATERAL (
                          SELECT v.id FROM postern.address_verification AS v
                           WHERE v.realm_id = p_realm AND v.browser_session = b.id OFFSET 0) AS v
                       WHERE b.realm_id = p_realm AND b.user_id = p_user))
               RETURNING p.id, p.kind)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('address-proof', x.id::text, x.kind)), '[]') INTO v_rows FROM x;
    WITH x AS (UPDATE postern.browser_session AS b SET ended_at = now()
                WHERE b.realm_id = p_realm AND b.user_id = p_user AND b.ended_at IS NULL
               RETURNING b.id, b.host, b.security_stamp, least(b.idle_expires_at, b.expires_at) > now() AS was_alive)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('browser-session', x.id::text, x.host)), '[]') INTO v_rows
      FROM x JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = p_user
     WHERE x.was_alive AND x.security_stamp = u.security_stamp;
    WITH x AS (DELETE FROM postern.login_code AS c WHERE c.realm_id = p_realm AND c.address_key = ANY (v_keys)
               RETURNING c.id, c.address_key, c.expires_at)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('code', x.id::text,
                                                        postern.masked_identifier(x.address_key))), '[]') INTO v_rows
      FROM x WHERE x.expires_at > now();
    WITH x AS (UPDATE postern.login_link AS l SET ended = 'superseded'
                WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.ended IS NULL
               RETURNING l.address_key, l.expires_at)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('link', NULL, x.address_key)), '[]') INTO v_rows
      FROM x WHERE x.expires_at > now();
    WITH x AS (DELETE FROM postern.sign_in_request AS a
                WHERE a.realm_id = p_realm
                  AND (a.address_key = ANY (v_keys) OR a.user_id = p_user OR a.confirmed_user = p_user
                       OR a.hint_user = p_user)
               RETURNING a.kind, a.expires_at)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('handle', NULL, x.kind)), '[]') INTO v_rows
      FROM x WHERE x.expires_at > now();
    DELETE FROM postern.message_outbox AS m
     WHERE m.realm_id = p_realm AND m.state = 'queued' AND m.payload IS NOT NULL
       AND left(lower(m.recipient COLLATE "C"), 254) = ANY (v_keys);
    WITH x AS (UPDATE postern.undo_link AS l SET used_at = now()
                WHERE l.realm_id = p_realm AND l.user_id = p_user AND l.used_at IS NULL
               RETURNING l.id, l.kind, l.expires_at)
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('undo-link', x.id::text, x.kind)), '[]') INTO v_rows
      FROM x WHERE x.expires_at > now();
    v_rows := v_rows || postern.end_transactions(p_realm, p_user, v_keys);
    UPDATE postern.user_account AS u SET security_stamp = gen_random_uuid(), known_since = now()
     WHERE u.realm_id = p_realm AND u.id = p_user;
    IF postern.end_access(p_realm, p_user) > 0 OR jsonb_array_length(v_rows) > 0 THEN
        PERFORM postern.admin_audit(p_realm, 'user_signed_out', user_id => p_user, detail => jsonb_build_object(
            'reason', 'user_secured', 'sessions', (SELECT count(*) FROM jsonb_array_elements(v_rows) AS x
                                                    WHERE x ->> 'what' = 'session')));
    END IF;
    RETURN v_rows;
END
$$;
COMMENT ON FUNCTION postern.end_all_access IS
    'Ends all that lets somebody in to an account or will do so, but for its factors; says what ended';

-- Requests for approval that name the user, and proofs of the user's numbers. What was passed for a number stays passed
-- for the backend that asked, and signs no user in.
CREATE OR REPLACE FUNCTION postern.end_transactions(p_realm uuid, p_user uuid, p_keys text[]) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(postern.secured('approval', e.id::text, NULL)), '[]') INTO v_rows
      FROM postern.end_approvals(p_realm, p_user) AS e (id);
    SELECT v_rows || coalesce(jsonb_agg(postern.secured('proof-of-number', t.id::text, t.kind)), '[]') INTO v_rows
      FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.phone = ANY (p_keys) AND t.kind <> 'approval' AND t.expires_at > now()
       AND (t.state IN ('open', 'sent', 'linked', 'required') OR t.state = 'passed' AND t.security_stamp IS NOT NULL);
    PERFORM postern.end_possessions(p_realm, k.phone)
       FROM unnest(p_keys) AS k (phone) WHERE postern.is_phone(k.phone);
    RETURN v_rows;
END
$$;
COMMENT ON FUNCTION postern.end_transactions IS
    'Ends live requests for approval of a user and proofs of the user''s numbers; says which';

CREATE OR REPLACE FUNCTION postern.remove_added_since(p_realm uuid, p_user uuid, p_since timestamptz) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows jsonb := '[]';
    v_added record;
BEGIN
    FOR v_added IN
        DELETE FROM postern.passkey AS p WHERE p.realm_id = p_realm AND p.user_id = p_user AND p.created_at >= p_since
        RETURNING p.id, coalesce(p.display_name, p.rp_id) AS name, p.transports
    LOOP
        v_rows := v_rows || postern.secured('passkey', v_added.id::text, v_added.name);
        PERFORM postern.admin_audit(p_realm, 'passkey_deleted', user_id => p_user, detail => jsonb_build_object(
            'passkey', v_added.id, 'transports', v_added.transports));
    END LOOP;
    FOR v_added IN
        DELETE FROM postern.totp_factor AS f
         WHERE f.realm_id = p_realm AND f.user_id = p_user AND f.created_at >= p_since RETURNING f.id
    LOOP
        v_rows := v_rows || postern.secured('second-factor', v_added.id::text, NULL);
        PERFORM postern.admin_audit(p_realm, 'totp_removed', user_id => p_user);
    END LOOP;
    -- Before the numbers go, with which all their keys would.
    FOR v_added IN
        SELECT k.id FROM postern.device_key AS k
         WHERE k.realm_id = p_realm AND k.phone_at >= p_since
           AND k.phone IN (SELECT i.value FROM postern.user_identifier AS i
                            WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = 'phone')
           FOR UPDATE
    LOOP
        v_rows := v_rows || postern.secured('phone-key', v_added.id::text, NULL);
        PERFORM postern.unbind_phone(p_realm, v_added.id, 'secured');
    END LOOP;
    FOR v_added IN
        SELECT d.id, coalesce(d.display_name, '') AS name FROM postern.device_key AS d
         WHERE d.realm_id = p_realm AND d.user_id = p_user AND d.added_at >= p_since
    LOOP
        v_rows := v_rows || postern.secured('device', v_added.id::text, v_added.name);
        PERFORM postern.forget_device(p_realm, v_added.id),
                postern.admin_audit(p_realm, 'device_removed', user_id => p_user,
                                    detail => jsonb_build_object('device', v_added.id));
    END LOOP;
    FOR v_added IN
        SELECT i.id, i.kind, i.value FROM postern.user_identifier AS i
         WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.added_at >= p_since ORDER BY i.is_primary
    LOOP
        v_rows := v_rows || postern.secured('address', v_added.id::text, postern.masked_identifier(v_added.value));
        PERFORM postern.remove_identifier(p_realm, v_added.id),
                postern.admin_audit(p_realm, 'identifier_removed', user_id => p_user, detail => jsonb_build_object(
                    'identifier', v_added.id, 'kind', v_added.kind));
    END LOOP;
    FOR v_added IN
        DELETE FROM postern.consent AS c
         USING postern.client AS k
         WHERE c.realm_id = p_realm AND c.user_id = p_user AND c.given_at >= p_since AND k.realm_id = p_realm
           AND k.id = c.client
        RETURNING c.client, k.client_id
    LOOP
        v_rows := v_rows || postern.secured('consent', v_added.client_id, NULL);
        PERFORM postern.admin_audit(p_realm, 'consent_revoked', v_added.client, p_user);
    END LOOP;
    RETURN v_rows;
END
$$;
COMMENT ON FUNCTION postern.remove_added_since IS
    'Removes the factors, addresses, devices and consents that an account got at or after a moment; says which';

-- What was removed at or after p_since. is_old: it had been the account's before; is_free: it is, and no other account
-- has proven it.
CREATE OR REPLACE FUNCTION postern.restorable_identifiers(p_realm uuid, p_user uuid, p_since timestamptz)
RETURNS TABLE (id uuid, value text, is_old boolean, is_free boolean)
LANGUAGE sql STABLE
AS $$
    SELECT r.id, r.value, r.added_at < p_since,
           r.added_at < p_since AND NOT EXISTS (SELECT FROM postern.user_identifier AS i
                                                 WHERE i.realm_id = p_realm AND i.proven_key = r.key)
      FROM postern.removed_identifier AS r
     WHERE r.realm_id = p_realm AND r.user_id = p_user AND r.removed_at >= p_since
     ORDER BY r.was_primary DESC, r.added_at
$$;
COMMENT ON FUNCTION postern.restorable_identifiers IS 'Identifiers that an account has lost since a moment';

CREATE OR REPLACE FUNCTION postern.restore_identifiers(
    p_realm uuid, p_user uuid, p_since timestamptz, p_restore boolean) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_rows jsonb := '[]';
    v_lost record;
    v_id uuid;
BEGIN
    FOR v_lost IN
        SELECT r.* FROM postern.restorable_identifiers(p_realm, p_user, p_since) AS r WHERE r.is_old
    LOOP
        v_id := CASE WHEN p_restore AND v_lost.is_free THEN postern.give_back_identifier(p_realm, v_lost.id) END;
        v_rows := v_rows || postern.secured('removed-address', coalesce(v_id, v_lost.id)::text,
                                            postern.masked_identifier(v_lost.value), v_id IS NOT NULL);
        IF v_id IS NOT NULL THEN
            PERFORM postern.admin_audit(p_realm, 'identifier_added', user_id => p_user, detail => jsonb_build_object(
                'identifier', v_id, 'kind', CASE WHEN postern.is_phone(v_lost.value) THEN 'phone' ELSE 'email' END));
        END IF;
    END LOOP;
    RETURN v_rows;
END
$$;
COMMENT ON FUNCTION postern.restore_identifiers IS
    'Lists identifiers that an account has lost since a moment, and gives back those that are older';

RESET ROLE;
