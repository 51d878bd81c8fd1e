-- Addresses that are sent nothing, and the refusals that put an address among them.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.suppressed_address (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    is_automatic boolean NOT NULL DEFAULT false,
    email        text NOT NULL CHECK (postern.is_email(email)),
    email_key    text NOT NULL GENERATED ALWAYS AS (lower(email COLLATE "C")) STORED,
    reason       text CHECK (postern.is_plain_text(reason, 200)),
    PRIMARY KEY (realm_id, email_key)
);
COMMENT ON TABLE postern.suppressed_address IS 'Addresses whose mail is dropped instead of sent, of users or not';
COMMENT ON COLUMN postern.suppressed_address.expires_at IS 'NULL: until an administrator takes it back';
COMMENT ON COLUMN postern.suppressed_address.is_automatic IS 'Put here after refusals of the mail server, not by an administrator';

CREATE TABLE postern.mail_refusal (
    realm_id  uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    last_at   timestamptz NOT NULL DEFAULT now(),
    in_a_row  integer NOT NULL,
    email_key text NOT NULL,
    PRIMARY KEY (realm_id, email_key)
);
COMMENT ON TABLE postern.mail_refusal IS 'How often in a row the mail server said that there is no such mailbox; a mail that was accepted ends the row';

-- By age: a mail that had to be tried again goes before those queued after it. Taking a mail no longer changes an indexed column.
DROP INDEX postern.mail_outbox_due;
CREATE INDEX mail_outbox_queued ON postern.mail_outbox (created_at) WHERE state = 'queued';

-- What an administrator put stays: it is about the mailbox, not about the person.
CREATE FUNCTION postern.user_account_deleted_refusals() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.mail_refusal AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.email_key;
    DELETE FROM postern.suppressed_address AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.email_key AND t.is_automatic;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_account_deleted_refusals() IS 'Trigger: what refused mail left behind about a deleted person goes too';
CREATE TRIGGER user_account_deleted_refusals AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_account_deleted_refusals();
REVOKE ALL ON FUNCTION postern.user_account_deleted_refusals() FROM PUBLIC;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['suppressed_address', 'mail_refusal'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
    END LOOP;
END
$$;

RESET ROLE;
