-- Messages of all channels in one queue, and addresses that are sent nothing.
SET LOCAL ROLE postern_owner;

CREATE DOMAIN postern.message_state AS text CHECK (VALUE IN ('queued', 'sent', 'dead'));
COMMENT ON DOMAIN postern.message_state IS 'Where a message stands';
CREATE DOMAIN postern.message_purpose AS text
    CHECK (VALUE IN ('sign-in', 'register', 'verify', 'identifier', 'possession', 'notice', 'approval'));
COMMENT ON DOMAIN postern.message_purpose IS 'What a message is for';
CREATE DOMAIN postern.notice_detail AS jsonb
    CHECK (jsonb_typeof(VALUE) = 'object' AND octet_length(VALUE::text) <= 2000);
COMMENT ON DOMAIN postern.notice_detail IS 'What a notice says beyond its template';
CREATE TABLE postern.message_outbox (
    realm_id          uuid NOT NULL,
    id                uuid NOT NULL,
    client            uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    not_before        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    sent_at           timestamptz,
    attempts          integer NOT NULL DEFAULT 0,
    state             postern.message_state NOT NULL DEFAULT 'queued',
    recipient         postern.text_to_4096 NOT NULL,
    template          text NOT NULL,
    last_error        postern.text_to_200,
    payload           bytea,
    detail            postern.notice_detail,
    channel           postern.channel_name NOT NULL DEFAULT 'email',
    purpose           postern.message_purpose NOT NULL,
    app               text,
    locale            postern.text_to_35,
    provider          text,
    reference         postern.text_to_200,
    page_host         postern.text_to_253,
    priority          smallint NOT NULL DEFAULT 0,
    provider_failures smallint NOT NULL DEFAULT 0,
    is_waiting        boolean NOT NULL DEFAULT false,
    is_unreported     boolean NOT NULL DEFAULT false,
    is_allowed        boolean NOT NULL DEFAULT false,
    refused_by        text[] NOT NULL DEFAULT '{}',
    permits           text[],
    PRIMARY KEY (realm_id, id),
    CONSTRAINT message_outbox_content
        CHECK (num_nonnulls(payload, detail) = CASE WHEN state = 'queued' THEN 1 ELSE 0 END)
);
-- What goes with an address or a device, whatever else is queued. A push handle is longer than an index takes.
CREATE INDEX message_outbox_of_recipient
    ON postern.message_outbox (left(lower(recipient COLLATE "C"), 254), realm_id);
-- Waiting: what becomes ready next. Expiring: what a realm has queued.
CREATE INDEX message_outbox_waiting ON postern.message_outbox (not_before) WHERE state = 'queued' AND is_waiting;
CREATE INDEX message_outbox_expiring ON postern.message_outbox (realm_id, expires_at) WHERE state = 'queued';
-- Each realm's messages of a channel, in the order in which they leave.
CREATE INDEX message_outbox_ready ON postern.message_outbox (channel, realm_id, priority, created_at)
    WHERE state = 'queued' AND NOT is_waiting;
COMMENT ON TABLE postern.message_outbox IS
    'Messages of all channels to send; the content (payload or detail) is erased once sent or dead';
COMMENT ON COLUMN postern.message_outbox.client IS 'Of the client that asked for it; the row outlives the client';
COMMENT ON COLUMN postern.message_outbox.payload IS 'What is secret (a code, a link), sealed';
COMMENT ON COLUMN postern.message_outbox.detail IS 'What a notice says beyond its template; nothing secret';
COMMENT ON COLUMN postern.message_outbox.locale IS 'Language of the request; NULL: that of the realm';
COMMENT ON COLUMN postern.message_outbox.provider IS 'Name of the provider tried last, and of the one that took it';
COMMENT ON COLUMN postern.message_outbox.reference IS 'What the provider calls the message';
COMMENT ON COLUMN postern.message_outbox.page_host IS 'Host of the page where the code is typed; NULL: an app asked';
COMMENT ON COLUMN postern.message_outbox.priority IS
    '0: for somebody with an account; 1: notice; 2: to an unproven address. Set by the trigger message_admission';
COMMENT ON COLUMN postern.message_outbox.provider_failures IS 'Failures of that provider in a row';
COMMENT ON COLUMN postern.message_outbox.is_waiting IS
    'Leased by a sender or to be tried again: not due before not_before';
COMMENT ON COLUMN postern.message_outbox.is_unreported IS
    'Taken by a sender that has not said how it went: if its lease ends so, the message may have been sent';
COMMENT ON COLUMN postern.message_outbox.is_allowed IS 'The pre-send hook has allowed it';
COMMENT ON COLUMN postern.message_outbox.refused_by IS 'Providers that will never take it';
CALL postern.tenant_table('message_outbox', 'SELECT, INSERT', 'delete');

