-- Provisioning: the addresses and phone numbers of people.
SET LOCAL ROLE postern_owner;

-- p_verified, p_primary: NULL leaves the setting; a new identifier is then proven, and the primary one if it is the
-- first of its kind.
CREATE OR REPLACE FUNCTION postern.admin_identifier(
    p_realm uuid, p_user uuid, p_kind text, p_value text, p_verified boolean, p_primary boolean)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_key text := postern.address_key(p_value);
    v_old record;
    v_lost record;
    v_id uuid;
    v_proven boolean;
BEGIN
    IF postern.is_test_identity(p_user) THEN
        PERFORM postern.refuse(format('user_id "%s" is a test identity', p_user),
            'A test identity has the one address that it was put with.');
    END IF;
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user FOR NO KEY UPDATE;
    SELECT i.id, i.is_primary, i.proven_key IS NOT NULL AS proven INTO v_old
      FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.key = v_key;
    v_proven := coalesce(p_verified, v_old.proven, true);
    IF p_primary AND NOT v_proven THEN
        PERFORM postern.refuse(format('value %s is not verified', postern.shown(p_value)),
            'Only a verified identifier can be the primary one: add verified => true.');
    END IF;
    IF NOT p_primary AND v_old.is_primary THEN
        PERFORM postern.refuse(format('value %s is the primary identifier of its kind', postern.shown(p_value)),
            'Put another one of that kind with is_primary => true.');
    END IF;
    IF v_proven AND postern.identifier_holder(p_realm, v_key, p_user) IS NOT NULL THEN
        PERFORM postern.refuse(format('value %s belongs to another user', postern.shown(p_value)),
            'An address or phone number belongs to one user of a realm: delete it there first.');
    END IF;
    IF v_old.id IS NULL
       AND (SELECT count(*) FROM postern.user_identifier AS i
             WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = p_kind) >= 5 THEN
        PERFORM postern.refuse(format('user "%s" has five identifiers of kind %s', p_user, p_kind),
            'Five is the most: delete one with admin.delete_identifier first.');
    END IF;
    IF v_proven AND NOT coalesce(v_old.proven, false) THEN
        -- One that comes back is as old as it was.
        SELECT r.added_at, r.proved_at INTO v_lost FROM postern.removed_identifier AS r
         WHERE r.realm_id = p_realm AND r.user_id = p_user AND r.key = v_key ORDER BY r.added_at LIMIT 1;
        v_id := postern.prove_identifier(p_realm, p_user, p_kind, p_value);
        UPDATE postern.user_identifier AS i
           SET added_at = v_lost.added_at,
               proved_at = CASE i.kind WHEN 'phone' THEN i.proved_at ELSE v_lost.proved_at END
         WHERE i.realm_id = p_realm AND i.id = v_id AND v_lost.added_at < i.added_at;
    ELSIF v_old.id IS NULL THEN
        INSERT INTO postern.user_identifier AS i (realm_id, user_id, kind, value)
        VALUES (p_realm, p_user, p_kind, p_value)
        RETURNING i.id INTO v_id;
    ELSE
        v_id := v_old.id;
        UPDATE postern.user_identifier AS i
           SET value = p_value, proved_at = CASE WHEN v_proven THEN i.proved_at END
         WHERE i.realm_id = p_realm AND i.id = v_id;
        UPDATE postern.user_account AS u SET email_verified = v_proven
         WHERE u.realm_id = p_realm AND u.id = p_user AND u.address_key = v_key AND u.email_verified <> v_proven;
    END IF;
    IF p_primary THEN
        PERFORM postern.make_primary(p_realm, p_user, p_kind, v_id);
    END IF;
    PERFORM postern.admin_audit(p_realm,
                                CASE WHEN v_old.id IS NULL THEN 'identifier_added' ELSE 'identifier_updated' END,
                                user_id => p_user,
                                detail => jsonb_build_object('identifier', v_id, 'kind', p_kind, 'verified', v_proven,
                                                             'is_primary', p_primary));
    IF v_old.id IS NULL AND v_proven THEN
        PERFORM postern.queue_notice(p_realm, p_user, 'identifier-added',
                                     jsonb_build_object('identifier', postern.masked_identifier(p_value)));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.admin_identifier IS
    'Gives a user an address or phone number, or changes what is known of one, for administrators';

CREATE OR REPLACE FUNCTION postern.admin_user_id(p_realm uuid, p_user uuid) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user) THEN
        PERFORM postern.refuse(format('user_id %s is not a user of this realm', postern.shown(p_user::text)),
            'SELECT id, email, phone FROM admin.users WHERE realm = … lists them.');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.admin_user_id IS 'Refuses an id that is no user''s';

