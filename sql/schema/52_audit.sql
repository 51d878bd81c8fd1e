-- The audit log, in an order that is safe to read events from.
SET LOCAL ROLE postern_owner;

-- Identifiers are cached per connection, so neither they nor times say what was committed when. A transaction's id
-- does: what is older than every running transaction stays as it is.
CREATE TABLE postern.audit_event (
    realm_id   uuid NOT NULL,
    id         bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 32),
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at         timestamptz NOT NULL DEFAULT now(),
    client     uuid,
    user_id    uuid,
    session_id uuid,
    event      text NOT NULL,
    source     text,
    detail     jsonb,
    PRIMARY KEY (realm_id, id)
);
CREATE INDEX audit_event_in_order ON postern.audit_event (realm_id, xid, id);
COMMENT ON TABLE postern.audit_event IS 'What happened, without secrets; rows outlive what they name';
COMMENT ON COLUMN postern.audit_event.xid IS 'The transaction that wrote the row';
CALL postern.tenant_table('audit_event', 'INSERT', 'delete');

RESET ROLE;
