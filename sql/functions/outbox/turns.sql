-- Which message is sent next. SECURITY DEFINER, since the app role sees one realm at a time.
SET LOCAL ROLE postern_owner;

-- The realms with ready messages of a channel that follow p_after in a circle, p_limit at most. A loose index scan: its
-- cost does not depend on how many messages there are. p_without: realms to leave out.
CREATE OR REPLACE FUNCTION postern.message_turns(p_channel text, p_limit integer, p_after uuid, p_without uuid[])
RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off SET enable_sort = off
    SET enable_incremental_sort = off
AS $$
DECLARE
    v_turns uuid[] := '{}';
    v_without uuid[] := p_without || postern.unserved_realms();
    v_at uuid := p_after;
    v_wrapped boolean := false;
BEGIN
    WHILE cardinality(v_turns) < p_limit LOOP
        SELECT m.realm_id INTO v_at
          FROM postern.message_outbox AS m
         WHERE m.state = 'queued' AND NOT m.is_waiting AND m.channel = p_channel AND m.realm_id > v_at
         ORDER BY m.channel, m.realm_id, m.priority, m.created_at LIMIT 1;
        IF FOUND THEN
            EXIT WHEN v_wrapped AND v_at > p_after;
            IF NOT v_at = ANY (v_without) THEN
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
COMMENT ON FUNCTION postern.message_turns IS 'The realms with ready messages of a channel in the order of their turns';

