\ir ../helpers/fixture.psql
-- A phone number is proven for a backend: by a code, a link, a key, or by what the backend says.
SELECT no_plan();
SELECT admin.put_client('a', 'srv', client_type => 'confidential', display_name => 'Server') \g /dev/null
SELECT admin.put_client('a', 'srv2', client_type => 'confidential', display_name => 'Other') \g /dev/null
SELECT admin.put_service_account('a', c, c) FROM unnest('{srv,srv2}'::text[]) AS c \g /dev/null
SELECT is(pg_temp.refusal($$SELECT admin.grant_permission('a', 'srv', 'ept:possession')$$),
    '22023 permission "ept:possession" of client_id "srv" needs "gt:client_credentials" | A backend proves numbers as '
    'its service account. Grant both, or revoke "ept:possession" first.', 'the endpoint is for service accounts');
SELECT alike(pg_temp.refusal($$SELECT admin.grant_permission('a', 'srv', 'gt:client_credentials',
    'cap:assert-possession')$$), '22023 permission "cap:assert-possession" % needs "ept:possession" | %',
    'an assertion is a possession');
SELECT admin.grant_permission('a', c, 'gt:client_credentials', 'ept:possession', 'cap:assert-possession')
  FROM unnest('{srv,srv2}'::text[]) AS c \g /dev/null
SELECT alike(pg_temp.refusal($$SELECT admin.revoke_permission('a', 'srv', 'gt:client_credentials')$$),
    '22023 permission "ept:possession" %', 'nor is it left without one');
SELECT admin.set_possession('a', true, resend_cooldown => '0 seconds'),
       admin.set_phone_policy('a', regions => '{AT}', sends => 2) \g /dev/null
SELECT alike(pg_temp.refusal($$SELECT admin.put_possession_client('a', 'srv', login_client => 'app')$$),
    '22023 login_client "app" does not hold %', 'a login client needs its grant');
SELECT admin.grant_permission('a', 'app', 'gt:urn:postern:possession') \g /dev/null
SELECT admin.put_possession_client('a', 'srv', login_client => 'app') \g /dev/null
SELECT alike(pg_temp.refusal(s), '22023 %| %', s) FROM unnest(ARRAY[
    $$SELECT admin.put_provider('a', 'risk', 'http://risk.example/')$$,
    $$SELECT admin.put_provider('a', 'risk', 'file:///etc/passwd')$$,
    $$SELECT admin.put_provider('a', 'risk', 'https://user:pw@risk.example/')$$,
    $$SELECT admin.put_provider('a', 'risk', 'https://risk.example/' || repeat('a', 3000))$$,
    $$SELECT admin.put_provider('a', 'sms', 'https://risk.example/')$$,
    $$SELECT admin.put_provider('a', 'events', 'https://risk.example/')$$,
    $$SELECT admin.put_provider('a', 'risk')$$,
    $$SELECT admin.delete_provider('a', 'risk')$$,
    $$SELECT admin.put_test_number('a', '+4366400000001', 'srv')$$,
    $$SELECT admin.put_test_number('a', '+4366400000001', 'app', 'pass')$$,
    $$SELECT admin.put_test_number('a', '+4366400000001', 'srv', 'pass', '123456')$$,
    $$SELECT admin.put_test_number('a', '+4366400000001', 'srv', 'pass', expires_at => now() + interval '31 days')$$,
    $$SELECT admin.delete_test_number('a', '+4366400000001')$$,
    $$SELECT admin.put_provider('a', 'SMS', 'https://risk.example/')$$,
    $$SELECT admin.put_provider('a', 'push', 'https://risk.example/')$$,
    $$SELECT admin.put_provider('a', 'risk', 'https://risk.example/', 'strict')$$,
    $$SELECT admin.set_possession('a', otp_digits => 9)$$, $$SELECT admin.set_possession('a', otp_digits => 3)$$,
    $$SELECT admin.set_possession('a', otp_lifetime => '59 seconds')$$,
    $$SELECT admin.set_possession('a', link_lifetime => '59 seconds')$$,
    $$SELECT admin.set_possession('a', resend_cooldown => '121 seconds')$$,
    $$SELECT admin.set_possession('a', otp_lifetime => '601 seconds')$$]) AS s;
