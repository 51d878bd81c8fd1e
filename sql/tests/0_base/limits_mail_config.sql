\ir ../helpers/fixture.psql
SELECT no_plan();
-- GCRA.
CREATE FUNCTION pg_temp.take(k text[], wanted int[], permits int, per float8, burst int) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(granted || coalesce('/' || round(retry_after::numeric, 1), ''), ' ' ORDER BY ord)
      FROM postern.take_permits(ROW(
               k, wanted, array_fill(permits, ARRAY[cardinality(k)]), array_fill(per, ARRAY[cardinality(k)]),
               array_fill(burst, ARRAY[cardinality(k)]))) $$;
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT is(pg_temp.take('{k}', '{1}', 5, 60, 5), '1', 'permit ' || n || ' of five') FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.take('{k}', '{1}', 5, 60, 5), '0/12.0', 'the sixth is refused for as long as one permit takes');
SELECT is(pg_temp.sql($$UPDATE postern.rate_bucket SET tat = tat - interval '13 s' RETURNING 1$$), '1', 'after that');
SELECT is(pg_temp.take('{k}', '{1}', 5, 60, 5), '1', 'there is one');
SELECT is(pg_temp.take('{k}', '{1}', 5, 60, 5), '0/11.0', 'and no more');
SELECT is(pg_temp.take('{m}', '{3}', 5, 60, 5), '3', 'several at once');
SELECT is(pg_temp.take('{m}', '{4}', 5, 60, 5), '2', 'or as many as there are');
SELECT is(pg_temp.take('{n}', '{9}', 5, 60, 5), '5', 'never more than the burst');
SELECT is(pg_temp.take('{x,n,y}', '{1,1,1}', 5, 60, 5), '1 0/12.0', 'what comes after a refusal is not touched');
SELECT is(pg_temp.sql($$SELECT string_agg(key, ',' ORDER BY key) FROM postern.rate_bucket$$), 'k,m,n,x', 'really');
SELECT is(pg_temp.take('{q,z}', '{0,2}', 5, 60, 5) || ' ' || pg_temp.take('{q}', '{5}', 5, 60, 5), '1 2 5',
          'of what none is wanted nothing is taken');
SELECT is(pg_temp.take('{n,z}', '{0,2}', 5, 60, 5), '0/12.0', 'but there must be one');
SELECT is(pg_temp.sql($$UPDATE postern.rate_bucket SET tat = now() - interval '1 day' RETURNING 1$$), '1',
          'a long rest');
SELECT is(pg_temp.take('{k}', '{9}', 5, 60, 5), '5', 'saves up no more than the burst');
-- Above the maximum. By clock_timestamp(), as the function looks at it.
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = clock_timestamp() + interval '5 minutes'
                      WHERE key = 'm' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.take('{m}', '{0}', 5, 60, 5), '1', 'a bucket of another limit or another clock counts as empty');
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = clock_timestamp() + interval '60.5 s'
                      WHERE key = 'm' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.take('{m}', '{1}', 5, 60, 5), '1', 'a clock that was put back by half a second refuses no permit');
SELECT is(pg_temp.take('{d}', '{5}', 1, 86400, 5), '5', 'a permit a day, five at once');
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = clock_timestamp() + interval '5 days 86 ms'
                      WHERE key = 'd' RETURNING 1$$) \g /dev/null
-- The wait counts from the transaction's start, so it grows with the time that the test took.
SELECT matches(pg_temp.take('{d}', '{1}', 1, 86400, 5), '^0/864\d\d\.', 'a permit given a moment early empties no bucket');
SELECT set_config('postern.realm', pg_temp.other()::text, true) \g /dev/null
SELECT is(pg_temp.take('{k}', '{1}', 5, 60, 5), '1', 'another realm has buckets of its own');
SELECT results_eq($$SELECT outcome, limit_ord, round(retry_after), granted
                  FROM postern.record_sent_request(
                           pg_temp.caller(NULL, NULL, NULL),
                           ROW('{free,k}', '{1,1}', '{5,5}', '{60,60}', '{5,5}'),
                           pg_temp.request('r', 'x@x.example'), NULL)$$,
    $$VALUES ('rate_limited', 2, 12::float8, '{1,0}'::int[])$$, 'a request over the limit');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.sign_in_request$$), '0', 'records nothing');
