-- Test identities: accounts for app-store review, with a fixed code instead of a mailbox (docs/decisions/0015).
SET LOCAL ROLE postern_owner;

-- The flag is part of the id, so that whatever carries a user's id knows it without looking anything up: version 8 of RFC 9562,
-- where every other user has a random version 4.
CREATE FUNCTION postern.is_test_identity(p_user uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(p_user::text, 15, 1) = '8';
COMMENT ON FUNCTION postern.is_test_identity(uuid) IS 'Whether a user id is that of a test identity (UUID version 8)';

CREATE FUNCTION postern.test_identity_id() RETURNS uuid
LANGUAGE sql VOLATILE
RETURN overlay(gen_random_uuid()::text PLACING '8' FROM 15 FOR 1)::uuid;
COMMENT ON FUNCTION postern.test_identity_id() IS 'A new user id for a test identity';

-- Nobody proves the mailbox of a test identity: nothing is ever sent there, and nobody may say that it was proven.
ALTER TABLE postern.user_account
    ADD CONSTRAINT test_identity_is_unverified CHECK (NOT (email_verified AND postern.is_test_identity(id)));

CREATE FUNCTION postern.test_identity_stays_unverified() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'email_verified true is not for a test identity',
        HINT = 'Delete it with admin.delete_test_identity first; then the address may become an ordinary user.';
END
$$;
COMMENT ON FUNCTION postern.test_identity_stays_unverified() IS 'Trigger: says why a test identity cannot be verified';
CREATE TRIGGER test_identity_stays_unverified BEFORE UPDATE OF email_verified ON postern.user_account
    FOR EACH ROW WHEN (NEW.email_verified AND postern.is_test_identity(NEW.id)) EXECUTE FUNCTION postern.test_identity_stays_unverified();

CREATE TABLE postern.test_identity (
    realm_id     uuid NOT NULL,
    user_id      uuid NOT NULL CHECK (postern.is_test_identity(user_id)),
    client       uuid NOT NULL,
    code_id      uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    put_at       timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    pending_code text CHECK (pending_code COLLATE "C" ~ '\A[0-9]{6,12}\Z'),
    PRIMARY KEY (realm_id, user_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE,
    CONSTRAINT test_identity_expires CHECK (expires_at <= put_at + interval '30 days')
);
COMMENT ON TABLE postern.test_identity IS 'Accounts with a fixed code for app-store review: one client, at most 30 days';
COMMENT ON COLUMN postern.test_identity.pending_code IS 'The code until a running server has keyed it, a second or so; then only its HMAC is left, in login_code';
COMMENT ON COLUMN postern.test_identity.ended_at IS 'When its end was carried out: sessions ended, user disabled';

ALTER TABLE postern.login_code ADD COLUMN is_test boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN postern.login_code.is_test IS 'The fixed code of a test identity: comes back whenever it is spent';

-- A redemption deletes the codes of an address. That of a test identity comes back, under the id that handles know, until its end.
-- Ordinary codes pay for the comparison of a boolean.
CREATE FUNCTION postern.test_code_spent() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    -- Not when the user, and with it the identity, is just being deleted.
    IF EXISTS (SELECT FROM postern.test_identity AS t JOIN postern.user_account AS u ON u.realm_id = t.realm_id AND u.id = t.user_id
                WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.user_id AND t.code_id = OLD.id) AND OLD.expires_at > now() THEN
        INSERT INTO postern.login_code SELECT (OLD).*;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_code_spent() IS 'Trigger: the code of a live test identity is never used up';
CREATE TRIGGER test_code_spent AFTER DELETE ON postern.login_code
    FOR EACH ROW WHEN (OLD.is_test) EXECUTE FUNCTION postern.test_code_spent();

-- Without its row a test identity would be an ordinary user that nobody can sign in as.
CREATE FUNCTION postern.test_identity_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.user_account AS u WHERE u.realm_id = OLD.realm_id AND u.id = OLD.user_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_identity_deleted() IS 'Trigger: the user of a test identity goes with it';
CREATE TRIGGER test_identity_deleted AFTER DELETE ON postern.test_identity
    FOR EACH ROW EXECUTE FUNCTION postern.test_identity_deleted();

ALTER TABLE postern.test_identity ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY realm ON postern.test_identity USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm());
CREATE POLICY owner ON postern.test_identity TO postern_owner USING (true) WITH CHECK (true);
REVOKE ALL ON postern.test_identity FROM PUBLIC;

REVOKE ALL ON FUNCTION postern.is_test_identity(uuid), postern.test_identity_id(), postern.test_identity_stays_unverified(),
    postern.test_code_spent(), postern.test_identity_deleted() FROM PUBLIC;
-- Checks and functions that insert or look at users run with their caller's rights.
GRANT EXECUTE ON FUNCTION postern.is_test_identity(uuid) TO postern_app, postern_admin;

RESET ROLE;
