-- An event that waits is found by keys that only one index has. The tables are empty most of the time, and while
-- PostgreSQL has no statistics of them another index looked as good: each event read all that waited for its webhook.
SET LOCAL ROLE postern_owner;

-- For postern.next_event, which compares the realm in a way that the primary key does not serve.
CREATE INDEX webhook_delivery_of_subject ON postern.webhook_delivery (subject, webhook, xid, event)
    WHERE set_aside_at IS NULL;
DROP INDEX postern.webhook_delivery_in_order;

RESET ROLE;
