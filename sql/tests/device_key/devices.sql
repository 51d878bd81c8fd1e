\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.set_approvals('a', true), admin.grant_permission('a', 'app', 'gt:urn:postern:device'),
       postern.begin_proof_store('-infinity') \g /dev/null
SELECT pg_temp.sign_in('ada'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
-- A packed proof of a named key: its id is that of the proof's name, its time is now.
CREATE FUNCTION pg_temp.proof(key text, proof text DEFAULT gen_random_uuid()::text) RETURNS bytea LANGUAGE sql AS $$
    SELECT pg_temp.h(key) || pg_temp.h(proof) || decode(lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 16, '0'), 'hex')
           || decode(left(md5(proof || random()::text), 16), 'hex') || '\x01' $$;
CREATE FUNCTION pg_temp.adds(key text, who text DEFAULT 'ada') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, CASE WHEN probation_until IS NOT NULL THEN 'probation' END)
      FROM postern.add_device(pg_temp.realm(), pg_temp.handed(pg_temp.proof(key)), pg_temp.uu(who),
                              decode(repeat('01', 64), 'hex'), key, '\x05', '192.0.2.1') $$;
CREATE FUNCTION pg_temp.has(who text DEFAULT 'ada@example.com') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(display_name || CASE WHEN probation_until IS NULL THEN '' ELSE '?' END, ' ' ORDER BY display_name)
      FROM postern.list_devices(pg_temp.realm(), pg_temp.sub(who), NULL) $$;
CREATE FUNCTION pg_temp.id(key text) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT id FROM postern.device_key WHERE realm_id = pg_temp.realm() AND thumbprint = pg_temp.h(key) $$;
CREATE FUNCTION pg_temp.calls(key text, names text DEFAULT NULL, renamed text DEFAULT NULL, remove boolean DEFAULT false,
                              proof text DEFAULT gen_random_uuid()::text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, display_name)
      FROM postern.call_of_device(pg_temp.realm(), pg_temp.handed(pg_temp.proof(key, proof)), NULL,
           CASE WHEN names IS NOT NULL THEN coalesce(pg_temp.id(names), gen_random_uuid()) END, renamed, NULL, false,
           remove, '192.0.2.1') $$;
CREATE FUNCTION pg_temp.adopts(by text, key text, offer text, valid boolean DEFAULT true, correct boolean DEFAULT true,
                               who text DEFAULT 'ada') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, display_name, CASE WHEN is_adopted THEN 'adopted' END)
      FROM postern.adopt_device(pg_temp.realm(), pg_temp.uu(who), pg_temp.h(by), valid, pg_temp.b16(offer),
           date_part('epoch', now() + interval '5 minutes'), correct, pg_temp.client(), pg_temp.h(key),
           decode(repeat('02', 64), 'hex'), key, '192.0.2.1') $$;
