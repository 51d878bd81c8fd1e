-- What becomes of a mail, and how long the queues are. SECURITY DEFINER, since the app role sees one realm at a time.
-- The state is not compared by =: the indexes of what is queued look as good as the primary key while PostgreSQL knows
-- nothing of the table, and one message would read all that wait.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('message_outbox', 't.state <> ''queued'' AND t.created_at < now() - interval ''7 days''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

CREATE OR REPLACE FUNCTION postern.outbox_sent(p_realm uuid, p_id uuid)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_recipient text;
BEGIN
    -- An address that is proven without an account is kept nowhere.
    UPDATE postern.message_outbox AS m SET state = 'sent', sent_at = now(), payload = NULL, detail = NULL,
        last_error = NULL, recipient = CASE WHEN m.purpose = 'verify' THEN '' ELSE m.recipient END
      FROM postern.message_outbox AS o
     WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued'
       AND o.realm_id = m.realm_id AND o.id = m.id
    RETURNING o.recipient INTO v_recipient;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM postern.mail_refusal AS f
     WHERE f.realm_id = p_realm AND f.address_key = postern.address_key(v_recipient);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.outbox_sent IS
    'Mail was accepted by the mail server: erases its content and the refusals of the address';
GRANT EXECUTE ON FUNCTION postern.outbox_sent TO postern_app;

CREATE OR REPLACE FUNCTION postern.outbox_failed(
    p_realm uuid, p_id uuid, p_error text, p_retry_after interval, p_permanent boolean)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_dead boolean;
BEGIN
    UPDATE postern.message_outbox AS m
       SET state = CASE WHEN p_permanent OR m.expires_at <= now() + p_retry_after THEN 'dead' ELSE 'queued' END,
           payload = CASE WHEN p_permanent OR m.expires_at <= now() + p_retry_after THEN NULL ELSE m.payload END,
           detail = CASE WHEN p_permanent OR m.expires_at <= now() + p_retry_after THEN NULL ELSE m.detail END,
           not_before = now() + coalesce(p_retry_after, interval '0'), is_waiting = true,
           last_error = left(p_error, 50)
     WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued'
    RETURNING m.state = 'dead' INTO v_dead;
    IF v_dead THEN
        INSERT INTO postern.audit_event (realm_id, event, detail)
        VALUES (p_realm, 'mail_dead', jsonb_build_object('mail', p_id, 'error', left(p_error, 50)));
    END IF;
    RETURN v_dead;
END
$$;
COMMENT ON FUNCTION postern.outbox_failed IS
    'Mail was not accepted: due again after p_retry_after, or dead when another try is useless; true when dead, NULL '
    'when it was not queued';
GRANT EXECUTE ON FUNCTION postern.outbox_failed TO postern_app;

-- Three refusals in a row suppress the address for a week (refusals of mails, not of tries: none is tried again). An
-- administrator's entry is not changed.
CREATE OR REPLACE FUNCTION postern.outbox_refused(p_realm uuid, p_id uuid, p_error text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_recipient text;
    v_in_a_row integer;
BEGIN
    UPDATE postern.message_outbox AS m SET state = 'dead', payload = NULL, detail = NULL, last_error = left(p_error, 50)
     WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued'
    RETURNING m.recipient INTO v_recipient;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, detail)
    VALUES (p_realm, 'mail_dead', jsonb_build_object('mail', p_id, 'error', left(p_error, 50)));
    INSERT INTO postern.mail_refusal AS f (realm_id, address_key, in_a_row)
    VALUES (p_realm, postern.address_key(v_recipient), 1)
        ON CONFLICT (realm_id, address_key) DO UPDATE SET in_a_row = f.in_a_row + 1, last_at = now()
    RETURNING f.in_a_row INTO v_in_a_row;
    IF v_in_a_row < 3 OR NOT postern.is_email(v_recipient) THEN
        RETURN false;
    END IF;
    DELETE FROM postern.mail_refusal AS f
     WHERE f.realm_id = p_realm AND f.address_key = postern.address_key(v_recipient);
    INSERT INTO postern.suppressed_address AS s (realm_id, email, reason, is_automatic, expires_at)
    VALUES (p_realm, v_recipient, 'the mail server knows no such mailbox', true, now() + interval '7 days')
        ON CONFLICT (realm_id, address_key) DO UPDATE
       SET created_at = now(), expires_at = excluded.expires_at
     WHERE s.is_automatic;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, user_id, detail)
    VALUES (p_realm, 'address_suppressed',
            postern.find_user(p_realm, v_recipient),
            jsonb_build_object('mail', p_id, 'reason', 'the mail server knows no such mailbox'));
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.outbox_refused IS
    'The mail server knows no such mailbox: the mail is dead; true when that was the third in a row and suppressed '
    'the address, NULL when it was not queued';
