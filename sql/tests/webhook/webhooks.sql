\ir ../helpers/fixture.psql
\ir ../helpers/webhooks.psql
SELECT no_plan();
-- Administrators.
SET LOCAL ROLE admin_login;
SELECT matches(pg_temp.refusal(format('SELECT admin.put_webhook(''a'', ''crm'', %L)', url)), 'may be called.*https',
               'no URL of a webhook: ' || url)
  FROM unnest(ARRAY['http://crm.example/x', 'https://u:p@crm.example/x', 'file:///etc/passwd', 'crm.example', '']) AS url;
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', secret_name => 'a/b')$$),
               'is not the name of a file.*POSTERN_SECRETS_DIR', 'no folder in the name of a secret');
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', '{otp_requested}')$$),
               'otp_requested.*admin.event_types', 'an audit event that is sent to nobody');
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'crm')$$), 'url is missing', 'a new one needs a URL');
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'C R M', 'https://crm.example/x')$$), 'not the name', 'name');
SELECT matches(pg_temp.refusal($$SELECT admin.delete_webhook('a', 'none')$$), 'admin.webhooks', 'an unknown one');
SELECT matches(pg_temp.refusal($$SELECT admin.replay_webhook('a', 'none', 0)$$), 'admin.webhooks', 'there too');
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', secret_name => 'crm'),
       admin.put_webhook('a', 'audit', 'http://localhost:1/y', '{user_disabled,sign_in}', 'urn:audit'),
       admin.put_webhook('b', 'crm', 'https://other.example/x') \g /dev/null
SELECT results_eq($$SELECT name, url, events, audience, secret_name, enabled, pending FROM admin.webhooks
                     WHERE realm = 'a' ORDER BY name$$,
    $$VALUES ('audit', 'http://localhost:1/y', '{sign_in,user_disabled}'::text[], 'urn:audit', NULL, true, 0::bigint),
             ('crm', 'https://crm.example/x', '{*}', 'https://crm.example/x', 'crm', true, 0)$$, 'as put');
SELECT admin.put_webhook('a', 'crm', secret_name => '') \g /dev/null
SELECT is((SELECT secret_name FROM admin.webhooks WHERE realm = 'a' AND name = 'crm'), NULL, 'the secret is taken away');
RESET ROLE;

-- As if the rows of this transaction were those of an earlier one: those up to now are never read.
UPDATE postern.audit_event SET xid = NULL;
UPDATE postern.webhook_cursor SET xid = '0', id = 0;

-- Collecting.
SET LOCAL ROLE app_login;
SELECT is((SELECT is_full::text || waiting FROM postern.collect_events(500)), 'false0', 'nothing to read');
SELECT pg_temp.audited('sign_in') AS first, pg_temp.audited('otp_requested') AS other \gset
SELECT pg_temp.committed('10'), pg_temp.audited('passkey_added') AS second \gset
SELECT pg_temp.committed('9'), pg_temp.audited('user_disabled', 'bob@example.com') AS bobs \gset
SELECT pg_temp.committed('11'), postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.take(), 'audit:sign_in audit:user_disabled crm:passkey_added crm:user_disabled',
          'of each user the first, in the order of transactions and not of ids; what a webhook wants');
SELECT results_eq('SELECT DISTINCT subject FROM taken WHERE event <> ''user_disabled''',
                  ARRAY[pg_temp.sub('ada@example.com')::text], 'the user is the subject');
SELECT is(pg_temp.take(), '', 'one at a time');
SELECT is(pg_temp.settle(:second, 'failed', 0), 1, 'a try fails');
SELECT pg_temp.forget() \g /dev/null
SELECT is(pg_temp.take(), 'crm:passkey_added', 'and is repeated');
SELECT is(pg_temp.settle(:second), 0, 'delivered');
SELECT is(pg_temp.settle(:second), NULL, 'once: the lease is over');
SELECT is(pg_temp.take(), 'crm:sign_in', 'then the next one of that user');
SELECT is(pg_temp.settle(:first, 'failed'), 1, 'a failure counts anew for a user of whom an event arrived');
SELECT is(pg_temp.take(), '', 'is not tried again at once');
SELECT is(pg_temp.sql($$SELECT string_agg(event || ' ' || state || attempts, ',' ORDER BY event)
                          FROM admin.webhook_deliveries WHERE webhook = 'crm'$$),
          'sign_in failing1,user_disabled waiting0', 'and shown; an unrecorded one too');
