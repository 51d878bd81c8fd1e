-- The audit log, as administrators see it.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('audit_event', 't.at < now() - interval ''1 year''')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

CREATE OR REPLACE VIEW admin.audit_log AS
SELECT r.slug AS realm, a.id, a.at, a.event, c.client_id, a.user_id, a.session_id, a.source, a.detail,
       coalesce(postern.is_test_identity(a.user_id), false) AS test_identity
  FROM postern.audit_event AS a JOIN postern.realm AS r ON r.id = a.realm_id
  LEFT JOIN postern.client AS c ON c.realm_id = a.realm_id AND c.id = a.client;
COMMENT ON VIEW admin.audit_log IS 'What happened, by whom and when';

RESET ROLE;