SELECT results_eq($$SELECT outcome, limit_ord, granted
                  FROM postern.redeem_code(
                      pg_temp.caller('gt:urn:cocoar:otp', source => NULL),
                      ROW('{k}', '{1}', '{5}', '{60}', '{5}')::postern.permits,
                      pg_temp.opens(gen_random_uuid(), refresh_hash => NULL, amr => '{}'), 'ada@example.com', NULL,
                      ARRAY[pg_temp.h('1')], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL)$$,
    $$VALUES ('rate_limited', 1, '{0}'::int[])$$, 'a redemption over the limit');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.code_guard$$), '0', 'is no try');
SELECT results_eq($$SELECT outcome, limit_ord
                  FROM postern.rotate_session(
                           pg_temp.realm(), pg_temp.client(), pg_temp.uu('s'), 0, pg_temp.h('x'),
                           ARRAY[pg_temp.h('y')], 900, NULL, NULL, NULL, NULL,
                           ROW('{k}', '{1}', '{5}', '{60}', '{5}'))$$, $$
                                           VALUES ('rate_limited', 1)$$, 'a refresh over the limit');

-- The queue of requests and the outbox.
SELECT is((SELECT count(*)::int FROM generate_series(1, 3) AS n,
           LATERAL postern.record_sent_request(
                       pg_temp.caller(NULL, NULL, NULL, CASE n WHEN 2 THEN pg_temp.other() ELSE pg_temp.realm() END),
                       NULL, pg_temp.request('q' || n, 'ada@example.com', first_name => 'Ada'), NULL)), 3,
          'three requests in two realms');
SELECT is((SELECT count(*)::int FROM postern.take_undecided(2, NULL)), 2, 'a worker takes some');
SELECT is((SELECT count(DISTINCT realm_id)::int FROM postern.take_undecided(10, NULL)), 2, 'of any realm');
SELECT is((SELECT string_agg(d.outcome, ',' ORDER BY d.outcome DESC)
           FROM (SELECT postern.decide_code(t.realm_id, t.id, gen_random_uuid(), pg_temp.b16('s'), pg_temp.h('1'),
                                            gen_random_uuid(), '\x5ea1', 'otp') AS outcome
                                                FROM (SELECT * FROM postern.take_undecided(10, NULL)) AS t) AS d),
                                                    'sent,sent,sent', 'and decides them');
SELECT is((SELECT count(*)::int FROM postern.take_undecided(10, NULL)), 0, 'then there are none');
SELECT is((SELECT count(*)::int FROM pg_temp.take_mail(10)), 3, 'mail is taken');
SELECT is((SELECT count(*)::int FROM pg_temp.take_mail(10)), 0, 'by one sender');
SELECT is(pg_temp.sql($$UPDATE postern.message_outbox SET not_before = now() RETURNING 1$$), '1', 'a sender that died');
SELECT is((SELECT string_agg(attempts || encode(payload, 'hex') || template, ',')
           FROM pg_temp.take_mail(10)), '25ea1otp,25ea1otp,25ea1otp', 'loses nothing');
SELECT ok(postern.outbox_sent(realm_id, id), 'sent')
  FROM json_to_recordset(pg_temp.sql($$SELECT json_agg(m) FROM postern.message_outbox AS m
                                     WHERE realm_id = pg_temp.realm()$$)::json) AS m (realm_id uuid, id uuid);
SELECT is(pg_temp.sql($$SELECT DISTINCT state || (payload IS NULL) || (sent_at = now()) FROM postern.message_outbox
                      WHERE realm_id = pg_temp.realm()$$), 'senttruetrue', 'mail that was sent is forgotten');
SELECT set_config('test.mail', pg_temp.sql($$SELECT id FROM postern.message_outbox WHERE realm_id = pg_temp.other()$$),
                  true) \g /dev/null
