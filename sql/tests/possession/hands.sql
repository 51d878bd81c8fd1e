\ir ../helpers/fixture.psql
-- What was proven by a phone number serves the person who had it then, never its next holder.
SELECT no_plan();
SELECT admin.put_client('a', c, client_type => 'confidential', display_name => 'Server')
  FROM unnest('{srv,srv2}'::text[]) AS c \g /dev/null
SELECT admin.put_service_account('a', c, c), admin.grant_permission('a', c, 'gt:client_credentials', 'ept:possession')
  FROM unnest('{srv,srv2}'::text[]) AS c \g /dev/null
SELECT admin.grant_permission('a', 'srv', 'cap:assert-possession'),
       admin.grant_permission('a', 'app', 'gt:urn:postern:possession'),
       admin.put_possession_client('a', 'srv', login_client => 'app'),
       admin.put_possession_client('a', 'srv2', login_client => 'app'),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'),
       admin.set_phone_policy('a', regions => '{AT}') \g /dev/null
\ir ../helpers/possession.psql
SELECT postern.begin_proof_store('-infinity') \g /dev/null
SELECT pg_sleep(0.01) \g /dev/null

CREATE FUNCTION pg_temp.proves(id text, key text, phone text, client text DEFAULT 'srv') RETURNS text LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_temp.starts(id, phone, client => client), pg_temp.opens(id, key), pg_temp.sends(id, phone, 'c', key => key);
    RETURN pg_temp.checks(id, 'c', key);
END
$$;
-- The same key again, without a code.
CREATE FUNCTION pg_temp.comes_back(id text, key text, phone text, client text DEFAULT 'srv', kind text DEFAULT 'mobile')
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.starts(id, phone, kind, client);
    RETURN pg_temp.opens(id, key);