SELECT is(pg_temp.refusal($$SELECT admin.put_provider('a', 'risk', 'http://127.0.0.1:8080/risk')$$), 'accepted',
    'a provider on this machine');
SELECT admin.put_test_number('a', '+4366400000014', 'srv', 'code', '123406'),
       admin.put_test_number('a', '+4366400000018', 'srv', 'pass'),
       admin.put_test_number('a', '+4366400000019', 'srv', 'fail') \g /dev/null

\ir ../helpers/possession.psql
SET LOCAL ROLE app_login;

SELECT is(pg_temp.starts('t1', '+4366412345678'), 'started', 'a backend starts');
SELECT is(pg_temp.status('t1'), 'open +4366412345678', 'and sees how it stands');
SELECT is(pg_temp.status('t1', 'srv2'), '', 'another client does not');
SELECT is(pg_temp.after($$UPDATE postern.device_request SET kind = 'approval'$$, attempt), answer, attempt || ' of an approval')
  FROM (VALUES ($$pg_temp.status('t1')$$, ''), ($$pg_temp.binds('t1', '+4366412345678')$$, 'unknown')) AS v (attempt, answer);
SELECT is(pg_temp.sends('t1', '+4366412345678'), 'step', 'nothing is sent before the app opens it');
SELECT is(pg_temp.opens('t1'), 'ok open', 'a new key proves nothing by itself');
SELECT is(pg_temp.opens('t1', 'k2'), 'wrong_key', 'the first key pins the transaction');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.message_outbox'), '0', 'nothing is sent');
SELECT is(pg_temp.sends('t1', '+4366412345678', key => 'k2'), 'step', 'not for another key');
SELECT is(pg_temp.sends('t1', '+4366412345678', '111111'), 'sent 1', 'a code is sent');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', channel, recipient, purpose, locale), ',')
                          FROM postern.message_outbox$$), 'sms +4366412345678 possession de', 'by SMS');
SELECT is(pg_temp.sends('t1', '+4366400000000'), 'no_change 1', 'to no other number');
SELECT is(pg_temp.sends('t1', '+4366412345678', '222222'), 'sent 0', 'once more');
SELECT is(pg_temp.sends('t1', '+4366412345678', '333333'), 'send_limit 0', 'but not a third time');
SELECT is(pg_temp.checks('t1', '111111', 'k2'), 'step 1 sent', 'another key does not try');
SELECT is(pg_temp.checks('t1', '111111'), 'failed 0 failed', 'the code before the last is wrong, and there is one try');
SELECT is(pg_temp.checks('t1', '222222'), 'step 0 failed', 'it is over');
SELECT is(pg_temp.status('t1'), 'failed 9100 9210 9211 +4366412345678', 'and says why');
SELECT is(pg_temp.sql($$SELECT detail -> 'codes' FROM postern.audit_event WHERE event = 'possession_failed'$$),
    '["9100", "9210"]', 'as a list in the audit log, as webhooks get it');

SELECT pg_temp.starts('t2', '+4366412345678', detail => '{"retries":true}'), pg_temp.opens('t2'),
       pg_temp.sends('t2', '+4366412345678', '111111') \g /dev/null
SELECT is(pg_temp.checks('t2', '999999'), 'wrong 2 sent', 'three tries where the backend allows them');
SELECT is(pg_temp.sends('t2', '+4366412345678', '222222'), 'sent 0', 'a resend');
SELECT is(pg_temp.checks('t2', '999999'), 'wrong 1 sent', 'gives none back');
SELECT is(pg_temp.checks('t2', '222222'), 'passed 0 passed', 'the right one passes');
SELECT is(pg_temp.key_phone('k1'), '+4366412345678', 'and binds the key to the number');
SELECT is(pg_temp.sql($$SELECT count(code_hash) || ' ' || count(link_hash) FROM postern.device_request$$), '1 0',
          'what its own code hashes to is left, for an app that has lost the answer');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = '+4366412345678'$$), '0',
    'wrong codes are forgotten');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
    WHERE detail ->> 'correlation_id' = md5('t2')::uuid::text$$),
    'possession_started,possession_sent,possession_sent,possession_bound,possession_passed', 'audited');

