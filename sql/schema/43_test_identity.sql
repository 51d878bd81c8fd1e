-- Test identities: accounts for app-store review, with a fixed code instead of a mailbox (docs/decisions/0015).
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.test_identity (
    realm_id     uuid NOT NULL,
    user_id      uuid NOT NULL CHECK (postern.is_test_identity(user_id)),
    client       uuid NOT NULL,
    code_id      uuid NOT NULL DEFAULT gen_random_uuid(),
    data_key     uuid,
    created_at   timestamptz NOT NULL DEFAULT now(),
    put_at       timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    pending_code text CHECK (pending_code COLLATE "C" ~ '\A[0-9]{6,12}\Z'),
    PRIMARY KEY (realm_id, user_id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE,
    CONSTRAINT test_identity_expires CHECK (expires_at <= put_at + interval '30 days'),
    CONSTRAINT test_identity_data_key FOREIGN KEY (realm_id, data_key) REFERENCES postern.data_key
        DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE postern.test_identity IS
    'Accounts with a fixed code for app-store review: one client, at most 30 days';
COMMENT ON COLUMN postern.test_identity.data_key IS 'The data key of its code''s HMAC; NULL: not keyed yet';
COMMENT ON COLUMN postern.test_identity.ended_at IS 'When its end was carried out: sessions ended, user disabled';
COMMENT ON COLUMN postern.test_identity.pending_code IS
    'The code until a running server has keyed it, a second or so; then only its HMAC is left, in login_code';
CALL postern.tenant_table('test_identity', NULL, 'cascade');

-- Without its row a test identity would be an ordinary user without any way to sign in.
CREATE FUNCTION postern.test_identity_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.user_account AS u WHERE u.realm_id = OLD.realm_id AND u.id = OLD.user_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_identity_deleted IS 'Trigger: the user of a test identity goes with it';
CREATE TRIGGER test_identity_deleted AFTER DELETE ON postern.test_identity
    FOR EACH ROW EXECUTE FUNCTION postern.test_identity_deleted();

CREATE FUNCTION postern.test_identity_stays_unverified() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'email_verified true is not for a test identity',
        HINT = 'Delete it with admin.delete_test_identity first; then the address may become an ordinary user.';
END
$$;
COMMENT ON FUNCTION postern.test_identity_stays_unverified IS 'Trigger: says why a test identity cannot be verified';
CREATE TRIGGER test_identity_stays_unverified BEFORE UPDATE OF email_verified ON postern.user_account
    FOR EACH ROW WHEN (NEW.email_verified AND postern.is_test_identity(NEW.id))
    EXECUTE FUNCTION postern.test_identity_stays_unverified();

-- A redemption deletes the codes of an address. That of a test identity comes back, under the id that handles know,
-- until its end. Ordinary codes pay for the comparison of a boolean.
CREATE FUNCTION postern.test_code_spent() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    -- Not when the user, and with it the identity, is just being deleted.
    IF OLD.expires_at > now()
       AND EXISTS (SELECT FROM postern.test_identity AS t
                     JOIN postern.user_account AS u ON u.realm_id = t.realm_id AND u.id = t.user_id
                    WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.user_id AND t.code_id = OLD.id) THEN
        INSERT INTO postern.login_code SELECT (OLD).*;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_code_spent IS 'Trigger: the code of a live test identity is never used up';
CREATE TRIGGER test_code_spent AFTER DELETE ON postern.login_code
    FOR EACH ROW WHEN (OLD.is_test) EXECUTE FUNCTION postern.test_code_spent();

-- Servers compare the codes of test identities under this key: they must know it before such a code is redeemed.
CREATE FUNCTION postern.test_code_key_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    UPDATE postern.realm AS r SET config_version = nextval('postern.config_version') WHERE r.id = NEW.realm_id;
    PERFORM pg_notify('postern_config', NEW.realm_id::text);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.test_code_key_added IS
    'Trigger: the data keys of test codes are part of a realm''s configuration';
CREATE TRIGGER test_code_key_added AFTER INSERT ON postern.data_key
    FOR EACH ROW WHEN (NEW.purpose = 'test-code') EXECUTE FUNCTION postern.test_code_key_added();

CREATE FUNCTION postern.test_identity_id() RETURNS uuid
LANGUAGE sql VOLATILE
RETURN overlay(gen_random_uuid()::text PLACING '8' FROM 15 FOR 1)::uuid;
COMMENT ON FUNCTION postern.test_identity_id IS 'A new user id for a test identity';

RESET ROLE;
