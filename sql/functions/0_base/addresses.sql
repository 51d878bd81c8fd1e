-- E-mail addresses as they are compared.
SET LOCAL ROLE postern_owner;

-- Folds ASCII letters only, as the generated columns email_key do. The collation is that of those columns: with another
-- one their indexes would be of no use, and a search would read all users of the realm.
CREATE OR REPLACE FUNCTION postern.email_key(p_email text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(p_email COLLATE "C") COLLATE "default";
COMMENT ON FUNCTION postern.email_key IS 'The key of an address: two spellings of one mailbox have the same';
GRANT EXECUTE ON FUNCTION postern.email_key TO postern_app;

CREATE OR REPLACE FUNCTION postern.find_user(p_realm uuid, p_email text) RETURNS uuid
LANGUAGE sql STABLE
AS $$
    SELECT u.id FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.email_key = postern.email_key(p_email)
$$;
COMMENT ON FUNCTION postern.find_user IS 'User by address; NULL when there is none';

RESET ROLE;