-- Key, phone and rebind.
SELECT pg_temp.starts('k-same', '+4366412345678'), pg_temp.starts('k-none'), pg_temp.starts('k-other', '+4366411111111'),
       pg_temp.starts('k-rebind', '+4366411111111', detail => '{"rebind":true}'),
       pg_temp.starts('k-desktop', '+4366412345678', 'desktop'),
       pg_temp.starts('n-other', '+4366411111111', 'none'), pg_temp.starts('n-new', '+4366411111111', 'none'),
       pg_temp.starts('n-same', '+4366412345678', 'none'), pg_temp.starts('k-device', '+4366412345678') \g /dev/null
SELECT is(pg_temp.opens('k-same'), 'ok passed', 'a bound key passes');
SELECT is(pg_temp.status('k-none'), 'open', 'a transaction without a number');
SELECT is(pg_temp.opens('k-none'), 'ok passed', 'is passed by the key''s number');
SELECT is(pg_temp.status('k-none'), 'passed +4366412345678', 'which it gets');
SELECT is(pg_temp.opens('k-other'), 'ok failed 9100 9101', 'another number than the key''s fails');
SELECT is(pg_temp.opens('n-other'), 'ok required 9101', 'or is to be asserted');
SELECT is(pg_temp.opens('n-new', 'k3'), 'ok required', 'as that of a new key is');
SELECT is(pg_temp.opens('n-same'), 'ok passed', 'kind none, bound key');
SELECT is(pg_temp.opens('k-desktop'), 'ok open', 'a desktop ignores keys');
SELECT is(pg_temp.opens('k-device', device => pg_temp.uu('another')), 'ok open', 'a hint at another key');
SELECT is(pg_temp.opens('k-rebind'), 'ok open', 'a rebind asks again');
SELECT is(pg_temp.key_phone('k1'), '+4366412345678', 'and until then the old binding stays');
SELECT is(pg_temp.sends('k-rebind', '+4366411111111', '444444'), 'sent 1', 'the code of a rebind');
SELECT is(pg_temp.checks('k-rebind', '444444'), 'passed 0 passed', 'passes');
SELECT is(pg_temp.key_phone('k1'), '+4366411111111', 'and moves the key');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'possession_rebound'$$), '1', 'audited');

-- What the backend says.
SELECT is(pg_temp.binds('k-same', '+4366412345678'), 'step', 'no assertion of what the key passed');
SELECT is(pg_temp.binds('n-new', '+4366499999999', 'srv2'), 'unknown', 'nor of another client');
SELECT pg_temp.sql($$INSERT INTO postern.code_guard (realm_id, address_key, consecutive)
    VALUES (pg_temp.realm(), '+4366499999999', 7) RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.binds('n-new', '+4366499999999'), 'bound', 'another number than the started one may be bound');
SELECT is(pg_temp.sql($$SELECT consecutive FROM postern.code_guard WHERE address_key = '+4366499999999'$$), '7',
    'what a backend says makes no wrong code forgotten');
SELECT is(pg_temp.binds('n-new', '+4366499999999'), 'bound', 'the same again is the same');
SELECT is(pg_temp.binds('n-new', '+4366488888888'), 'step', 'another one is too late');
SELECT is(pg_temp.status('n-new'), 'passed +4366499999999', 'bound');
SELECT is(pg_temp.key_phone('k3'), '+4366499999999', 'to the key that opened it');
SELECT is(pg_temp.sql($$SELECT detail ->> 'other_number' FROM postern.audit_event
    WHERE event = 'possession_asserted'$$), 'true', 'the audit says that it was another number');
