\ir ../helpers/fixture.psql
\ir ../helpers/webhooks.psql
SELECT no_plan();
-- What administrators may say.
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', audience => repeat('a', 501))$$),
               'audience', 'an audience has an end');
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', '{}')$$),
               'events has NULL, which is no event', 'a webhook wants some event');
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x', secret_name => 'crm'),
       admin.put_webhook('a', 'other', 'https://crm.example/y') \g /dev/null
SELECT matches(pg_temp.refusal($$SELECT admin.put_webhook('b', 'crm', secret_name => 'crm')$$), 'url is missing',
               'a webhook of the same name in another realm lends nothing');
SELECT matches(pg_temp.refusal(format($$SELECT admin.replay_webhook('a', 'crm', %s)$$, v.after)), 'after is missing or negative',
               'a replay begins somewhere: ' || v.after) FROM (VALUES ('NULL'), ('-1')) AS v (after);
SELECT admin.put_webhook('b', 'crm', 'https://other.example/x'), admin.replay_webhook('a', 'crm', 7),
       admin.put_webhook('a', 'gone', 'https://crm.example/z'), admin.delete_webhook('a', 'gone') \g /dev/null
SELECT results_eq($$SELECT event, detail ->> 'name', detail ->> 'secret_name', detail ->> 'after' FROM postern.audit_event
                     WHERE event LIKE 'webhook%' AND realm_id = pg_temp.realm() ORDER BY id$$,
    $$VALUES ('webhook_put', 'crm', 'crm', NULL), ('webhook_put', 'other', NULL, NULL), ('webhook_replayed', 'crm', NULL, '7'),
             ('webhook_put', 'gone', NULL, NULL), ('webhook_deleted', 'gone', NULL, NULL)$$, 'the audit log says who did it');

-- A new webhook gets what happens from now on.
SELECT pg_temp.audited('sign_in') AS before \gset
SELECT pg_temp.committed('5') \g /dev/null
SELECT admin.put_webhook('a', 'new', 'https://crm.example/n') \g /dev/null
SELECT is((SELECT c.xid FROM postern.webhook_cursor AS c WHERE c.webhook = pg_temp.hook('new')),
          pg_snapshot_xmin(pg_current_snapshot()), 'a new webhook reads from the oldest running transaction on');
SELECT postern.collect_events(500) \g /dev/null
SELECT is_empty($$SELECT FROM postern.webhook_delivery WHERE webhook = pg_temp.hook('new')$$, 'and gets nothing older');
SELECT admin.delete_webhook('a', 'new') \g /dev/null
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject;
DELETE FROM postern.audit_event;
UPDATE postern.webhook_cursor SET xid = '0', id = 0, replay_until = '0', replay_after = 0;

-- Which rows are read: of the own realm, of finished transactions, so many at a time.
CREATE FUNCTION pg_temp.queued(hook text DEFAULT 'crm') RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(string_agg(a.event, ' ' ORDER BY d.xid, d.event), '') FROM postern.webhook_delivery AS d
      JOIN postern.audit_event AS a ON a.id = d.event WHERE d.realm_id = pg_temp.realm() AND d.webhook = pg_temp.hook(hook) $$;
SELECT pg_temp.audited('sign_in') \g /dev/null
-- A transaction that began later and has ended: this one is then the oldest of those that run.
\setenv PGDATABASE :DBNAME
\! psql -X -q -o /dev/null -c 'SELECT pg_current_xact_id()'
INSERT INTO postern.audit_event (realm_id, event, user_id) VALUES (pg_temp.other(), 'user_deleted', gen_random_uuid());
UPDATE postern.audit_event SET xid = '8' WHERE event = 'user_deleted';
SELECT is((SELECT is_full FROM postern.collect_events(500)), false, 'rows of an open transaction');
SELECT is(pg_temp.queued(), '', 'are not read');
SELECT cmp_ok((SELECT waiting FROM postern.collect_events(500)), '>', 0::float8, 'and waited for');
UPDATE postern.audit_event SET at = now() - interval '1 day', xid = '1' WHERE event = 'user_deleted';
SELECT cmp_ok(postern.webhook_lag(c), '<', interval '1 hour', 'the lag is that of its own realm')
  FROM postern.webhook_cursor AS c WHERE c.webhook = pg_temp.hook();
SELECT pg_temp.committed('10'), pg_temp.audited('user_disabled') \g /dev/null
SELECT pg_temp.committed('11'), pg_temp.audited('user_enabled') \g /dev/null
SELECT pg_temp.committed('12'), admin.put_webhook('a', 'other', enabled => false) \g /dev/null
SELECT is((SELECT is_full FROM postern.collect_events(2)), true, 'with two of three read there may be more');
SELECT is(pg_temp.queued(), 'sign_in user_disabled', 'of the own realm alone');
SELECT is(pg_temp.queued('other'), '', 'a disabled webhook queues nothing, so its events do not grow old');
UPDATE postern.realm SET enabled = false WHERE id = pg_temp.realm();
SELECT postern.collect_events(2) \g /dev/null
SELECT is(pg_temp.queued(), 'sign_in user_disabled', 'nor does a disabled realm');
SELECT is(pg_temp.take(), 'crm:user_deleted', 'which is sent nothing');
UPDATE postern.realm SET enabled = true WHERE id = pg_temp.realm();