SELECT pg_temp.later() \g /dev/null
SELECT is(pg_temp.take(), 'audit:sign_in audit:user_disabled crm:sign_in crm:user_disabled',
          'later it is, and so is what was lost with its server');
SELECT is((SELECT count(DISTINCT jti)::int FROM taken WHERE event_id = :first AND name = 'crm'), 1, 'with the same jti');
SELECT pg_temp.later(), pg_temp.forget(), pg_temp.take() \g /dev/null
CREATE TEMP TABLE lost ON COMMIT DROP AS TABLE taken;
SELECT pg_temp.later(), pg_temp.forget(), pg_temp.take() \g /dev/null
SELECT is(postern.settle_event(l.realm_id, l.webhook, l.subject, l.lease, l.event_id, 'failed', NULL, 0), NULL,
          'a lease that another server took over settles nothing') FROM lost AS l WHERE l.webhook = pg_temp.hook();
SELECT is(postern.settle_delivered(array_agg(l.realm_id), array_agg(l.webhook), array_agg(l.subject), array_agg(l.lease),
                                   array_agg(l.event_id)), 0, 'nor does it in a group') FROM lost AS l;
SELECT is(pg_temp.settle(:first, 'refused'), 0, 'refused for good');
SELECT is(pg_temp.sql($$SELECT failures FROM postern.webhook WHERE id = pg_temp.hook()$$), '0',
          'a receiver that answers so does not fail');
SELECT is(pg_temp.settle(:bobs), 0, 'another is delivered');
SELECT is(pg_temp.sql($$SELECT set_aside || ' ' || pending FROM admin.webhooks WHERE realm = 'a' AND name = 'crm'$$),
          '1 0', 'it is set aside');
SELECT pg_temp.later() \g /dev/null
SELECT is(pg_temp.take(), 'audit:sign_in audit:user_disabled', 'and not sent again');

-- Rows below the cursor that a replay wants; others stay as they are.
RESET ROLE;
SELECT admin.replay_webhook('a', 'crm', :first), pg_temp.committed('1') \g /dev/null
SET LOCAL ROLE app_login;
SELECT postern.collect_events(2), postern.collect_events(2), postern.collect_events(2) \g /dev/null
SELECT is(pg_temp.take(), 'crm:passkey_added crm:user_disabled', 'a replay sends what has a higher id');
SELECT is(pg_temp.sql($$SELECT string_agg(event || ' ' || state, ',' ORDER BY event) FROM admin.webhook_deliveries
                         WHERE webhook = 'crm'$$),
          'passkey_added waiting,sign_in set aside,user_disabled waiting', 'and leaves the rest as it is');
RESET ROLE;
DELETE FROM postern.webhook_subject; DELETE FROM postern.webhook_delivery WHERE set_aside_at IS NULL;
SELECT admin.replay_webhook('a', 'crm', 0), pg_temp.committed('1') \g /dev/null
SET LOCAL ROLE app_login;
SELECT postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM admin.webhook_deliveries WHERE webhook = 'crm' AND state = 'waiting'$$), '3',
          'what was set aside is sent anew by a replay');

-- Fairness and failure. Five users, and a sixth while all fail.
RESET ROLE;
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject; DELETE FROM taken;
DELETE FROM postern.webhook WHERE name = 'audit';
INSERT INTO postern.audit_event (realm_id, event, user_id)
SELECT pg_temp.realm(), 'sign_in', gen_random_uuid() FROM generate_series(1, 20);
SELECT pg_temp.committed('12') \g /dev/null
SET LOCAL ROLE app_login;
SELECT postern.collect_events(500) \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.take_events(100, 8, ARRAY[pg_temp.hook(), pg_temp.hook()])), 6,
          'a server makes eight calls to a webhook, those under way included');
