-- One-time codes, the requests for them, mail, rate limits and the audit log: rows that come and go by the thousand.
-- They have no foreign key to realm (each insert would lock the realm's one row); realm_deleted below cascades instead.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.auth_session (
    realm_id   uuid NOT NULL,
    id         bytea NOT NULL CHECK (octet_length(id) = 16),
    client     uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    pending    boolean NOT NULL DEFAULT true,
    kind       text NOT NULL CHECK (kind IN ('otp', 'register', 'magic')),
    email      text NOT NULL,
    email_key  text NOT NULL,
    first_name text,
    last_name  text,
    code_ids   uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (realm_id, id)
) WITH (fillfactor = 70);
CREATE INDEX auth_session_pending ON postern.auth_session (created_at) WHERE pending;
COMMENT ON TABLE postern.auth_session IS 'A request for a code: the handle given to whoever asked, its tries, and (while pending) the worker''s queue entry';

CREATE TABLE postern.login_code (
    realm_id   uuid NOT NULL,
    email_key  text NOT NULL,
    id         uuid NOT NULL,
    user_id    uuid,
    client     uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    salt       bytea NOT NULL CHECK (octet_length(salt) = 16),
    mac        bytea NOT NULL CHECK (octet_length(mac) = 32),
    PRIMARY KEY (realm_id, email_key, id),
    FOREIGN KEY (realm_id, user_id) REFERENCES postern.user_account ON DELETE CASCADE
);
COMMENT ON TABLE postern.login_code IS 'Live one-time codes: salted hash of an HMAC under a key outside the database';

CREATE TABLE postern.code_guard (
    realm_id     uuid NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    failures_tat timestamptz NOT NULL DEFAULT '-infinity',
    locked_until timestamptz,
    consecutive  integer NOT NULL DEFAULT 0,
    over_budget  boolean NOT NULL DEFAULT false,
    email_key    text NOT NULL,
    PRIMARY KEY (realm_id, email_key)
) WITH (fillfactor = 50);
COMMENT ON TABLE postern.code_guard IS 'Wrong tries per address, alike for known and unknown ones: failure budget (GCRA) and refusals in a row';
COMMENT ON COLUMN postern.code_guard.over_budget IS 'Whether the last try by address alone found the budget used up';

CREATE TABLE postern.rate_bucket (
    realm_id uuid NOT NULL,
    tat      timestamptz NOT NULL,
    key      text NOT NULL,
    PRIMARY KEY (realm_id, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE postern.rate_bucket IS 'GCRA: theoretical arrival time per limited key';

CREATE TABLE postern.mail_outbox (
    realm_id   uuid NOT NULL,
    id         uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    not_before timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    sent_at    timestamptz,
    attempts   integer NOT NULL DEFAULT 0,
    state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sent', 'dead')),
    recipient  text NOT NULL,
    template   text NOT NULL,
    last_error text CHECK (octet_length(last_error) <= 200),
    payload    bytea,
    PRIMARY KEY (realm_id, id),
    CHECK ((state = 'queued') = (payload IS NOT NULL))
);
CREATE INDEX mail_outbox_due ON postern.mail_outbox (not_before) WHERE state = 'queued';
COMMENT ON TABLE postern.mail_outbox IS 'Mail to send; the payload is sealed and erased once sent or dead';

CREATE TABLE postern.audit_event (
    realm_id   uuid NOT NULL,
    id         bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 32),
    at         timestamptz NOT NULL DEFAULT now(),
    client     uuid,
    user_id    uuid,
    session_id uuid,
    event      text NOT NULL,
    source     text,
    detail     jsonb,
    PRIMARY KEY (realm_id, id)
);
COMMENT ON TABLE postern.audit_event IS 'What happened, without secrets; rows outlive what they name';

CREATE TABLE postern.sweep_cursor (
    table_name text PRIMARY KEY,
    block      bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE postern.sweep_cursor IS 'How far the sweeper has walked through each table; no tenant data';

CREATE FUNCTION postern.realm_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.auth_session AS t WHERE t.realm_id = OLD.id;
    DELETE FROM postern.login_code AS t WHERE t.realm_id = OLD.id;
    DELETE FROM postern.code_guard AS t WHERE t.realm_id = OLD.id;
    DELETE FROM postern.rate_bucket AS t WHERE t.realm_id = OLD.id;
    DELETE FROM postern.mail_outbox AS t WHERE t.realm_id = OLD.id;
    DELETE FROM postern.audit_event AS t WHERE t.realm_id = OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_deleted() IS 'Trigger: everything of a realm goes with it';
CREATE TRIGGER realm_deleted AFTER DELETE ON postern.realm FOR EACH ROW EXECUTE FUNCTION postern.realm_deleted();

CREATE FUNCTION postern.user_account_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.auth_session AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.email_key;
    DELETE FROM postern.login_code AS t WHERE t.realm_id = OLD.realm_id AND t.email_key = OLD.email_key;
    DELETE FROM postern.mail_outbox AS t WHERE t.realm_id = OLD.realm_id AND lower(t.recipient COLLATE "C") = OLD.email_key;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.user_account_deleted() IS 'Trigger: codes, requests and mail of a deleted person go too; the audit log keeps only the id';
CREATE TRIGGER user_account_deleted AFTER DELETE ON postern.user_account
    FOR EACH ROW EXECUTE FUNCTION postern.user_account_deleted();

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['auth_session', 'login_code', 'code_guard', 'rate_bucket', 'mail_outbox', 'audit_event'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
    END LOOP;
    ALTER TABLE postern.sweep_cursor ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    CREATE POLICY owner ON postern.sweep_cursor TO postern_owner USING (true) WITH CHECK (true);
    REVOKE ALL ON postern.sweep_cursor FROM PUBLIC;
END
$$;
GRANT SELECT, INSERT, UPDATE ON postern.auth_session, postern.code_guard, postern.rate_bucket TO postern_app;
GRANT SELECT, INSERT, DELETE ON postern.login_code TO postern_app;
GRANT SELECT, INSERT ON postern.mail_outbox TO postern_app;
GRANT INSERT ON postern.audit_event TO postern_app;

RESET ROLE;
