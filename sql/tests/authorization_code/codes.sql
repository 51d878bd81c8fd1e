\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SELECT pg_temp.permit('second', 'gt:authorization_code') \g /dev/null
SET LOCAL ROLE app_login;
-- A sign-in answers its request in the same call.
SELECT is(pg_temp.browse('b', request => pg_temp.wanted('k1')), 'issued', 'a sign-in stores the code');
SELECT is(pg_temp.exchange('k1', 's', client => 'second'), 'refused client', 'no other client redeems it');
SELECT is(pg_temp.exchange('k1', 's', challenge => ''), 'refused verifier', 'nor a wrong verifier');
SELECT is(pg_temp.exchange('k1', 's', challenge => NULL), 'refused verifier', 'nor a missing one');
SELECT is(pg_temp.exchange('k1', 's', uri => 'https://app.example/other'), 'refused redirect_uri', 'nor another URI');
SELECT is(pg_temp.tried($$pg_temp.exchange('k1', 's', r => pg_temp.other())$$), 'PC002', 'nor another realm');
SELECT is(pg_temp.exchange('k1', 's', resource => '{https://other}'), 'invalid_target', 'a resource it does not hold');
SELECT is(pg_temp.exchange('k0', 's'), 'refused unknown', 'an unknown code');
SELECT results_eq($$SELECT outcome, user_id, scope, resource, amr, acr, nonce, has_refresh_token, auth_time = db_now
                      FROM postern.redeem_authorization_code(
                           pg_temp.caller('gt:authorization_code'), NULL, pg_temp.opens(pg_temp.uu('s1'), pg_temp.h('s10')),
                           pg_temp.h('k1'), 'https://app.example/cb', left(encode(pg_temp.h('challenge'), 'hex'), 43),
                           NULL)$$,
                  $$VALUES ('ok', pg_temp.sub('ada@example.com'), '{openid,offline_access}'::text[], '{app}'::text[],
                            '{otp}'::text[], 'urn:postern:acr:1', 'n', true, true)$$, 'after all that it is good');
SELECT ok(pg_temp.alive('s1'), 'its session lives');
SELECT is(pg_temp.sql($$SELECT browser_session::text FROM postern.session WHERE id = pg_temp.uu('s1')$$),
          pg_temp.uu('b')::text, 'and belongs to the browser');
SELECT is(pg_temp.exchange('k1', 's1'), 'ok repeated', 'the same call again is no reuse');
SELECT is(pg_temp.exchange('k1', 's2', challenge => ''), 'refused verifier', 'a used code with a wrong verifier');
SELECT ok(pg_temp.alive('s1'), 'ends nothing');
SELECT is(pg_temp.exchange('k1', 's2', client => 'second'), 'refused client', 'nor by another client');
SELECT ok(pg_temp.alive('s1'), 'it ends nothing either');
SELECT is(pg_temp.exchange('k1', 's2'), 'refused used', 'presented again with the right one');
SELECT ok(NOT pg_temp.alive('s1') AND NOT pg_temp.alive('s2'), 'the session ends');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'authorization_code_reused'$$), '1',
          'and it is audited');
-- redirect_uri may be left out with PKCE only.
SELECT pg_temp.answered('b', pg_temp.wanted('k2')),
       pg_temp.answered('b', pg_temp.wanted('k3', '{"challenge":null}')) \g /dev/null
SELECT is(pg_temp.exchange('k2', 's3', uri => NULL), 'ok', 'without redirect_uri, by PKCE');
SELECT is(pg_temp.exchange('k3', 's4'), 'refused verifier', 'a verifier for a code without challenge');
SELECT is(pg_temp.exchange('k3', 's4', uri => NULL, challenge => NULL), 'refused redirect_uri', 'neither of them');
SELECT is(pg_temp.exchange('k3', 's4', challenge => NULL), 'ok', 'redirect_uri without PKCE');
-- Ends.
SELECT pg_temp.answered('b', pg_temp.wanted('k4')),
       pg_temp.sql($$UPDATE postern.authorization_code SET expires_at = now() WHERE code_hash = pg_temp.h('k4')
                     RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.exchange('k4', 's5'), 'refused expired', 'an expired code');
SELECT pg_temp.answered('b', pg_temp.wanted('k5')), pg_temp.answered('b', pg_temp.wanted('k6')),
       pg_temp.answered('b', pg_temp.wanted('k7')) \g /dev/null
