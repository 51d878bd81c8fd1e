-- People, and what goes with an account that is deleted.
SET LOCAL ROLE postern_owner;

-- Test identities (docs/decisions/0015) are marked in the id, so that all code that has a user's id knows it without a
-- look-up: version 8 of RFC 9562, where every other user has a random version 4.
CREATE FUNCTION postern.is_test_identity(p_user uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(p_user::text, 15, 1) = '8';
COMMENT ON FUNCTION postern.is_test_identity IS 'Whether a user id is that of a test identity (UUID version 8)';
-- Checks and functions that insert or look at users run with their caller's rights.
GRANT EXECUTE ON FUNCTION postern.is_test_identity TO postern_app, postern_admin;

CREATE TABLE postern.user_account (
    realm_id           uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id                 uuid NOT NULL DEFAULT gen_random_uuid(),
    security_stamp     uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at         timestamptz NOT NULL DEFAULT now(),
    known_since        timestamptz,
    device_removed_at  timestamptz,
    passkey_offered_at timestamptz,
    unproven_until     timestamptz,
    email_verified     boolean NOT NULL DEFAULT true,
    enabled            boolean NOT NULL DEFAULT true,
    has_totp           boolean NOT NULL DEFAULT false,
    email              text CHECK (postern.is_email(email)),
    address_key        text GENERATED ALWAYS AS (lower(email COLLATE "C")) STORED,
    first_name         text CHECK (postern.is_plain_text(first_name, 100)),
    last_name          text CHECK (postern.is_plain_text(last_name, 100)),
    locale             text CHECK (octet_length(locale) <= 35),
    user_handle        bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        CHECK (octet_length(user_handle) = 32),
    PRIMARY KEY (realm_id, id),
    UNIQUE (address_key, realm_id),
    -- Nothing is ever sent to the mailbox of a test identity, so it is never proven.
    CONSTRAINT test_identity_is_unverified CHECK (NOT (email_verified AND postern.is_test_identity(id)))
);
COMMENT ON TABLE postern.user_account IS 'A person in a realm; email as given, address_key folded in ASCII only';
COMMENT ON COLUMN postern.user_account.security_stamp IS 'Sessions carry a copy; a new stamp ends them all';
COMMENT ON COLUMN postern.user_account.known_since IS
    'Devices of earlier sign-ins are no known devices any more (admin.secure_user); NULL: all are';
COMMENT ON COLUMN postern.user_account.device_removed_at IS
    'When a trusted device was last removed other than by itself or an administrator: no way around probation';
COMMENT ON COLUMN postern.user_account.passkey_offered_at IS 'When a page last offered to create a passkey';
COMMENT ON COLUMN postern.user_account.unproven_until IS
    'Of an account made for a link to an unknown address, since a link names its user: when it goes unless the address '
    'is proven; NULL: it stays';
COMMENT ON COLUMN postern.user_account.email_verified IS 'Whether the primary e-mail address is proven';
COMMENT ON COLUMN postern.user_account.has_totp IS
    'Whether totp_factor has a row for the account; kept by a trigger, so that a first factor needs no look-up';
COMMENT ON COLUMN postern.user_account.email IS
    'The primary e-mail address; NULL: none. A trigger keeps its row in user_identifier';
COMMENT ON COLUMN postern.user_account.locale IS
    'Language of notices: that of the registration or of the first sign-in on a page; NULL: that of the App or realm';
COMMENT ON COLUMN postern.user_account.user_handle IS
    'user.id of WebAuthn: random, tells nothing, stable for the account (WebAuthn L3 section 14.6.1)';
CALL postern.tenant_table('user_account', 'SELECT', 'cascade');
-- A row exists once a mailbox or number is proven, or for a link. The server makes it or confirms it, and changes
-- nothing else of it.
GRANT INSERT (realm_id, email, first_name, last_name, locale),
    UPDATE (email_verified, first_name, last_name, locale, passkey_offered_at) ON postern.user_account TO postern_app;

CREATE FUNCTION postern.user_account_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.sign_in_request AS t WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.address_key;
    DELETE FROM postern.login_code AS t WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.address_key;
    DELETE FROM postern.message_outbox AS t
     WHERE t.realm_id = OLD.realm_id AND left(lower(t.recipient COLLATE "C"), 254) = OLD.address_key;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_account_deleted IS
    'Trigger: codes, requests and mail of a deleted person go too; the audit log keeps only the id';
CREATE TRIGGER user_account_deleted AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_account_deleted();

CREATE FUNCTION postern.user_account_email() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.address_key IS DISTINCT FROM NEW.address_key THEN
        -- The former address goes, unless the statement before has made it one of the further addresses.
        DELETE FROM postern.user_identifier AS i
         WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.key = OLD.address_key AND i.is_primary;
    END IF;
    IF NEW.email IS NOT NULL THEN
        INSERT INTO postern.user_identifier AS i (realm_id, user_id, kind, value, is_primary, proved_at)
        VALUES (NEW.realm_id, NEW.id, 'email', NEW.email, true, CASE WHEN NEW.email_verified THEN now() END)
            ON CONFLICT (realm_id, user_id, key) DO UPDATE
           SET value = excluded.value, is_primary = true,
               proved_at = CASE WHEN NEW.email_verified THEN coalesce(i.proved_at, now()) END;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_account_email IS 'Trigger: the primary e-mail address has its row in user_identifier';
CREATE TRIGGER user_account_email_put AFTER INSERT ON postern.user_account
    FOR EACH ROW WHEN (NEW.email IS NOT NULL) EXECUTE FUNCTION postern.user_account_email();
CREATE TRIGGER user_account_email_changed AFTER UPDATE OF email, email_verified ON postern.user_account
    FOR EACH ROW WHEN (OLD.email IS DISTINCT FROM NEW.email OR OLD.email_verified <> NEW.email_verified)
    EXECUTE FUNCTION postern.user_account_email();

-- A replaced address ends trust in earlier sign-ins. Another of the person's own addresses as the primary one does not.
CREATE FUNCTION postern.user_account_restamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF OLD.enabled <> NEW.enabled
       OR NOT EXISTS (SELECT FROM postern.user_identifier AS i
                       WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.key = OLD.address_key
                         AND NOT i.is_primary) THEN
        NEW.security_stamp := gen_random_uuid();
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.user_account_restamp IS
    'Trigger: enabling, disabling or replacing the address makes a new security stamp';
CREATE TRIGGER user_account_restamp BEFORE UPDATE OF enabled, email ON postern.user_account
    FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled OR OLD.email IS NOT NULL AND OLD.email IS DISTINCT FROM NEW.email)
    EXECUTE FUNCTION postern.user_account_restamp();

