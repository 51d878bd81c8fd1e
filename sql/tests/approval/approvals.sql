\ir ../helpers/fixture.psql
SELECT no_plan();
\ir ../helpers/approvals.psql
SELECT pg_temp.device('t1'), pg_temp.device('t2'), pg_temp.device('bobs', 'bob@example.com') \g /dev/null
SET ROLE app_login;

-- A request, its answer and its session.
SELECT is(pg_temp.asks('r1'), 'asked', 'a client asks');
SELECT is(pg_temp.inbox('t1') || ' ' || pg_temp.inbox('t2'), 'r1 r1', 'every device of the user shows the request');
SELECT is(pg_temp.inbox('bobs'), '', 'a device of another user does not');
SELECT is(pg_temp.inbox('stranger'), 'unknown', 'nor does a key that is no device');
SELECT is(pg_temp.polls('r1'), 'pending', 'the client polls');
SELECT is(pg_temp.polls('r1'), 'slow_down', 'and is told to wait when it comes too early');
SELECT is(pg_temp.sql($$SELECT poll_interval FROM postern.device_request$$), '10', 'five seconds longer');
SELECT is(pg_temp.answers('t1', 'r1'), 'decided approve', 'the device approves');
SELECT is(pg_temp.answers('t1', 'r1'), 'decided approve', 'and may say so again');
SELECT is(pg_temp.answers('t2', 'r1', 'deny'), 'already_decided approve', 'another device comes too late');
SELECT is(pg_temp.answers('t2', 'r1'), 'already_decided approve', 'also with the same answer');
SELECT is(pg_temp.audited('r1'), 'approval_requested approval_approved', 'the audit log has each thing once');
SELECT is(pg_temp.inbox('t1'), '', 'what is answered is shown no more');
SELECT pg_temp.permit('second', 'gt:urn:openid:params:grant-type:ciba') \g /dev/null
SELECT is(pg_temp.polls('r1', 'second'), 'refused client', 'another client gets nothing');
SELECT set_config('test.level', '2', true) \g /dev/null
SELECT is(pg_temp.polls('r1'), 'unmet', 'a request for two factors spends nothing');
SELECT set_config('test.level', '', true) \g /dev/null
SELECT is(pg_temp.after(change, $$pg_temp.polls('r1')$$), pg_temp.closed_by(change), change)
  FROM pg_temp.closing('gt:urn:openid:params:grant-type:ciba', 'approvals_enabled') AS change;
SELECT is(pg_temp.after('UPDATE postern.user_account SET enabled = false', $$pg_temp.polls('r1')$$),
          'refused disabled', 'a user who was disabled');
SELECT is(pg_temp.after('UPDATE postern.user_account SET has_totp = true', $$pg_temp.polls('r1')$$),
          'second_factor_gone', 'a user with a second factor is asked for it');
SELECT is(pg_temp.polls('r1', session => 's1'), 'ok', 'the next poll signs in, however early');
SELECT is(pg_temp.polls('r1'), 'refused redeemed', 'once');
SELECT is(pg_temp.polls('r1', 'second'), 'refused client', 'and not for others');
SELECT is(pg_temp.sql($$SELECT array_to_string(amr, ' ') FROM postern.session WHERE id = md5('s1')::uuid$$), 'pop mca',
          'the session says how');
SELECT is(pg_temp.sql($$SELECT factor::text FROM postern.session WHERE id = md5('s1')::uuid$$), pg_temp.uu('t1')::text,
          'and notes which device has approved it');
SELECT pg_temp.passes('121 seconds') \g /dev/null
SELECT is(pg_temp.polls('r1'), 'expired', 'past its time a used one is expired');
SELECT is(pg_temp.answers('t1', 'r1'), 'not_found', 'and cannot be answered');
SELECT is(pg_temp.polls('never', ends => '-1 second'), 'expired', 'so is one that is gone');
SELECT is(pg_temp.polls('never'), 'refused unknown', 'one that never was is refused');

-- What the device signed is what it was shown.
SELECT pg_temp.asks('r1', message => 'Pay 5 €', client => 'bff') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff'), 'invalid', 'without the message');
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', message => 'Pay 5  €'), 'invalid', 'with another message');
SELECT is(pg_temp.answers('t1', 'r1', client => 'app', message => 'Pay 5 €'), 'invalid', 'for another client');
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', event => 'PAY', message => 'Pay 5 €'), 'invalid',
          'for another event');
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', message => 'Pay 5 €', challenge => 'r2'), 'invalid',
          'with the challenge of another request');
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', message => 'Pay 5 €', number => n), 'invalid',
          format('the number %s is no number', coalesce(n, 'NULL')))
  FROM unnest(ARRAY[NULL, '4', '042', '４２', ' 42', E'42\n']) AS n;
