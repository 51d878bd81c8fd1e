-- Identifiers: the e-mail addresses and phone numbers by which people are found. user_account.email stays, as the primary
-- address; whatever writes it keeps user_identifier in step through a trigger, so that older functions need no change.
-- Every lock here is short: the rows of addresses that exist already come with the next migration.
SET LOCAL ROLE postern_owner;

-- E.164: a plus sign and 7 to 15 digits. Whether a number can be dialled the server judges.
CREATE FUNCTION postern.is_phone(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A\+[1-9][0-9]{6,14}\Z';
COMMENT ON FUNCTION postern.is_phone IS 'A phone number in E.164 form: + and 7 to 15 digits';
GRANT EXECUTE ON FUNCTION postern.is_phone TO postern_app;

CREATE TABLE postern.user_identifier (
    realm_id     uuid NOT NULL,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id      uuid NOT NULL,
    added_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    proved_at    timestamptz,
    held_since   timestamptz,
    is_primary   boolean NOT NULL DEFAULT false,
    kind         text NOT NULL CHECK (kind IN ('email', 'phone')),
    value        text NOT NULL,
    key          text NOT NULL GENERATED ALWAYS AS (lower(value COLLATE "C")) STORED,
    proven_key   text GENERATED ALWAYS AS (CASE WHEN proved_at IS NOT NULL THEN lower(value COLLATE "C") END) STORED,
    primary_kind text GENERATED ALWAYS AS (CASE WHEN is_primary THEN kind END) STORED,
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, user_id, key),
    UNIQUE (realm_id, proven_key),
    UNIQUE (realm_id, user_id, primary_kind),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE,
    CONSTRAINT user_identifier_value
        CHECK (CASE kind WHEN 'email' THEN postern.is_email(value) ELSE postern.is_phone(value) END)
) WITH (fillfactor = 90);
CREATE INDEX user_identifier_unproven ON postern.user_identifier (realm_id, key) WHERE proven_key IS NULL;
COMMENT ON TABLE postern.user_identifier IS
    'E-mail addresses and phone numbers of people. A proven one belongs to one person; an unproven one signs nobody in';
COMMENT ON COLUMN postern.user_identifier.proved_at IS
    'When its owner showed to receive messages there; of a phone number the last time, within an hour. NULL: never';
COMMENT ON COLUMN postern.user_identifier.held_since IS
    'Since when it is proven to be this user''s; what was proven by it before counts for somebody else. NULL: unproven';
COMMENT ON COLUMN postern.user_identifier.key IS 'As compared: ASCII letters folded. A phone''s begins with +, an address has an @';

DO $$ BEGIN PERFORM postern.tenant_table('user_identifier', 'SELECT', 'cascade'); END $$;

-- A person needs one identifier, and no longer an e-mail address.
ALTER TABLE postern.user_account
    ALTER COLUMN email DROP NOT NULL,
    ALTER COLUMN email_key DROP NOT NULL;
COMMENT ON COLUMN postern.user_account.email IS
    'The primary e-mail address; NULL: none. A trigger keeps its row in user_identifier';
COMMENT ON COLUMN postern.user_account.email_verified IS 'Whether the primary e-mail address is proven';

CREATE FUNCTION postern.user_account_email() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.email_key IS DISTINCT FROM NEW.email_key THEN
        -- The former address goes, unless the statement before has made it one of the further addresses.
        DELETE FROM postern.user_identifier AS i
         WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.key = OLD.email_key AND i.is_primary;
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
COMMENT ON FUNCTION postern.user_account_email() IS 'Trigger: the primary e-mail address has its row in user_identifier';
REVOKE ALL ON FUNCTION postern.user_account_email() FROM PUBLIC;
CREATE TRIGGER user_account_email_put AFTER INSERT ON postern.user_account
    FOR EACH ROW WHEN (NEW.email IS NOT NULL) EXECUTE FUNCTION postern.user_account_email();
CREATE TRIGGER user_account_email_changed AFTER UPDATE OF email, email_verified ON postern.user_account
    FOR EACH ROW WHEN (OLD.email IS DISTINCT FROM NEW.email OR OLD.email_verified <> NEW.email_verified)
    EXECUTE FUNCTION postern.user_account_email();

-- A replaced address ends trust in earlier sign-ins. Another of the person's own addresses as the primary one does not.
CREATE OR REPLACE FUNCTION postern.user_account_restamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    IF OLD.enabled <> NEW.enabled
       OR NOT EXISTS (SELECT FROM postern.user_identifier AS i
                       WHERE i.realm_id = OLD.realm_id AND i.user_id = OLD.id AND i.key = OLD.email_key
                         AND NOT i.is_primary) THEN
        NEW.security_stamp := gen_random_uuid();
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.user_account_restamp() IS
    'Trigger: enabling, disabling or replacing the address makes a new security stamp';
DROP TRIGGER user_account_restamp ON postern.user_account;
CREATE TRIGGER user_account_restamp BEFORE UPDATE OF enabled, email ON postern.user_account
    FOR EACH ROW WHEN (OLD.enabled <> NEW.enabled OR OLD.email IS NOT NULL AND OLD.email IS DISTINCT FROM NEW.email)
    EXECUTE FUNCTION postern.user_account_restamp();

-- What was sent to a proven identifier ends with it, however the row goes. A number that moves to another person is
-- updated, not deleted.
CREATE FUNCTION postern.user_identifier_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.auth_session AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.key;
    DELETE FROM postern.login_code AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.key;
    UPDATE postern.login_link AS t SET ended = 'superseded'
     WHERE t.realm_id = OLD.realm_id AND t.user_id = OLD.user_id AND t.email_key = OLD.key AND t.ended IS NULL;
    -- Not the notices: the former owner of an address is told even if whoever removes it is quick.
    DELETE FROM postern.mail_outbox AS t
     WHERE t.realm_id = OLD.realm_id AND t.state = 'queued' AND t.template IN ('otp', 'magic-link')
       AND lower(t.recipient COLLATE "C") = OLD.key;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_deleted() IS
    'Trigger: requests, codes and links of a removed identifier go with it';
REVOKE ALL ON FUNCTION postern.user_identifier_deleted() FROM PUBLIC;
CREATE TRIGGER user_identifier_deleted AFTER DELETE ON postern.user_identifier
    FOR EACH ROW WHEN (OLD.proven_key IS NOT NULL) EXECUTE FUNCTION postern.user_identifier_deleted();

CREATE FUNCTION postern.user_identifier_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    NEW.held_since := CASE
        WHEN NEW.proved_at IS NULL THEN NULL
        WHEN TG_OP = 'UPDATE' AND OLD.user_id = NEW.user_id AND OLD.proved_at IS NOT NULL
             AND lower(OLD.value COLLATE "C") = lower(NEW.value COLLATE "C") THEN NEW.held_since
        ELSE clock_timestamp() END;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION postern.user_identifier_held() IS 'Trigger: since when a user has an identifier proven';
REVOKE ALL ON FUNCTION postern.user_identifier_held() FROM PUBLIC;
CREATE TRIGGER user_identifier_held BEFORE INSERT OR UPDATE OF user_id, proved_at, value ON postern.user_identifier
    FOR EACH ROW EXECUTE FUNCTION postern.user_identifier_held();

RESET ROLE;
