-- What waits while a webhook is disabled is sent when it is enabled.
\ir ../helpers/fixture.psql
\ir ../helpers/webhooks.psql
SELECT no_plan();
SET LOCAL ROLE admin_login;
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x') \g /dev/null
RESET ROLE;
DELETE FROM postern.audit_event;
UPDATE postern.webhook_cursor SET xid = '0', id = 0;
SELECT pg_temp.audited('sign_in'), pg_temp.audited('user_disabled', 'bob@example.com') AS tried \gset
SELECT pg_temp.committed('10'), postern.collect_events(500), pg_temp.take(), pg_temp.settle(:tried, 'failed') \g /dev/null
SET LOCAL ROLE admin_login;
SELECT admin.put_webhook('a', 'crm', enabled => false) \g /dev/null
RESET ROLE;
UPDATE postern.webhook_delivery SET created_at = created_at - interval '100 hours';
SELECT pg_temp.later('100 hours') \g /dev/null
SELECT is(pg_temp.take(), '', 'nothing is sent meanwhile');
SET LOCAL ROLE admin_login;
SELECT admin.put_webhook('a', 'crm', enabled => true) \g /dev/null
RESET ROLE;
SELECT is(pg_temp.take(), 'crm:sign_in', 'what waited is sent, however long that was; what was tried for 72 hours is not');
SELECT * FROM finish();
ROLLBACK;