SELECT pg_temp.later() \g /dev/null
SELECT pg_temp.take(5) \g /dev/null
SELECT is((SELECT array_agg(x ORDER BY x) FROM (SELECT pg_temp.settle(event_id, 'failed', 3600) AS x FROM taken) AS y),
          '{1,2,3,4,5}', 'failures of different users in a row are counted');
SELECT is((SELECT count(*)::int FROM postern.take_events(100, 8, '{}')), 0, 'the fifth begins a pause');
SELECT pg_temp.later('2 seconds') \g /dev/null
SELECT pg_temp.forget(), pg_temp.take(1) \g /dev/null
SELECT is((SELECT pg_temp.settle(event_id, 'failed', 0) FROM taken), 6, 'then others are tried; after one more failure');
SELECT is(pg_temp.take(), '', 'there is a pause');
SELECT is(pg_temp.sql($$SELECT last_error || (resume_at > now()) FROM admin.webhooks WHERE realm = 'a'$$), 'whytrue', 'shown');
SELECT pg_temp.later('1 minute'), pg_temp.forget(), pg_temp.take(1) \g /dev/null
SELECT is((SELECT pg_temp.settle(event_id, 'delivered') FROM taken), 0, 'a success');
SELECT is((SELECT count(*)::int FROM postern.take_events(100, 8, '{}')), 8, 'ends all that');

-- Many at once: of two users, one of whom has a second event, which comes with a lease that is over; and of a third one
-- whose lease another server has.
RESET ROLE;
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject; DELETE FROM taken;
INSERT INTO postern.audit_event (realm_id, event, user_id)
SELECT pg_temp.realm(), 'sign_in', md5(x)::uuid FROM unnest('{one,one,two,three}'::text[]) AS x;
SELECT pg_temp.committed('16') \g /dev/null
UPDATE postern.webhook_cursor SET xid = '15' WHERE webhook = pg_temp.hook();
SET LOCAL ROLE app_login;
SELECT postern.collect_events(500), pg_temp.take() \g /dev/null
RESET ROLE;
-- Another server has it by now; all that were taken at once have one lease.
UPDATE postern.webhook_subject SET lease = gen_random_uuid() WHERE subject = md5('three')::uuid::text;
INSERT INTO taken (realm_id, webhook, subject, lease, event_id)
SELECT d.realm_id, d.webhook, d.subject, gen_random_uuid(), max(d.event)
  FROM postern.webhook_delivery AS d WHERE d.subject = md5('one')::uuid::text GROUP BY 1, 2, 3;
SELECT admin.put_webhook('a', 'audit', 'http://localhost:1/y') \g /dev/null
INSERT INTO postern.webhook_delivery (realm_id, webhook, subject, event, xid, event_at)
SELECT d.realm_id, pg_temp.hook('audit'), d.subject, d.event, d.xid, d.event_at
  FROM postern.webhook_delivery AS d WHERE d.subject = md5('two')::uuid::text;
SET LOCAL ROLE app_login;
SELECT is(postern.settle_delivered(array_agg(realm_id), array_agg(webhook), array_agg(subject), array_agg(lease),
                                   array_agg(event_id)), 2, 'events are recorded in groups') FROM taken;
RESET ROLE;
SELECT is((SELECT count(*)::int FROM postern.webhook_delivery AS d WHERE d.webhook = pg_temp.hook('audit')), 1,
          'another webhook has the event to send still');
SELECT admin.delete_webhook('a', 'audit') \g /dev/null
SELECT results_eq($$SELECT d.subject FROM postern.webhook_delivery AS d ORDER BY d.subject = md5('one')::uuid::text$$,
                  ARRAY[md5('three')::uuid::text, md5('one')::uuid::text], 'of those that the leases are of');
