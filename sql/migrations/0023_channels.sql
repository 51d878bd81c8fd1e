-- Messages of all channels in one queue; the providers that carry them; what is asked before one is sent.
SET LOCAL ROLE postern_owner;

-- The table keeps its name: older binaries insert into it, and take what has channel email.
ALTER TABLE postern.mail_outbox
    ADD COLUMN client uuid,
    ADD COLUMN provider_failures smallint NOT NULL DEFAULT 0,
    ADD COLUMN is_unreported boolean NOT NULL DEFAULT false,
    ADD COLUMN is_allowed boolean NOT NULL DEFAULT false,
    ADD COLUMN channel text NOT NULL DEFAULT 'email' CONSTRAINT mail_outbox_channel
        CHECK (channel IN ('email', 'sms', 'voice', 'whatsapp', 'push')),
    ADD COLUMN purpose text CONSTRAINT mail_outbox_purpose
        CHECK (purpose IN ('sign-in', 'register', 'verify', 'identifier', 'possession', 'notice', 'approval')),
    ADD COLUMN app text,
    ADD COLUMN locale text CONSTRAINT mail_outbox_locale CHECK (octet_length(locale) <= 35),
    ADD COLUMN provider text,
    ADD COLUMN refused_by text[] NOT NULL DEFAULT '{}',
    ADD COLUMN permits text[],
    ADD COLUMN reference text CONSTRAINT mail_outbox_reference CHECK (octet_length(reference) <= 200),
    ADD COLUMN page_host text CONSTRAINT mail_outbox_page_host CHECK (octet_length(page_host) <= 253),
    ADD CONSTRAINT mail_outbox_recipient CHECK (octet_length(recipient) <= 4096);
COMMENT ON TABLE postern.mail_outbox IS
    'Messages of all channels to send; the content (payload or detail) is erased once sent or dead';
COMMENT ON COLUMN postern.mail_outbox.client IS 'Of the client that asked for it; the row outlives the client';
COMMENT ON COLUMN postern.mail_outbox.provider IS 'Name of the provider tried last, and of the one that took it';
COMMENT ON COLUMN postern.mail_outbox.provider_failures IS 'Failures of that provider in a row';
COMMENT ON COLUMN postern.mail_outbox.refused_by IS 'Providers that will never take it';
COMMENT ON COLUMN postern.mail_outbox.is_unreported IS
    'Taken by a sender that has not said how it went: if its lease ends so, the message may have been sent';
COMMENT ON COLUMN postern.mail_outbox.is_allowed IS 'The pre-send hook has allowed it';
COMMENT ON COLUMN postern.mail_outbox.locale IS 'Language of the request; NULL: that of the realm';
COMMENT ON COLUMN postern.mail_outbox.reference IS 'What the provider calls the message';
COMMENT ON COLUMN postern.mail_outbox.page_host IS 'Host of the page where the code is typed; NULL: an app asked';
COMMENT ON COLUMN postern.mail_outbox.priority IS
    '0: for somebody with an account; 1: notice; 2: for an address without one. Set by the trigger mail_admission';

-- Each realm's messages of a channel, in the order in which they leave.
CREATE INDEX message_outbox_ready ON postern.mail_outbox (channel, realm_id, priority, created_at)
    WHERE state = 'queued' AND NOT is_waiting;
DROP INDEX postern.mail_outbox_ready;

-- As before, and: a purpose, where it is given, decides the priority; codes of every channel end with the code.
CREATE OR REPLACE FUNCTION postern.mail_admission() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
DECLARE
    v_counted text := current_setting('postern.mail_queued', true);
    v_queued integer;
    v_lifetime interval;
