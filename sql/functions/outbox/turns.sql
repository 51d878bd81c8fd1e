-- Who is sent mail next. SECURITY DEFINER, since the app role sees one realm at a time.
SET LOCAL ROLE postern_owner;

-- The realms with ready mail that follow p_after in a circle, p_limit at most. A loose index scan: its cost does not
-- depend on how much mail there is. p_without: realms to leave out.
CREATE OR REPLACE FUNCTION postern.mail_turns(p_limit integer, p_after uuid, p_without uuid[])
RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
DECLARE
    v_turns uuid[] := '{}';
    v_at uuid := p_after;
    v_wrapped boolean := false;
BEGIN
    WHILE cardinality(v_turns) < p_limit LOOP
        SELECT m.realm_id INTO v_at
          FROM postern.mail_outbox AS m
         WHERE m.state = 'queued' AND NOT m.is_waiting AND m.realm_id > v_at
         ORDER BY m.realm_id, m.priority, m.created_at LIMIT 1;
        IF FOUND THEN
            EXIT WHEN v_wrapped AND v_at > p_after;
            IF NOT v_at = ANY (p_without) THEN
                v_turns := v_turns || v_at;
            END IF;
        ELSE
            EXIT WHEN v_wrapped;
            v_wrapped := true;
            -- No realm has the least UUID: it is older than UUIDs of version 4.
            v_at := '00000000-0000-0000-0000-000000000000';
        END IF;
    END LOOP;
    RETURN v_turns;
END
$$;
COMMENT ON FUNCTION postern.mail_turns IS 'The realms with ready mail in the order of their turns';

-- Leases mail that is due. Realms take turns, beginning after p_after, one mail each time; within a realm sign-ins go
-- before notices and notices before registrations, the oldest first. A lease, not a lock: taken mail is due again after
-- p_lease unless it was reported, so a sender that dies loses nothing. Commit before sending.
-- p_share: how many senders a realm may occupy, and one less for its registrations; p_in_hand and p_registering: the
-- realm of each mail, and of each registration, that the caller has in hand. p_sealed_only: for a binary that knows no
-- detail.
-- Expired mails and mails to suppressed addresses are dropped on the way, a bounded number at a time.
CREATE OR REPLACE FUNCTION postern.take_mail(
    p_limit integer, p_lease interval, p_after uuid, p_share integer, p_in_hand uuid[], p_registering uuid[],
    p_sealed_only boolean DEFAULT false)
