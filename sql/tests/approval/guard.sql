\ir ../helpers/fixture.psql
SELECT no_plan();
\ir ../helpers/approvals.psql
SELECT pg_temp.device('t1') \g /dev/null
SET ROLE app_login;
SELECT is((SELECT concat_ws(' ', a.resolved, a.last_realm) FROM postern.resolve_approvals(32, pg_temp.realm()) AS a),
          '0 ' || pg_temp.realm(), 'without a request the turn stays with the realm that had it');

-- Three places.
SELECT pg_temp.asks('r' || n, source => '192.0.2.' || n) FROM generate_series(1, 4) AS n \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r1,r2,r3', 'three requests are shown');
SELECT is(pg_temp.audited('r4'), 'approval_requested approval_hidden:full', 'the fourth is hidden');
SELECT is(pg_temp.polls('r4') || ' ' || pg_temp.polls('r1'), 'pending pending', 'to its asker it looks like the others');
SELECT is(pg_temp.answers('t1', 'r4'), 'not_found', 'it cannot be answered');
SELECT pg_temp.answers('t1', 'r1') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3', 'a hidden one stays hidden when a place is free');
SELECT pg_temp.asks('r5', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3,r5', 'the next one takes it');

-- A newer request of the same client and source.
SELECT pg_temp.asks('r6', source => '192.0.2.2') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r3,r5,r6', 'replaces the older');
SELECT is(pg_temp.polls('r2'), 'expired', 'which expires');
SELECT is(pg_temp.answers('t1', 'r2'), 'not_found', 'and cannot be answered');
SELECT is(pg_temp.asks('x1', 'nobody@example.com') || ' ' || pg_temp.asks('x2', 'nobody@example.com') || ' '
          || pg_temp.polls('x1') || ' ' || pg_temp.polls('x2'), 'asked asked expired pending',
          'as it does where nobody is meant');
SELECT pg_temp.asks('r1a', pg_temp.sub('ada@example.com')::text, source => '192.0.2.3') \g /dev/null
SELECT is(pg_temp.inbox('t1', 'r3', 'r5', 'r6', 'r1a'), 'r5,r6,r1a', 'a newer one by another hint takes its place too');
SELECT is(pg_temp.polls('r3'), 'pending', 'but its asker cannot learn that both hints mean one user');

-- Denials.
SELECT pg_temp.passes('1 hour') \g /dev/null
SELECT pg_temp.asks('r1') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r1', 'deny'), 'decided deny', 'denied');
SELECT pg_temp.passes('59 seconds') \g /dev/null
SELECT pg_temp.asks('r2'), pg_temp.asks('r3', source => '192.0.2.3') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r3', 'that client and source are not shown for a minute, others are');
SELECT is(pg_temp.audited('r2'), 'approval_requested approval_hidden:refused', 'and the audit log says why');
SELECT pg_temp.passes('2 seconds') \g /dev/null
SELECT pg_temp.asks('r4') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r3,r4', 'after the minute they are shown again');
SELECT is(pg_temp.answers('t1', 'r4', number => '11'), 'number_mismatch number_mismatch', 'a second refusal in the hour');
SELECT pg_temp.asks('r5', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r3 quiet for 900', 'hides every new request for a quarter of an hour');
SELECT pg_temp.passes('901 seconds') \g /dev/null
SELECT pg_temp.asks('r6', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r6', 'and no longer');
SELECT pg_temp.passes('2 hours') \g /dev/null
SELECT pg_temp.asks('r1'), pg_temp.answers('t1', 'r1', 'deny') \g /dev/null
SELECT is(pg_temp.inbox('t1'), '', 'a denial two hours later is the first again');

-- A report.
SELECT pg_temp.asks('r2', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r2', 'report'), 'decided report', 'reported');
SELECT is(pg_temp.polls('r2'), 'denied', 'its asker reads that it was refused');
SELECT is(pg_temp.inbox('t1'), 'quiet for 86400', 'a report hides every request for a day');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox WHERE template = 'approval-reported'$$), '1',
          'the user gets a notice');
SELECT is(pg_temp.audited('r2'), 'approval_requested approval_reported', 'it is in the audit log');
RESET ROLE;
SELECT admin.resume_approvals('a', pg_temp.sub('ada@example.com')) \g /dev/null
SET ROLE app_login;
SELECT is(pg_temp.inbox('t1'), '', 'an administrator ends the quiet');
SELECT pg_temp.asks('r3', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r3', 'and the next request is shown at once');

-- Devices on probation, and pushes.
SELECT pg_temp.device('new', probation => '1 hour', push => '\x0102') \g /dev/null
SELECT is(pg_temp.inbox('new'), 'probation', 'a device on probation shows nothing');
SELECT is(pg_temp.answers('new', 'r3'), 'not_trusted', 'and answers nothing');
SELECT pg_temp.device('bobs', 'bob@example.com', '1 hour') \g /dev/null
SELECT pg_temp.asks('b1', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.audited('b1'), 'approval_requested approval_hidden:no_device',
          'who has no other device is shown nothing');
RESET ROLE;
SELECT admin.put_channel('a', 'push', 'hook', 'webhook', 'https://hooks.example/push') \g /dev/null
SET ROLE app_login;
SELECT pg_temp.device('pushed', push => '\x010203') \g /dev/null
SELECT pg_temp.passes('1 hour') \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_key SET probation_until = now() + interval '1 hour'
                      WHERE id = md5('new')::uuid RETURNING ''$$) \g /dev/null
SELECT pg_temp.asks('r1', client => 'bff') \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', recipient, purpose, detail ->> 'device_id' = md5('pushed')::uuid::text,
                                                    detail ->> 'approval_id' = pg_temp.rid('r1')::text, payload, priority), ',')
                          FROM postern.message_outbox WHERE channel = 'push'$$), 'sealed:AQID approval t t 0',
          'each device that may answer gets a push, whose handle stays sealed');
SELECT is(pg_temp.sql($$SELECT client FROM postern.message_outbox WHERE channel = 'push'$$), pg_temp.client('app')::text,
          'in the name of the client that added the device, whose app the provider has to reach');

-- What clients may be told.
RESET ROLE;
SELECT is(pg_temp.refusal($$SELECT admin.put_approval_client('a', 'app', match_number => false)$$),
          '22023 match_number false needs a confidential client, and client_id "app" is public | Anybody can ask in the '
          'name of a public client: there the number stays.', 'a public client keeps its numbers');
SELECT lives_ok($$SELECT admin.put_approval_client('a', 'bff', match_number => false)$$, 'a confidential one need not');
SELECT admin.put_approval_client('a', 'bff') \g /dev/null
SELECT is(pg_temp.sql($$SELECT match_number FROM postern.client WHERE client_id = 'bff'$$), 'false',
          'what is not named stays as it is');
SELECT is(pg_temp.refusal($$SELECT admin.resume_approvals('a', gen_random_uuid())$$) LIKE '22023 user_id % is not a user%',
          true, 'approvals are resumed for users');
SELECT is((SELECT count(*)::int FROM admin.approvals WHERE realm = 'a' AND is_shown AND decision = 'report'), 1,
          'administrators see what was asked');
SELECT admin.grant_permission('a', 'bff', 'cap:cotter') \g /dev/null
SELECT ok(pg_temp.refusal($$SELECT admin.revoke_permission('a', 'bff', 'gt:urn:openid:params:grant-type:ciba')$$)
              LIKE '22023 permission "cap:cotter" of the confidential client_id "bff" needs%',
          'cap:cotter of a confidential client needs the grant');
SELECT * FROM finish();
ROLLBACK;
