\ir ../helpers/fixture.psql
SELECT no_plan();
\ir ../helpers/links.psql
SET LOCAL ROLE app_login;

-- Requests and decisions.
SELECT is(pg_temp.link('h1', 'ada@example.com', 't1'), 'send', 'a known address is sent a link');
SELECT is(pg_temp.sql($$SELECT recipient || ' ' || state || ' ' || template FROM postern.message_outbox$$),
          'Ada@example.com queued magic-link', 'to the stored address');
SELECT is(pg_temp.link('n1', 'nobody@example.com', 'x'), 'ignored', 'an unknown address is sent nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '1', 'one mail in all');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.sign_in_request WHERE pending$$), '0', 'both are decided');
SELECT is((SELECT outcome FROM postern.decide_link_request(pg_temp.realm(), pg_temp.b16('h1'))), 'ignored',
          'and none is decided twice');
SELECT is(postern.decide_code(pg_temp.realm(), pg_temp.b16('h1'), gen_random_uuid(), pg_temp.b16('x'), pg_temp.h('x'),
                              gen_random_uuid(), '\x01', 'otp'), 'ignored', 'nor as a code');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', 'x'), 'refused attempts', 'its handle opens no code');

-- The number.
SELECT ok(bool_and(postern.match_number(pg_temp.b16(n::text)) BETWEEN 10 AND 99)
          AND count(DISTINCT postern.match_number(pg_temp.b16(n::text))) = 90,
              'numbers have two digits, and all of them occur') FROM generate_series(1, 2000) AS n;
SELECT is(postern.match_number('\x000102030405060708090a0b0c0d0e0f'), 23,
          'a number known beforehand, the same as the server computes');
SELECT is(pg_temp.number('ada@example.com', 't1'), postern.match_number(pg_temp.b16('h1')),
          'the page knows the right one');
SELECT is(pg_temp.number('ada@example.com', 'other'), NULL, 'of no other link');
SELECT is(pg_temp.number('bob@example.com', 't1'), NULL, 'of no other user');

-- By token.
SELECT is(pg_temp.open('bob@example.com', 't1'), 'refused unknown', 'another user''s link');
SELECT is(pg_temp.open('ada@example.com', 'wrong'), 'refused unknown', 'a wrong token');
SELECT is(pg_temp.open('nobody@example.com', 't1'), 'refused unknown', 'a user nobody is');
SELECT is(pg_temp.poll('h1'), 'pending', 'the device that asked waits');
SELECT set_config('test.level', '2', true) \g /dev/null
SELECT is(pg_temp.open('ada@example.com', 't1'), 'unmet', 'a request for two factors spends nothing');
SELECT set_config('test.level', '', true) \g /dev/null
SELECT is(pg_temp.open('ada@example.com', 't1', session => 'in'), 'ok', 'none of which ended the link');
SELECT is(pg_temp.open('ada@example.com', 't1'), 'refused redeemed', 'a link works once');
SELECT is(pg_temp.poll('h1'), 'refused expired', 'and the device that asked gets nothing');
SELECT is(pg_temp.answer('ada@example.com', 't1', 'h1'), 'redeemed', 'nor does the page confirm it');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
                      WHERE event IN ('sign_in', 'link_requested')$$), 'link_requested,sign_in',
                          'both are in the audit log');
SELECT is(pg_temp.sql($$SELECT amr::text || (refresh_expires_at IS NOT NULL) FROM postern.session
                      WHERE id = pg_temp.uu('in')$$), '{otp}true', 'a session is open');

-- Each request has a link of its own; within the cooldown only the handle itself is sent nothing.
SELECT is(pg_temp.link('c1', 'ada@example.com', 'tc1'), 'send', 'a link');
SELECT is(pg_temp.link('c2', 'ada@example.com', 'tc2'), 'send',
          'a second request from the same source gets one of its own');
