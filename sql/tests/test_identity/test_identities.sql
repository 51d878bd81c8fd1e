\ir ../helpers/fixture.psql
SELECT no_plan();

-- What may be put.
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'ada@example.com', 'app', '41830572')$$, '22023',
                 'email "ada@example.com" is an ordinary user', 'an existing user is refused');
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'ADA@example.com', 'app', '41830572')$$, '22023', NULL,
                 'in any case');
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'review', 'app', '41830572')$$, '22023',
                 'email "review" is not an address', 'an address is wanted');
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'review@example.com', 'nobody', '41830572')$$, '22023', NULL,
                 'and a client of the realm');
SELECT throws_ok(format($$SELECT admin.put_test_identity('a', 'review@example.com', 'app', %L)$$, c), '22023',
                 'code is not fit for a test identity', 'code ' || c || ' is refused')
  FROM unnest(ARRAY['418305', '4183057', '4183051234567', '12345678', '87654321', '00000000', '11221122', '4183057a',
                    '4183 0572', '٤١٨٣٠٥٧٢', '']) AS c;
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'review@example.com', 'app', '41830572', now())$$, '22023', NULL,
                 'it must have a future');
SELECT throws_ok($$SELECT admin.put_test_identity('a', 'review@example.com', 'app', '41830572',
                                                  now() + interval '30 days 1 second')$$, '22023', NULL,
                                                      'of 30 days at most');
SELECT is((SELECT count(*) FROM admin.test_identities), 0::bigint, 'so far there is none');

-- Made, keyed, used.
SELECT is(admin.put_test_identity('a', 'Review@example.com', 'app', '41830572'), NULL,
          'a code one has is not shown again');
SELECT results_eq($$SELECT email, client_id, state, expires_at - now() FROM admin.test_identities$$,
                  $$VALUES ('Review@example.com', 'app', 'pending', interval '30 days')$$, 'it waits for a server');
SELECT is((SELECT email_verified || ' ' || postern.is_test_identity(id) || ' ' || enabled FROM postern.user_account
           WHERE address_key = 'review@example.com'), 'false true true', 'a user of its own, marked');
SELECT is((SELECT count(*) FROM postern.user_account WHERE postern.is_test_identity(id)), 1::bigint, 'nobody else is');
SELECT is((SELECT count(*) FROM postern.audit_event WHERE event = 'test_identity_created'
           AND detail ->> 'new_code' = 'true' AND detail::text !~ '41830572'), 1::bigint, 'audited, without the code');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'refused unknown',
          'before it is keyed nothing opens');
SELECT is((SELECT string_agg(address_key || ' ' || code, ',') FROM postern.pending_test_codes()),
          'review@example.com 41830572', 'a server finds it');
SELECT is((SELECT postern.store_test_code(realm_id, user_id, 'another', pg_temp.b16('salt'), pg_temp.h('x'), NULL)
           FROM postern.pending_test_codes()), false, 'what was keyed must be what waits');
SELECT is((SELECT postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt'), pg_temp.h(code), NULL)
           FROM postern.pending_test_codes()), true, 'and keys it');
SELECT is((SELECT count(*) FROM postern.pending_test_codes()), 0::bigint, 'then the code is gone');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.test_identity AS t WHERE t::text ~ '41830572'$$), '0',
          'from the table too');
SELECT is(pg_temp.redeem('review@example.com', NULL, '999999'), 'refused wrong', 'a wrong code is wrong');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard$$), '1',
          'and counted; the one before compared nothing');
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'ok', 'the right one signs in')
  FROM generate_series(1, 3);
SELECT is(pg_temp.ask('h', 'review@example.com', '111111'), 'test_identity', 'asking sends nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '0', 'no mail');
SELECT is(pg_temp.redeem('review@example.com', 'h', '111111'), 'refused wrong',
          'the code that would have been sent is none');
SELECT is(pg_temp.redeem('review@example.com', 'h', '41830572'), 'ok', 'the handle opens the fixed code')
  FROM generate_series(1, 2);
SELECT is(pg_temp.ask('h2', 'review@example.com', '111111', pg_temp.client('second')), 'test_identity',
          'another client may ask');
SELECT set_config('test.client', 'second', true) \g /dev/null
SELECT is(pg_temp.redeem('review@example.com', 'h2', '41830572'), 'refused client', 'and redeems nothing');
SELECT set_config('test.client', '', true) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'sign_in'
                      AND postern.is_test_identity(user_id)$$), '5', 'each use is in the audit log');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '1', 'there is one code');
RESET ROLE;

-- What cannot happen to it.
SELECT throws_ok($$SELECT admin.put_user('a', 'review@example.com', email_verified => true)$$, '22023',
                 'email_verified true is not for a test identity', 'it is never verified');
SELECT throws_ok($$UPDATE postern.user_account SET id = postern.test_identity_id()
                 WHERE address_key = 'ada@example.com'$$, '23514', NULL, 'a verified user never becomes one');
