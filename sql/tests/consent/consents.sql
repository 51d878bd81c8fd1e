\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SELECT admin.put_client('a', 'app', consent => 'explicit') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.browse('b', request => pg_temp.wanted('k1')), 'consent', 'a client that asks gets no code');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k1', '{"consents":true}')), 'issued', 'the user allows it');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k2')), 'issued', 'and is not asked again');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k3', '{"scope":["openid"]}')), 'issued', 'for less neither');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k4', '{"scope":["openid","email"]}')), 'consent', 'for more, yes');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k4', '{"resource":["https://api"]}')), 'consent', 'for another resource too');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k4', '{"asks_consent":true}')), 'consent', 'and when the client wants it');
SELECT is(pg_temp.exchange('k2', 's'), 'ok', 'a session');
SELECT results_eq($$SELECT client_id, ARRAY(SELECT x FROM unnest(scope) AS x ORDER BY 1) FROM postern.list_consents(pg_temp.realm(), pg_temp.sub('ada@example.com'))$$,
                  $$VALUES ('app', '{offline_access,openid}'::text[])$$, 'the user sees what was allowed');
SELECT is_empty($$SELECT client_id FROM postern.list_consents(pg_temp.realm(), pg_temp.sub('bob@example.com'))$$,
                'others do not');
SELECT ok(NOT postern.revoke_consent(pg_temp.realm(), pg_temp.sub('bob@example.com'), pg_temp.client(), NULL)
          AND pg_temp.alive('s'), 'others cannot take it back');
SELECT ok(postern.revoke_consent(pg_temp.realm(), pg_temp.sub('ada@example.com'), pg_temp.client(), '192.0.2.1'),
          'the user can');
SELECT ok(NOT pg_temp.alive('s'), 'the session ends');
SELECT is(pg_temp.exchange('k3', 's2'), 'refused expired', 'and so do codes under way');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k5')), 'consent', 'the next request asks again');
RESET ROLE;
SELECT admin.put_client('a', 'app', consent => 'systematic') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.answered('b', pg_temp.wanted('k6', '{"consents":true}')), 'issued', 'systematic');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k7')), 'consent', 'asks each time');
RESET ROLE;
SELECT ok(admin.revoke_consent('a', pg_temp.sub('ada@example.com'), 'app'), 'an administrator takes it back');
SELECT ok(NOT admin.revoke_consent('a', pg_temp.sub('ada@example.com'), 'app'), 'once');
SELECT matches(pg_temp.refusal($$SELECT admin.revoke_consent('a', gen_random_uuid(), 'app')$$), 'user_id', 'of a user');
SELECT is((SELECT count(*)::int FROM postern.audit_event WHERE event = 'consent_revoked'), 2, 'it is audited');
SELECT * FROM finish();
ROLLBACK;