SELECT is(pg_temp.number('ada@example.com', 'tc1'), postern.match_number(pg_temp.b16('c1')),
          'the first link stays the first handle''s');
SELECT is(pg_temp.number('ada@example.com', 'tc2'), postern.match_number(pg_temp.b16('c2')),
          'the second one is the second''s');
SELECT is(pg_temp.link('c1', 'ada@example.com', '-', resend => true), 'ignored',
          'a resend for the handle within the cooldown sends nothing');
SELECT is(pg_temp.link('c1', 'ada@example.com', 'tc3', pg_temp.client(), resend => true), 'send',
          'a handle presented for another client is no resend');
SELECT is(pg_temp.number('ada@example.com', 'tc3'), postern.match_number(pg_temp.b16('fresh c1')),
          'its link belongs to a new handle');
SELECT is(pg_temp.later(61), '61 s later', 'the cooldown passes');
SELECT is(pg_temp.link('c1', 'ada@example.com', 'tc4', source => '203.0.113.9', resend => true), 'send',
          'then a resend sends a link, wherever it comes from');
SELECT is(pg_temp.number('ada@example.com', 'tc4'), pg_temp.number('ada@example.com', 'tc1'),
          'with the number of its handle');
SELECT is(pg_temp.page('ada@example.com', 'tc1'), 'shown a -61 192.0.2.1',
          'the page says who asked, when and from where');
SELECT is(pg_temp.page('ada@example.com', 'tc4'), 'shown a 0 203.0.113.9', 'of each link');
SELECT is(pg_temp.page('ada@example.com', 'tc3'), 'shown app -61 192.0.2.1', 'the client that the request named');
SELECT is(pg_temp.page('ada@example.com', 'other'), 'shown unknown', 'nothing of a link that was never sent');
SELECT is(pg_temp.open('ada@example.com', 'tc3', 'second'), 'refused client', 'a link of another client');
SELECT is(pg_temp.open('ada@example.com', 'tc4', handle => 'c2'), 'refused handle',
          'a link that belongs to another request than the one named');
SELECT is(pg_temp.open('ada@example.com', 'tc4', 'second', session => 'keyed', handle => 'c1'), 'ok',
          'any client for a link that names none, with the handle it belongs to');
SELECT is(pg_temp.sql($$SELECT encode(server_key, 'hex') FROM postern.session WHERE id = pg_temp.uu('keyed')$$),
          '01020304', 'the session names its key');
SELECT is(pg_temp.open('ada@example.com', 'tc2'), 'refused superseded', 'a success ends all links of the user');
SELECT is(pg_temp.answer('ada@example.com', 'tc3', 'fresh c1'), 'superseded', 'on the page too');

-- Strangers: many links, none of which pushes out another.
SELECT is(pg_temp.link('own', 'bob@example.com', 'town'), 'send', 'the owner asks');
SELECT is(count(*) FILTER (WHERE o = 'send'), 99::bigint, 'strangers together get a hundred live links')
  FROM (SELECT pg_temp.link('m' || n, 'bob@example.com', 'tm' || n, NULL, '192.0.2.' || n) AS o
        FROM generate_series(1, 120) AS n) AS x;
SELECT is(pg_temp.link('d0', 'bob@example.com', 'td0', hint => 'bob@example.com', device => 'phone'), 'send',
          'a known device still gets one');
SELECT is(count(*) FILTER (WHERE o = 'send'), 19::bigint, 'it has twenty of its own')
  FROM (SELECT pg_temp.link('dd' || n, 'bob@example.com', 'tdd' || n, hint => 'bob@example.com', device => 'phone') AS o
        FROM generate_series(1, 25) AS n) AS x;
SELECT is(pg_temp.link('d1', 'bob@example.com', 'td1', hint => 'bob@example.com', device => 'tablet'), 'send',
          'and so has another one');
SELECT is(pg_temp.link('d2', 'bob@example.com', 'td2', hint => 'ada@example.com', device => 'phone'), 'ignored',
          'a hint for another account is a stranger''s');