RESET ROLE;
SELECT admin.set_hosted('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.exchange('k5', 's6')$$), 'PC003', 'pages off');
SELECT is(pg_temp.answered('b', pg_temp.wanted('k')), 'closed', 'no code is given');
RESET ROLE;
SELECT admin.set_hosted('a', true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.exchange('k5', 's6'), 'ok', 'on again');
SELECT ok(postern.end_browser_session(pg_temp.realm(), pg_temp.uu('b'), 'signed_out', NULL), 'the browser signs out');
SELECT is(pg_temp.exchange('k6', 's7'), 'refused ended', 'its codes are dead');
SELECT pg_temp.browse('b2', request => pg_temp.wanted('k8')) \g /dev/null
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.exchange('k8', 's8'), 'refused ended', 'a new security stamp ends them too');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.session WHERE id IN (pg_temp.uu('s7'), pg_temp.uu('s8'))$$),
          '0', 'and no session was opened');

-- What is due.
SELECT pg_temp.browse('d') \g /dev/null
SELECT is(pg_temp.answered('d', pg_temp.wanted()), 'continue', 'nothing, and no code was asked for');
SELECT is(pg_temp.answered('d', pg_temp.wanted('x', '{"max_age":0}')), 'issued', 'a sign-in of this moment is not too old');
SELECT pg_temp.sql($$UPDATE postern.browser_session SET auth_time = now() - interval '10 s', proven_at = now() - interval '10 s'
                      WHERE id = pg_temp.uu('d') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.answered('d', pg_temp.wanted('y', '{"max_age":9}')), 'login', 'one of ten seconds ago is');
SELECT is(pg_temp.answered('d', pg_temp.wanted('y', '{"max_age":11}')), 'issued', 'or not');
SELECT is(pg_temp.answered('d', pg_temp.wanted('z', jsonb_build_object('user_id', pg_temp.sub('bob@example.com')))),
          'account', 'a request for another user');
SELECT is(pg_temp.answered('d', pg_temp.wanted('z', jsonb_build_object('user_id', pg_temp.sub('ada@example.com')))),
          'issued', 'and for this one');
SELECT is(pg_temp.answered('d', pg_temp.wanted('p', '{"acr_values":["phr","urn:postern:acr:2"]}')), 'acr',
          'a level that was not proven');
SELECT is(pg_temp.answered('d', pg_temp.wanted('p', '{"acr_values":["urn:postern:acr:phone"]}')), 'acr', 'a phone number');
SELECT is(pg_temp.answered('d', pg_temp.wanted('q', '{"acr_values":["phr","urn:postern:acr:email"]}')), 'issued',
          'one of two is enough');
SELECT is(pg_temp.sql($$SELECT acr FROM postern.authorization_code WHERE code_hash = pg_temp.h('q')$$),
          'urn:postern:acr:email', 'and is the one that is said');
SELECT pg_temp.browse('d2', former => 'd', amr => '{swk,user,mfa}', proves => 'passkey',
                      request => pg_temp.wanted('r', '{"acr_values":["phr"]}')) \g /dev/null
SELECT is(pg_temp.sql($$SELECT acr FROM postern.authorization_code WHERE code_hash = pg_temp.h('r')$$), 'phr',
          'a passkey proves more');
SELECT pg_temp.browse('d3') \g /dev/null
SELECT is(pg_temp.answered('d3', pg_temp.wanted('s', '{"offer_passkey":true}')), 'offer-passkey', 'a passkey is offered');
SELECT is(pg_temp.answered('d3', pg_temp.wanted('s', '{"offer_passkey":true}')), 'issued', 'once in thirty days');

-- Pushed requests.
CREATE FUNCTION pg_temp.push(name text, bytes integer DEFAULT 1, source text DEFAULT '192.0.2.1',
                             client text DEFAULT 'app') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, round(retry_after)) FROM postern.push_request(
        pg_temp.realm(), NULL, NULL, pg_temp.h(name), pg_temp.client(client), source,
        decode(repeat('00', bytes), 'hex'), 120) $$;
CREATE FUNCTION pg_temp.opened(name text, client text DEFAULT 'app', under_way boolean DEFAULT false,
                               r uuid DEFAULT pg_temp.realm()) RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.open_pushed_request(r, pg_temp.h(name), pg_temp.client(client, pg_temp.realm()), under_way)
           IS NOT NULL $$;
SELECT is(pg_temp.push('u1'), 'stored', 'a request is pushed');
SELECT ok(NOT pg_temp.opened('u1', 'second') AND NOT pg_temp.opened('u0') AND NOT pg_temp.opened('u1', r => pg_temp.other()),
          'another client, name or realm opens nothing');