SELECT is(pg_temp.answers('stranger', 'r1', client => 'bff', message => 'Pay 5 €'), 'not_trusted', 'by no device');
SELECT is(pg_temp.answers('bobs', 'r1', client => 'bff', message => 'Pay 5 €'), 'not_found', 'by a foreign device');
SELECT is(pg_temp.audited('r1'), 'approval_requested', 'none of that changed anything');
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', message => 'Pay 5 €'), 'decided approve', 'the right answer');

-- A wrong number ends the request; a denial needs none.
SELECT pg_temp.passes('1 hour') \g /dev/null
SELECT pg_temp.asks('r1') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r1', number => '24'), 'number_mismatch number_mismatch', 'a wrong number');
SELECT is(pg_temp.answers('t1', 'r1'), 'already_decided number_mismatch', 'ends the request');
SELECT is(pg_temp.polls('r1'), 'denied', 'which its asker learns at once');
SELECT is(pg_temp.polls('r1'), 'denied', 'however often');
SELECT pg_temp.passes('121 seconds') \g /dev/null
SELECT is(pg_temp.polls('r1'), 'expired', 'until it expires');
SELECT pg_temp.asks('r1', number => NULL, client => 'bff') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r1', client => 'bff', number => '99'), 'decided approve',
          'a number that is not asked for is not looked at');
SELECT pg_temp.passes('1 hour') \g /dev/null

-- The last moment.
SELECT pg_temp.asks('r1'), pg_temp.passes('119 seconds') \g /dev/null
SELECT is(pg_temp.answers('t1', 'r1'), 'decided approve', 'approved a second before the end');
SELECT pg_temp.passes('59 seconds') \g /dev/null
SELECT is(pg_temp.polls('r1', ends => '-58 seconds'), 'ok', 'the session can be had for a minute');
SELECT pg_temp.asks('r2'), pg_temp.passes('119 seconds'), pg_temp.answers('t1', 'r2') \g /dev/null
SELECT pg_temp.passes('61 seconds') \g /dev/null
SELECT is(pg_temp.polls('r2', ends => '-60 seconds'), 'expired', 'but no longer');

-- What ends an approval that was given.
SELECT pg_temp.asks('r1'), pg_temp.answers('t1', 'r1') \g /dev/null
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SET ROLE app_login;
SELECT is(pg_temp.polls('r1'), 'refused disabled', 'signed out everywhere since');
SELECT pg_temp.asks('r2'), pg_temp.answers('t1', 'r2') \g /dev/null
RESET ROLE;
SELECT admin.put_user('a', 'ada@example.com', enabled => false) \g /dev/null
SET ROLE app_login;
SELECT is(pg_temp.polls('r2'), 'refused disabled', 'disabled since');
SELECT is(pg_temp.inbox('t1'), 'unknown', 'devices of a disabled user are none');
SELECT is(pg_temp.answers('t1', 'r2'), 'not_trusted', 'and answer nothing');
RESET ROLE;
SELECT admin.put_user('a', 'ada@example.com', enabled => true) \g /dev/null
SET ROLE app_login;
SELECT is(pg_temp.polls('r2'), 'refused disabled', 'also after the user was enabled again');

-- Uniform: whoever is meant, the asker sees the same.
SELECT pg_temp.passes('1 hour') \g /dev/null
SELECT is(pg_temp.asks('n' || n, hint) || ' ' || pg_temp.polls('n' || n), 'asked pending', 'asked: ' || hint)
  FROM unnest('{unknown@example.com,+4915112345678,bob@example.com,8a6d3d4e-0000-4000-8000-000000000000}'::text[])
       WITH ORDINALITY AS h (hint, n);
SELECT is(pg_temp.audited('n1') || ', ' || pg_temp.audited('n3'), 'approval_requested, approval_requested',
          'the audit log says that they were asked');
SELECT is(pg_temp.asks('r1', pg_temp.sub('ada@example.com')::text), 'asked', 'a sub is a hint too');
SELECT is(pg_temp.asks('r2', 'ADA@EXAMPLE.COM', source => '192.0.2.2'), 'asked', 'as is an address in capitals');
SELECT is(pg_temp.inbox('t1'), 'r1,r2', 'the oldest is shown first');

-- Events have numbers.
SELECT is(pg_temp.asks('r3', client => 'bff', is_event => true), 'asked', 'an event');
SELECT is((SELECT concat_ws(' ', e.hint, e.event, e.is_new, e.is_approved, e.event_id BETWEEN 1 AND 2147483647)
             FROM postern.approval_event(pg_temp.realm(), pg_temp.client('bff'), NULL, 'Ada@example.com') AS e),
          'ada@example.com LOGIN t f t', 'is found by its hint');
