-- E-mail addresses and phone numbers as they are compared, and whose they are.
SET LOCAL ROLE postern_owner;

-- Folds ASCII letters only, as the generated columns address_key do. The collation is that of those columns: with
-- another one their indexes would be of no use, and a search would read all users of the realm.
CREATE OR REPLACE FUNCTION postern.address_key(p_email text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(p_email COLLATE "C") COLLATE "default";
COMMENT ON FUNCTION postern.address_key IS
    'The key of an address or phone number: two spellings of one mailbox have the same';
GRANT EXECUTE ON FUNCTION postern.address_key TO postern_app;

-- Who has proven it; else whose primary address it would be; else a phone number's first claimant.
CREATE OR REPLACE FUNCTION postern.find_user(p_realm uuid, p_email text) RETURNS uuid
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(
        (SELECT i.user_id FROM postern.user_identifier AS i
          WHERE i.realm_id = p_realm AND i.proven_key = postern.address_key(p_email)),
        (SELECT u.id FROM postern.user_account AS u
          WHERE u.realm_id = p_realm AND u.address_key = postern.address_key(p_email)),
        (SELECT i.user_id FROM postern.user_identifier AS i
          WHERE i.realm_id = p_realm AND i.key = postern.address_key(p_email) AND i.proven_key IS NULL
            AND i.kind = 'phone'
          ORDER BY NOT i.is_primary, i.added_at, i.id LIMIT 1))
$$;
COMMENT ON FUNCTION postern.find_user IS 'User by e-mail address or phone number; NULL when there is none';
GRANT EXECUTE ON FUNCTION postern.find_user TO postern_app;

CREATE OR REPLACE FUNCTION postern.has_identifier(p_realm uuid, p_user uuid, p_key text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.user_identifier AS i
                    WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.key = p_key)
$$;
COMMENT ON FUNCTION postern.has_identifier IS
    'Whether a user has an address or phone number, proven or not, by its key';
GRANT EXECUTE ON FUNCTION postern.has_identifier TO postern_app;

CREATE OR REPLACE FUNCTION postern.is_proven(p_realm uuid, p_user uuid, p_key text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.user_identifier AS i
                    WHERE i.realm_id = p_realm AND i.proven_key = p_key AND i.user_id = p_user)
$$;
COMMENT ON FUNCTION postern.is_proven IS 'Whether a user has proven an address or phone number, by its key';
GRANT EXECUTE ON FUNCTION postern.is_proven TO postern_app;

CREATE OR REPLACE FUNCTION postern.identifier_keys(p_realm uuid, p_user uuid) RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    SELECT i.key FROM postern.user_identifier AS i WHERE i.realm_id = p_realm AND i.user_id = p_user
$$;
COMMENT ON FUNCTION postern.identifier_keys IS 'The keys of a user''s addresses and phone numbers';
GRANT EXECUTE ON FUNCTION postern.identifier_keys TO postern_app;

-- Notices name an address in full, since it identifies the mail; of a phone number the last four digits.
CREATE OR REPLACE FUNCTION postern.masked_identifier(p_value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN postern.is_phone(p_value) THEN left(p_value, 3) || '···' || right(p_value, 4) ELSE p_value END;
COMMENT ON FUNCTION postern.masked_identifier IS 'An address as it is; a phone number without its middle';
GRANT EXECUTE ON FUNCTION postern.masked_identifier TO postern_app;

RESET ROLE;