CREATE OR REPLACE FUNCTION postern.check_identifier(kind text, value text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.check_choice('kind', coalesce(kind, ''), 'email', 'phone');
    IF kind = 'email' THEN
        PERFORM postern.check_email('value', value);
    ELSE
        PERFORM postern.check_phone('value', value);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_identifier IS 'Refuses a value that is not of its kind';

CREATE OR REPLACE FUNCTION admin.put_identifier(
    realm text, user_id uuid, kind text, value text, verified boolean DEFAULT NULL, is_primary boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    PERFORM postern.admin_user_id(v_realm, user_id);
    PERFORM postern.check_identifier(kind, value);
    PERFORM postern.admin_identifier(v_realm, user_id, kind, value, verified, is_primary);
END
$$;
COMMENT ON FUNCTION admin.put_identifier IS
'Gives a user an e-mail address or a phone number, five of each at most. NULL leaves a setting as it is.
kind: email, phone. value: an address, or a number in E.164 form.
verified: default true. An unverified one signs no user in, and gives way to another user who proves it.
is_primary: the one in the claims; the first verified one of its kind is. Sessions go on; the other addresses are told.
Example: SELECT admin.put_identifier(''acme'', id, ''phone'', ''+4366412345678'') FROM admin.users
    WHERE realm = ''acme'' AND email = ''ada@example.com'';';

CREATE OR REPLACE FUNCTION admin.delete_identifier(realm text, user_id uuid, kind text, value text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_old record;
BEGIN
    PERFORM postern.admin_user_id(v_realm, user_id);
    PERFORM postern.check_identifier(kind, value);
    PERFORM FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.id = user_id FOR NO KEY UPDATE;
    SELECT i.id, i.value, i.proven_key IS NOT NULL AS proven INTO v_old
      FROM postern.user_identifier AS i
     WHERE i.realm_id = v_realm AND i.user_id = user_id AND i.key = postern.address_key(value);
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('value %s is not an identifier of this user', postern.shown(value)),
            'SELECT kind, value FROM admin.identifiers WHERE realm = … AND user_id = … lists them.');
    END IF;
    IF NOT EXISTS (SELECT FROM postern.user_identifier AS i
                    WHERE i.realm_id = v_realm AND i.user_id = user_id AND i.id <> v_old.id) THEN
        PERFORM postern.refuse(format('value %s is the only identifier of this user', postern.shown(value)),
            'A user needs one: put another first, or delete the user.');
    END IF;
    PERFORM postern.remove_identifier(v_realm, v_old.id);
    PERFORM postern.admin_audit(v_realm, 'identifier_removed', user_id => user_id,
                                detail => jsonb_build_object('identifier', v_old.id, 'kind', kind));
    PERFORM postern.tell_of_removed_identifier(v_realm, user_id, kind, v_old.value, v_old.proven);
END
$$;
COMMENT ON FUNCTION admin.delete_identifier IS
'Takes an address or a phone number from a user, with codes and links that were sent there; not the last one. When it
was the primary one, the oldest verified one of its kind takes its place. Sessions go on; all addresses are told.
Example: SELECT admin.delete_identifier(''acme'', id, ''phone'', ''+4366412345678'') FROM admin.users
    WHERE realm = ''acme'' AND email = ''ada@example.com'';';

-- What went is told too, so that its owner hears of it if somebody else removed it. p_offer: as postern.offer_undo
-- makes it.
CREATE OR REPLACE FUNCTION postern.tell_of_removed_identifier(
    p_realm uuid, p_user uuid, p_kind text, p_value text, p_proven boolean, p_offer jsonb DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_detail jsonb := jsonb_build_object('identifier', postern.masked_identifier(p_value)) || coalesce(p_offer, '{}');
BEGIN
    PERFORM postern.queue_notice(p_realm, p_user, 'identifier-removed', v_detail);
    IF p_kind = 'email' AND p_proven THEN
        PERFORM postern.queue_notice(p_realm, p_user, 'identifier-removed', v_detail, p_value);
    ELSIF p_proven THEN
        PERFORM postern.queue_notice_by_sms(p_realm, p_user, p_value, 'identifier-removed', v_detail, u.locale)
           FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.tell_of_removed_identifier IS
    'Queues the notices that an identifier was removed, to those that are left and to itself';
GRANT EXECUTE ON FUNCTION postern.tell_of_removed_identifier TO postern_app;

CREATE OR REPLACE VIEW admin.identifiers AS
SELECT r.slug AS realm, i.user_id, i.id, i.kind, i.value, i.proved_at IS NOT NULL AS verified, i.is_primary, i.added_at,
       i.proved_at
  FROM postern.user_identifier AS i JOIN postern.realm AS r ON r.id = i.realm_id;
COMMENT ON VIEW admin.identifiers IS 'E-mail addresses and phone numbers of users; unverified ones sign no user in';

RESET ROLE;