SELECT is(postern.revoke_phone_key(pg_temp.realm(), pg_temp.client('srv2'), pg_temp.device('k3')), false,
    'another client does not revoke it');
SELECT is(postern.revoke_phone_key(pg_temp.realm(), pg_temp.client('srv'), pg_temp.device('k3')), true,
    'the client that bound it does');
SELECT is(pg_temp.key_phone('k3'), NULL, 'then it is a new key');

-- Links.
SELECT pg_temp.sends('k-desktop', '+4366412345678', 'L1', 'link', match => '42') \g /dev/null
SELECT is(pg_temp.answers('unknown'), 'gone', 'an unknown link');
SELECT is(pg_temp.answers('L1'), 'number_due https://app.example/done', 'no number changes nothing');
SELECT is(pg_temp.answers('L1', '42'), 'passed https://app.example/done', 'the number that the desktop shows');
SELECT is(pg_temp.answers('L1', '42'), 'gone', 'once');
SELECT pg_temp.starts('d2', '+4366412345678', 'desktop'), pg_temp.opens('d2'),
       pg_temp.sends('d2', '+4366412345678', 'L2', 'link', match => '42') \g /dev/null
SELECT is(pg_temp.answers('L2', '41'), 'failed https://app.example/done', 'a wrong number');
SELECT is(pg_temp.answers('L2', '42'), 'gone', 'ends the link');
SELECT is(pg_temp.status('d2'), 'failed 9100 9212 +4366412345678', 'and the transaction');
SELECT pg_temp.starts('d3', '+4366412345678', 'desktop'), pg_temp.opens('d3'),
       pg_temp.sends('d3', '+4366412345678', 'L3', 'link') \g /dev/null
SELECT is(pg_temp.answers('L3'), 'passed https://app.example/done', 'a link without a number');
SELECT is(pg_temp.status('d3'), 'passed 9203 +4366412345678', 'says so');
SELECT pg_temp.starts('m1', '+4366412345678'), pg_temp.opens('m1', 'k4'),
       pg_temp.sends('m1', '+4366412345678', 'L4', 'link', 'k4') \g /dev/null
SELECT is(pg_temp.checks('m1', 'L4', 'k4'), 'step 1 sent', 'a link is no code');
SELECT is(pg_temp.answers('L4'), 'linked https://app.example/done', 'on the phone itself');
SELECT is(pg_temp.finishes('m1', 'L4'), 'unknown', 'another key does not finish');
SELECT is(pg_temp.finishes('m1', 'L3', 'k4'), 'unknown', 'nor another return code');
SELECT is(pg_temp.status('m1'), 'linked +4366412345678', 'nothing changed');
SELECT is(pg_temp.finishes('m1', 'L4', 'k4'), 'passed', 'the right one passes');
SELECT is(pg_temp.finishes('m1', 'L4', 'k4'), 'unknown', 'once');

-- Signals and test numbers.
SELECT pg_temp.starts('s1', '+4366412345678'), pg_temp.starts('s2', '+4366412345678'),
       pg_temp.starts('s3', '+4366412345678'), pg_temp.starts('s4', '+4366412345678') \g /dev/null
SELECT is(pg_temp.opens('s1', 'k9', risk => 'deny'), 'ok failed 9100 9200', 'denied');
SELECT is(pg_temp.opens('s2', 'k9', risk => 'unavailable'), 'ok failed 9100 9201', 'nobody says');
SELECT is(pg_temp.opens('s3', 'k9', verified => true), 'ok passed', 'the operator knows');
SELECT pg_temp.opens('s4', 'k8') \g /dev/null
SELECT is(pg_temp.sends('s4', '+4366412345678', key => 'k8', swapped => 'swapped'), 'failed 2', 'another SIM');
SELECT is(pg_temp.status('s4'), 'failed 9100 9202 +4366412345678', 'said');
SELECT pg_temp.starts('x1', '+4366400000018'), pg_temp.starts('x2', '+4366400000019'),
       pg_temp.starts('x3', '+4366400000018', 'none'), pg_temp.starts('x4', '+4366400000018', client => 'srv2') \g /dev/null