SELECT throws_ok($$SELECT admin.delete_test_identity('a', 'ada@example.com')$$, '22023', NULL,
                 'an ordinary user is not deleted as one');
SELECT throws_ok($$SELECT pending_code FROM admin.test_identities$$, '42703', NULL, 'the view has no code');

-- Changed.
SELECT ok(admin.sign_out_everywhere('a', 'review@example.com') >= 5, 'signed out everywhere');
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'ok', 'its code stays');
SELECT is(admin.put_test_identity('a', 'review@example.com', 'second'), NULL,
          'put again for another client, the code kept');
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'refused client',
          'the first client no longer opens it');
SELECT is((SELECT count(*) FROM postern.session WHERE revoked_at IS NULL AND postern.is_test_identity(user_id)),
          0::bigint, 'its sessions are ended');
SELECT set_config('test.client', 'second', true) \g /dev/null
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'ok', 'the second does');
DELETE FROM postern.code_guard;
SELECT is(admin.put_test_identity('a', 'review@example.com', 'second', '73016248'), NULL, 'a new code');
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'refused expired', 'ends the old one at once');
SELECT ok(postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt2'), pg_temp.h(code), NULL), 'keyed')
  FROM postern.pending_test_codes();
SELECT is(pg_temp.redeem('review@example.com', NULL, '41830572'), 'refused wrong', 'for good');
SELECT is(pg_temp.redeem('review@example.com', NULL, '73016248'), 'ok', 'the new one opens');

-- The end.
UPDATE postern.test_identity SET expires_at = now();
UPDATE postern.login_code SET expires_at = now();
DELETE FROM postern.code_guard;
SELECT is(pg_temp.redeem('review@example.com', NULL, '73016248'), 'refused expired', 'at its end the code is dead');
SELECT ok((SELECT count(*) FROM postern.session WHERE revoked_at IS NULL AND postern.is_test_identity(user_id)) > 0,
          'sessions wait for the sweeper');
SELECT lives_ok($$SELECT postern.sweep(1000)$$, 'which comes');
SELECT is((SELECT count(*) FROM postern.session WHERE revoked_at IS NULL AND postern.is_test_identity(user_id)),
          0::bigint, 'they are ended');
SELECT is((SELECT enabled FROM postern.user_account WHERE address_key = 'review@example.com'), false,
          'the user is disabled');
SELECT is((SELECT count(*) FROM postern.login_code WHERE is_test), 0::bigint, 'the code is deleted');
SELECT is((SELECT state FROM admin.test_identities), 'ended', 'and the view says so');
SELECT is((SELECT count(*) FROM postern.audit_event WHERE event = 'test_identity_ended'), 1::bigint, 'audited once');
SELECT is(pg_temp.ask('h3', 'review@example.com', '111111'), 'test_identity', 'asked again nothing is sent');
SELECT matches(admin.put_test_identity('a', 'review@example.com', 'second', expires_at => now() + interval '1 day'),
               '^[0-9]{8}$', 'put again it gets a code drawn at random');
SELECT is((SELECT enabled FROM postern.user_account WHERE address_key = 'review@example.com'), true, 'and lives again');
SELECT ok(postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt3'), pg_temp.h('1'), NULL), 'keyed')
  FROM postern.pending_test_codes();
SELECT is(pg_temp.redeem('review@example.com', NULL, '1'), 'ok', 'and opens');
SELECT lives_ok($$SELECT admin.delete_test_identity('a', 'review@example.com')$$, 'deleted');
SELECT is((SELECT count(*) FROM postern.user_account WHERE postern.is_test_identity(id)) + (SELECT count(*)
    FROM postern.login_code)
        + (SELECT count(*) FROM postern.session AS s WHERE postern.is_test_identity(s.user_id)), 0::bigint,
            'nothing is left');

-- It goes with its client and its realm.
SELECT isnt(admin.put_test_identity('a', 'review@example.com', 'app'), NULL, 'one more');
SELECT ok(postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt4'), pg_temp.h('1'), NULL), 'keyed')
  FROM postern.pending_test_codes();
DELETE FROM postern.client WHERE client_id = 'app' AND realm_id = pg_temp.realm();
SELECT is((SELECT count(*) FROM postern.user_account WHERE postern.is_test_identity(id)) + (SELECT count(*)
    FROM postern.login_code), 0::bigint, 'the client takes it along');
SELECT isnt(admin.put_test_identity('a', 'review@example.com', 'second'), NULL, 'one more');
SELECT ok(postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt5'), pg_temp.h('1'), NULL), 'keyed')
  FROM postern.pending_test_codes();
DELETE FROM postern.realm WHERE slug = 'a';
SELECT is((SELECT count(*) FROM postern.test_identity) + (SELECT count(*) FROM postern.login_code), 0::bigint,
          'the realm takes it along');
SELECT * FROM finish();
ROLLBACK;