SELECT is(pg_temp.open('bob@example.com', 'town'), 'ok', 'the owner''s link lives on');

-- A hint for another account takes a permit of the address.
SELECT is(string_agg(pg_temp.link('q' || n, 'ada@example.com', 'tq' || n, source => '203.0.113.' || n,
                                  hint => 'bob@example.com', device => 'd' || n), ' ' ORDER BY n),
    'send send send send send send send send send send ignored',
        'hints of another account: ten, and then the address''s permits are used up') FROM generate_series(1, 11) AS n;
SELECT is(pg_temp.link('q12', 'ada@example.com', 'tq12', hint => 'ada@example.com', device => 'phone'), 'send',
          'not those of its own device');
SELECT is(pg_temp.open('ada@example.com', 'tq12'), 'ok', 'which signs in');

-- "Not me".
SELECT is(pg_temp.link('x1', 'bob@example.com', 'tx1'), 'send', 'a link');
SELECT is(pg_temp.link('x2', 'bob@example.com', 'tx2'), 'send', 'and another one');
SELECT is(pg_temp.answer('bob@example.com', 'tx1', NULL), 'denied', 'the owner says "not me"');
SELECT is(pg_temp.poll('x1'), 'denied', 'the asker is refused');
SELECT is(pg_temp.link('x3', 'bob@example.com', 'tx3'), 'ignored', 'strangers get no more links');
SELECT is(pg_temp.link('x4', 'bob@example.com', 'tx4', hint => 'bob@example.com', device => 'phone'), 'send',
          'a known device does');
SELECT is(pg_temp.answer('bob@example.com', 'tx2', 'wrong'), 'denied', 'a wrong number');
SELECT is(pg_temp.later(901), '901 s later', 'fifteen minutes');
SELECT is(pg_temp.link('x5', 'bob@example.com', 'tx5'), 'send', 'later anybody does again');
SELECT is(pg_temp.answer('bob@example.com', 'tx5', 'wrong'), 'denied', 'a wrong number');
SELECT is(pg_temp.link('x6', 'bob@example.com', 'tx6'), 'send', 'stops nobody''s requests');

-- By polling.
SELECT is(pg_temp.link('p1', 'ada@example.com', 'tp1'), 'send', 'a link');
SELECT is(pg_temp.poll('p1'), 'pending', 'the first poll may come at once');
SELECT is(pg_temp.poll('p1'), 'slow_down', 'the second may not');
SELECT is(pg_temp.sql($$SELECT poll_interval FROM postern.sign_in_request WHERE id = pg_temp.b16('p1')$$), '10',
          'and the interval is five seconds longer');
SELECT is(pg_temp.later(9), '9 s later', 'nine seconds');
SELECT is(pg_temp.poll('p1'), 'slow_down', 'are too few');
SELECT is(pg_temp.later(6), '6 s later', 'fifteen in all');
SELECT is(pg_temp.poll('p1'), 'pending', 'are enough');
SELECT is(pg_temp.poll('p1', 'second'), 'slow_down', 'any client polls for a handle that names none');
SELECT is(pg_temp.answer('bob@example.com', 'tp1', 'p1'), 'unknown', 'another user''s page');
SELECT is(pg_temp.answer('ada@example.com', 'tp1', 'p1'), 'confirmed', 'the right number');
SELECT is(pg_temp.open('ada@example.com', 'tp1'), 'refused confirmed', 'a confirmed link cannot be redeemed as well');
SELECT is(pg_temp.answer('ada@example.com', 'tp1', 'p1'), 'answered', 'nor confirmed again');
SELECT set_config('test.level', '2', true) \g /dev/null
SELECT is(pg_temp.poll('p1'), 'unmet', 'a request for two factors spends nothing');
SELECT set_config('test.level', '', true) \g /dev/null
SELECT is(pg_temp.poll('p1'), 'ok', 'the device that asked is signed in');
SELECT is(pg_temp.poll('p1'), 'refused expired', 'once');
SELECT is(pg_temp.link('n2', 'nobody@example.com', 'x'), 'ignored', 'an unknown address');
SELECT is(pg_temp.poll('n2'), 'pending', 'a handle of an unknown address');
SELECT is(pg_temp.poll('n2'), 'slow_down', 'is polled in the same way');
SELECT is(pg_temp.later(901), '901 s later', 'to the end');
SELECT is(pg_temp.poll('n2'), 'refused expired', 'of its time');
SELECT is(pg_temp.poll('never'), 'refused unknown', 'a handle nobody has');

