-- Events for webhooks: which there are, who receives them, and what each webhook still has to get.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.event_type (
    event text PRIMARY KEY,
    type  text NOT NULL
);
COMMENT ON TABLE postern.event_type IS 'Which audit events are sent to webhooks, and as which type; no tenant data';
CALL postern.registry_table('event_type');

CREATE TABLE postern.webhook (
    realm_id     uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at   timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    failed_at    timestamptz,
    resume_at    timestamptz,
    failures     integer NOT NULL DEFAULT 0,
    enabled      boolean NOT NULL DEFAULT true,
    name         text NOT NULL CHECK (name COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    url          text NOT NULL CHECK (postern.is_call_url(url)),
    events       text[] NOT NULL CHECK (cardinality(events) BETWEEN 1 AND 200),
    audience     text NOT NULL CHECK (octet_length(audience) BETWEEN 1 AND 2000),
    secret_name  text CHECK (secret_name COLLATE "C" ~ '\A[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z'),
    last_error   text CHECK (octet_length(last_error) <= 200),
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, name)
);
COMMENT ON TABLE postern.webhook IS 'Receivers of events';
COMMENT ON COLUMN postern.webhook.resume_at IS 'Nothing is tried before; NULL: no pause';
COMMENT ON COLUMN postern.webhook.failures IS
    'Subjects whose first try failed since the last success of any: from the fifth on there are pauses';
COMMENT ON COLUMN postern.webhook.last_error IS 'Class of the last failure, never a text of the receiver';
CALL postern.tenant_table('webhook', NULL, 'cascade');

-- Apart from webhook: it changes with each batch.
CREATE TABLE postern.webhook_cursor (
    realm_id     uuid NOT NULL,
    webhook      uuid NOT NULL,
    xid          xid8 NOT NULL,
    id           bigint NOT NULL,
    replay_until xid8 NOT NULL DEFAULT '0',
    replay_after bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (realm_id, webhook),
    FOREIGN KEY (realm_id, webhook) REFERENCES postern.webhook ON DELETE CASCADE
);
COMMENT ON TABLE postern.webhook_cursor IS 'Up to where the audit log was read for a webhook: (xid, id) of a row';
COMMENT ON COLUMN postern.webhook_cursor.replay_until IS
    'Rows of earlier transactions count only when their id is above replay_after: the rest has been read before';
CALL postern.tenant_table('webhook_cursor', NULL, 'delete');

CREATE TABLE postern.webhook_subject (
    realm_id uuid NOT NULL,
    webhook  uuid NOT NULL,
    due_at   timestamptz NOT NULL DEFAULT now(),
    lease    uuid,
    failures integer NOT NULL DEFAULT 0,
    subject  text NOT NULL,
    PRIMARY KEY (realm_id, webhook, subject),
    FOREIGN KEY (realm_id, webhook) REFERENCES postern.webhook ON DELETE CASCADE
);
CREATE INDEX webhook_subject_due ON postern.webhook_subject (webhook, realm_id, due_at) WHERE failures = 0;
CREATE INDEX webhook_subject_again ON postern.webhook_subject (webhook, realm_id, due_at) WHERE failures > 0;
CREATE INDEX webhook_subject_retried ON postern.webhook_subject (webhook, realm_id, due_at)
    WHERE failures > 0 AND lease IS NOT NULL;
COMMENT ON TABLE postern.webhook_subject IS
    'Users (or other subjects) with events to send: the row is the lease under which one event is sent at a time';
COMMENT ON COLUMN postern.webhook_subject.due_at IS 'When the next try may begin; while leased, when the lease ends';
COMMENT ON COLUMN postern.webhook_subject.failures IS
    'Failed tries since the last success: subjects that never failed go first';
CALL postern.tenant_table('webhook_subject', NULL, 'delete');

CREATE TABLE postern.webhook_delivery (
    realm_id     uuid NOT NULL,
    webhook      uuid NOT NULL,
    event        bigint NOT NULL,
    xid          xid8 NOT NULL,
    event_at     timestamptz NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    tried_at     timestamptz,
    set_aside_at timestamptz,
    attempts     integer NOT NULL DEFAULT 0,
    subject      text NOT NULL,
    last_error   text CHECK (octet_length(last_error) <= 200),
    PRIMARY KEY (realm_id, webhook, event),
    FOREIGN KEY (realm_id, webhook) REFERENCES postern.webhook ON DELETE CASCADE
);
-- For postern.next_event, which compares the realm in a way that the primary key does not serve. It does not begin with
-- the realm: while PostgreSQL has no statistics of the table, it would take any such index and read the whole realm.
CREATE INDEX webhook_delivery_of_subject ON postern.webhook_delivery (subject, webhook, xid, event)
    WHERE set_aside_at IS NULL;
COMMENT ON TABLE postern.webhook_delivery IS
    'Events that a webhook has not accepted yet, or refused for good; the event itself is the row of audit_event';
COMMENT ON COLUMN postern.webhook_delivery.event IS 'id in audit_event';
COMMENT ON COLUMN postern.webhook_delivery.set_aside_at IS 'When the receiver refused it for good; NULL: to be sent';
CALL postern.tenant_table('webhook_delivery', NULL, 'delete');

RESET ROLE;