SELECT is(pg_temp.status('x1'), 'passed +4366400000018', 'a test number that passes');
SELECT is(pg_temp.status('x2'), 'failed 9100 +4366400000019', 'one that fails');
SELECT is(pg_temp.status('x3'), 'required +4366400000018', 'one of kind none');
SELECT is(pg_temp.binds('x3', '+4366400000018'), 'bound', 'which is asserted without a key');
SELECT is(pg_temp.status('x4', 'srv2'), 'open +4366400000018', 'to another client it is any number');
SELECT pg_temp.sql('DELETE FROM postern.message_outbox RETURNING 1') \g /dev/null
SELECT pg_temp.starts('x5', '+4366400000014'), pg_temp.opens('x5', 'k7') \g /dev/null
SELECT is(pg_temp.sends('x5', '+4366400000014', '123406', key => 'k7'), 'sent 1', 'a test number with a code');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.message_outbox'), '0', 'to which nothing is sent');
SELECT is(pg_temp.keys_code('+4366400000014', '123407'), false, 'no server keys another code');
SELECT is(pg_temp.keys_code('+4366400000014', '123406'), true, 'a server keys the code');
SELECT is(pg_temp.sql($$SELECT concat_ws(' ', pending_code, left(code_mac::text, 2)) FROM postern.test_number
    WHERE phone = '+4366400000014'$$), '\x', 'which is stored in clear no longer');
SELECT is(pg_temp.checks('x5', '123406', 'k7'), 'passed 0 passed', 'passes by it');
SELECT pg_temp.starts('x6', '+4366400000014'), pg_temp.opens('x6', 'k14'),
       pg_temp.sends('x6', '+4366400000014', '654321', key => 'k14') \g /dev/null
SELECT is(pg_temp.checks('x6', '654321', 'k14'), 'failed 0 failed', 'and by no other code');

-- Time.
SELECT pg_temp.starts('e1', '+4366412345678'), pg_temp.opens('e1', 'k10'),
       pg_temp.sends('e1', '+4366412345678', key => 'k10') \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_request SET code_expires_at = now() WHERE id = pg_temp.uu('e1') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.checks('e1', '111111', 'k10'), 'failed 0 failed', 'an old code is wrong');
SELECT pg_temp.starts('e2', '+4366412345678') \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() WHERE id = pg_temp.uu('e2') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.status('e2'), 'failed 9100 +4366412345678', 'what expired has failed');
SELECT is(pg_temp.opens('e2'), 'ok failed 9100', 'and nothing opens it');
SELECT pg_temp.starts('e3', '+4366412345678'), pg_temp.opens('e3', 'k11') \g /dev/null
SELECT is(postern.cancel_possession(pg_temp.realm(), pg_temp.uu('e3'), pg_temp.h('k1')), false, 'not by another key');
SELECT is(postern.cancel_possession(pg_temp.realm(), pg_temp.uu('e3'), pg_temp.h('k11')), true, 'the person gives up');
SELECT is(pg_temp.sends('e3', '+4366412345678', key => 'k11'), 'step 2', 'then it is over');

-- A hundred wrong codes in a row, of a number that a user has from here on.
RESET ROLE;
SELECT admin.put_user('a', phone => '+4366412345678') \g /dev/null
SET LOCAL ROLE app_login;
SELECT pg_temp.sql($$INSERT INTO postern.code_guard AS g (realm_id, address_key, consecutive)
    VALUES (pg_temp.realm(), '+4366412345678', 99)
    ON CONFLICT (realm_id, address_key) DO UPDATE SET consecutive = 99 RETURNING 1$$) \g /dev/null
