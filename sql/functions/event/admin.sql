-- Provisioning: receivers of events, and what they have not got.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.admin_webhook(p_realm uuid, name text) RETURNS uuid
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_id uuid;
BEGIN
    SELECT w.id INTO v_id FROM postern.webhook AS w WHERE w.realm_id = p_realm AND w.name = name;
    IF NOT FOUND THEN
        PERFORM postern.refuse(format('name %s is not a webhook of this realm', postern.shown(name)),
            'SELECT name FROM admin.webhooks WHERE realm = … lists them; admin.put_webhook makes one.');
    END IF;
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION postern.admin_webhook IS 'Webhook by name, or a refusal';

CREATE OR REPLACE FUNCTION admin.put_webhook(
    realm text, name text, url text DEFAULT NULL, events text[] DEFAULT NULL, audience text DEFAULT NULL,
    secret_name text DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v postern.webhook;
    v_was_enabled boolean;
    v_unknown text;
BEGIN
    IF name IS NULL OR name COLLATE "C" !~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z' THEN
        PERFORM postern.refuse(format('name %s is not the name of a webhook', postern.shown(name)),
                               'Allowed are 1 to 63 lower-case letters, digits and inner hyphens.');
    END IF;
    PERFORM postern.check_call_url('url', url);
    PERFORM postern.check_text('audience', audience, 500);
    IF secret_name <> '' AND secret_name COLLATE "C" !~ '\A[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('secret_name %s is not the name of a file', postern.shown(secret_name)),
            'Give the name of a file in POSTERN_SECRETS_DIR: letters, digits, dots, hyphens and underscores, without '
            'a folder and without a dot at the beginning. '''' takes it away.');
    END IF;
    SELECT x INTO v_unknown FROM unnest(events) AS x
     WHERE x IS NULL OR x <> '*' AND NOT EXISTS (SELECT FROM postern.event_type AS t WHERE t.event = x) LIMIT 1;
    IF FOUND OR cardinality(events) = 0 THEN
        PERFORM postern.refuse(
            format('events has %s, which is no event', coalesce(postern.shown(v_unknown), 'nothing')),
            'Allowed are the names in admin.event_types, or ''*'' for all of them, present and future.');
    END IF;
    SELECT w.* INTO v FROM postern.webhook AS w WHERE w.realm_id = v_realm AND w.name = name FOR NO KEY UPDATE;
    IF NOT FOUND AND url IS NULL THEN
        PERFORM postern.refuse('url is missing', 'Give the URL that events are posted to.');
    END IF;
    v_was_enabled := v.enabled;
    events := ARRAY(SELECT DISTINCT x FROM unnest(coalesce(events, v.events, '{*}')) AS x ORDER BY x);
    secret_name := NULLIF(coalesce(secret_name, v.secret_name), '');
    INSERT INTO postern.webhook AS w (realm_id, name, url, events, audience, secret_name, enabled)
    VALUES (v_realm, name, coalesce(url, v.url), events, coalesce(audience, v.audience, url), secret_name,
            coalesce(enabled, v.enabled, true))
        ON CONFLICT ON CONSTRAINT webhook_realm_id_name_key DO UPDATE
       SET url = excluded.url, events = excluded.events, audience = excluded.audience,
           secret_name = excluded.secret_name, enabled = excluded.enabled,
           -- What failed may be put right: the next try is now.
           failures = 0, resume_at = NULL
    RETURNING w.* INTO v;
    UPDATE postern.webhook_subject AS s SET due_at = now(), failures = 0
     WHERE s.realm_id = v_realm AND s.webhook = v.id AND s.lease IS NULL;
    IF NOT v_was_enabled AND v.enabled THEN
        -- The 72 hours of events that were never tried begin now. An event that was tried may have been given up, and
        -- later events of its subject may have been sent.
        UPDATE postern.webhook_delivery AS d SET created_at = now()
         WHERE d.realm_id = v_realm AND d.webhook = v.id AND d.attempts = 0 AND d.set_aside_at IS NULL;
    END IF;
    -- A new webhook gets what happens from now on.
    INSERT INTO postern.webhook_cursor (realm_id, webhook, xid, id)
    VALUES (v_realm, v.id, pg_snapshot_xmin(pg_current_snapshot()), 0) ON CONFLICT DO NOTHING;
    PERFORM postern.admin_audit(v_realm, 'webhook_put', detail => jsonb_build_object(
        'name', name, 'url', v.url, 'events', v.events, 'audience', v.audience, 'secret_name', v.secret_name,
        'enabled', v.enabled));
END
$$;
COMMENT ON FUNCTION admin.put_webhook IS
'Names or changes a receiver of events. NULL leaves a setting as it is.
url: https; http only to this machine. events: names of admin.event_types, default ''{*}'': all. audience: aud of the
tokens, default the URL. secret_name: a file of POSTERN_SECRETS_DIR/<slug of the realm>, else of
POSTERN_SECRETS_DIR, whose line is sent as Authorization; '''' takes it away.
enabled false: nothing is sent; what happens meanwhile waits.
A new webhook gets what happens from now on; admin.replay_webhook gives it what was before.
Example: SELECT admin.put_webhook(''acme'', ''crm'', ''https://crm.acme.example/events'');
Example: SELECT admin.put_webhook(''acme'', ''crm'', events => ''{sign_in,user_deleted,account_deleted}'');';

CREATE OR REPLACE FUNCTION admin.delete_webhook(realm text, name text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid := postern.admin_webhook(v_realm, name);
BEGIN
    DELETE FROM postern.webhook AS w WHERE w.realm_id = v_realm AND w.id = v_id;
    PERFORM postern.admin_removed(v_realm, FOUND, 'webhook_deleted', detail => jsonb_build_object('name', name));
END
$$;
COMMENT ON FUNCTION admin.delete_webhook IS
'Deletes a receiver of events with all that it has not got. A call under way (ten seconds at most) ends as it does.
Example: SELECT admin.delete_webhook(''acme'', ''crm'');';

-- The cursor goes back to the first of those rows; what it then meets again counts when its id is above "after".
CREATE OR REPLACE FUNCTION admin.replay_webhook(realm text, name text, after bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid := postern.admin_webhook(v_realm, name);
BEGIN
    IF after IS NULL OR after < 0 THEN
        PERFORM postern.refuse('after is missing or negative',
            'Give the id in admin.audit_log of the last event that is not to be sent again; 0: all that there are.');
    END IF;
    UPDATE postern.webhook_cursor AS c
       SET xid = first.xid, id = first.id - 1, replay_until = greatest(c.xid, c.replay_until), replay_after = after
      FROM (SELECT a.xid, a.id FROM postern.audit_event AS a
             WHERE a.realm_id = v_realm AND a.id > after ORDER BY a.xid, a.id LIMIT 1) AS first
     WHERE c.realm_id = v_realm AND c.webhook = v_id AND (first.xid, first.id) <= (c.xid, c.id);
    PERFORM postern.admin_audit(v_realm, 'webhook_replayed',
                                detail => jsonb_build_object('name', name, 'after', after));
END
$$;
COMMENT ON FUNCTION admin.replay_webhook IS
'Sends the events after one of the audit log (its id) once more, with the same jti, and those that were set aside or
given up. The audit log keeps a year.
Example: SELECT admin.replay_webhook(''acme'', ''crm'', 184467);';

RESET ROLE;
