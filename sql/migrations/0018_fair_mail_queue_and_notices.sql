-- Notices whose text is made from plain facts, and queues in which realms take turns.
SET LOCAL ROLE postern_owner;

ALTER TABLE postern.mail_outbox
    DROP CONSTRAINT mail_outbox_check,
    ADD COLUMN priority smallint NOT NULL DEFAULT 0 CONSTRAINT mail_outbox_priority CHECK (priority BETWEEN 0 AND 2),
    ADD COLUMN is_waiting boolean NOT NULL DEFAULT false,
    ADD COLUMN detail jsonb CONSTRAINT mail_outbox_detail
        CHECK (jsonb_typeof(detail) = 'object' AND octet_length(detail::text) <= 2000),
    ADD CONSTRAINT mail_outbox_content
        CHECK (num_nonnulls(payload, detail) = CASE WHEN state = 'queued' THEN 1 ELSE 0 END);
COMMENT ON TABLE postern.mail_outbox IS 'Mail to send; its content (payload or detail) is erased once sent or dead';
COMMENT ON COLUMN postern.mail_outbox.priority IS
    '0: signs in somebody with an account; 1: notice; 2: code that registers. Set by the trigger mail_admission';
COMMENT ON COLUMN postern.mail_outbox.is_waiting IS 'Leased by a sender or to be tried again: not due before not_before';
COMMENT ON COLUMN postern.mail_outbox.payload IS 'What is secret (a code, a link), sealed';
COMMENT ON COLUMN postern.mail_outbox.detail IS 'What a notice says beyond its template; nothing secret';

UPDATE postern.mail_outbox SET is_waiting = true WHERE state = 'queued' AND not_before > now();

-- Ready: each realm's mail in the order in which it leaves. Waiting: what becomes ready next. Expiring: what a realm has queued.
DROP INDEX postern.mail_outbox_queued;
CREATE INDEX mail_outbox_ready ON postern.mail_outbox (realm_id, priority, created_at)
    WHERE state = 'queued' AND NOT is_waiting;
CREATE INDEX mail_outbox_waiting ON postern.mail_outbox (not_before) WHERE state = 'queued' AND is_waiting;
CREATE INDEX mail_outbox_expiring ON postern.mail_outbox (realm_id, expires_at) WHERE state = 'queued';

DROP INDEX postern.auth_session_pending;
CREATE INDEX auth_session_undecided ON postern.auth_session (realm_id, (hint_user IS NULL), created_at) WHERE pending;

-- Decides a mail's priority, ends its time with that of the code or link in it, and bounds a realm's queue: 10,000 mails, of which
-- registrations fill four fifths at most. What is over the bound is dropped without an error: the caller cannot do anything about it.
CREATE FUNCTION postern.mail_admission() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
DECLARE
    v_counted text := current_setting('postern.mail_queued', true);
    v_queued integer;
    v_lifetime interval;
BEGIN
    NEW.is_waiting := NEW.not_before > now();
    NEW.priority := 1;
    IF NEW.template IN ('otp', 'magic-link') THEN
        NEW.priority := CASE WHEN EXISTS (
            SELECT FROM postern.user_account AS u
             WHERE u.realm_id = NEW.realm_id AND u.email_key = lower(NEW.recipient COLLATE "C") COLLATE "default"
               AND u.enabled AND u.email_verified) THEN 0 ELSE 2 END;
        SELECT CASE NEW.template WHEN 'otp' THEN r.otp_lifetime ELSE r.magic_link_lifetime END INTO v_lifetime
          FROM postern.realm AS r WHERE r.id = NEW.realm_id;
        NEW.expires_at := least(NEW.expires_at, NEW.created_at + v_lifetime);
    END IF;

    -- Counted once per transaction and realm: a worker decides many requests in one.
    IF split_part(v_counted, ':', 1) = NEW.realm_id::text THEN
        v_queued := split_part(v_counted, ':', 2)::integer;
    ELSE
        SELECT count(*) INTO v_queued
          FROM (SELECT FROM postern.mail_outbox AS m WHERE m.realm_id = NEW.realm_id AND m.state = 'queued' LIMIT 10000) AS q;
    END IF;
    IF v_queued < (CASE NEW.priority WHEN 2 THEN 8000 ELSE 10000 END) THEN
        PERFORM set_config('postern.mail_queued', NEW.realm_id || ':' || v_queued + 1, true);
        RETURN NEW;
    END IF;
    PERFORM set_config('postern.mail_queued', NEW.realm_id || ':' || v_queued, true);
    -- Audited once a minute. Whoever does not get the lock leaves it to the one who has it: nobody waits.
    IF pg_try_advisory_xact_lock(hashtextextended('postern.mail_queue_full', uuid_hash_extended(NEW.realm_id, 1))) THEN
        INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)
        VALUES (NEW.realm_id, 'mail-queue-full', now() + interval '1 minute')
            ON CONFLICT (realm_id, key) DO UPDATE SET tat = excluded.tat WHERE b.tat <= now();
        IF FOUND THEN
            INSERT INTO postern.audit_event (realm_id, event, detail)
            VALUES (NEW.realm_id, 'mail_queue_full', jsonb_build_object('queued', v_queued, 'template', NEW.template));
        END IF;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.mail_admission() IS 'Trigger: priority and end of a mail; drops what a realm queues beyond its bound';
REVOKE ALL ON FUNCTION postern.mail_admission() FROM PUBLIC;
CREATE TRIGGER mail_admission BEFORE INSERT ON postern.mail_outbox
    FOR EACH ROW WHEN (NEW.state = 'queued') EXECUTE FUNCTION postern.mail_admission();

RESET ROLE;
