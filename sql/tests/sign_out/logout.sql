\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SELECT admin.put_logout_uri('a', 'app', 'https://app.example/logged-out', 'backchannel') \g /dev/null
SELECT matches(pg_temp.refusal($$SELECT admin.put_logout_uri('a', 'app', 'https://app.example/2', 'backchannel')$$),
               'no room', 'one backchannel URI');
SELECT matches(pg_temp.refusal($$SELECT admin.put_logout_uri('a', 'app', 'com.example.app:/x', 'backchannel')$$),
               'neither https nor http', 'of the web');
SELECT matches(pg_temp.refusal($$SELECT admin.put_logout_uri('a', 'app', 'https://app.example/2', 'front')$$),
               'post-logout, backchannel', 'kind');
CREATE FUNCTION pg_temp.out(cookie text, hint text DEFAULT NULL, address text DEFAULT 'ada@example.com',
                            confirmed boolean DEFAULT false) RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.sign_out_browser(pg_temp.realm(), pg_temp.h(cookie), 'a.example', pg_temp.uu(hint),
        CASE WHEN hint IS NOT NULL THEN pg_temp.sub(address) END, confirmed, '192.0.2.1') $$;
CREATE FUNCTION pg_temp.told() RETURNS uuid[] LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(array_agg(session ORDER BY session), '{}') FROM postern.logout_token WHERE realm_id = pg_temp.realm() $$;
SET LOCAL ROLE app_login;
SELECT pg_temp.browse('b', request => pg_temp.wanted('k1')), pg_temp.exchange('k1', 's1'),
       pg_temp.answered('b', pg_temp.wanted('k2')), pg_temp.exchange('k2', 's2'),
       pg_temp.answered('b', pg_temp.wanted('k3', '{"scope":["openid"]}')), pg_temp.exchange('k3', 's3'),
       pg_temp.sign_in('native'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.out('b'), 'ask', 'without a hint the user is asked');
SELECT is(pg_temp.out('b', 'bob', 'bob@example.com'), 'ask', 'with another user''s too');
SELECT is(pg_temp.out('b', 'native'), 'ask', 'and with that of an app');
SELECT ok(pg_temp.alive('s1') AND pg_temp.alive('bob') AND pg_temp.alive('native') AND pg_temp.answered('b') = 'continue',
          'nothing ended');
SELECT is(pg_temp.out('b', 's1'), 'signed_out', 'the ID token of a session of this browser is enough');
SELECT ok(NOT pg_temp.alive('s1') AND NOT pg_temp.alive('s3'), 'it ends, and those without offline_access');
SELECT ok(pg_temp.alive('s2') AND pg_temp.alive('native'), 'the others live');
SELECT is(pg_temp.answered('b'), 'login', 'the browser is signed out');
SELECT ok(pg_temp.told() @> ARRAY[pg_temp.uu('s1'), pg_temp.uu('s3')] AND cardinality(pg_temp.told()) = 2,
          'each ended session is told to its client once');
SELECT is(pg_temp.out('nobody', 's2'), 'ask', 'without the browser session a hint proves nothing');
SELECT is(pg_temp.out('nobody', 'native'), 'ask', 'nor does that of an app');
SELECT is(pg_temp.out('nobody', 'native', confirmed => true), 'signed_out', 'a yes signs the browser out');
SELECT ok(pg_temp.alive('s2') AND pg_temp.alive('native'), 'and ends neither of them');
SELECT is(pg_temp.out('b', 'native'), 'ask', 'the browser whose session ended does not speak for an app');
SELECT is(pg_temp.out('b', 's2'), 'signed_out', 'but for what was opened through it, as a repeated request does');
SELECT ok(NOT pg_temp.alive('s2') AND pg_temp.alive('native'), 'which is dead, and the app goes on');
SAVEPOINT swept;
SELECT pg_temp.browse('b3', request => pg_temp.wanted('k4')), pg_temp.exchange('k4', 's4'), pg_temp.sign_in('swept'),
       pg_temp.sql($$DELETE FROM postern.session WHERE id IN (pg_temp.uu('s4'), pg_temp.uu('swept')) RETURNING ''$$)
    \g /dev/null
SELECT is(pg_temp.out('b3', 'swept') || ' ' || pg_temp.out('b3', 's4'), 'ask ask',
          'once a session is swept its ID token proves nothing: the person is asked');
