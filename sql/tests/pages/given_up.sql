\ir ../helpers/fixture.psql
-- The person uses another address: what was asked for with the former handle opens nothing any more.
SELECT no_plan();
SELECT admin.put_test_identity('a', 'review@example.com', 'app', '42719305', now() + interval '1 day') \g /dev/null
INSERT INTO postern.address_verification (realm_id, id, client, expires_at, kind, sealed_address, code_salt, code_mac)
SELECT pg_temp.realm(), pg_temp.uu('proof'), pg_temp.client(), now() + interval '5 minutes', 'email', '\x01',
       pg_temp.b16('salt'), pg_temp.h('code');
SET LOCAL ROLE app_login;
SELECT postern.store_test_code(c.realm_id, c.user_id, c.code, pg_temp.b16('salt'), pg_temp.h(c.code), pg_temp.uu('key'))
  FROM postern.pending_test_codes() AS c \g /dev/null
CREATE FUNCTION pg_temp.gives_up(handle text, realm uuid DEFAULT pg_temp.realm()) RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.give_up_request(realm, pg_temp.b16(handle)) $$;
SELECT is(pg_temp.ask('h1', 'ada@example.com', '111111'), 'sent', 'a code');
SELECT is(pg_temp.ask('h2', 'ada@example.com', '222222'), 'sent', 'and that of another request');
SELECT ok(NOT pg_temp.gives_up('h1', pg_temp.other()), 'another realm ends nothing');
SELECT ok(NOT pg_temp.gives_up('h9'), 'nor does an unknown handle');
SELECT ok(pg_temp.gives_up('h1'), 'the first is given up');
SELECT ok(NOT pg_temp.gives_up('h1'), 'once');
SELECT is(pg_temp.redeem('ada@example.com', NULL, '111111'), 'refused wrong', 'its code opens nothing by address');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '111111'), 'refused attempts', 'nor by handle');
SELECT is(pg_temp.redeem('ada@example.com', 'h2', '222222'), 'ok', 'the other request is untouched');
SELECT pg_temp.sql($$INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at)
                      VALUES (pg_temp.realm(), pg_temp.b16('l1'), 'magic', 'ada@example.com', 'ada@example.com',
                              now() + interval '5 minutes') RETURNING 1$$),
       pg_temp.sql($$INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, address_key, source,
                                                     security_stamp, asked_at, expires_at)
                     SELECT u.realm_id, u.id, pg_temp.h('token'), pg_temp.b16('l1'), u.address_key, 'x', u.security_stamp,
                            now(), now() + interval '5 minutes' FROM postern.user_account AS u
                      WHERE u.id = pg_temp.sub('ada@example.com') RETURNING 1$$) \g /dev/null
SELECT ok(pg_temp.gives_up('l1'), 'a request for a link is given up');
SELECT is(pg_temp.sql($$SELECT ended FROM postern.login_link WHERE handle = pg_temp.b16('l1')$$), 'superseded',
          'its link opens nothing any more');
SELECT is(pg_temp.ask('t1', 'review@example.com', '333333'), 'test_identity', 'a request for a test identity');
SELECT ok(pg_temp.gives_up('t1'), 'is given up');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code WHERE is_test$$), '1', 'its fixed code stays');
SELECT ok(pg_temp.gives_up('proof'), 'a proof without an account is given up');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.address_verification WHERE code_mac IS NOT NULL OR expires_at > now()$$), '0',
          'its code proves nothing any more');
SELECT * FROM finish();
ROLLBACK;
