-- Webhooks take turns at the calls of a server.
\ir ../helpers/fixture.psql
\ir ../helpers/webhooks.psql
SELECT no_plan();
SET LOCAL ROLE admin_login;
SELECT admin.put_webhook('a', 'slow', 'https://slow.example/x'),
       admin.put_webhook('b', 'crm', 'https://crm.example/x') \g /dev/null
RESET ROLE;
DELETE FROM postern.audit_event;
UPDATE postern.webhook_cursor SET xid = '0', id = 0;
INSERT INTO postern.audit_event (realm_id, event, user_id)
SELECT r.id, 'sign_in', md5('u' || n)::uuid FROM postern.realm AS r, generate_series(1, 12) AS n
 WHERE r.slug = 'a' OR r.slug = 'b' AND n <= 4;
SELECT pg_temp.committed('10') \g /dev/null
SELECT postern.collect_events(500) \g /dev/null

SELECT is(pg_temp.take(4, array_fill(pg_temp.hook('slow'), ARRAY[6])),
          'crm:sign_in crm:sign_in crm:sign_in crm:sign_in',
          'calls that a slow receiver holds are turns it had: the next are another''s, also of another realm');
SELECT is(pg_temp.take(4, array_fill(pg_temp.hook('slow'), ARRAY[6])), 'slow:sign_in slow:sign_in',
          'what nobody else wants is its own, up to its share');
SELECT * FROM finish();
ROLLBACK;
