\ir ../helpers/fixture.psql
SELECT no_plan();
-- A realm is deleted in two steps with time to think, and comes back while its grace lasts.
SELECT pg_temp.sign_in('ada'), pg_temp.sign_in('bob', 'bob@example.com'), pg_temp.sign_in('old') \g /dev/null
UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('old');
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a')$$),
    '22023 realm "a" is enabled | It has 2 users, 2 clients and 2 live sessions. Close it first: admin.put_realm(''a'', enabled => false).',
    'an enabled realm stays');
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a', 'a', '0')$$) LIKE '22023 realm "a" is enabled%', true, 'whatever is confirmed');
SELECT admin.put_realm('a', enabled => false) \g /dev/null
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a')$$),
    '22023 confirm NULL is not the name of the realm | This deletes 2 users, 2 clients and 2 live sessions. To do it: admin.delete_realm(''a'', confirm => ''a'').',
    'nothing is deleted in passing');
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a', 'b')$$) LIKE '22023 confirm "b" is not the name of the realm%', true, 'nor by the name of another');
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a', 'a', '91 days')$$), '22023 grace "91 days" is out of range | Allowed is an interval from 0 to 90 days.', 'too long');
SELECT is(pg_temp.refusal(format('SELECT admin.delete_realm(%L, %L, %L)', 'a', 'a', g)) LIKE '%is out of range%', true, g || ': ' || why)
  FROM (VALUES ('-12 months 360 days 1 s', 'which compares as more than 0, and ends in the past'),
               ('12 months -270 days', 'which compares as 90 days, and is more')) AS t (g, why);
SELECT is(pg_temp.refusal($$SELECT admin.delete_realm('a', 'a', '-1 s')$$) LIKE '22023 grace "-00:00:01" is out of range%', true, 'too short');
SELECT results_eq($$SELECT deleted_at, erased_at FROM admin.realms WHERE slug = 'a'$$, $$VALUES (NULL::timestamptz, NULL::timestamptz)$$, 'so far nothing is');
SELECT results_eq($$SELECT users, clients, sessions FROM admin.delete_realm('a', 'a')$$, $$VALUES (2::bigint, 2::bigint, 2::bigint)$$, 'it says what goes');
SELECT results_eq($$SELECT deleted_at = now(), erased_at = now() + interval '7 days', enabled FROM admin.realms WHERE slug = 'a'$$, $$VALUES (true, true, false)$$, 'in seven days');
SELECT results_eq($$SELECT slug, erased_at, users, clients FROM admin.deleted_realms$$, $$VALUES ('a', NULL::timestamptz, 2::bigint, 2::bigint)$$, 'the list has it');
SELECT is((SELECT string_agg(domain || ' ' || is_served, ',') FROM postern.directory() WHERE realm_id = pg_temp.realm()), 'a.example false',
    'it keeps its host and is not served there');
SELECT is(pg_temp.refusal($$SELECT admin.put_realm('new', 'a.example')$$) LIKE '22023 primary_domain "a.example" belongs to realm "a"%', true, 'but stay taken');
SELECT is(pg_temp.refusal($$SELECT admin.put_realm('a', enabled => true)$$),
    '22023 realm "a" is deleted | Call admin.undelete_realm(realm) first, before it is erased.', 'it is not opened in passing');
SELECT postern.sweep(10000) \g /dev/null
SELECT is((SELECT count(*)::int FROM admin.users WHERE realm = 'a'), 2, 'the sweeper waits');
SELECT lives_ok($$SELECT admin.undelete_realm('a')$$, 'it comes back');
SELECT results_eq($$SELECT deleted_at, enabled FROM admin.realms WHERE slug = 'a'$$, $$VALUES (NULL::timestamptz, false)$$, 'closed');
SELECT is_empty($$SELECT * FROM admin.deleted_realms$$, 'and is on no list');
SELECT lives_ok($$SELECT admin.put_realm('a', enabled => true)$$, 'it is opened');
SELECT ok(pg_temp.alive('ada'), 'with its sessions');
SELECT is((SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event WHERE event LIKE 'realm\_%dele%'), 'realm_deletion_scheduled,realm_undeleted', 'audited');
SELECT lives_ok($$SELECT admin.undelete_realm('a')$$, 'a second time does nothing');

-- In batches. No receiver hears of the users one by one.
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/'), admin.put_logout_uri('a', 'app', 'https://app.example/', 'backchannel'),
       admin.put_realm('a', enabled => false), admin.delete_realm('a', 'a', '0') \g /dev/null
SELECT is(pg_temp.refusal($$SELECT admin.undelete_realm('a')$$), '22023 realm "a" is being erased | Its grace is over: there is no way back.', 'too late');
SELECT is(postern.erase_realm(3), 3::bigint, 'three rows');
SELECT is((SELECT count(*)::int FROM postern.session WHERE realm_id = pg_temp.realm()), 0, 'sessions first');
SELECT is((SELECT count(*)::int FROM postern.logout_token), 0, 'silently');
SELECT is((SELECT count(*)::int FROM admin.realms WHERE slug = 'a'), 1, 'the realm last');
SELECT is((SELECT count(*)::int FROM generate_series(1, 50) AS g, LATERAL (SELECT postern.erase_realm(3 + 0 * g)) AS e (n) WHERE n > 0) > 1, true, 'more of them');
SELECT is((SELECT count(*)::int FROM admin.realms WHERE slug = 'a'), 0, 'then it is gone');
SELECT results_eq($$SELECT slug, erased_at = now(), users, clients FROM admin.deleted_realms$$, $$VALUES ('a', true, 2::bigint, 2::bigint)$$, 'as the list says');
SELECT is((SELECT count(*)::int FROM admin.users WHERE realm = 'b'), 1, 'no other realm is touched');
SELECT lives_ok($$SELECT admin.put_realm('a', 'a.example')$$, 'the names are free');

-- A client with live sessions.
SELECT set_config('test.realm', (SELECT id::text FROM admin.realms WHERE slug = 'b'), true), admin.put_client('b', 'second') \g /dev/null
SELECT pg_temp.sign_in('one'), pg_temp.sign_in('two'), pg_temp.sign_in('dead') \g /dev/null
UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('dead');
SELECT is(pg_temp.refusal($$SELECT admin.delete_client('b', 'app')$$),
    '22023 client_id "app" has 2 live sessions | Their users would have to sign in again. To end them: add end_sessions => true.', 'is not deleted in passing');
SELECT is(pg_temp.refusal($$SELECT admin.put_client('b', 'app', 'confidential')$$) LIKE '22023 client_id "app" has 2 live sessions%', true, 'nor turned');
SELECT lives_ok($$SELECT admin.put_client('b', 'app', 'public', display_name => 'App')$$, 'the type that it has is no change');
SELECT ok(pg_temp.alive('one'), 'its sessions live');
SELECT lives_ok($$SELECT admin.put_client('b', 'app', 'confidential', end_sessions => true)$$, 'it is turned on purpose');
SELECT ok(NOT pg_temp.alive('one') AND NOT pg_temp.alive('two'), 'and its sessions end');
SELECT is((SELECT string_agg(detail ->> 'reason', ',') FROM postern.audit_event WHERE event = 'session_revoked'),
          'client_type_changed,client_type_changed', 'which receivers of events are told');
SELECT lives_ok($$SELECT admin.delete_client('b', 'app')$$, 'without sessions it goes at once');
SELECT lives_ok($$SELECT admin.delete_client('b', 'second')$$, 'so does one that never had any');
SELECT * FROM finish();
ROLLBACK;