RETURNS TABLE (realm_id uuid, id uuid, recipient text, template text, payload bytea, detail jsonb, attempts integer,
               created_at timestamptz, last_error text, priority smallint, realm_name text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
#variable_conflict use_column
DECLARE
    v_in_hand uuid[] := p_in_hand;
    v_registering uuid[] := p_registering;
    v_full uuid[];
    v_turns uuid[];
    v_done uuid[] := '{}';
    v_realm uuid;
    v_mail record;
    v_wanted integer := p_limit;
    v_registrations boolean;
    v_is_suppressed boolean;
    v_found boolean;
BEGIN
    -- Ended leases and pauses.
    UPDATE postern.mail_outbox AS m SET is_waiting = false
     WHERE (m.realm_id, m.id) IN (
        SELECT d.realm_id, d.id FROM postern.mail_outbox AS d
         WHERE d.state = 'queued' AND d.is_waiting AND d.not_before <= now()
         ORDER BY d.not_before LIMIT 500 FOR NO KEY UPDATE OF d SKIP LOCKED);

    SELECT coalesce(array_agg(h.realm), '{}') INTO v_full
      FROM (SELECT u.realm FROM unnest(v_in_hand) AS u (realm) GROUP BY u.realm HAVING count(*) >= p_share) AS h;
    -- A few realms more than wanted, because another sender may take the last mail of one of them.
    v_turns := postern.mail_turns(p_limit + 4, coalesce(p_after, '00000000-0000-0000-0000-000000000000'), v_full);

    FOREACH v_realm IN ARRAY v_turns LOOP
        WITH expired AS (
            UPDATE postern.mail_outbox AS m SET state = 'dead', payload = NULL, detail = NULL, last_error = 'expired'
             WHERE (m.realm_id, m.id) IN (
                SELECT d.realm_id, d.id FROM postern.mail_outbox AS d
                 WHERE d.state = 'queued' AND d.realm_id = v_realm AND d.expires_at <= now() AND d.not_before <= now()
                 ORDER BY d.realm_id, d.expires_at LIMIT 500 FOR NO KEY UPDATE OF d SKIP LOCKED)
            RETURNING m.realm_id, m.id)
        INSERT INTO postern.audit_event (realm_id, event, detail)
        SELECT e.realm_id, 'mail_dead', jsonb_build_object('mail', e.id, 'error', 'expired') FROM expired AS e;
    END LOOP;

    WHILE v_wanted > 0 AND cardinality(v_done) < cardinality(v_turns) LOOP
        FOREACH v_realm IN ARRAY v_turns LOOP
            EXIT WHEN v_wanted = 0;
            CONTINUE WHEN v_realm = ANY (v_done);
            v_registrations := cardinality(array_positions(v_registering, v_realm)) < greatest(p_share - 1, 1);
            v_found := false;
            IF cardinality(array_positions(v_in_hand, v_realm)) < p_share THEN
                FOR v_drop IN 0..100 LOOP
                    SELECT d.realm_id, d.id, d.recipient, d.template, d.payload, d.detail, d.attempts, d.created_at,
                           d.last_error, d.priority INTO v_mail
                      FROM postern.mail_outbox AS d
                     WHERE d.state = 'queued' AND NOT d.is_waiting AND d.realm_id = v_realm
                       AND d.priority <= CASE WHEN v_registrations THEN 2 ELSE 1 END
                       AND d.not_before <= now() AND d.expires_at > now()
                       AND (d.payload IS NOT NULL OR NOT p_sealed_only)
                     ORDER BY d.realm_id, d.priority, d.created_at LIMIT 1 FOR NO KEY UPDATE OF d SKIP LOCKED;
                    v_found := FOUND;
                    EXIT WHEN NOT v_found;
                    SELECT coalesce(s.expires_at > now(), true) INTO v_is_suppressed
                      FROM postern.suppressed_address AS s
                     WHERE s.realm_id = v_realm AND s.email_key = postern.email_key(v_mail.recipient);
                    EXIT WHEN NOT coalesce(v_is_suppressed, false);
                    UPDATE postern.mail_outbox AS m
                       SET state = 'dead', payload = NULL, detail = NULL, last_error = 'suppressed'
                     WHERE m.realm_id = v_realm AND m.id = v_mail.id;
                    INSERT INTO postern.audit_event (realm_id, event, detail)
                    VALUES (v_realm, 'mail_suppressed', jsonb_build_object('mail', v_mail.id));
                    v_found := false;
                END LOOP;
            END IF;
            IF NOT v_found THEN
                v_done := v_done || v_realm;
                CONTINUE;
            END IF;
            UPDATE postern.mail_outbox AS m
               SET is_waiting = true, not_before = now() + p_lease, attempts = m.attempts + 1
             WHERE m.realm_id = v_realm AND m.id = v_mail.id;
            v_wanted := v_wanted - 1;
            v_in_hand := v_in_hand || v_realm;
            IF v_mail.priority = 2 THEN
                v_registering := v_registering || v_realm;
            END IF;
            realm_id := v_mail.realm_id;
            id := v_mail.id;
            recipient := v_mail.recipient;
            template := v_mail.template;
            payload := v_mail.payload;
            detail := v_mail.detail;
            attempts := v_mail.attempts + 1;
            created_at := v_mail.created_at;
            last_error := v_mail.last_error;
            priority := v_mail.priority;
            SELECT coalesce(p.display_name, r.display_name) INTO realm_name
              FROM postern.realm AS r LEFT JOIN postern.app AS p ON p.realm_id = r.id
                   AND p.slug = v_mail.detail ->> 'app'
             WHERE r.id = v_realm;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.take_mail IS
    'Leases due mail, realms in turn, commit before sending; drops expired mail and mail to suppressed addresses';
GRANT EXECUTE ON FUNCTION postern.take_mail TO postern_app;

-- Kept for older binaries.

-- These binaries know no detail and keep no place in the circle.
CREATE OR REPLACE FUNCTION postern.outbox_take(p_limit integer, p_lease interval)
RETURNS TABLE (realm_id uuid, id uuid, recipient text, template text, payload bytea, attempts integer,
               created_at timestamptz, last_error text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT t.realm_id, t.id, t.recipient, t.template, t.payload, t.attempts, t.created_at, t.last_error
      FROM postern.take_mail(p_limit, p_lease, gen_random_uuid(), p_limit, '{}', '{}', true) AS t
$$;
COMMENT ON FUNCTION postern.outbox_take IS 'Leases due mail for a binary from before realms took turns';
GRANT EXECUTE ON FUNCTION postern.outbox_take TO postern_app;

RESET ROLE;