-- A wrong number, and none.
SELECT is(pg_temp.link('w1', 'ada@example.com', 'tw1'), 'send', 'a link');
SELECT is(pg_temp.answer('ada@example.com', 'tw1', 'wrong'), 'denied', 'denied');
SELECT is(pg_temp.poll('w1'), 'denied', 'is what its device is told');
SELECT is(pg_temp.poll('w1'), 'denied', 'as often as it asks');
SELECT is(pg_temp.open('ada@example.com', 'tw1'), 'refused denied', 'the link is dead');
SELECT is(pg_temp.answer('ada@example.com', 'tw1', 'w1'), 'answered', 'the right number comes too late');
SELECT is(pg_temp.link('w1', 'ada@example.com', 'tw2', resend => true), 'send', 'a new request');
SELECT is(pg_temp.number('ada@example.com', 'tw2'), postern.match_number(pg_temp.b16('fresh w1')), 'gets a new handle');

-- Time, people and switches.
SELECT is(pg_temp.later(901), '901 s later', 'fifteen minutes');
SELECT is(pg_temp.open('ada@example.com', 'tw2'), 'refused expired', 'is how long a link lives');
SELECT is(pg_temp.answer('ada@example.com', 'tw2', 'fresh w1'), 'expired', 'on the page too');
SELECT is(pg_temp.link('e1', 'bob@example.com', 'te1'), 'send', 'a link');
SELECT is(pg_temp.link('e2', 'bob@example.com', 'te2', NULL, '198.51.100.7'), 'send', 'and another');
SELECT is(pg_temp.answer('bob@example.com', 'te2', 'e2'), 'confirmed', 'which is confirmed');
RESET ROLE;
UPDATE postern.user_account SET enabled = false WHERE address_key = 'bob@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.poll('e2'), 'refused disabled', 'a user disabled after the confirmation');
SELECT is(pg_temp.link('e3', 'bob@example.com', 'te3'), 'ignored', 'is sent nothing');
RESET ROLE;
UPDATE postern.user_account SET enabled = true WHERE address_key = 'bob@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.poll('e2'), 'refused disabled', 'enabling again does not revive the confirmation');
SELECT is(pg_temp.link('d4', 'bob@example.com', 'td4'), 'send', 'a link');
RESET ROLE;
UPDATE postern.user_account SET enabled = false WHERE address_key = 'bob@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.open('bob@example.com', 'td4'), 'refused disabled', 'of a user disabled since');
SELECT is(pg_temp.answer('bob@example.com', 'td4', 'd4'), 'unknown', 'on the page too');
RESET ROLE;
UPDATE postern.user_account SET enabled = true WHERE address_key = 'bob@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.open('bob@example.com', 'td4'), 'refused disabled', 'enabling again does not revive a link');
SELECT is(pg_temp.answer('bob@example.com', 'td4', 'd4'), 'superseded', 'on the page neither');
SELECT is(pg_temp.link('d5', 'bob@example.com', 'td5'), 'send', 'a link');
SELECT is(pg_temp.link('d6', 'bob@example.com', 'td6'), 'send', 'and one');
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'bob@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.open('bob@example.com', 'td5'), 'refused superseded', 'signing out everywhere ends the links');
SELECT is(pg_temp.link('d7', 'bob@example.com', 'td7'), 'send', 'but not those made afterwards');
SELECT is(pg_temp.answer('bob@example.com', 'td7', 'd7'), 'confirmed', 'confirmed');
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'bob@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.poll('d7'), 'refused expired', 'it ends a confirmed handle too');
SELECT is(pg_temp.link('d8', 'bob@example.com', 'td8'), 'send', 'a link');
RESET ROLE;
SELECT admin.set_native_grants('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.open('bob@example.com', 'td8')$$), 'PC003', 'of a realm that has native grants off');
RESET ROLE;
SELECT admin.set_native_grants('a', true), admin.put_user('a', 'bob@example.com', email_verified => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.link('u1', 'bob@example.com', 'tu1'), 'ignored', 'an unconfirmed address is sent nothing');
SELECT is(pg_temp.sql($$INSERT INTO postern.code_guard (realm_id, address_key, consecutive, locked_until)
                      VALUES (pg_temp.realm(), 'bob@example.com', 100, now() + interval '1 hour') RETURNING 1$$), '1',
                          'codes are locked');
SELECT is(pg_temp.open('bob@example.com', 'td8'), 'ok', 'a link still signs in');
SELECT is(pg_temp.sql($$SELECT email_verified FROM postern.user_account WHERE id = pg_temp.person('bob@example.com')$$),
          'true', 'it proves the mailbox');
SELECT is(pg_temp.sql($$SELECT consecutive || ' ' || coalesce(locked_until::text, '-') FROM postern.code_guard
                      WHERE address_key = 'bob@example.com'$$), '0 -', 'and opens the codes again');

-- Tenancy and the sweeper.
RESET ROLE;
SELECT admin.grant_permission('b', 'app', 'gt:urn:cocoar:magic') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is((SELECT outcome FROM postern.redeem_link(
    pg_temp.caller('gt:urn:cocoar:magic', source => NULL, client => pg_temp.client('app', pg_temp.other()), realm => pg_temp.other()),
    pg_temp.no_permits(), pg_temp.opens(gen_random_uuid(), refresh_hash => NULL),
    pg_temp.person('ada@example.com'), pg_temp.h('t1'), NULL, NULL)),
        'refused', 'a link of another realm');

-- A client that anybody proves an address for: its link to an address that is not proven is as a code that registers.
RESET ROLE;
SELECT admin.put_client('a', 'cotter', access_token_type => 'jwt'),
       admin.grant_permission('a', 'cotter', 'cap:cotter', 'gt:refresh_token', 'gt:authorization_code') \g /dev/null
SET LOCAL ROLE app_login;
SELECT pg_temp.sql($$DELETE FROM postern.message_outbox; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.link('k1', 'stranger@example.com', 'tk1', pg_temp.client('cotter')), 'send', 'a link to a new address');
SELECT is(pg_temp.link('k2', 'ada@example.com', 'tk2', pg_temp.client('cotter'), hint => 'ada@example.com',
                       device => 'phone'), 'send', 'and one to a member');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', recipient, purpose, priority), ', ' ORDER BY priority)
                      FROM postern.message_outbox$$),
          'Ada@example.com sign-in 0, stranger@example.com register 2', 'the member''s leaves first');
SELECT is(pg_temp.later(3600), '3600 s later', 'an hour later');
SELECT ok(postern.sweep(100000) > 0, 'the sweeper comes');
SELECT is(pg_temp.sql($$SELECT (SELECT count(*) FROM postern.login_link) || ' '
                      || (SELECT count(*) FROM postern.sign_in_request)$$), '0 0', 'and leaves no link and no handle');
SELECT is(pg_temp.link('z1', 'ada@example.com', 'tz1'), 'send', 'a last link');
RESET ROLE;
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.login_link), 0, 'goes with its user');
SELECT * FROM finish();
ROLLBACK;
