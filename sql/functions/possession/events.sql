-- Which of its audit events are sent to webhooks.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.event_type (event, type)
SELECT e.name, 'urn:postern:event:' || e.name FROM (VALUES
    ('possession_started'), ('possession_sent'), ('possession_passed'), ('possession_failed'), ('possession_bound'),
    ('possession_rebound'), ('possession_asserted'), ('key_revoked')) AS e (name)
    ON CONFLICT (event) DO UPDATE SET type = excluded.type;

RESET ROLE;