-- A realm that another cluster serves.
INSERT INTO postern.realm_move (realm_id, state, peer) SELECT id, 'arriving', 'south' FROM postern.realm
 WHERE id = pg_temp.realm();
SELECT is(postern.unserved_realms(), ARRAY[pg_temp.realm()], 'a realm that arrives');
SELECT postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.queued(), 'sign_in user_disabled', 'is not read');
SELECT is(pg_temp.take(), '', 'nor sent anything');
SELECT is((SELECT string_agg(realm || ' ' || name, ',') FROM postern.webhook_figures(20)), 'b crm', 'nor in the metrics');
DELETE FROM postern.realm_move;
SELECT is((SELECT string_agg(name, ',' ORDER BY name) FROM postern.webhook_figures(20) WHERE realm = 'a'), 'crm',
          'later it is, without what is disabled');
SELECT is((SELECT string_agg(name, ',') FROM postern.webhook_endpoints() WHERE realm = 'a'), 'crm', 'which no call goes to');
SELECT postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.queued(), 'sign_in user_disabled user_enabled', 'and nothing was skipped');
SELECT admin.delete_webhook('b', 'crm') \g /dev/null

-- One call at a time for a subject, whatever administrators do meanwhile.
SELECT is(pg_temp.take(), 'crm:sign_in', 'a call begins');
SELECT is((SELECT due_at - now() FROM postern.webhook_subject WHERE webhook = pg_temp.hook()), interval '30 seconds',
          'on a lease of half a minute');
SELECT admin.put_webhook('a', 'crm', events => '{*}') \g /dev/null
SELECT is(pg_temp.take(), '', 'a changed webhook starts no second call');
SELECT is(pg_temp.settle((SELECT event_id FROM taken WHERE event = 'sign_in'), 'failed', 3600), 1, 'the call fails');
SELECT admin.put_webhook('a', 'crm', events => '{*}') \g /dev/null
SELECT is(pg_temp.take(), 'crm:sign_in', 'then a change makes the next try now');
SELECT is((SELECT w.failures || '-' || s.failures FROM postern.webhook AS w
             JOIN postern.webhook_subject AS s ON s.webhook = w.id WHERE w.id = pg_temp.hook()), '0-0',
          'and forgets the failures');

-- What is said of an event.
SELECT is((SELECT count(DISTINCT txn) || ' ' || count(DISTINCT jti) FROM taken WHERE event = 'sign_in'), '1 1',
          'two tries of one event have one txn');
INSERT INTO postern.audit_event (realm_id, event, user_id, detail)
VALUES (pg_temp.realm(), 'sign_in', '00000000-0000-8000-8000-000000000001', NULL),
       (pg_temp.realm(), 'code_lockout', NULL, '{"correlation_id": "x"}'),
       (pg_temp.realm(), 'code_lockout', NULL, '{"correlation_id": "x"}');
SELECT pg_temp.committed('13') \g /dev/null
SELECT postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.take(), 'crm:sign_in crm:code_lockout', 'events of one transaction of a person are one subject');
SELECT is((SELECT string_agg(test_identity::text, ',' ORDER BY event) FROM taken WHERE event_id IN (
              SELECT id FROM postern.audit_event WHERE xid = '13')), 'false,true', 'a test identity is named as one');
SELECT is((SELECT count(DISTINCT txn) FROM taken WHERE event_id IN (SELECT id FROM postern.audit_event WHERE xid = '13')),
          1::bigint, 'what was written together has one txn');
SELECT i.id AS identifier FROM postern.user_identifier AS i
 WHERE i.realm_id = pg_temp.realm() AND i.user_id = pg_temp.sub('bob@example.com') \gset
SELECT is(postern.event_address(a), CASE WHEN a.user_id = pg_temp.sub('bob@example.com') THEN 'bob@example.com' END,
          'an address is told while the user of the event has it')
  FROM unnest(ARRAY[pg_temp.sub('bob@example.com'), pg_temp.sub('ada@example.com')]) AS x (who), jsonb_populate_record(
       NULL::postern.audit_event, jsonb_build_object('realm_id', pg_temp.realm(), 'event', 'identifier_added', 'user_id', x.who,
                                                     'detail', jsonb_build_object('identifier', :'identifier'))) AS a;
DELETE FROM postern.audit_event WHERE event = 'code_lockout';
SELECT pg_temp.later(), pg_temp.forget() \g /dev/null
SELECT is(pg_temp.take(), 'crm:sign_in crm:sign_in', 'an event that the audit log has no longer is passed over');

