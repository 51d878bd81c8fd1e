\ir ../helpers/fixture.psql
SELECT no_plan();
INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at)
SELECT pg_temp.realm(), pg_temp.b16(n), 'magic', 'ada@example.com', 'ada@example.com', now() + e
  FROM (VALUES ('a', interval '5 minutes'), ('b', interval '-1 second')) AS v (n, e);
INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, address_key, source, security_stamp, asked_at,
                                expires_at)
SELECT u.realm_id, u.id, pg_temp.h('token'), pg_temp.b16('a'), u.address_key, 'x', u.security_stamp, now(),
       now() + interval '5 minutes' FROM postern.user_account AS u
 WHERE u.realm_id = pg_temp.realm() AND u.address_key = 'ada@example.com';
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.state(n text) RETURNS text LANGUAGE sql AS $$
    SELECT s.state FROM postern.link_state(pg_temp.realm(), pg_temp.b16(n), NULL) AS s $$;
CREATE FUNCTION pg_temp.page(browser text, token text DEFAULT 'token') RETURNS bytea LANGUAGE sql AS $$
    SELECT p.state FROM postern.page_of_link(pg_temp.realm(), pg_temp.sub('ada@example.com'), pg_temp.h(token),
                                             pg_temp.h(browser)) AS p
    $$;
SELECT ok(postern.keep_page(pg_temp.realm(), pg_temp.b16('a'), pg_temp.h('browser'), '\x01'), 'a page is kept');
SELECT ok(NOT postern.keep_page(pg_temp.realm(), pg_temp.b16('b'), pg_temp.h('browser'), '\x01'),
          'but not for a handle that has expired');
SELECT ok(NOT postern.keep_page(pg_temp.other(), pg_temp.b16('a'), pg_temp.h('browser'), '\x01'),
          'nor for another realm''s');
SELECT is(pg_temp.page('browser'), '\x01', 'the browser that asked finds its page');
SELECT is(pg_temp.page('other'), NULL, 'another browser does not');
SELECT is(pg_temp.page('browser', 'wrong'), NULL, 'nor does a wrong link');
SELECT is(pg_temp.state('a'), 'pending', 'a link that was not opened is pending');
SELECT is(pg_temp.state('b'), 'expired', 'one whose time is over has expired');
SELECT is(pg_temp.state('c'), 'expired', 'and so has one that there never was');
RESET ROLE;
UPDATE postern.sign_in_request SET confirmed_user = pg_temp.sub('ada@example.com') WHERE id = pg_temp.b16('a');
SELECT is(pg_temp.state('a'), 'confirmed', 'a link that was opened is confirmed');
UPDATE postern.login_link SET ended = 'confirmed' WHERE handle = pg_temp.b16('a');
SELECT is((SELECT concat_ws(' ', p.state, p.confirmed) FROM postern.page_of_link(
               pg_temp.realm(), pg_temp.sub('ada@example.com'), pg_temp.h('token'), pg_temp.h('browser')) AS p), '\x01 t',
          'one whose number was typed elsewhere leads on in the browser that asked');
SELECT is(pg_temp.page('other'), NULL, 'and in no other');
UPDATE postern.sign_in_request SET denied = true WHERE id = pg_temp.b16('a');
SELECT is(pg_temp.state('a'), 'denied', 'one that was refused is denied');
UPDATE postern.login_link SET ended = 'redeemed' WHERE handle = pg_temp.b16('a');
SELECT is(pg_temp.page('browser'), NULL, 'a link that has ended leads nowhere');
SELECT * FROM finish();
ROLLBACK;