SELECT results_eq($$SELECT s.subject, s.lease IS NULL FROM postern.webhook_subject AS s ORDER BY 2$$,
                  $$VALUES (md5('three')::uuid::text, false), (md5('one')::uuid::text, true)$$,
                  'a user without more events has no lease, and the next one of another is due');

-- What ends.
UPDATE postern.webhook_delivery SET created_at = now() - interval '72 hours 1 second';
UPDATE postern.webhook_subject SET due_at = now() - interval '1 day';
SELECT is((SELECT pending || ' ' || (given_up > 0) FROM admin.webhooks WHERE realm = 'a'), '0 true', 'after 72 hours');
SET LOCAL ROLE app_login;
SELECT is((SELECT count(*)::int FROM postern.take_events(100, 100, '{}')), 0, 'an event is given up');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.webhook_subject'), '0', 'and its subject is free');
RESET ROLE;
DELETE FROM postern.audit_event WHERE xid = '16';
SELECT is((SELECT count(*)::int FROM postern.audit_event AS t
            WHERE t.at < now() - interval '1 year'), 0, 'nothing of the audit log is that old here');
SELECT is((SELECT condition FROM postern.sweep_rule WHERE table_name = 'audit_event'), 't.at < now() - interval ''1 year''',
          'so the sweeper takes no event that is still tried');

-- The database was restored into another cluster, whose transactions have lower numbers.
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject;
SELECT pg_temp.audited('user_deleted') AS lost \gset
UPDATE postern.audit_event SET xid = '9000000000001' WHERE id = :lost;
UPDATE postern.audit_event SET xid = '8999999999999' WHERE xid = '12';
UPDATE postern.webhook_cursor SET xid = '9000000000000', id = 0, replay_until = '0', replay_after = 0;
SELECT pg_temp.audited('user_enabled') AS fresh \gset
SELECT pg_temp.committed('13') \g /dev/null
SET LOCAL ROLE app_login;
SELECT postern.collect_events(500), postern.collect_events(500), postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY audit_id) FROM admin.webhook_deliveries$$),
          'user_deleted,user_enabled', 'what was not sent there is sent here, and what happens here');
SELECT pg_temp.audited('sign_in', 'bob@example.com') AS next \gset
SELECT pg_temp.committed('14'), postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM admin.webhook_deliveries$$), '3', 'and what comes then');

-- Disabled and deleted.
RESET ROLE;
SELECT admin.put_webhook('a', 'crm', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.take(), '', 'a disabled webhook gets nothing');
RESET ROLE;
SELECT admin.put_webhook('a', 'crm', enabled => true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT matches(pg_temp.take(), 'crm:', 'what waited is sent when it is enabled');
SELECT is((SELECT count(*)::int FROM postern.webhook_figures(20)), 2, 'figures of each webhook');
RESET ROLE;
DELETE FROM postern.webhook_delivery;
SET LOCAL ROLE app_login;
SELECT postern.collect_events(500), postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.webhook_delivery$$), '0', 'what came from the other cluster was read once');
RESET ROLE;
SELECT admin.delete_webhook('a', 'crm') \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.webhook_delivery), 0, 'what it has not got goes with it');
SELECT is(postern.settle_event(pg_temp.realm(), t.webhook, t.subject, t.lease, t.event_id, 'delivered', NULL, 0), NULL,
          'a call that was under way changes nothing') FROM taken AS t LIMIT 1;

-- What the audit log holds for events.
SELECT admin.put_user('a', 'bob@example.com', enabled => false), admin.put_user('a', 'bob@example.com', enabled => false),
       admin.put_user('a', 'bob@example.com', enabled => true) \g /dev/null
SELECT is((SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
            WHERE event IN ('user_disabled', 'user_enabled') AND source LIKE 'sql:%'), 'user_disabled,user_enabled',
          'put_user says when it disables and enables');
SELECT is_empty('SELECT event FROM postern.event_type WHERE type !~ ''^(https://schemas.openid.net/secevent/|urn:postern:event:)''',
                'types are those of CAEP, RISC and our own');
SELECT * FROM finish();
ROLLBACK;