GRANT EXECUTE ON FUNCTION postern.outbox_refused TO postern_app;

-- A provider took the message. p_reference: what it calls the message. What it was sent by stays visible.
CREATE OR REPLACE FUNCTION postern.message_sent(p_realm uuid, p_id uuid, p_provider text, p_reference text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    UPDATE postern.message_outbox AS m SET state = 'sent', sent_at = now(), payload = NULL, detail = NULL,
        last_error = NULL, is_unreported = false, provider = p_provider, reference = left(p_reference, 200),
        permits = NULL, recipient = CASE WHEN m.purpose = 'verify' THEN '' ELSE m.recipient END
     WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued';
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION postern.message_sent IS 'A provider took the message: erases its content';
GRANT EXECUTE ON FUNCTION postern.message_sent TO postern_app;

-- No provider took the message yet. It is due again after p_retry_after, or dead: for good (p_permanent), or because it
-- would have expired by then. p_provider: the one that was asked, NULL for none; p_refuses: that provider will never
-- take it; p_counts: the failure counts for its turn. p_allowed: the pre-send hook was asked and allowed it. An error
-- 'denied' means that it did not.
CREATE OR REPLACE FUNCTION postern.message_failed(
    p_realm uuid, p_id uuid, p_error text, p_retry_after interval, p_permanent boolean, p_provider text,
    p_refuses boolean, p_counts boolean, p_allowed boolean)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_message record;
    v_error text := left(p_error, 50);
BEGIN
    UPDATE postern.message_outbox AS m
       SET not_before = now() + coalesce(p_retry_after, interval '0'), is_waiting = true, is_unreported = false,
           last_error = v_error, is_allowed = m.is_allowed OR p_allowed,
           provider_failures = CASE WHEN p_provider IS DISTINCT FROM m.provider THEN 0 ELSE m.provider_failures END
               + CASE WHEN p_counts THEN 1 ELSE 0 END,
           provider = coalesce(p_provider, m.provider),
           refused_by = CASE WHEN p_refuses THEN m.refused_by || p_provider ELSE m.refused_by END
     WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued'
    RETURNING m.channel, m.client, m.expires_at <= m.not_before AS is_over INTO v_message;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF v_error = 'denied' THEN
        PERFORM postern.end_message(p_realm, p_id, v_error);
        INSERT INTO postern.audit_event (realm_id, event, client, detail)
        VALUES (p_realm, 'message_denied', v_message.client,
                jsonb_build_object('message', p_id, 'channel', v_message.channel));
    ELSIF p_permanent THEN
        PERFORM postern.drop_message(p_realm, p_id, v_message.channel, v_error);
    ELSIF v_message.is_over THEN
        PERFORM postern.drop_message(p_realm, p_id, v_message.channel, 'expired');
    ELSE
        RETURN false;
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.message_failed IS
    'A message was not sent: due again after p_retry_after, or dead; true when dead, NULL when it was not queued';
GRANT EXECUTE ON FUNCTION postern.message_failed TO postern_app;

-- Per queue: the p_top realms whose oldest entry waits longest, and (realm NULL) all realms: what is queued, and the
-- greatest age in seconds of what is due. mail and the other channels: what no sender has taken yet; it is due
-- unless it waits for another try. requests: requests for codes and links that no worker has decided. approvals:
-- requests for approval that no worker has resolved. logout-tokens: what clients were not told yet. Each has its index,
-- which the planner would leave for transactions: to its statistics every proof of a number is unresolved, too.
CREATE OR REPLACE FUNCTION postern.queue_figures(p_top integer)
RETURNS TABLE (queue text, realm text, queued bigint, oldest double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = off
AS $$
    WITH figure AS (
        SELECT replace(m.channel, 'email', 'mail') AS queue, m.realm_id, count(*) AS queued,
               min(m.created_at) FILTER (WHERE m.not_before <= now()) AS since
          FROM postern.message_outbox AS m
         WHERE m.state = 'queued' AND m.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         GROUP BY m.channel, m.realm_id
         UNION ALL
        SELECT 'requests', a.realm_id, count(*), min(a.created_at) FROM postern.sign_in_request AS a
         WHERE a.pending AND a.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         GROUP BY a.realm_id
         UNION ALL
        SELECT 'approvals', t.realm_id, count(*), min(t.created_at) FROM postern.device_request AS t
         WHERE t.kind = 'approval' AND t.resolved_at IS NULL
           AND t.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         GROUP BY t.realm_id
         UNION ALL
        SELECT 'logout-tokens', w.realm_id, count(*), min(w.created_at) FILTER (WHERE w.not_before <= now())
          FROM postern.logout_token AS w
         WHERE w.sent_at IS NULL AND w.expires_at > now()
           AND w.realm_id <> ALL ((SELECT postern.unserved_realms())::uuid[])
         GROUP BY w.realm_id),
    placed AS (
        SELECT f.queue, f.realm_id, f.queued, date_part('epoch', now() - f.since) AS oldest,
               row_number() OVER (PARTITION BY f.queue ORDER BY f.since NULLS LAST, f.queued DESC, f.realm_id) AS place
          FROM figure AS f)
    SELECT p.queue, r.slug, p.queued, coalesce(p.oldest, 0)
      FROM placed AS p JOIN postern.realm AS r ON r.id = p.realm_id WHERE p.place <= p_top
     UNION ALL
    SELECT q.queue, NULL, coalesce(sum(p.queued), 0)::bigint, coalesce(max(p.oldest), 0)
      FROM (SELECT replace(k.channel, 'email', 'mail') FROM postern.known_channel AS k
             UNION ALL VALUES ('requests'), ('approvals'), ('logout-tokens')) AS q (queue)
      LEFT JOIN placed AS p USING (queue) GROUP BY q.queue
$$;
COMMENT ON FUNCTION postern.queue_figures IS
    'Length and oldest entry of the queue of each channel, of undecided requests, of approvals that are not resolved, '
    'and of logout tokens, per realm';
GRANT EXECUTE ON FUNCTION postern.queue_figures TO postern_app;

-- A newer message was queued for the same request. The older one does not leave any more and costs nothing, unless a
-- sender holds its row now: then both leave. NULL passes.
CREATE OR REPLACE FUNCTION postern.supersede_message(p_realm uuid, p_id uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM FROM postern.message_outbox AS m
      WHERE m.realm_id = p_realm AND m.id = p_id AND m.state IS NOT DISTINCT FROM 'queued'
        FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
        PERFORM postern.end_message(p_realm, p_id, 'superseded');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.supersede_message IS
    'Ends a queued message in whose place a newer one was queued; no sender takes it any more';
GRANT EXECUTE ON FUNCTION postern.supersede_message TO postern_app;

CREATE OR REPLACE VIEW admin.outbox AS
SELECT r.slug AS realm, m.id, m.recipient, m.template, m.state, m.attempts, m.last_error, m.created_at, m.not_before,
       m.expires_at, m.sent_at
  FROM postern.message_outbox AS m JOIN postern.realm AS r ON r.id = m.realm_id
 WHERE m.channel = 'email';
COMMENT ON VIEW admin.outbox IS 'Mail queued, sent and dead, without its content';

CREATE OR REPLACE FUNCTION postern.message_kind(p_template text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE p_template WHEN 'otp' THEN 'otp' WHEN 'magic-link' THEN 'link' WHEN 'approval' THEN 'approval'
    ELSE 'notice' END;
COMMENT ON FUNCTION postern.message_kind IS 'What kind of message a template is';

CREATE OR REPLACE VIEW admin.messages AS
SELECT r.slug AS realm, m.id, m.channel, CASE WHEN m.channel <> 'push' THEN m.recipient END AS recipient,
       CASE m.template WHEN 'otp' THEN 'otp' WHEN 'magic-link' THEN 'link' WHEN 'approval' THEN 'approval'
            ELSE 'notice' END AS kind, m.purpose, m.template, m.state, m.attempts, m.last_error, m.provider,
       m.reference, m.locale, c.client_id, m.app, m.created_at, m.not_before, m.expires_at, m.sent_at
  FROM postern.message_outbox AS m JOIN postern.realm AS r ON r.id = m.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = m.realm_id AND c.id = m.client;
COMMENT ON VIEW admin.messages IS
    'Messages of all channels queued, sent and dead, without their content; reference: what the provider calls it';

RESET ROLE;