SELECT ok(pg_temp.opened('u1') AND pg_temp.opened('u1'), 'its client opens it, again after a reload');
CREATE FUNCTION pg_temp.of(name text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('pushed', '\x' || encode(pg_temp.h(name), 'hex')) $$;
SELECT is(pg_temp.answered('d3', pg_temp.wanted('v1', pg_temp.of('u1'))), 'issued', 'it is answered');
SELECT is(pg_temp.answered('d3', pg_temp.wanted('v2', pg_temp.of('u1'))), 'used', 'once');
SELECT is(pg_temp.exchange('v2', 's9'), 'refused unknown', 'there is one code');
SELECT ok(NOT pg_temp.opened('u1'), 'and it opens no more');
SELECT ok(pg_temp.opened('u1', under_way => true), 'but for a page of it, which says who is signed in');
SELECT is(pg_temp.push('u2'), 'stored', 'another one');
SELECT pg_temp.sql($$UPDATE postern.pushed_request SET expires_at = now() WHERE id_hash = pg_temp.h('u2')
                     RETURNING 1$$) \g /dev/null
SELECT ok(NOT pg_temp.opened('u2') AND NOT pg_temp.opened('u2', under_way => true), 'late: never opened');
SELECT pg_temp.push('u3'), pg_temp.opened('u3'),
       pg_temp.sql($$UPDATE postern.pushed_request SET expires_at = now() WHERE id_hash = pg_temp.h('u3')
                     RETURNING 1$$) \g /dev/null
SELECT ok(NOT pg_temp.opened('u3') AND pg_temp.opened('u3', under_way => true), 'late: a sign-in under way goes on');
SELECT is(pg_temp.sql($$SELECT (ends_at = now() + sign_in_lifetime)::text FROM postern.pushed_request AS p
                          JOIN postern.realm AS r ON r.id = p.realm_id WHERE id_hash = pg_temp.h('u3')$$), 'true',
          'as long as a sign-in may take');
SELECT pg_temp.push('u4'), pg_temp.opened('u4'),
       pg_temp.sql($$UPDATE postern.pushed_request SET expires_at = now(), ends_at = now() WHERE id_hash = pg_temp.h('u4')
                     RETURNING 1$$) \g /dev/null
SELECT ok(NOT pg_temp.opened('u4', under_way => true), 'and no longer');
SELECT ok(postern.use_pushed_request(pg_temp.realm(), pg_temp.h('u3'))
          AND NOT postern.use_pushed_request(pg_temp.realm(), pg_temp.h('u3')), 'an error answers it too, once');

-- What one source keeps unopened.
SELECT is(pg_temp.push('k' || n, 4300), 'stored', 'requests of one source for one client') FROM generate_series(1, 15) AS n;
SELECT is(pg_temp.push('k16', 1100), 'full 20', 'are bounded by their bytes');
SELECT is(pg_temp.push('k16', 1000), 'stored', 'to the last byte that fits');
SELECT is(pg_temp.push('k17', 4300, source => '192.0.2.2') || ' ' || pg_temp.push('k18', 4300, client => 'second'),
          'stored stored', 'another source or client has bytes of its own');
SELECT ok(pg_temp.opened('k1'), 'one is opened');
SELECT is(pg_temp.push('k19', 4300), 'stored', 'and makes room');
SELECT pg_temp.sql($$UPDATE postern.pushed_request SET expires_at = expires_at - interval '21 seconds'
                      WHERE id_hash IN (pg_temp.h('k1'), pg_temp.h('k2'), pg_temp.h('k3')) RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.push('k21', 4300), 'stored', 'one that was not opened for a while gives way');
SELECT is(pg_temp.sql($$SELECT string_agg(n, ' ' ORDER BY n) FROM unnest('{k1,k2,k3}'::text[]) AS n
                         WHERE EXISTS (SELECT FROM postern.pushed_request AS p WHERE p.id_hash = pg_temp.h(n))$$),
          'k1 k3', 'the oldest first, no more than need be, and none that was opened');
SELECT is(pg_temp.push('k22', 4300), 'stored', 'then the next');
SELECT is(pg_temp.push('k23', 4300), 'full 20', 'and no younger one');
SELECT pg_temp.sql($$UPDATE postern.pushed_request SET expires_at = now(), ends_at = now() WHERE opened_at IS NULL
                     RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.push('k20', 4300), 'stored', 'as do those whose time is over');
SELECT * FROM finish();
ROLLBACK;