CREATE FUNCTION pg_temp.signs_in(key text, nonce text DEFAULT gen_random_uuid()::text, client text DEFAULT 'app',
                                 proof text DEFAULT gen_random_uuid()::text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer record;
BEGIN
    SELECT * INTO answer FROM postern.redeem_device(
        pg_temp.caller('gt:urn:postern:device', client => pg_temp.client(client),
                       proof => pg_temp.handed(pg_temp.proof(key, proof))),
        NULL, pg_temp.opens(refresh_hash => NULL, amr => '{pop}'), pg_temp.proof(key, nonce), NULL);
    RETURN concat_ws(' ', answer.outcome, answer.reason);
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END
$$;
CREATE FUNCTION pg_temp.audit() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(event, ' ' ORDER BY id) FROM postern.audit_event
     WHERE realm_id = pg_temp.realm() AND event LIKE 'device%' $$;
CREATE FUNCTION pg_temp.told() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(template || CASE WHEN detail ? 'undo' THEN '+undo' ELSE '' END, ' ' ORDER BY template)
      FROM postern.message_outbox WHERE realm_id = pg_temp.realm() AND template LIKE 'device%' $$;
SET LOCAL ROLE app_login;

SELECT is(pg_temp.adds('one'), 'added', 'the first device has no probation');
SELECT is(pg_temp.adds('one'), 'same', 'the same key again is the same device');
SELECT is(pg_temp.told() || ' ' || pg_temp.audit(), 'device-added+undo device_added', 'and is told of once');
SELECT is(pg_temp.adds('one', 'bob'), 'key_in_use', 'a key has one user');
SELECT is(pg_temp.adds('two'), 'added probation', 'a second device is on probation');
SELECT is(pg_temp.has(), 'one two?', 'both are listed');
SELECT is(pg_temp.has('bob@example.com'), NULL, 'nothing went to the other user');
SELECT is(pg_temp.adds('nobody', 'none'), 'signed_out', 'no session, no device');
SELECT is(string_agg(pg_temp.adds('d' || n), ','), rtrim(repeat('added probation,', 8), ','), 'up to ten')
  FROM generate_series(3, 10) AS n;
SELECT is(pg_temp.adds('eleven'), 'too_many', 'not eleven');
SELECT is(pg_temp.adds('two'), 'same probation', 'of ten, each may be added again');
SELECT is(pg_temp.sql($$SELECT string_agg(postern.remove_device(realm_id, NULL, user_id, id, NULL)::text, ' ')
    FROM postern.device_key WHERE display_name LIKE 'd%'$$), 'true true true true true true true true', 'eight go');

SELECT is(pg_temp.calls('one'), 'done one', 'a device finds itself');
SELECT is(pg_temp.calls('unknown'), 'unknown', 'a key that is no device does not');
SELECT is(pg_temp.calls('one', 'one', 'renamed'), 'done renamed', 'it renames itself');
SELECT is(pg_temp.calls('one', 'two', 'mine'), 'foreign', 'and no other');
SELECT is(pg_temp.calls('one', 'two', remove => true), 'foreign', 'nor removes one');
SELECT is(pg_temp.has(), 'renamed two?', 'nothing changed');
SELECT is(pg_temp.calls('one', proof => 'p'), 'done renamed', 'a proof');
SELECT throws_ok($$SELECT pg_temp.calls('one', proof => 'p')$$, 'PD001', NULL, 'works once');
SELECT is((SELECT string_agg(display_name, ' ') FROM postern.change_own_device(pg_temp.realm(), pg_temp.uu('bob'),
    pg_temp.id('one'), 'his', NULL, false)), NULL, 'another user changes nothing');
SELECT ok(NOT postern.remove_own_device(pg_temp.realm(), pg_temp.uu('bob'), pg_temp.id('one'), NULL),
    'and removes nothing');

-- Adoption: in the order of the checks.
SELECT is(pg_temp.adopts('one', 'new', 'o', who => 'none'), 'signed_out', 'the owner must be signed in');
SELECT is(pg_temp.adopts('unknown', 'new', 'o', false, false), 'not_trusted', 'an unknown key adopts nothing');
SELECT is(pg_temp.adopts('two', 'new', 'o'), 'not_trusted', 'nor a device on probation');
SELECT is(pg_temp.adopts('one', 'new', 'o', who => 'bob'), 'not_trusted', 'nor another user''s');
SELECT is(pg_temp.adopts('one', 'new', 'o', false), 'invalid', 'an offer that is not as it should be');
SELECT is(pg_temp.adopts('one', 'new', 'o'), 'added new adopted', 'spends nothing: the right one works');
SELECT is(pg_temp.adopts('one', 'new', 'o'), 'invalid', 'once');
SELECT is(pg_temp.adopts('one', 'newer', 'p', correct => false), 'invalid', 'wrong digits');
SELECT is(pg_temp.adopts('one', 'newer', 'p'), 'invalid', 'spend the offer');
SELECT is(pg_temp.adopts('one', 'two', 'q'), 'same two', 'a device of the user stays what it is');
SELECT is(pg_temp.adds('his', 'bob'), 'added', 'of another user');
SELECT is(pg_temp.adopts('one', 'his', 'r'), 'key_in_use', 'none is taken');
SELECT is(pg_temp.has(), 'new? renamed two?', 'an adopted device is on probation');
SELECT matches(pg_temp.sql($$SELECT detail::text FROM postern.audit_event WHERE event = 'device_adopted'$$),
    format('"device": "%s".*"adopted_by": "%s"|"adopted_by": "%2$s".*"device": "%1$s"', pg_temp.id('new'), pg_temp.id('one')),
    'the audit names both');

-- Sign-in.
SELECT set_config('test.level', '2', true) \g /dev/null
SELECT is(pg_temp.signs_in('one', 'n1'), 'unmet', 'a request for two factors spends nothing');
SELECT set_config('test.level', '', true) \g /dev/null
SELECT is(pg_temp.after(change, $$pg_temp.signs_in('one')$$), pg_temp.closed_by(change), change)
  FROM pg_temp.closing('gt:urn:postern:device', 'approvals_enabled', 'native_grants_enabled') AS change;
SELECT is(pg_temp.after('UPDATE postern.user_account SET has_totp = true', $$pg_temp.signs_in('one')$$),
          'second_factor_gone', 'a user with a second factor is asked for it');
SELECT is(pg_temp.signs_in('one', 'n1', proof => 'x'), 'ok', 'a device signs itself in');
SELECT is(pg_temp.sql($$SELECT string_agg(DISTINCT s.factor::text, ',') FROM postern.session AS s WHERE s.factor IS NOT NULL$$),
          pg_temp.id('one')::text, 'the session notes which');
SELECT is(pg_temp.signs_in('one', 'n2', proof => 'x'), 'PD001', 'a proof works once');
SELECT is(pg_temp.signs_in('one', 'n1'), 'PD002', 'and so does its nonce');
SELECT is(pg_temp.signs_in('one', 'n2'), 'ok', 'a new one signs in again');
SELECT pg_temp.permit('second', 'gt:urn:postern:device') \g /dev/null
SELECT is(pg_temp.signs_in('one', client => 'second'), 'refused client', 'through the client that it was added by');
SELECT is(pg_temp.signs_in('two'), 'refused probation', 'not on probation');
SELECT is(pg_temp.signs_in('unknown'), 'refused unknown', 'no other key');
SELECT is(pg_temp.sql($$UPDATE postern.device_key SET probation_until = now() WHERE display_name = 'two' RETURNING 'shifted'$$), 'shifted', 'when it is over');
SELECT is(pg_temp.signs_in('two'), 'ok', 'it signs in');
SELECT is(pg_temp.adopts('two', 'newest', 's'), 'added newest adopted', 'and adopts');

-- The user's state.
RESET ROLE;
SELECT admin.set_user_enabled('a', 'ada@example.com', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.calls('one') || ' ' || pg_temp.signs_in('one'), 'unknown refused unknown', 'refused while the user is disabled');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'ada@example.com', true), admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.calls('one') || ' ' || pg_temp.signs_in('one'), 'done renamed ok', 'signing out everywhere leaves it a device');
RESET ROLE;
SELECT admin.set_approvals('a', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.signs_in('one'), 'PC003', 'with the feature off it signs nobody in');
RESET ROLE;
SELECT admin.set_approvals('a', true, probation => '0 seconds'), admin.delete_device('a', pg_temp.id('two')) \g /dev/null
SELECT is((SELECT string_agg(display_name, ' ' ORDER BY display_name) FROM admin.devices WHERE email = 'Ada@example.com'), 'new newest renamed',
    'an administrator removes one');
