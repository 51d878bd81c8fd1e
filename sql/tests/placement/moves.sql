\ir ../helpers/fixture.psql
SELECT no_plan();

-- Every table of realms can be published with a filter by realm.
SELECT is_empty($$
    SELECT t FROM postern.tables_of_realms() AS t JOIN pg_class AS c ON c.oid = format('postern.%I', t)::regclass
     WHERE c.relreplident <> 'f'
       AND NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'realm_id'
                        WHERE i.indrelid = c.oid AND i.indisprimary AND c.relreplident = 'd'
                          AND a.attnum = ANY (i.indkey))$$,
    'every table says with each change which realm it is of');
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname IN ('realm_id', 'realm') AND NOT a.attisdropped
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.relname NOT IN (SELECT * FROM postern.tables_of_realms())
       AND c.relname NOT IN ('realm_move', 'deleted_realm', 'used_proof')$$,
    'no table of realms is left out');
SELECT is_empty($$
    SELECT a.attrelid::regclass, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND a.attidentity <> ''
       AND c.relname NOT IN ('audit_event', 'rate_limit_policy')$$,
    'no other table of realms counts by a sequence of the cluster');
SELECT is_empty($$
    SELECT a.attrelid::regclass, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND a.atttypid = 'xid8'::regtype
       AND c.relname NOT IN ('audit_event', 'webhook_delivery', 'webhook_cursor')$$,
    'no other table has ids of transactions');

-- A realm that leaves is served.
SELECT pg_temp.ask('one', 'ada@example.com', 'right', client => pg_temp.client()) \g /dev/null
SELECT pg_temp.sign_in('s') \g /dev/null
INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose, payload)
VALUES (pg_temp.realm(), pg_temp.uu('m'), 'm@x.example', 'otp', 'register', '\x01');
SELECT is(postern.placement(pg_temp.realm()), 'here', 'a realm is here');
SELECT is(postern.placement(gen_random_uuid()), 'absent', 'an unknown one is not');
SELECT postern.begin_leaving(pg_temp.realm(), 'south') \g /dev/null
SELECT postern.guard_table(pg_temp.realm(), t) FROM postern.guarded_tables() AS t \g /dev/null
SELECT throws_like($$SELECT postern.begin_leaving(pg_temp.realm(), 'east')$$, '%another move: leaving south%',
                   'it moves to one cluster at a time');
SELECT is(postern.placement(pg_temp.realm()), 'here', 'while it leaves it is served');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.rotate('s', 0), 'rotated t', 'and written');
RESET ROLE;
SELECT is(postern.unserved_realms(), '{}', 'by all that goes through the realms');

-- One that has left is not written.
SELECT postern.close_realm(pg_temp.realm()) \g /dev/null
SELECT is(postern.placement(pg_temp.realm()), 'left', 'then it has left');
SELECT is((postern.realm_config(pg_temp.realm()) ->> 'left')::boolean, true, 'which its document says');
SET LOCAL ROLE app_login;
SELECT throws_ok($$SELECT pg_temp.rotate('s', 1)$$, 'PM001', NULL, 'a refresh is refused, and tried elsewhere');
SELECT throws_ok($$SELECT pg_temp.redeem('ada@example.com', 'one', 'right')$$, 'PM001', NULL, 'a code too');
SELECT is(pg_temp.alive('s'), true, 'what reads goes on');
RESET ROLE;
SELECT throws_ok($$SELECT admin.put_user('a', 'new@example.com')$$, 'PM001', NULL, 'administrators are refused');
SELECT throws_ok($$SELECT admin.set_native_grants('a', false)$$, 'PM001', NULL, 'also for settings');
SELECT lives_ok($$SELECT admin.put_user('b', 'new@example.com')$$, 'another realm is not affected');
WITH guarded AS MATERIALIZED (SELECT t FROM postern.guarded_tables() AS t OFFSET 0)
SELECT throws_ok(format('DELETE FROM postern.%I WHERE realm_id = %L', t, pg_temp.realm()), 'PM001', NULL,
                 format('rows of %s are kept', t))
  FROM guarded
 WHERE t <> 'realm' AND (xpath('/row/c/text()', query_to_xml(
           format('SELECT count(*) AS c FROM postern.%I WHERE realm_id = %L', t, pg_temp.realm()), false, true,
           '')))[1]::text::int > 0;

-- What goes through all realms leaves it out.
SET LOCAL ROLE app_login;
SELECT is_empty($$SELECT * FROM pg_temp.take_mail(5)
                   WHERE realm_id = pg_temp.realm()$$, 'its mail is sent elsewhere');
SELECT is_empty($$SELECT * FROM postern.take_undecided(10, gen_random_uuid()) WHERE realm_id = pg_temp.realm()$$,
                'its requests are decided elsewhere');
SELECT lives_ok($$SELECT postern.sweep(1000)$$, 'the sweeper goes round it');
SELECT lives_ok($$SELECT * FROM postern.resolve_approvals(10, NULL)$$, 'approvals too');
SELECT lives_ok($$SELECT * FROM postern.take_due_logout_tokens(10, 2, '{}')$$, 'logout tokens too');
SELECT lives_ok($$SELECT * FROM postern.collect_events(10)$$, 'events too');
SELECT is_empty($$SELECT * FROM postern.queue_figures(10) WHERE realm = 'a'$$, 'its queue does not grow old here');
SELECT is((SELECT count(*) FROM postern.list_realms() WHERE slug = 'a' AND placement = 'left' AND peer = 'south'),
          1::bigint, 'the list says where it is');
RESET ROLE;