SELECT is((SELECT count(*)::int FROM postern.approval_event(pg_temp.realm(), pg_temp.client('app'), NULL,
                                                            'ada@example.com')), 0, 'by its client only');
SELECT pg_temp.answers('t1', 'r3', client => 'bff') \g /dev/null
SELECT is((SELECT concat_ws(' ', e.is_new, e.is_approved) FROM postern.approval_event(
              pg_temp.realm(), pg_temp.client('bff'),
              pg_temp.sql('SELECT max(event_id) FROM postern.device_request')::integer, NULL) AS e), 'f t',
          'after the answer it is found by its number');

-- A user's end leaves nothing of the user, and tells the asker nothing.
SELECT pg_temp.asks('r4', source => '192.0.2.4') \g /dev/null
SELECT pg_temp.asks('r7', 'ADA@example.com', source => '192.0.2.7', resolve => false) \g /dev/null
RESET ROLE;
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SET ROLE app_login;
SELECT is(pg_temp.polls('r4'), 'pending', 'a request of a deleted user is pending');
SELECT is(pg_temp.sql($$SELECT concat_ws(' ', user_id, hint, is_shown) FROM postern.device_request
                         WHERE id = pg_temp.rid('r4')$$), 'f', 'and holds nothing');
SELECT is(pg_temp.polls('r7') || ' ' || coalesce(pg_temp.sql($$SELECT hint FROM postern.device_request
                                                                WHERE id = pg_temp.rid('r7')$$), 'none'), 'pending none',
          'nor does one that no worker has looked at');
SELECT postern.resolve_approvals(32, NULL) \g /dev/null
SELECT is(pg_temp.sql($$SELECT concat_ws(' ', user_id, is_shown, resolved_at IS NOT NULL) FROM postern.device_request
                         WHERE id = pg_temp.rid('r7')$$), 'f t', 'in which the worker finds no user');
SELECT pg_temp.passes('26 hours') \g /dev/null
SELECT ok(postern.sweep(100000) > 0, 'the sweeper comes a day later');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.device_request'), '0', 'and leaves no request');
-- The statement that takes a request does not read the tables of people. It writes a transaction, which is counted, so
-- the counters work.
CREATE FUNCTION pg_temp.reads() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(s.relname || ' ' || s.seq_scan + coalesce(s.idx_scan, 0), ', ' ORDER BY s.relname)
      FROM pg_stat_xact_all_tables AS s WHERE s.schemaname = 'postern'
       AND s.relname IN ('user_account', 'user_identifier', 'session', 'device_key', 'passkey') $$;
SELECT set_config('test.reads', pg_temp.reads(), true),
       set_config('test.rows', pg_temp.sql('SELECT count(*) FROM postern.device_request'), true) \g /dev/null
SELECT is(string_agg(pg_temp.asks('t' || n, hint, source => '192.0.2.9', resolve => false), ','), 'asked,asked,asked',
          'asked') FROM unnest('{bob@example.com,unknown@example.com,+4915112345678}'::text[]) WITH ORDINALITY AS h (hint, n);
SELECT is(pg_temp.reads(), current_setting('test.reads'), 'no user, session or device was looked at');
SELECT isnt(pg_temp.sql('SELECT count(*) FROM postern.device_request'), current_setting('test.rows'), 'though it was kept');
SELECT postern.resolve_approvals(32, NULL) \g /dev/null
SELECT isnt(pg_temp.reads(), current_setting('test.reads'), 'a worker looks, and is counted');
SELECT pg_temp.sql($$DELETE FROM postern.device_request WHERE source = '192.0.2.9' RETURNING ''$$) \g /dev/null
-- What waits for a worker is counted with its age.
CREATE FUNCTION pg_temp.waiting() RETURNS TABLE (realm text, queued bigint, oldest double precision) LANGUAGE sql AS $$
    SELECT f.realm, f.queued, f.oldest FROM postern.queue_figures(20) AS f
     WHERE f.queue = 'approvals' AND f.queued > 0 $$;
SELECT is(pg_temp.asks('w1', resolve => false), 'asked', 'a request that no worker has looked at');
SELECT pg_temp.passes('30 seconds') \g /dev/null
SELECT results_eq($$SELECT realm, queued, round(oldest) FROM pg_temp.waiting() ORDER BY realm$$,
                  $$VALUES ('a', 1::bigint, 30::float8), (NULL, 1, 30)$$, 'waits, in its realm and in all');
SELECT postern.resolve_approvals(32, NULL) \g /dev/null
SELECT is_empty('SELECT * FROM pg_temp.waiting()', 'until a worker has looked whom it means');

SELECT * FROM finish();
ROLLBACK;