END
$$;
CREATE FUNCTION pg_temp.after_call(call text, attempt text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.after(format('UPDATE postern.realm SET id = id WHERE id = pg_temp.realm() AND (SELECT count(*) FROM (%s) AS c) > 0',
                                call), attempt) $$;
CREATE FUNCTION pg_temp.user_of(phone text) RETURNS uuid LANGUAGE sql AS $$
    SELECT u.id FROM admin.users AS u WHERE u.realm = 'a' AND u.phone = $1 $$;
CREATE FUNCTION pg_temp.gives(phone text) RETURNS text LANGUAGE sql AS $$
    SELECT admin.put_user('a', phone => phone)::text $$;
CREATE FUNCTION pg_temp.told(who text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(template || ' ' || (detail ->> 'number'), ', ' ORDER BY created_at), '')
      FROM postern.message_outbox WHERE recipient = who AND template LIKE 'phone-key%' $$;

-- A number of nobody becomes a user's.
SELECT is(pg_temp.proves('n1', 'k1', '+4366400000001'), 'passed 0 passed', 'a key proves a number of nobody');
SELECT is(pg_temp.comes_back('n2', 'k1', '+4366400000001'), 'ok passed', 'and comes back without a code');
SELECT pg_temp.starts('n3', '+4366400000001'), pg_temp.opens('n3', 'k2'),
       pg_temp.sends('n3', '+4366400000001', 'c', key => 'k2') \g /dev/null
SELECT pg_temp.starts('n5', '+4366400000001', 'desktop'), pg_temp.opens('n5', 'c5'),
       pg_temp.sends('n5', '+4366400000001', 'of n5', 'link', 'c5') \g /dev/null
SELECT pg_temp.starts('n4', '+4366400000001', 'none'), pg_temp.opens('n4', 'k3') \g /dev/null
SELECT pg_temp.gives('+4366400000001') \g /dev/null
SELECT is(pg_temp.key_phone('k1'), NULL, 'when it becomes a user''s, the key proves nothing');
SELECT is(pg_temp.signs_in('n1', 's1', 'k1'), 'refused transaction', 'nor does what was passed before sign in');
SELECT is(pg_temp.signs_in('n2', 's2', 'k1', by => 'key'), 'refused transaction', 'by a code or by the key');
SELECT is(pg_temp.status('n1'), 'passed +4366400000001', 'though the backend that asked is not told otherwise');
SELECT is(pg_temp.checks('n3', 'c', 'k2'), 'step 1 sent', 'nor does a code that was sent before');
SELECT is(pg_temp.answers('of n5'), 'gone', 'or a link');
SELECT is(pg_temp.sends('n3', '+4366400000001', 'd', key => 'k2'), 'sent 1', 'what was under way goes on with a new one');
SELECT is(pg_temp.checks('n3', 'd', 'k2'), 'passed 0 passed', 'and is proven by who has the number now');
SELECT is(pg_temp.status('n4'), 'required +4366400000001', 'and nothing ends that proved nothing');
SELECT is(pg_temp.comes_back('n6', 'k1', '+4366400000001'), 'ok open', 'the key is asked for a code like any other');

-- What a permission made possible is refused while it is withdrawn, and so is everything of a backend that is closed.
CREATE FUNCTION pg_temp.while_closed(attempt text, VARIADIC names text[]) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.after(format('UPDATE postern.client SET permissions = ARRAY(SELECT x FROM unnest(permissions) AS x WHERE x <> ALL (%1$L)),
        enabled = ''enabled'' <> ALL (%1$L) WHERE client_id = ''srv''', names), attempt) $$;
SELECT pg_temp.starts('closed1', '+4366400000001', 'none'), pg_temp.opens('closed1', 'c6'), pg_temp.binds('closed1', '+4366400000001') \g /dev/null
SELECT is(pg_temp.while_closed($$pg_temp.signs_in('closed1', 'sb', 'c6', by => 'bind')$$, 'cap:assert-possession'), 'refused transaction',
          'what a backend has said signs in while it may say so');
SELECT is(pg_temp.signs_in('closed1', 'sb2', 'c6', by => 'bind'), 'ok', 'as it may again');
SELECT pg_temp.starts('closed2', '+4366400000001'), pg_temp.opens('closed2', 'c7'),
       pg_temp.starts('closed3', '+4366400000001', 'desktop'), pg_temp.opens('closed3', 'c8'),
       pg_temp.sends('closed3', '+4366400000001', 'of b3', 'link', 'c8') \g /dev/null
CREATE FUNCTION pg_temp.enters(id text, key text) RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.enter_possession(pg_temp.realm(), pg_temp.proven_by(key), pg_temp.uu('auth ' || id), NULL) $$;
SELECT is(pg_temp.while_closed(format('pg_temp.enters(%L, %L)', 'closed2', 'c7'), n), 'unknown', 'no step of the app of a backend without ' || n)
  FROM unnest('{enabled,ept:possession}'::text[]) AS n;
SELECT is(pg_temp.while_closed($$pg_temp.answers('of b3')$$, n), 'gone', 'nor an answer to its link')
  FROM unnest('{enabled,ept:possession}'::text[]) AS n;
SELECT is(pg_temp.enters('closed2', 'c7'), 'ok', 'it goes on when the backend is open again');

-- A user's number leaves and becomes another user's: the attack.
SELECT is(pg_temp.proves('m1', 'old', '+4366400000001'), 'passed 0 passed', 'a user''s key');
SELECT is(pg_temp.signs_in('m1', 's3', 'old'), 'ok', 'signs in');
SELECT is(pg_temp.comes_back('m2', 'old', '+4366400000001'), 'ok passed', 'and passes by itself');
SELECT pg_temp.starts('m3', '+4366400000001'), pg_temp.opens('m3', 'k4') \g /dev/null
SELECT admin.put_identifier('a', pg_temp.user_of('+4366400000001'), 'email', 'former@example.com') \g /dev/null
SELECT admin.delete_identifier('a', (SELECT id FROM admin.users WHERE email = 'former@example.com'), 'phone',
                               '+4366400000001') \g /dev/null
SELECT is(pg_temp.key_phone('old'), NULL, 'the number is removed: the key is freed');
SELECT is(pg_temp.status('m3'), 'failed 9100 +4366400000001', 'transactions that name the number are over');
SELECT is((SELECT count(*) FROM postern.audit_event WHERE event = 'key_revoked' AND detail ->> 'reason' = 'hands'), 4::bigint,
    'which the log says');
SELECT pg_temp.gives('+4366400000001') \g /dev/null
SELECT is(pg_temp.signs_in('m2', 's4', 'old', by => 'key'), 'refused transaction', 'the next holder is not signed in to');
SELECT is(pg_temp.comes_back('m4', 'old', '+4366400000001'), 'ok open', 'nor passes the old key');
SELECT is(pg_temp.comes_back('m5', 'old', NULL), 'ok open', 'by no number that it remembers');

-- The times alone refuse a binding that was made before, even if nothing had ended it.
SELECT is(pg_temp.proves('d1', 'k5', '+4366400000001'), 'passed 0 passed', 'a key of the present holder');
SELECT is(pg_temp.after($$UPDATE postern.device_key SET phone_at = phone_at - interval '1 day'$$,
    $$pg_temp.comes_back('d2', 'k5', '+4366400000001')$$), 'ok open', 'a binding older than the hands');
SELECT is(pg_temp.comes_back('d3', 'k5', '+4366400000001'), 'ok passed', 'one that is not');
SELECT is(pg_temp.after($$UPDATE postern.device_key SET phone_at = phone_at - interval '1 day'$$,
    $$pg_temp.signs_in('d3', 's5', 'k5', by => 'key')$$), 'refused transaction', 'is compared again at the sign-in');
SELECT is(pg_temp.after($$UPDATE postern.user_identifier SET held_since = clock_timestamp()$$,
    $$pg_temp.signs_in('d1', 's6', 'k5')$$), 'refused transaction', 'as the proof by a code is');

-- What is proven and what is not.
CREATE FUNCTION pg_temp.proved_now() RETURNS boolean LANGUAGE sql AS $$
    SELECT proved_at > now() - interval '1 hour' FROM postern.user_identifier WHERE value = '+4366400000001' $$;
UPDATE postern.user_identifier SET proved_at = now() - interval '9 days' WHERE value = '+4366400000001';
SELECT is(pg_temp.signs_in('d3', 's7', 'k5', by => 'key'), 'ok', 'a key signs in');
SELECT is(pg_temp.proved_now(), false, 'and leaves the proof of the number as old as it is');
SELECT is(pg_temp.comes_back('b1', 'k6', '+4366400000001', kind => 'none'), 'ok required', 'a new key');
SELECT is(pg_temp.binds('b1', '+4366400000001'), 'bound', 'that the backend vouches for');
SELECT is(pg_temp.signs_in('b1', 's8', 'k6', by => 'bind'), 'ok', 'signs in at that backend''s app');
SELECT is(pg_temp.proved_now(), false, 'without a proof of the number');
SELECT is(pg_temp.signs_in('d1', 's9', 'k5'), 'ok', 'a code');
SELECT is(pg_temp.proved_now(), true, 'is one');

-- What one client says counts for that client alone.
SELECT is((SELECT string_agg(concat_ws(' ', phone, bound_by, client_id), ', ' ORDER BY bound_at) FROM admin.phone_keys),
    '···0001 code srv, ···0001 asserted srv', 'administrators see how keys were bound');
SELECT is(pg_temp.comes_back('a1', 'k6', '+4366400000001'), 'ok passed', 'an asserted key at its client');
SELECT is(pg_temp.comes_back('a2', 'k6', '+4366400000001', 'srv2'), 'ok open', 'is new to another one');
SELECT is(pg_temp.comes_back('a3', 'k6', NULL, 'srv2'), 'ok open', 'and names no number there');
SELECT is(pg_temp.comes_back('a4', 'k6', '+4366400000001', 'srv2', 'none'), 'ok required', 'nor belongs to another one');
SELECT admin.grant_permission('a', 'srv2', 'cap:assert-possession') \g /dev/null
SELECT is(pg_temp.comes_back('a9', 'k6', '+4366400000001', 'srv2'), 'ok open', 'not even to one that may assert itself');
SELECT admin.revoke_permission('a', 'srv2', 'cap:assert-possession') \g /dev/null
SELECT is(pg_temp.comes_back('a5', 'k5', '+4366400000001', 'srv2'), 'ok passed', 'what a code bound counts everywhere');
SELECT admin.revoke_permission('a', 'srv', 'cap:assert-possession') \g /dev/null
SELECT is(pg_temp.comes_back('a6', 'k6', '+4366400000001'), 'ok open', 'a client that may not assert any more');
SELECT admin.grant_permission('a', 'srv', 'cap:assert-possession') \g /dev/null
SELECT is(pg_temp.proves('a7', 'k6', '+4366400000001', 'srv2'), 'passed 0 passed', 'a code at the other client');
SELECT is(pg_temp.comes_back('a8', 'k6', '+4366400000001'), 'ok passed', 'counts for both');

-- Wrong codes are forgotten by what was seen, not by what was said.
SELECT is(pg_temp.comes_back('g1', 'k7', '+4366400000001', kind => 'none'), 'ok required', 'another new key');
SELECT pg_temp.binds('g1', '+4366400000001') \g /dev/null
INSERT INTO postern.code_guard AS g (realm_id, address_key, consecutive) VALUES (pg_temp.realm(), '+4366400000001', 7)
    ON CONFLICT (realm_id, address_key) DO UPDATE SET consecutive = 7;
SELECT is(pg_temp.comes_back('g2', 'k7', '+4366400000001'), 'ok passed', 'an asserted key passes');
SELECT is((SELECT consecutive FROM postern.code_guard WHERE address_key = '+4366400000001'), 7, 'and forgets no wrong code');
SELECT is(pg_temp.comes_back('g3', 'k5', '+4366400000001'), 'ok passed', 'a key that was bound by a code');
SELECT is((SELECT consecutive FROM postern.code_guard WHERE address_key = '+4366400000001'), 0, 'does');

-- The holder is told, sees the keys, and ends them.
SELECT admin.put_user('a', 'holder@example.com', phone => '+4366400000002') \g /dev/null
UPDATE postern.user_account SET email_verified = true WHERE email = 'holder@example.com';
SELECT pg_temp.starts('h0', '+4366400000002'), pg_temp.opens('h0', 'k8'), pg_temp.sends('h0', '+4366400000002', 'c', key => 'k8')
    \g /dev/null
SELECT is(pg_temp.proves('h1', 'k8', '+4366400000002'), 'passed 0 passed', 'a device proves the number of a user');
SELECT is(pg_temp.told('holder@example.com'), 'phone-key-added +43···0002', 'who is told');
SELECT is(pg_temp.checks('h0', 'c', 'k8'), 'passed 0 passed', 'it proves it once more');
SELECT pg_temp.proves('h2', 'k8', '+4366400000002') \g /dev/null
SELECT is(pg_temp.told('holder@example.com'), 'phone-key-added +43···0002', 'once');
CREATE FUNCTION pg_temp.holder() RETURNS uuid LANGUAGE sql AS $$ SELECT id FROM postern.user_account WHERE email = 'holder@example.com' $$;
CREATE FUNCTION pg_temp.keys() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', client_id, phone, is_trusted, display_name), ', ')
      FROM postern.list_devices(pg_temp.realm(), pg_temp.holder(), NULL) $$;
SELECT is(pg_temp.keys(), 'srv +4366400000002 f', 'the user sees the key');
SELECT is(pg_temp.after($$UPDATE postern.device_key SET phone_at = phone_at - interval '1 day'$$,
    $$coalesce(pg_temp.keys(), 'none')$$), 'none', 'none that proved the number before it was the user''s');
SELECT is((SELECT count(*) FROM postern.change_device(pg_temp.realm(), pg_temp.holder(), pg_temp.device('k8'), 'x', NULL, false)),
    0::bigint, 'gives it no name');
SELECT is(postern.remove_device(pg_temp.realm(), NULL, (SELECT id FROM postern.user_account WHERE email = 'former@example.com'),
    pg_temp.device('k8'), NULL), false, 'nobody else ends it');
UPDATE postern.device_key SET user_id = (SELECT id FROM postern.user_account WHERE email = 'former@example.com'),
       display_name = 'secret name', added_at = now(), client = pg_temp.client('app') WHERE thumbprint = pg_temp.h('k8');
SELECT is(pg_temp.keys(), 'srv +4366400000002 f', 'of another user''s trusted device no more is shown');
SELECT is(postern.remove_device(pg_temp.realm(), NULL, pg_temp.holder(), pg_temp.device('k8'), NULL), true, 'the user ends it');
SELECT is(pg_temp.key_phone('k8') || pg_temp.keys(), NULL, 'it proves the number no more');
SELECT is((SELECT display_name FROM postern.device_key WHERE thumbprint = pg_temp.h('k8')), 'secret name',
    'and stays the other user''s trusted device');
SELECT pg_temp.proves('h3', 'k9', '+4366400000002') \g /dev/null
UPDATE postern.device_key SET user_id = pg_temp.holder(), added_at = now(), client = pg_temp.client('app')
 WHERE thumbprint = pg_temp.h('k9');
SELECT is(pg_temp.keys(), 'app +4366400000002 t', 'a device that is both is one');
SELECT is(postern.remove_device(pg_temp.realm(), NULL, pg_temp.holder(), pg_temp.device('k9'), NULL), true, 'removed');
SELECT is(pg_temp.device('k9'), NULL, 'it is neither');
SELECT pg_temp.proves('h4', 'k10', '+4366400000002') \g /dev/null
SELECT admin.delete_device('a', pg_temp.device('k10')) \g /dev/null
SELECT is(pg_temp.device('k10'), NULL, 'an administrator ends one');
SELECT pg_temp.comes_back('h5', 'k13', '+4366400000002', kind => 'none'), pg_temp.binds('h5', '+4366400000002') \g /dev/null
SELECT pg_temp.told('holder@example.com') AS told \gset
SELECT is(pg_temp.proves('h6', 'k13', '+4366400000002', 'srv2'), 'passed 0 passed', 'a key of one client proves the number to another');
SELECT is(pg_temp.told('holder@example.com'), :'told' || ', phone-key-added +43···0002', 'where it is new, so the user is told');

-- A proof ends with what the account had opened.
SELECT is(pg_temp.proves('st1', 'k11', '+4366400000002'), 'passed 0 passed', 'a passed transaction');
SELECT is(pg_temp.after_call($$SELECT admin.sign_out_everywhere('a', 'holder@example.com')$$,
    $$pg_temp.signs_in('st1', 's10', 'k11')$$), 'refused transaction', 'does not outlive a sign-out everywhere');
SELECT is(pg_temp.after_call($$SELECT admin.set_user_enabled('a', 'holder@example.com', e) FROM unnest('{f,t}'::bool[]) AS e$$,
    $$pg_temp.signs_in('st1', 's11', 'k11')$$), 'refused transaction', 'nor that its user was disabled');
SELECT is(pg_temp.after($$UPDATE postern.user_account SET enabled = false WHERE id = pg_temp.holder()$$,
    $$pg_temp.proves('st2', 'k14', '+4366400000002') || ', ' || pg_temp.signs_in('st2', 's14', 'k14')$$),
    'passed 0 passed, refused transaction', 'nor does one that passes while its user is disabled');
SELECT is(pg_temp.signs_in('st1', 's12', 'k11'), 'ok', 'without them it signs in');

-- Passed is passed.
SELECT is(pg_temp.comes_back('e1', 'k11', '+4366400000002'), 'ok passed', 'a transaction');
UPDATE postern.device_request SET expires_at = now() WHERE id = pg_temp.uu('e1');
SELECT is(pg_temp.status('e1'), 'passed +4366400000002', 'stays passed for the backend when its time is over');
SELECT is(pg_temp.signs_in('e1', 's13', 'k11', by => 'key'), 'refused transaction', 'and signs nobody in');

-- The link was opened, its code is lost: another message.
SELECT pg_temp.starts('l1', '+4366400000002'), pg_temp.opens('l1', 'k12'),
       pg_temp.sends('l1', '+4366400000002', 'L1', 'link', 'k12'), pg_temp.answers('L1') \g /dev/null
SELECT is(pg_temp.status('l1'), 'linked +4366400000002', 'a link was opened on the phone');
SELECT is(pg_temp.sends('l1', '+4366400000002', 'c2', key => 'k12'), 'sent 1', 'a code is sent instead');
SELECT is(pg_temp.finishes('l1', 'L1', 'k12'), 'unknown', 'what the link gave is worth nothing then');
SELECT is(pg_temp.checks('l1', 'c2', 'k12'), 'passed 0 passed', 'and the code passes');

-- Test numbers.
SELECT admin.put_test_number('a', '+4366400000009', 'srv', 'code', '123406') \g /dev/null
SELECT pg_temp.keys_code('+4366400000009', '123406') \g /dev/null
CREATE FUNCTION pg_temp.proves_test(id text, key text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.starts(id, '+4366400000009'), pg_temp.opens(id, key), pg_temp.sends(id, '+4366400000009', 'x', key => key);
    RETURN pg_temp.checks(id, '123406', key);
END
$$;
SELECT pg_temp.gives('+4366400000009') \g /dev/null
SELECT is(pg_temp.proves_test('t1', 't'), 'passed 0 passed', 'a test number');
SELECT is(pg_temp.comes_back('t2', 't', '+4366400000009'), 'ok passed', 'its key at its client');
SELECT is(pg_temp.comes_back('t3', 't', '+4366400000009', 'srv2'), 'ok open', 'is new to another one');
SELECT is(pg_temp.after($$UPDATE postern.test_number SET expires_at = now()$$,
    $$pg_temp.comes_back('t4', 't', '+4366400000009') || ' ' || pg_temp.signs_in('t1', 's14', 't')$$),
    'ok open refused transaction', 'it ends with its time, swept or not');
SELECT is(pg_temp.after($$DELETE FROM postern.test_number$$, $$coalesce(pg_temp.key_phone('t'), 'none')$$), 'none',
    'swept, it leaves no key');
SELECT is(pg_temp.after_call($$SELECT admin.delete_test_number('a', '+4366400000009')$$,
    $$coalesce(pg_temp.key_phone('t'), 'none') || ' ' || pg_temp.signs_in('t1', 's15', 't')$$), 'none refused transaction',
    'deleted, neither key nor proof');
SELECT pg_temp.starts('t5', '+4366400000009'), pg_temp.opens('t5', 't2'),
       pg_temp.sends('t5', '+4366400000009', 'x', key => 't2') \g /dev/null
SELECT is(pg_temp.after_call($$SELECT admin.delete_test_number('a', '+4366400000009')$$, $$pg_temp.status('t5')$$),
    'failed 9100 +4366400000009', 'and what is under way is over');
SELECT is(pg_temp.after_call($$SELECT admin.put_test_number('a', '+4366400000009', 'srv', 'code', '222222')$$,
    $$coalesce(pg_temp.key_phone('t'), 'none')$$), 'none', 'another code ends what the former one opened');
UPDATE postern.user_identifier SET proved_at = now() - interval '9 days' WHERE value = '+4366400000009';
SELECT is(pg_temp.signs_in('t1', 's16', 't'), 'ok', 'it signs its user in');
SELECT is((SELECT proved_at < now() - interval '1 day' FROM postern.user_identifier WHERE value = '+4366400000009'), true,
    'and proves no number');

-- A request for approval names its user by the number.
INSERT INTO postern.device_request (realm_id, kind, expires_at, client, user_id, hint, resolved_at, is_shown)
    SELECT pg_temp.realm(), 'approval', now() + interval '2 minutes', pg_temp.client('app'), pg_temp.holder(), h, now(), true
      FROM unnest('{+4366400000002,holder@example.com}'::text[]) AS h;
SELECT admin.delete_identifier('a', pg_temp.holder(), 'phone', '+4366400000002') \g /dev/null
SELECT is((SELECT string_agg(hint || ' ' || state, ', ' ORDER BY hint DESC) FROM postern.device_request WHERE kind = 'approval'),
    'holder@example.com open, +4366400000002 failed', 'it ends with the number, and no other');
SELECT * FROM finish();
ROLLBACK;