-- What was sent or would be swept stays as it was.
SET session_replication_role = replica;
UPDATE postern.session SET revoked_at = now() - interval '3 days' WHERE realm_id = pg_temp.realm();
RESET session_replication_role;
DELETE FROM postern.sweep_cursor;
SELECT postern.sweep(100000) \g /dev/null
SELECT isnt((postern.realm_checksum(pg_temp.realm(), 'session')).count, 0::bigint, 'not even expired rows go');

-- Back, and away for good.
SELECT throws_like($$SELECT postern.clear_rows(pg_temp.realm(), 'session', 10)$$, '%not found to be equal%',
                   'rows that were not compared are not removed');
SELECT postern.reopen_realm(pg_temp.realm()) \g /dev/null
SELECT lives_ok($$SELECT admin.put_user('a', 'new@example.com')$$, 'a realm that is opened again is written');
-- Used proofs are copied by pages before the realm is closed; the rest is of transactions since.
INSERT INTO postern.used_proof (realm_id, slot, key, used_by)
SELECT pg_temp.realm(), 3, (i - 3) * 3000000000000000000, i FROM generate_series(1, 5) AS i;
SELECT is((SELECT count(*) FROM postern.used_proof AS u,
                  LATERAL postern.proofs_to_copy(u.realm_id, 3, int8send(u.key), 2) AS p
            WHERE u.realm_id = pg_temp.realm() AND jsonb_array_length(p.proofs) = 2), 3::bigint,
          'three of five proofs have two or more behind them: a page holds two');
SELECT is((SELECT p.last FROM postern.proofs_to_copy(pg_temp.realm(), 3, '\x', 5) AS p),
          int8send((SELECT max(u.key) FROM postern.used_proof AS u WHERE u.realm_id = pg_temp.realm())),
          'and says its last one');
SELECT is((SELECT p.last FROM postern.proofs_to_copy(pg_temp.realm(), 4, '\x', 5) AS p), NULL, 'an empty one does not');
SELECT postern.close_realm(pg_temp.realm()) \g /dev/null
SELECT is(jsonb_array_length(postern.end_writes(pg_temp.realm(), '1 second',
                                                (pg_current_xact_id()::text::bigint + 100)::text::xid) -> 'proofs'), 0,
          'proofs of older transactions are not returned again');
RESET session_replication_role;
SELECT postern.end_writes(pg_temp.realm(), '1 second', pg_current_xact_id()::xid) AS last \gset
SELECT is(jsonb_array_length(:'last'::jsonb -> 'proofs'), 5, 'those of this one are');
RESET session_replication_role;
SELECT is((SELECT count(*) FROM postern.realm_move_mark WHERE id = (:'last'::jsonb ->> 'mark')::uuid), 1::bigint,
          'the last row is the mark');
SELECT postern.note_verified(pg_temp.realm()) \g /dev/null
SELECT postern.clear_rows(pg_temp.realm(), t, 1000)
  FROM (SELECT * FROM postern.guarded_tables() AS t WHERE t <> 'realm'
        UNION ALL VALUES ('realm_move_mark'), ('realm')) AS x (t) \g /dev/null
RESET session_replication_role;
SELECT is_empty($$SELECT t FROM postern.tables_of_realms() AS t
                   WHERE (postern.realm_checksum(pg_temp.realm(), t)).count > 0$$, 'nothing is left of it');
SELECT isnt_empty($$SELECT FROM postern.user_account WHERE realm_id = pg_temp.other()$$, 'but of the others');

-- It arrives.
SELECT postern.end_move(pg_temp.realm()) \g /dev/null
SELECT throws_like($$SELECT postern.begin_arriving(pg_temp.realm(), 'b', '{}', 'north', 7)$$, '%another realm b%',
                   'no two realms have one slug');
SELECT throws_like($$SELECT postern.begin_arriving(pg_temp.realm(), 'a', '{b.example}', 'north', 7)$$, '%host%',
                   'and no host is of two');
SELECT postern.begin_arriving(pg_temp.realm(), 'a', '{a.example}', 'north', 7000000000) \g /dev/null
INSERT INTO postern.audit_event (realm_id, event) VALUES (pg_temp.realm(), 'x');
SELECT is((SELECT xid FROM postern.audit_event WHERE realm_id = pg_temp.realm()), '3'::xid8,
          'rows that arrive are of a transaction before all of this cluster');
SELECT is(postern.unserved_realms(), ARRAY[pg_temp.realm()], 'workers leave out a realm that arrives');
RESET session_replication_role;
SELECT is(postern.placement(pg_temp.realm()), 'absent', 'and it is not served');
SELECT postern.put_proofs(:'last'::jsonb -> 'proofs') \g /dev/null
SELECT postern.open_realm(pg_temp.realm(), :'last') \g /dev/null
SELECT is((SELECT count(*) FROM postern.used_proof AS u WHERE u.realm_id = pg_temp.realm()), 5::bigint,
          'a proof may arrive twice');
RESET session_replication_role;
SELECT is(postern.placement(pg_temp.realm()), 'here', 'until it is opened');
INSERT INTO postern.audit_event (realm_id, event) VALUES (pg_temp.realm(), 'y');
SELECT ok((SELECT max(a.id) >= 8000000000 FROM postern.audit_event AS a WHERE a.realm_id = pg_temp.realm()),
          'ids of events go on above those of the other cluster, also of sessions that had taken some in advance');
SELECT ok((SELECT r.config_version > (:'last'::jsonb -> 'realm' ->> 'config_version')::bigint
             FROM postern.realm AS r WHERE r.id = pg_temp.realm()), 'its configuration has a new version');
SELECT * FROM finish();
ROLLBACK;