SELECT is(postern.outbox_failed(pg_temp.other(), current_setting('test.mail')::uuid, '451', '5 minutes', false), false,
          'a temporary failure');
SELECT is(pg_temp.sql($$SELECT state || last_error || (not_before - now()) FROM postern.message_outbox
                      WHERE realm_id = pg_temp.other()$$), 'queued45100:05:00', 'is tried again');
SELECT is(postern.outbox_failed(pg_temp.other(), current_setting('test.mail')::uuid, '451', '25 hours', false), true,
          'but not for ever');
SELECT is(pg_temp.sql($$SELECT state || (payload IS NULL) FROM postern.message_outbox WHERE realm_id = pg_temp.other()$$),
          'deadtrue', 'dead mail is visible and empty');
SELECT is(postern.outbox_failed(pg_temp.other(), current_setting('test.mail')::uuid, '550', '1 s', true), NULL,
          'and stays dead');

-- The sweeper takes what has had its time and nothing else.
RESET ROLE;
SELECT pg_temp.sign_in('live'), pg_temp.sign_in('ended'), pg_temp.sign_in('idle'),
       pg_temp.sign_in('revoked') \g /dev/null
UPDATE postern.session SET expires_at = now() - interval '2 hours' WHERE id = pg_temp.uu('ended');
UPDATE postern.session SET refresh_expires_at = now() - interval '2 hours' WHERE id = pg_temp.uu('idle');
UPDATE postern.session SET revoked_at = now() - interval '2 days' WHERE id = pg_temp.uu('revoked');
UPDATE postern.login_code SET expires_at = now() - interval '1 s' WHERE realm_id = pg_temp.realm();
UPDATE postern.sign_in_request SET expires_at = now() - interval '1 s' WHERE realm_id = pg_temp.realm();
UPDATE postern.message_outbox SET created_at = now() - interval '8 days' WHERE realm_id = pg_temp.realm();
INSERT INTO postern.audit_event (realm_id, at, event) VALUES (pg_temp.realm(), now() - interval '367 days', 'old');
INSERT INTO postern.code_guard (realm_id, address_key, updated_at, consecutive)
VALUES (pg_temp.realm(), 'idle', now() - interval '2 days', 1),
       (pg_temp.realm(), 'recent', now() - interval '23 hours', 1), (pg_temp.realm(), 'empty', now(), 0);
INSERT INTO postern.code_guard (realm_id, address_key, updated_at, locked_until)
VALUES (pg_temp.realm(), 'locked', now() - interval '2 days', now() + interval '1 s');
SELECT count(*) AS audit FROM postern.audit_event \gset
SET LOCAL ROLE app_login;
SELECT cmp_ok(postern.sweep(1000), '>=', 9::bigint, 'the sweeper deletes');
SELECT is(pg_temp.sql($$SELECT string_agg(id::text, ',') FROM postern.session$$), pg_temp.uu('live')::text,
          'sessions that have ended');
SELECT is(pg_temp.sql($$SELECT count(*) || ',' || (SELECT count(*) FROM postern.sign_in_request)
                      FROM postern.login_code$$), '1,1', 'codes and handles');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '1', 'old mail');