SELECT pg_temp.starts('g1', '+4366412345678'), pg_temp.opens('g1', 'k12'),
       pg_temp.sends('g1', '+4366412345678', key => 'k12'), pg_temp.checks('g1', '0', 'k12') \g /dev/null
SELECT pg_temp.starts('g2', '+4366412345678'), pg_temp.opens('g2', 'k12'),
       pg_temp.sends('g2', '+4366412345678', key => 'k12') \g /dev/null
SELECT is(pg_temp.checks('g2', '111111', 'k12'), 'failed 0 failed', 'close the codes of a number');
SELECT pg_temp.starts('g3', '+4366412345678', 'desktop'), pg_temp.opens('g3', 'k12'),
       pg_temp.sends('g3', '+4366412345678', 'L9', 'link', 'k12') \g /dev/null
SELECT is(pg_temp.answers('L9'), 'passed https://app.example/done', 'a link passes all the same');
SELECT pg_temp.starts('g4', '+4366412345678'), pg_temp.opens('g4', 'k12'),
       pg_temp.sends('g4', '+4366412345678', key => 'k12') \g /dev/null
SELECT is(pg_temp.checks('g4', '111111', 'k12'), 'passed 0 passed', 'and opens them');

-- Signing in.
RESET ROLE;
SELECT postern.begin_proof_store('-infinity') \g /dev/null
SELECT pg_sleep(0.01) \g /dev/null
SET LOCAL ROLE app_login;

-- The door and the step in one statement.
SELECT pg_temp.starts(t, '+4366412345678') FROM unnest('{door1,door2}'::text[]) AS t \g /dev/null
SELECT is(pg_temp.cancels_at_door('none of it', 'k13'), 'gone', 'a transaction that there is none of');
SELECT is(pg_temp.cancels_at_door('door1', 'k13'), 'step open', 'nobody gives up what nobody opened');
SELECT is(pg_temp.finishes_at_door('door1', 'D1', 'k13'), 'unknown open', 'nor finishes it');
SELECT pg_temp.opens('door1', 'k13'), pg_temp.opens('door2', 'k13') \g /dev/null
SELECT is(pg_temp.cancels_at_door('door1', 'k1'), 'wrong_key', 'another key does not give up');
SELECT is(pg_temp.status('door1'), 'open +4366412345678', 'and changes nothing');
SELECT is(pg_temp.cancels_at_door('door1', 'k13', 'once'), 'cancelled failed', 'its own does');
SELECT is(pg_temp.cancels_at_door('door1', 'k13'), 'over failed', 'once');
SELECT throws_ok($$SELECT pg_temp.cancels_at_door('door2', 'k13', 'once')$$, 'PD001', NULL,
    'a used proof gives nothing up');
SELECT is(pg_temp.status('door2'), 'open +4366412345678', 'at all');
SELECT pg_temp.sends('door2', '+4366412345678', 'D2', 'link', 'k13'), pg_temp.answers('D2') \g /dev/null
SELECT is(pg_temp.finishes_at_door('door2', 'D2', 'k1'), 'wrong_key', 'another key does not finish');
SELECT is(pg_temp.finishes_at_door('none of it', 'D2', 'k13'), 'gone', 'nor is there anything to finish elsewhere');
SELECT is(pg_temp.finishes_at_door('door2', 'D1', 'k13'), 'unknown linked', 'nor by what another link gave');
SELECT throws_ok($$SELECT pg_temp.finishes_at_door('door2', 'D2', 'k13', 'once')$$, 'PD001', NULL,
    'nor by a used proof');
SELECT is(pg_temp.finishes_at_door('door2', 'D2', 'k13'), 'passed passed', 'its own passes by what its link gave');
SELECT is(pg_temp.cancels_at_door('door2', 'k13'), 'over passed', 'which nobody gives up');