BEGIN
    NEW.is_waiting := NEW.not_before > now();
    NEW.priority := 1;
    IF NEW.template IN ('otp', 'magic-link', 'approval') THEN
        NEW.priority := CASE
            WHEN NEW.purpose IN ('register', 'verify', 'possession') THEN 2
            WHEN NEW.purpose IS NOT NULL THEN 0
            WHEN EXISTS (SELECT FROM postern.user_account AS u
                          WHERE u.realm_id = NEW.realm_id
                            AND u.email_key = lower(NEW.recipient COLLATE "C") COLLATE "default"
                            AND u.enabled AND u.email_verified) THEN 0
            ELSE 2 END;
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
          FROM (SELECT FROM postern.mail_outbox AS m
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
COMMENT ON FUNCTION postern.mail_admission() IS
    'Trigger: priority and end of a message; drops what a realm queues beyond its bound';

-- The statement that records a request says it in postern.locale.
ALTER TABLE postern.auth_session
    ADD COLUMN locale text DEFAULT NULLIF(current_setting('postern.locale', true), '')
        CONSTRAINT auth_session_locale CHECK (octet_length(locale) <= 35);
COMMENT ON COLUMN postern.auth_session.locale IS 'The language that the request asked for';

ALTER TABLE postern.client_android_app
    ADD COLUMN sms_hash text CONSTRAINT client_android_app_sms_hash CHECK (sms_hash ~ '\A[A-Za-z0-9+/]{11}\Z');
COMMENT ON COLUMN postern.client_android_app.sms_hash IS
    'What Google Play services recognise a message for this app by: its last word';
-- With one more argument that has a default, a call of the earlier form would be ambiguous.
DROP FUNCTION IF EXISTS admin.put_android_app(text, text, text, text[]);

-- http is allowed to this machine only, whose traffic cannot be read on the way.
CREATE FUNCTION postern.is_call_url(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 2000 AND candidate COLLATE "C" ~ ('\A(https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?'
    '|https://\[[0-9A-Fa-f:.]+\]|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?'
    '([/?][A-Za-z0-9._~:/?@!$&''()*+,;=%-]*)?\Z');
COMMENT ON FUNCTION postern.is_call_url IS 'A URL that the server may call: https, or http to this machine';

CREATE TABLE postern.channel (
    realm_id    uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    priority    integer NOT NULL DEFAULT 100 CHECK (priority BETWEEN 0 AND 1000),
    enabled     boolean NOT NULL DEFAULT true,
    channel     text NOT NULL CHECK (channel IN ('sms', 'voice', 'whatsapp', 'push')),
    name        text NOT NULL CHECK (name COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    provider    text NOT NULL CHECK (provider IN ('webhook', 'http', 'outbox')),
    url         text CHECK (postern.is_call_url(url)),
    sender      text CHECK (postern.is_plain_text(sender, 100)),
    secret_name text CHECK (secret_name COLLATE "C" ~ '\A[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z'),
    auth        text CHECK (auth COLLATE "C" ~ '\A(basic|bearer|header [A-Za-z0-9-]{1,64})\Z'),
    body        text CHECK (body IN ('form', 'json')),
    fields      jsonb CHECK (jsonb_typeof(fields) = 'object' AND octet_length(fields::text) <= 8192),
    PRIMARY KEY (realm_id, channel, name),
    CONSTRAINT channel_outbox CHECK (provider <> 'outbox' OR num_nonnulls(url, secret_name, auth, body, fields) = 0),
    CONSTRAINT channel_webhook
        CHECK (provider <> 'webhook' OR url IS NOT NULL AND num_nonnulls(secret_name, auth, body, fields) = 0),
    CONSTRAINT channel_http
        CHECK (provider <> 'http' OR num_nulls(url, body, fields) = 0 AND channel <> 'push'
               AND num_nulls(secret_name, auth) IN (0, 2))
);
COMMENT ON TABLE postern.channel IS 'Who carries the messages of a channel, in the order of priority';
COMMENT ON COLUMN postern.channel.provider IS
    'webhook: the operator''s own endpoint; http: a vendor''s API by template; outbox: the memory of postern dev';
COMMENT ON COLUMN postern.channel.secret_name IS 'File of POSTERN_SECRETS_DIR with the credential, which is never here';

CREATE TABLE postern.address_rule (
    realm_id uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    app      text,
    domain   text NOT NULL CHECK (postern.is_host(regexp_replace(domain, '\A\*\.', ''))),
    action   text NOT NULL CHECK (action IN ('allow', 'deny')),
    UNIQUE NULLS NOT DISTINCT (realm_id, app, domain),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE
);
COMMENT ON TABLE postern.address_rule IS 'E-mail domains that a realm or an App accepts or refuses';
COMMENT ON COLUMN postern.address_rule.domain IS 'Exact, or *. and a domain: its sub-domains';

CREATE TABLE postern.pre_send_hook (
    realm_id   uuid PRIMARY KEY REFERENCES postern.realm ON DELETE CASCADE,
    url        text NOT NULL CHECK (postern.is_call_url(url)),
    on_failure text NOT NULL DEFAULT 'deny' CHECK (on_failure IN ('allow', 'deny'))
);
COMMENT ON TABLE postern.pre_send_hook IS 'Whom the sender asks before each message';

DO $$
BEGIN
    PERFORM postern.tenant_table('channel', 'SELECT', 'cascade', p_is_configuration => true);
    PERFORM postern.tenant_table('address_rule', 'SELECT', 'cascade', p_is_configuration => true);
    PERFORM postern.tenant_table('pre_send_hook', NULL, 'cascade');
END
$$;

REVOKE ALL ON FUNCTION postern.is_call_url(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.is_call_url(text) TO postern_app;

RESET ROLE;