-- Ends a message that will not be sent.
CREATE OR REPLACE FUNCTION postern.drop_message(p_realm uuid, p_id uuid, p_channel text, p_error text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM postern.end_message(p_realm, p_id, p_error);
    INSERT INTO postern.audit_event (realm_id, event, detail)
    VALUES (p_realm, CASE WHEN p_error = 'suppressed' THEN 'mail_suppressed' WHEN p_channel = 'email' THEN 'mail_dead'
                     ELSE 'message_dead' END,
            jsonb_strip_nulls(jsonb_build_object(
                CASE p_channel WHEN 'email' THEN 'mail' ELSE 'message' END, p_id,
                'error', CASE WHEN p_error <> 'suppressed' THEN p_error END)));
END
$$;
COMMENT ON FUNCTION postern.drop_message IS 'Marks a message dead, erases its content and audits it';

-- What did not leave costs nothing.
CREATE OR REPLACE FUNCTION postern.end_message(p_realm uuid, p_id uuid, p_error text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_ended record;
BEGIN
    UPDATE postern.message_outbox AS m
       SET state = 'dead', payload = NULL, detail = NULL, last_error = p_error, permits = NULL
      FROM postern.message_outbox AS o
     WHERE m.realm_id = p_realm AND m.id = p_id AND o.realm_id = m.realm_id AND o.id = m.id
    RETURNING o.recipient, o.permits INTO v_ended;
    IF v_ended.permits <> '{}' THEN
        PERFORM set_config('postern.realm', p_realm::text, true);
        PERFORM postern.return_message_permits(p_realm, v_ended.recipient, v_ended.permits);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.end_message IS 'Marks a message dead, erases its content and gives its permits back';

-- Leases messages of one channel that are due; returns their keys. Realms take turns, beginning after p_after, one
-- message each time; within a realm sign-ins go before notices and notices before registrations, the oldest first. A
-- lease, not a lock: a taken message is due again after p_lease unless it was reported, so a sender that dies loses
-- nothing. Commit before sending.
-- p_share: how many senders a realm may occupy, and one less for its registrations; p_in_hand and p_registering: the
-- realm of each message, and of each registration, that the caller has in hand.
-- Dropped on the way, a bounded number at a time: what has expired, mail to suppressed addresses, and a message to a
-- phone or device whose outcome stayed unknown twice. A mail without a report may be sent again as often as needed.
CREATE OR REPLACE FUNCTION postern.lease_messages(
    p_channel text, p_limit integer, p_lease interval, p_after uuid, p_share integer, p_in_hand uuid[],
    p_registering uuid[])
RETURNS TABLE (realm_id uuid, id uuid)
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
    v_next record;
    v_wanted integer := p_limit;
    v_registrations boolean;
    v_fault text;
    v_found boolean;
BEGIN
    SELECT coalesce(array_agg(h.realm), '{}') INTO v_full
      FROM (SELECT u.realm FROM unnest(v_in_hand) AS u (realm) GROUP BY u.realm HAVING count(*) >= p_share) AS h;
    -- A few realms more than wanted, because another sender may take the last message of one of them.
    v_turns := postern.message_turns(
        p_channel, p_limit + 4, coalesce(p_after, '00000000-0000-0000-0000-000000000000'), v_full);

    FOREACH v_realm IN ARRAY v_turns LOOP
        PERFORM postern.drop_message(e.realm_id, e.id, e.channel, 'expired')
          FROM (SELECT d.realm_id, d.id, d.channel FROM postern.message_outbox AS d
                 WHERE d.state = 'queued' AND d.realm_id = v_realm AND d.expires_at <= now() AND d.not_before <= now()
                 ORDER BY d.realm_id, d.expires_at LIMIT 500 FOR NO KEY UPDATE OF d SKIP LOCKED) AS e;
    END LOOP;

    WHILE v_wanted > 0 AND cardinality(v_done) < cardinality(v_turns) LOOP
        FOREACH v_realm IN ARRAY v_turns LOOP
            EXIT WHEN v_wanted = 0;
            CONTINUE WHEN v_realm = ANY (v_done);
            v_registrations := cardinality(array_positions(v_registering, v_realm)) < greatest(p_share - 1, 1);
            v_found := false;
            IF cardinality(array_positions(v_in_hand, v_realm)) < p_share THEN
                FOR v_drop IN 0..100 LOOP
                    SELECT d.id, d.recipient, d.priority, d.is_unreported AND d.last_error LIKE 'in-doubt%' AS is_lost
                      INTO v_next
                      FROM postern.message_outbox AS d
                     WHERE d.state = 'queued' AND NOT d.is_waiting AND d.channel = p_channel AND d.realm_id = v_realm
                       AND d.priority <= CASE WHEN v_registrations THEN 2 ELSE 1 END
                       AND d.not_before <= now() AND d.expires_at > now()
                     ORDER BY d.channel, d.realm_id, d.priority, d.created_at LIMIT 1
                       FOR NO KEY UPDATE OF d SKIP LOCKED;
                    v_found := FOUND;
                    EXIT WHEN NOT v_found;
                    v_fault := CASE WHEN v_next.is_lost THEN 'in-doubt'
                        WHEN p_channel = 'email' AND EXISTS (
                                SELECT FROM postern.suppressed_address AS s
                                 WHERE s.realm_id = v_realm AND s.address_key = postern.address_key(v_next.recipient)
                                   AND coalesce(s.expires_at > now(), true)) THEN 'suppressed' END;
                    EXIT WHEN v_fault IS NULL;
                    PERFORM postern.drop_message(v_realm, v_next.id, p_channel, v_fault);
                    v_found := false;
                END LOOP;
            END IF;
            IF NOT v_found THEN
                v_done := v_done || v_realm;
                CONTINUE;
            END IF;
            UPDATE postern.message_outbox AS m
               SET is_waiting = true, not_before = now() + p_lease, attempts = m.attempts + 1,
                   is_unreported = p_channel <> 'email',
                   last_error = CASE WHEN m.is_unreported THEN 'in-doubt' ELSE m.last_error END
             WHERE m.realm_id = v_realm AND m.id = v_next.id;
            v_wanted := v_wanted - 1;
            v_in_hand := v_in_hand || v_realm;
            IF v_next.priority = 2 THEN
                v_registering := v_registering || v_realm;
            END IF;
            realm_id := v_realm;
            id := v_next.id;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.lease_messages IS
    'Leases due messages of a channel, realms in turn; drops what is expired, suppressed or twice in doubt';

-- Ended leases and pauses.
CREATE OR REPLACE FUNCTION postern.end_waits() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    UPDATE postern.message_outbox AS m SET is_waiting = false
     WHERE (m.realm_id, m.id) IN (
        SELECT d.realm_id, d.id FROM postern.message_outbox AS d
         WHERE d.state = 'queued' AND d.is_waiting AND d.not_before <= now()
           AND d.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         ORDER BY d.not_before LIMIT 500 FOR NO KEY UPDATE OF d SKIP LOCKED)
$$;
COMMENT ON FUNCTION postern.end_waits IS 'Messages whose lease or pause is over are ready again';

RESET ROLE;