SELECT is(postern.possession_passed_by(pg_temp.realm(), pg_temp.uu('auth g4')), 'code', 'how it was passed');
SELECT pg_temp.permit('second', 'gt:urn:postern:possession') \g /dev/null
SELECT is(pg_temp.signs_in('g4', 's1', 'k1'), 'refused transaction', 'another key');
SELECT is(pg_temp.signs_in('g4', 's2', client => 'second'), 'refused transaction', 'another client');
SELECT is(pg_temp.signs_in('e3', 's3', 'k11'), 'refused transaction', 'one that is not passed');
SELECT is(pg_temp.signs_in('x5', 's4', 'k7'), 'refused transaction', 'a number of nobody');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET proved_at = now() - interval '91 days'
    WHERE value = '+4366412345678' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.signs_in('g4', 's5'), 'refused stale', 'a number that may have passed to somebody else');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET proved_at = now() - interval '9 days'
    WHERE value = '+4366412345678' RETURNING 1$$) \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() WHERE id = pg_temp.uu('g4') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.signs_in('g4', 's8'), 'refused transaction', 'after the end of the transaction');
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() + interval '1 minute'
    WHERE id = pg_temp.uu('g4') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.signs_in('g4', 's9', by => 'key'), 'refused transaction', 'passed in another way than the server says');
SELECT set_config('test.level', '2', true) \g /dev/null
SELECT is(pg_temp.signs_in('g4', 's8'), 'unmet', 'a request for two factors spends nothing');
SELECT set_config('test.level', '', true) \g /dev/null
SELECT is(pg_temp.after(change, $$pg_temp.signs_in('g4', 's10')$$),
          CASE WHEN change ~ 'user_account|srv' THEN 'refused transaction' ELSE pg_temp.closed_by(change) END, change)
  FROM (SELECT * FROM pg_temp.closing('gt:urn:postern:possession', 'possession_enabled', 'native_grants_enabled')
         UNION ALL SELECT unnest(ARRAY['UPDATE postern.user_account SET enabled = false',
            $$UPDATE postern.client SET enabled = false WHERE client_id = 'srv'$$,
            $$UPDATE postern.client SET enabled = false WHERE client_id = 'app'$$])) AS c (change);
SELECT is(pg_temp.after('UPDATE postern.user_account SET has_totp = true', $$pg_temp.signs_in('g4', 's11')$$),
    'second_factor_gone', 'a user with a second factor is asked for it');
SELECT is(pg_temp.signs_in('g4', 's6'), 'ok', 'its user');
SELECT is(pg_temp.sql($$SELECT proved_at = now() FROM postern.user_identifier WHERE value = '+4366412345678'$$), 'true',
    'has proven the number now');
SELECT is(pg_temp.signs_in('g4', 's6', is_repeatable => true), 'ok again {otp,sms}', 'the same request gets the session again');
SELECT is(pg_temp.signs_in('g4', 's6'), 'refused transaction', 'unless it cannot be repeated');
SELECT is(pg_temp.signs_in('g4', 's7', is_repeatable => true), 'refused transaction', 'another request gets nothing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'sign_in' AND session_id = pg_temp.uu('s6')$$), '1',
    'it is one sign-in');
SELECT is(pg_temp.status('g4'), 'redeemed +4366412345678', 'the backend still sees it');

-- The end of a number.
RESET ROLE;
SELECT admin.erase_phone('a', '+4366412345678') \g /dev/null
SELECT is((SELECT count(*) FROM postern.device_request AS t WHERE t.phone = '+4366412345678')
    + (SELECT count(*) FROM postern.device_key AS t WHERE t.phone = '+4366412345678')
    + (SELECT count(*) FROM postern.phone_identity AS t WHERE t.phone = '+4366412345678')
    + (SELECT count(*) FROM postern.code_guard AS t WHERE t.address_key = '+4366412345678'), 0::bigint, 'nothing is left');
SELECT ok(bool_and(phone !~ '^\+[0-9]+$') AND count(*) > 0, 'administrators see no whole number')
  FROM (SELECT phone FROM admin.possessions UNION ALL SELECT phone FROM admin.test_numbers) AS p WHERE phone <> '';
SELECT * FROM finish();
ROLLBACK;
