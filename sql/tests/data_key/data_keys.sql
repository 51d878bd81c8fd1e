\ir ../helpers/fixture.psql
SELECT no_plan();
-- A seal as the server makes it: 02 "pdk", the id of the data key, and so on.
CREATE FUNCTION pg_temp.under(key uuid, filler text DEFAULT 'x') RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT '\x0270646b'::bytea || uuid_send(key) || sha256(convert_to(filler, 'UTF8'))
           || sha256(convert_to(filler, 'UTF8')) $$;
CREATE FUNCTION pg_temp.wrap(n text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to(n, 'UTF8')) || sha256(convert_to(n || '2', 'UTF8')) $$;
CREATE FUNCTION pg_temp.user_of(address text) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm() AND address_key = address $$;
CREATE FUNCTION pg_temp.lines() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', coalesce(encode(line, 'hex'), 'unknown'), kind, count), ', ' ORDER BY line, kind)
      FROM postern.key_line_secrets() $$;
SELECT set_config('test.line_a', '\xaaaaaaaa', true), set_config('test.line_b', '\xbbbbbbbb', true) \g /dev/null
SELECT pg_temp.sign_in('ada'), pg_temp.sign_in('old'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
SET LOCAL ROLE app_login;

-- Made once, however many try.
SELECT is_empty($$SELECT * FROM postern.current_data_key(pg_temp.realm(), 'totp-seed')$$,
                'a realm begins without data keys');
SELECT results_eq($$SELECT * FROM postern.add_data_key(pg_temp.realm(), 'totp-seed', pg_temp.uu('k1'),
                                                       '\xaaaaaaaa', pg_temp.wrap('k1'))$$,
    $$VALUES (pg_temp.uu('k1'), pg_temp.wrap('k1'))$$, 'the first server adds one');
SELECT results_eq($$SELECT * FROM postern.add_data_key(pg_temp.realm(), 'totp-seed', pg_temp.uu('k2'),
                                                       '\xaaaaaaaa', pg_temp.wrap('k2'))$$,
    $$VALUES (pg_temp.uu('k1'), pg_temp.wrap('k1'))$$, 'the second gets that one');
SELECT results_eq($$SELECT * FROM postern.current_data_key(pg_temp.realm(), 'totp-seed')$$,
    $$VALUES (pg_temp.uu('k1'), pg_temp.wrap('k1'))$$, 'which is in force');
SELECT is_empty($$SELECT * FROM postern.current_data_key(pg_temp.other(), 'totp-seed')$$, 'in its realm only');
SELECT results_eq($$SELECT id FROM postern.add_data_key(pg_temp.realm(), 'recovery-code', pg_temp.uu('r1'),
                                                        '\xaaaaaaaa', pg_temp.wrap('r1'))$$,
    $$VALUES (pg_temp.uu('r1'))$$, 'each purpose has its own');
SELECT throws_ok($$UPDATE postern.data_key SET sealed = '\x00'$$, '42501', NULL,
                 'the app role changes no data key by itself');
SELECT throws_ok($$DELETE FROM postern.data_key$$, '42501', NULL, 'and deletes none');

-- A row names its data key.
SELECT is(postern.enrol_totp(pg_temp.realm(), pg_temp.uu('ada'), pg_temp.b16('c1'),
                             date_part('epoch', now() + interval '1 minute'),
    pg_temp.uu('f1'), pg_temp.under(pg_temp.uu('k1')), 1, ARRAY[uuid_send(pg_temp.uu('r1')) || pg_temp.h('code')],
        NULL),
    'enrolled', 'a seed under a data key');
SELECT is(postern.enrol_totp(pg_temp.realm(), pg_temp.uu('bob'), pg_temp.b16('c2'),
                             date_part('epoch', now() + interval '1 minute'),
    pg_temp.uu('f2'), pg_temp.under(pg_temp.uu('k1')), 1, ARRAY[uuid_send(pg_temp.uu('r1')) || pg_temp.h('code')],
        NULL),
    'enrolled', 'another');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', u.address_key, f.data_key = pg_temp.uu('k1'),
                                                    r.data_key = pg_temp.uu('r1'), r.mac = pg_temp.h('code')),
                                                        ', ' ORDER BY u.address_key)
    FROM postern.totp_factor AS f JOIN postern.recovery_code AS r USING (realm_id, user_id)
    JOIN postern.user_account AS u ON u.realm_id = f.realm_id AND u.id = f.user_id$$),
    'ada@example.com t t t, bob@example.com t t t', 'seed and codes name their data keys');
SELECT is(postern.data_key_of('\x0270646b'), NULL, 'what is cut short names none');
SELECT throws_ok($q$DO $x$ BEGIN
    PERFORM postern.add_signing_key(pg_temp.realm(), 'kid', 'ES256', '{"kty":"EC"}', pg_temp.under(gen_random_uuid()),
                                    true);
    SET CONSTRAINTS ALL IMMEDIATE; END $x$$q$, '23503', NULL, 'nothing names a data key that is not there');

-- What a sign-in is given is enough.
SELECT is(postern.second_factor_material(pg_temp.realm(), pg_temp.user_of('ada@example.com'),
                                         pg_temp.under(pg_temp.uu('k1'))),
    '\x0370646b'::bytea || '\x00000040'::bytea || pg_temp.wrap('k1') || '\x00000054'::bytea
        || pg_temp.under(pg_temp.uu('k1'))
    || '\x00000050'::bytea || uuid_send(pg_temp.uu('r1')) || pg_temp.wrap('r1'),
    'the seed with its data key, and those of the recovery codes');