-- The purpose of a message decides its priority. Messages to unproven addresses have priority 2, because strangers can
-- cause any number of them. A message expires with its code or link, on every channel. A realm can queue 10,000
-- messages; messages of priority 2 are dropped at 8,000.
CREATE FUNCTION postern.message_admission() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_counted text := current_setting('postern.mail_queued', true);
    v_queued integer;
    v_lifetime interval;
BEGIN
    NEW.is_waiting := NEW.not_before > now();
    NEW.priority := 1;
    IF NEW.template IN ('otp', 'magic-link', 'approval') THEN
        NEW.priority := CASE
            WHEN NEW.purpose IN ('register', 'verify', 'identifier', 'possession') THEN 2
            ELSE 0 END;
        SELECT CASE NEW.template WHEN 'otp' THEN r.otp_lifetime WHEN 'magic-link' THEN r.magic_link_lifetime END
          INTO v_lifetime
          FROM postern.realm AS r WHERE r.id = NEW.realm_id;
        NEW.expires_at := least(NEW.expires_at, NEW.created_at + v_lifetime);
    END IF;

    -- Counted once per transaction and realm: a worker decides many requests in one.
    IF split_part(v_counted, ':', 1) = NEW.realm_id::text THEN
        v_queued := split_part(v_counted, ':', 2)::integer;
    ELSE
        SELECT count(*) INTO v_queued
          FROM (SELECT FROM postern.message_outbox AS m
                 WHERE m.realm_id = NEW.realm_id AND m.state = 'queued' LIMIT 10000) AS q;
    END IF;
    IF v_queued < (CASE NEW.priority WHEN 2 THEN 8000 ELSE 10000 END) THEN
        PERFORM set_config('postern.mail_queued', NEW.realm_id || ':' || v_queued + 1, true);
        RETURN NEW;
    END IF;
    PERFORM set_config('postern.mail_queued', NEW.realm_id || ':' || v_queued, true);
    -- Audited once a minute, by one transaction: the others leave it to the one that has the lock.
    IF pg_try_advisory_xact_lock(hashtextextended('postern.mail_queue_full', uuid_hash_extended(NEW.realm_id, 1))) THEN
        INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)
        VALUES (NEW.realm_id, 'mail-queue-full', now() + interval '1 minute')
            ON CONFLICT (realm_id, key) DO UPDATE SET tat = excluded.tat WHERE b.tat <= now();
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, detail)
            VALUES (NEW.realm_id, 'mail_queue_full',
                    jsonb_build_object('queued', v_queued, 'template', NEW.template));
        END IF;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.message_admission IS
    'Trigger: priority and end of a message; drops what a realm queues beyond its bound';
CREATE TRIGGER message_admission BEFORE INSERT ON postern.message_outbox
    FOR EACH ROW WHEN (NEW.state = 'queued') EXECUTE FUNCTION postern.message_admission();

CREATE TABLE postern.suppressed_address (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    is_automatic boolean NOT NULL DEFAULT false,
    email        text NOT NULL CHECK (postern.is_email(email)),
    address_key  text NOT NULL GENERATED ALWAYS AS (lower(email COLLATE "C")) STORED,
    reason       text CHECK (postern.is_plain_text(reason, 200)),
    PRIMARY KEY (realm_id, address_key)
);
COMMENT ON TABLE postern.suppressed_address IS 'Addresses whose mail is dropped instead of sent, of users or not';
COMMENT ON COLUMN postern.suppressed_address.expires_at IS 'NULL: until an administrator takes it back';
COMMENT ON COLUMN postern.suppressed_address.is_automatic IS
    'Put here after refusals of the mail server, not by an administrator';
CALL postern.tenant_table('suppressed_address', NULL, 'cascade');

CREATE TABLE postern.mail_refusal (
    realm_id    uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    last_at     timestamptz NOT NULL DEFAULT now(),
    in_a_row    integer NOT NULL,
    address_key text NOT NULL,
    PRIMARY KEY (realm_id, address_key)
);
COMMENT ON TABLE postern.mail_refusal IS
    'How often in a row the mail server said that there is no such mailbox; a mail that was accepted ends the row';
CALL postern.tenant_table('mail_refusal', NULL, 'cascade');

-- What an administrator put stays: it is about the mailbox, not about the person.
CREATE FUNCTION postern.user_account_deleted_refusals() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.mail_refusal AS t WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.address_key;
    DELETE FROM postern.suppressed_address AS t
     WHERE t.realm_id = OLD.realm_id AND t.address_key = OLD.address_key AND t.is_automatic;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_account_deleted_refusals IS
    'Trigger: what refused mail left behind about a deleted person goes too';
CREATE TRIGGER user_account_deleted_refusals AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_account_deleted_refusals();

RESET ROLE;