-- How failures count.
SELECT event_id AS one, subject FROM taken WHERE user_id = pg_temp.sub('ada@example.com') \gset
SELECT is(pg_temp.settle(:one, 'failed', 0), 1, 'a failure');
SELECT pg_temp.forget(), pg_temp.later(), pg_temp.take() \g /dev/null
SELECT is(pg_temp.settle(:one, 'failed', 0), 1, 'of the same subject again is no other one');
SELECT is(postern.settle_event(t.realm_id, t.webhook, t.subject, t.lease, t.event_id, 'failed', repeat('e', 1000), 0), 2,
          'a long text of a failure is cut') FROM taken AS t WHERE t.event_id <> :one;
CREATE FUNCTION pg_temp.fails(failures integer, resumes interval, OUT next interval, OUT counted integer)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE postern.webhook SET failures = fails.failures, resume_at = NULL WHERE id = pg_temp.hook();
    UPDATE postern.webhook_subject SET failures = 0 WHERE webhook = pg_temp.hook();
    PERFORM pg_temp.forget(), pg_temp.later(), pg_temp.take();
    UPDATE postern.webhook SET resume_at = now() + resumes WHERE id = pg_temp.hook();
    counted := pg_temp.settle((SELECT event_id FROM taken LIMIT 1), 'failed', 0);
    next := (SELECT resume_at - now() FROM postern.webhook WHERE id = pg_temp.hook());
END
$$;
SELECT is(concat_ws(' ', f.next, f.counted), v.wanted, 'after ' || v.failures || ' failures')
  FROM (VALUES (3, '4'), (4, '00:00:01 5'), (5, '00:00:02 6'), (8, '00:00:02 9'), (30, '00:00:02 31')) AS v (failures, wanted),
       LATERAL pg_temp.fails(v.failures, NULL) AS f;
SELECT is(concat_ws(' ', f.next, f.counted), '00:00:07 9', 'a call that was under way when a pause began says nothing new')
  FROM pg_temp.fails(9, '7 seconds') AS f;

-- Replays.
UPDATE postern.webhook SET failures = 0, resume_at = NULL;
UPDATE postern.webhook_delivery SET attempts = 3 WHERE event = :one;
UPDATE postern.webhook_cursor SET xid = '50' WHERE webhook = pg_temp.hook('other') RETURNING xid, id \gset other_
SELECT admin.replay_webhook('a', 'crm', 0) \g /dev/null
DELETE FROM postern.audit_event WHERE event LIKE 'webhook%';
SELECT is((SELECT (c.xid, c.id) = (:'other_xid'::xid8, :other_id) FROM postern.webhook_cursor AS c
            WHERE c.webhook = pg_temp.hook('other')), true, 'a replay is of one webhook');
SELECT postern.collect_events(500) \g /dev/null
SELECT is((SELECT attempts FROM postern.webhook_delivery WHERE event = :one), 3, 'what waits keeps its tries');
UPDATE postern.webhook_delivery SET created_at = now() - interval '73 hours' WHERE event = :one;
SELECT admin.replay_webhook('a', 'crm', 0) \g /dev/null
DELETE FROM postern.audit_event WHERE event LIKE 'webhook%';
SELECT postern.collect_events(500) \g /dev/null
SELECT is((SELECT attempts || ' ' || (created_at = now()) FROM postern.webhook_delivery WHERE event = :one), '0 true',
          'what was given up is sent anew');
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject;
SELECT is(postern.webhook_lag(c), NULL, 'nothing is late') FROM postern.webhook_cursor AS c WHERE c.webhook = pg_temp.hook();
SELECT pg_temp.audited('passkey_added') AS unread \gset
SELECT pg_temp.committed('14'), pg_temp.audited('passkey_deleted') AS later \gset
SELECT pg_temp.committed('15') \g /dev/null
SELECT admin.replay_webhook('a', 'crm', :unread) \g /dev/null
DELETE FROM postern.audit_event WHERE event LIKE 'webhook%';
SELECT postern.collect_events(500) \g /dev/null
SELECT is(pg_temp.queued(), 'passkey_added passkey_deleted', 'a replay never skips what was not read yet');
SELECT is((SELECT condition FROM postern.sweep_rule WHERE table_name = 'webhook_delivery'), 't.created_at < now() - interval ''10 days''',
          'what was refused or given up is seen for ten days');
UPDATE postern.webhook_delivery SET set_aside_at = now(), event_at = now() - interval '5 days' WHERE event = :unread;
SELECT cmp_ok(postern.webhook_lag(c), '<', interval '1 day', 'what was set aside is not late')
  FROM postern.webhook_cursor AS c WHERE c.webhook = pg_temp.hook();
-- The audit log may have lost an event that waits.
DELETE FROM postern.webhook_delivery; DELETE FROM postern.webhook_subject;
INSERT INTO postern.webhook_delivery (realm_id, webhook, event, xid, event_at, subject)
SELECT a.realm_id, pg_temp.hook(), e, a.xid, a.at, 'one'
  FROM (SELECT x.* FROM postern.audit_event AS x ORDER BY x.id LIMIT 1) AS a, unnest(ARRAY[0, a.id]) AS e;
SELECT is(postern.next_event(pg_temp.realm(), pg_temp.hook(), 'one'), (SELECT min(id) FROM postern.audit_event), 'the next one is sent');
SELECT * FROM finish();
ROLLBACK;