SELECT is(pg_temp.answered('b3'), 'continue', 'and stays signed in');
ROLLBACK TO swept;
SELECT pg_temp.browse('b2') \g /dev/null
SELECT is(pg_temp.out('b2', confirmed => true), 'signed_out', 'a user who says yes');
SELECT is(pg_temp.answered('b2'), 'login', 'is signed out');
-- Sessions that end elsewhere.
SELECT ok(postern.revoke_session(pg_temp.realm(), pg_temp.client(), pg_temp.uu('bob'), 'token_revoked')
          AND NOT pg_temp.told() @> ARRAY[pg_temp.uu('bob')], 'what the client ends itself it is not told');
RESET ROLE;
SELECT set_config('postern.ended_by_client', '', true), admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SELECT ok(pg_temp.told() @> ARRAY[pg_temp.uu('native')], 'a sign-out everywhere is told');
SELECT pg_temp.sign_in('last', 'bob@example.com'), admin.delete_user('a', 'bob@example.com') \g /dev/null
SELECT ok(pg_temp.told() @> ARRAY[pg_temp.uu('last')], 'the end of an account too');
-- Sending.
SET LOCAL ROLE app_login;
RESET ROLE;
INSERT INTO postern.logout_token (realm_id, client, user_id, session, uri, not_before)
VALUES (pg_temp.realm(), pg_temp.client('second'), gen_random_uuid(), pg_temp.uu('other'), 'https://x.example', now());
UPDATE postern.logout_token SET not_before = now() - interval '1 minute' WHERE client = pg_temp.client();
SET LOCAL ROLE app_login;
SELECT is((SELECT f.queued::int FROM postern.queue_figures(20) AS f WHERE f.queue = 'logout-tokens' AND f.realm = 'a'),
          cardinality(pg_temp.told()), 'what is not sent yet is counted');
SAVEPOINT due;
SELECT results_eq($$SELECT client_id, count(*)::int FROM postern.take_due_logout_tokens(100, 2, '{}')
                     GROUP BY 1 ORDER BY 1$$, $$VALUES ('app', 2), ('second', 1)$$, 'each client gets its share');
ROLLBACK TO due;
SELECT results_eq($$SELECT client_id, count(*)::int FROM postern.take_due_logout_tokens(
                               100, 2, ARRAY[pg_temp.client(), pg_temp.client('second'), pg_temp.client('second')])
                     GROUP BY 1$$, $$VALUES ('app', 1)$$, 'less the calls under way');
ROLLBACK TO due;
SELECT is((SELECT count(DISTINCT client_id)::int FROM postern.take_due_logout_tokens(2, 2, '{}')), 2, 'clients take turns');
SELECT is((SELECT count(*)::int FROM postern.take_due_logout_tokens(100, 100, '{}')), 4, 'all are taken');
SELECT is((SELECT count(*)::int FROM postern.take_due_logout_tokens(100, 100, '{}')), 0, 'by one sender');
CREATE FUNCTION pg_temp.token(name text) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT id FROM postern.logout_token WHERE session = pg_temp.uu(name) $$;
SELECT postern.settle_logout_token(pg_temp.realm(), pg_temp.token('s1'), NULL, 0),
       postern.settle_logout_token(pg_temp.realm(), pg_temp.token('s2'), 'HTTP 500', 0) \g /dev/null
SELECT results_eq($$SELECT session, client_id, attempts FROM postern.take_due_logout_tokens(100, 100, '{}')$$,
                  $$VALUES (pg_temp.uu('s2'), 'app', 2)$$, 'one that failed is sent again');
RESET ROLE;
SELECT results_eq($$SELECT client_id, sent_at IS NOT NULL, last_error FROM admin.logout_tokens
                     WHERE session IN (pg_temp.uu('s1'), pg_temp.uu('s2')) ORDER BY sent_at$$,
                  $$VALUES ('app', true, NULL), ('app', false, 'HTTP 500')$$, 'administrators see how it went');
SELECT admin.put_realm('a', enabled => false), admin.delete_realm('a', 'a', '0'), postern.sweep(10000) \g /dev/null
SELECT is_empty($$SELECT id FROM postern.logout_token$$, 'a deleted realm leaves none');
SELECT * FROM finish();
ROLLBACK;
