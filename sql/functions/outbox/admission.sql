-- Priority, end and admission of a message that is queued.
SET LOCAL ROLE postern_owner;

-- The purpose of a message decides its priority. Messages to unproven addresses have priority 2, because strangers can
-- cause any number of them. Older binaries give no purpose; for them the recipient decides. A message expires with its
-- code or link, on every channel. A realm can queue 10,000 messages; messages of priority 2 are dropped at 8,000.
CREATE OR REPLACE FUNCTION postern.mail_admission() RETURNS trigger
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
COMMENT ON FUNCTION postern.mail_admission IS
    'Trigger: priority and end of a message; drops what a realm queues beyond its bound';

RESET ROLE;