SELECT is(pg_temp.sql($$SELECT string_agg(address_key, ',' ORDER BY address_key) FROM postern.code_guard
                      WHERE address_key IN ('idle', 'recent', 'locked', 'empty')$$), 'locked,recent', 'guards that count nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event$$)::int, :audit - 1, 'and last year''s audit log');
SELECT cmp_ok(postern.sweep(1000), '>=', 0::bigint, 'it can go round again');

-- Configuration.
SELECT is((SELECT array_agg(domain ORDER BY domain) FROM postern.directory()), '{a.example,b.example}',
          'the directory');
SELECT is(postern.realm_id('a'), pg_temp.realm(), 'a realm by its slug, whichever realm is set');
SELECT is(postern.realm_id('b'), pg_temp.other(), 'and another one');
SELECT is(postern.realm_id('A'), NULL, 'exactly as it is written');
SELECT is(postern.realm_config(pg_temp.realm()) -> 'clients' -> 0 ->> 'client_id', 'app',
          'the configuration of a realm');
SELECT is(jsonb_array_length(postern.realm_config(pg_temp.realm()) -> 'rate_limits'),
          (SELECT count(*)::int FROM postern.default_rate_limits()), 'with its rate limits');
SELECT is(postern.realm_config(gen_random_uuid()), NULL, 'of no realm is NULL');
RESET ROLE;
CREATE FUNCTION pg_temp.changes(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before text := postern.config_stamp();
BEGIN
    EXECUTE statement;
    RETURN postern.config_stamp() <> before;
END
$$;
SELECT ok(pg_temp.changes(v.statement), 'the stamp changes: ' || v.statement) FROM (VALUES
    ($$SELECT admin.put_realm('a', display_name => 'A')$$),
        ($$SELECT admin.put_realm('a', domains => ARRAY['c.example'])$$),
            ($$SELECT admin.set_native_grants('a', false)$$), ($$SELECT admin.set_native_grants('a', true)$$),
    ($$SELECT admin.set_code_policy('a', otp_attempts => 3)$$), ($$SELECT admin.put_client('a', 'new')$$),
        ($$SELECT admin.put_client('a', 'new', 'confidential')$$), ($$SELECT admin.rotate_client_secret('a', 'new')$$),
    ($$SELECT admin.grant_permission('a', 'new', 'ept:introspection')$$),
        ($$SELECT admin.put_service_account('a', 'n', 'new')$$), ($$SELECT admin.put_scope('a', 's')$$),
            ($$SELECT admin.delete_scope('a', 's')$$),
    ($$SELECT admin.set_rate_limit('a', 'token', 'source', 1, '1 s')$$),
        ($$SELECT admin.reset_rate_limit('a', 'token', 'source')$$), ($$SELECT admin.rotate_signing_key('a')$$),
    ($$SELECT admin.put_app('a', 'x', subdomain => 'x.a.example')$$),
        ($$SELECT admin.set_registration_fields('a', 'Off')$$),
            ($$SELECT admin.put_web_origin('a', 'app', 'https://a.example')$$),
    ($$SELECT admin.put_ios_app('a', 'app', 'A1B2C3D4E5', 'a.b')$$), ($$SELECT admin.delete_client('a', 'new')$$),
        ($$SELECT admin.put_realm('b', enabled => false)$$),
        ($$SELECT admin.delete_realm('b', 'b')$$), ($$SELECT admin.undelete_realm('b')$$)) AS v (statement);
SELECT ok(NOT pg_temp.changes(v.statement), 'the stamp stays: ' || v.statement)
  FROM (VALUES ($$SELECT admin.put_user('a', 'new@example.com')$$),
        ($$SELECT admin.put_realm('a', display_name => 'A')$$)) AS v (statement);
SELECT is((SELECT array_agg(domain ORDER BY domain) FROM postern.directory() WHERE is_served), '{a.example,c.example,x.a.example}',
          'the directory has the subdomains of Apps');
SELECT admin.put_realm('a', enabled => false) \g /dev/null
SELECT is_empty('SELECT * FROM postern.directory() WHERE is_served', 'and no disabled realm is served');
SELECT isnt_empty('SELECT * FROM postern.directory()', 'which keeps its hosts');
INSERT INTO postern.realm_move (realm_id, state, peer) SELECT id, 'left', 'north' FROM postern.realm;
SELECT is_empty('SELECT * FROM postern.directory()', 'but one that has left does not');
DELETE FROM postern.realm_move;
SELECT is(postern.realm_config(pg_temp.realm()), NULL, 'which has no configuration either');
SELECT results_eq('SELECT superuser, bypassrls, is_app_member, read_only FROM postern.server_probe()',
                  'VALUES (true, true, true, false)', 'the probe knows a superuser');
SET LOCAL ROLE app_login;
SELECT results_eq('SELECT superuser, bypassrls, is_app_member, synchronous_commit FROM postern.server_probe()',
                  $$VALUES (false, false, true, 'on')$$, 'and a server''s role');
SELECT * FROM finish();
ROLLBACK;