-- Before the identifiers and devices go by their foreign keys: they name the rows. Unproven identifiers may be
-- somebody else's.
CREATE FUNCTION postern.user_traces_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.message_outbox AS m
     USING postern.device_key AS d
     WHERE d.realm_id = OLD.realm_id AND d.user_id = OLD.id AND d.push_handle IS NOT NULL
       AND m.realm_id = OLD.realm_id AND m.channel = 'push'
       AND left(lower(m.recipient COLLATE "C"), 254)
           = left(lower('sealed:' || translate(encode(d.push_handle, 'base64'), E'\n', '') COLLATE "C"), 254)
       AND m.recipient = 'sealed:' || translate(encode(d.push_handle, 'base64'), E'\n', '');
    PERFORM postern.erase_traces(OLD.realm_id, i.kind, i.proven_key)
       FROM postern.user_identifier AS i
      WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.proven_key IS NOT NULL;
    DELETE FROM postern.device_request AS t
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.id AND t.kind <> 'approval';
    DELETE FROM postern.sign_in_request AS t
     WHERE t.realm_id = OLD.realm_id AND (t.user_id = OLD.id OR t.confirmed_user = OLD.id OR t.hint_user = OLD.id);
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION postern.user_traces_deleted IS
    'Trigger: proofs of a deleted user''s numbers, messages, wrong codes and requests under way go too';
CREATE TRIGGER user_traces_deleted BEFORE DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_traces_deleted();

RESET ROLE;