-- Counts.
SELECT is(pg_temp.lines(), 'aaaaaaaa data-key 2, aaaaaaaa recovery-code 2, aaaaaaaa totp-seed 2',
          'what stands on a line');
SELECT results_eq($$SELECT * FROM postern.key_line_sessions(0, 1000)$$,
                  $$VALUES (NULL::bytea, 3::bigint, NULL::bigint)$$, 'sessions that do not say');
SELECT is(pg_temp.sql($$UPDATE postern.session SET server_key = '\xaaaaaaaa' WHERE id <> pg_temp.uu('old')
                      RETURNING 1$$), '1', 'when they do');
SELECT results_eq($$SELECT line, count FROM postern.key_line_sessions(0, 1000) ORDER BY line$$,
    $$VALUES ('\xaaaaaaaa'::bytea, 2::bigint), (NULL, 1)$$, 'they are counted by line');
SELECT is(pg_temp.sql($$UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('old') RETURNING 1$$), '1',
          'one is ended');
SELECT results_eq($$SELECT line, count FROM postern.key_line_sessions(0, 1000)$$,
                  $$VALUES ('\xaaaaaaaa'::bytea, 2::bigint)$$, 'and no longer counted');
SELECT results_eq($$SELECT line, count FROM postern.key_line_sessions(500, 1000)$$, $$VALUES (NULL::bytea, 0::bigint)$$,
                  'beyond the end there is nothing');

-- Resealing.
SELECT is((SELECT count(*) FROM postern.data_keys_to_reseal('\xaaaaaaaa', 10)), 0::bigint,
          'nothing to do for the line it is on');
SELECT is((SELECT count(*) FROM postern.data_keys_to_reseal('\xbbbbbbbb', 10)), 2::bigint, 'all for another');
SELECT is(postern.reseal_data_key(pg_temp.realm(), pg_temp.uu('k1'), '\x00', '\xbbbbbbbb', pg_temp.wrap('n')), false,
          'who read something else changes nothing');
SELECT is((SELECT bool_and(postern.reseal_data_key(d.realm_id, d.id, d.sealed, '\xbbbbbbbb',
                                                   pg_temp.wrap('new' || d.id)))
    FROM postern.data_keys_to_reseal('\xbbbbbbbb', 10) AS d), true, 'else it is moved');
SELECT is(pg_temp.lines(), 'bbbbbbbb data-key 2, bbbbbbbb recovery-code 2, bbbbbbbb totp-seed 2',
          'then nothing stands on the old line');

-- A test code.
RESET ROLE;
SELECT is(admin.put_test_identity('a', 'review@example.com', 'app', '41830572'), NULL, 'a test identity');
SELECT config_version AS before FROM postern.realm WHERE id = pg_temp.realm() \gset
SET LOCAL ROLE app_login;
SELECT results_eq($$SELECT id FROM postern.add_data_key(pg_temp.realm(), 'test-code', pg_temp.uu('t1'),
                                                        '\xbbbbbbbb', pg_temp.wrap('t1'))$$,
    $$VALUES (pg_temp.uu('t1'))$$, 'its data key');
SELECT cmp_ok((SELECT config_version FROM postern.realm WHERE id = pg_temp.realm()), '>', :before::bigint,
              'is a change of configuration');
SELECT is(postern.realm_config(pg_temp.realm()) -> 'test_code_keys',
    jsonb_build_array(jsonb_build_object('id', pg_temp.uu('t1'), 'sealed', encode(pg_temp.wrap('t1'), 'hex'))),
        'that every server reads');
SELECT ok(postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt'), pg_temp.h(code), pg_temp.uu('t1')),
          'keyed') FROM postern.pending_test_codes();
SELECT is(pg_temp.lines(), 'bbbbbbbb data-key 3, bbbbbbbb recovery-code 2, bbbbbbbb test-code 1, bbbbbbbb totp-seed 2',
          'and counted');

RESET ROLE;

-- A line that is lost.
SELECT throws_ok($$SELECT admin.forget_key_line('nonsense')$$, '22023', NULL, 'a line has an id');
SELECT is(admin.forget_key_line('aaaaaaaa'),
          '{"sessions": 2, "totp_seeds": 0, "signing_keys": 0, "recovery_codes": 0, "test_identities": 0, "test_numbers": 0}'::jsonb,
    'after resealing, only sessions stand on the old line');
SELECT ok(NOT pg_temp.alive('ada'), 'and are ended');
SELECT results_eq($$SELECT line, kind, count FROM admin.key_lines ORDER BY kind$$,
    $$VALUES ('bbbbbbbb', 'data-key', 3::bigint), ('bbbbbbbb', 'recovery-code', 2), ('bbbbbbbb', 'test-code', 1),
        ('bbbbbbbb', 'totp-seed', 2)$$, 'the view says so');
SELECT is(admin.forget_key_line('bbbbbbbb') - 'sessions',
          '{"totp_seeds": 2, "signing_keys": 0, "recovery_codes": 2, "test_identities": 1, "test_numbers": 0}'::jsonb,
              'what only it opens goes with the new one');
SET CONSTRAINTS ALL IMMEDIATE;
SELECT is((SELECT count(*) FROM postern.data_key) + (SELECT count(*) FROM postern.totp_factor) + (SELECT count(*)
    FROM postern.recovery_code), 0::bigint, 'all of it');
SELECT is((SELECT count(*) FROM postern.audit_event WHERE event = 'key_line_forgotten'), 2::bigint,
          'audited each time');
SELECT * FROM finish();
ROLLBACK;