SELECT matches(pg_temp.refusal(format($$SELECT admin.delete_device('a', '%s')$$, gen_random_uuid())), '^22023 device .* is not a device of this realm',
    'and is told where there is none');
SELECT matches(pg_temp.refusal(v.statement), '^22023 ' || v.message, v.statement) FROM (VALUES
    ($$SELECT admin.set_approvals('a', lifetime => '29 s')$$, 'lifetime "00:00:29" is out of range'),
    ($$SELECT admin.set_approvals('a', lifetime => '301 s')$$, 'lifetime "00:05:01" is out of range'),
    ($$SELECT admin.set_approvals('a', probation => '169 hours')$$, 'probation "169:00:00" is out of range')) AS v (statement, message);
SELECT is(postern.realm_config(pg_temp.realm()) -> 'approvals', '{"enabled": true, "public_clients": false, "lifetime": 120}', 'servers read the settings');

-- A link in the notice takes a device away, with every session.
SELECT pg_temp.sign_in('ada2') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.adds('undone', 'ada2'), 'added', 'no probation where the realm wants none');
SELECT is((SELECT outcome FROM postern.undo_factor(pg_temp.realm(),
    pg_temp.sql(format($$SELECT id::text FROM postern.undo_link WHERE target = '%s'$$, pg_temp.id('undone')))::uuid, NULL,
    NULL)), 'undone', 'the owner takes it back');
SELECT is(pg_temp.id('undone')::text || pg_temp.alive('ada2')::text, NULL, 'it is gone');
SELECT ok(NOT pg_temp.alive('ada2'), 'and the session');

-- The key of a phone outlives its time as a device; a user takes the keys along.
SELECT is(pg_temp.sql(format($$UPDATE postern.device_key SET phone = '+43664111', phone_at = now(), phone_by = 'code', phone_client = pg_temp.client('app') WHERE id = '%s' RETURNING phone$$, pg_temp.id('new'))), '+43664111', 'a key of a phone');
SELECT is(pg_temp.calls('new', remove => true), 'done', 'as a device removes itself');
SELECT is(pg_temp.sql(format($$SELECT concat_ws(' ', phone, user_id, display_name) FROM postern.device_key WHERE id = '%s'$$, pg_temp.id('new'))), '+43664111', 'and stays a key');
SELECT is(pg_temp.calls('new'), 'unknown', 'that is no device');
RESET ROLE;
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT is((SELECT string_agg(display_name, ' ') FROM postern.device_key), 'his', 'a deleted user leaves no device');
-- Probation is not shortened by removing the devices that could refuse a new one.
RESET ROLE;
SELECT admin.put_user('a', 'eve@example.com'), admin.set_approvals('a', probation => '1 day') \g /dev/null
SELECT pg_temp.sign_in('eve', 'eve@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.adds('e1', 'eve') || ',' || pg_temp.adds('e2', 'eve'), 'added,added probation', 'another user has two devices');
SELECT ok(postern.remove_own_device(pg_temp.realm(), pg_temp.uu('eve'), pg_temp.id('e' || n), NULL),
    'a session removes them') FROM generate_series(1, 2) AS n;
SELECT is(pg_temp.adds('e3', 'eve'), 'added probation', 'the next one is on probation as it would be beside them');
SELECT is(pg_temp.calls('e3', remove => true), 'done', 'a device removes itself');
SELECT pg_temp.sql($$UPDATE postern.user_account SET device_removed_at = now() - interval '1 day' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.adds('e4', 'eve'), 'added', 'none is when the probation is over');
SELECT is(pg_temp.calls('e4', remove => true) || ' ' || pg_temp.adds('e5', 'eve'), 'done added',
    'nor after one that removed itself');

SELECT * FROM finish();
ROLLBACK;
