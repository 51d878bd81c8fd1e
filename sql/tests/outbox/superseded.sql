\ir ../helpers/fixture.psql
-- What was queued for a request and has not left does not leave any more once a newer message was queued for it.
SELECT no_plan();
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null
SET LOCAL ROLE app_login;
-- Messages of an address, oldest first.
CREATE FUNCTION pg_temp.queue(address text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format(
        $q$SELECT string_agg(concat_ws(' ', state, last_error, CASE WHEN payload IS NULL THEN 'empty' END), ', '
                             ORDER BY state)
             FROM postern.message_outbox WHERE recipient = %L$q$, address)) $$;
SELECT is(pg_temp.ask('h1', 'Ada@example.com', '111111', pg_temp.client()), 'sent', 'a code');
SELECT is(pg_temp.ask('h2', 'Ada@example.com', '222222', pg_temp.client()), 'sent', 'and one of another request');
SELECT is(pg_temp.queue('Ada@example.com'), 'queued, queued', 'both wait');
SELECT is(pg_temp.ask('h1', 'Ada@example.com', '333333', pg_temp.client(), resend => true), 'sent', 'again for the first');
SELECT is(pg_temp.queue('Ada@example.com'), 'dead superseded empty, queued, queued',
          'the former code of that request leaves no more, the other''s does');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '333333'), 'ok', 'the code that leaves is good');
SELECT is(pg_temp.ask('h3', 'bob@example.com', '444444', pg_temp.client()), 'sent', 'a code that has left');
SELECT pg_temp.sql($$UPDATE postern.message_outbox SET state = 'sent', sent_at = now(), payload = NULL
                      WHERE recipient = 'bob@example.com' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.ask('h3', 'bob@example.com', '555555', pg_temp.client(), resend => true), 'sent', 'is followed');
SELECT is(pg_temp.queue('bob@example.com'), 'queued, sent empty', 'by the next');
SELECT is(pg_temp.redeem('bob@example.com', 'h3', '444444'), 'ok', 'and stays good, as it may arrive late');
SELECT is(pg_temp.ask('h4', 'bob@example.com', '666666', pg_temp.client()), 'sent', 'a code whose person');
SELECT ok(postern.give_up_request(pg_temp.realm(), pg_temp.b16('h4')), 'uses another address');
SELECT is(pg_temp.sql($$SELECT last_error FROM postern.message_outbox WHERE recipient = 'bob@example.com' AND state = 'dead'$$),
          'superseded', 'does not leave');

-- A proof of a phone number.
RESET ROLE;
SELECT admin.put_client('a', 'srv', client_type => 'confidential', display_name => 'Server') \g /dev/null
SELECT admin.put_service_account('a', 'srv', 'srv'), admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession'),
       admin.put_possession_client('a', 'srv', phone_change => true),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'), admin.set_phone_policy('a', regions => '{AT}') \g /dev/null
\ir ../helpers/possession.psql
SELECT pg_temp.starts(t), pg_temp.opens(t) FROM unnest('{p1,p2}'::text[]) AS t \g /dev/null
SELECT pg_temp.sends(t, '+4366400000001', t) FROM unnest('{p1,p2}'::text[]) AS t \g /dev/null
SELECT is(pg_temp.queue('+4366400000001'), 'queued, queued', 'codes of two proofs of one number');
SELECT is(pg_temp.sends('p1', '+4366400000001', '2'), 'sent 1', 'again for the first');
SELECT is(pg_temp.queue('+4366400000001'), 'dead superseded empty, queued, queued', 'its former code leaves no more');
SELECT is(pg_temp.sends('p1', '+4366400000002', '3'), 'sent 0', 'then to another number');
SELECT is(pg_temp.queue('+4366400000001'), 'dead superseded empty, dead superseded empty, queued', 'and that one does not either');
SELECT is(pg_temp.queue('+4366400000002'), 'queued', 'the newest does');
UPDATE postern.message_outbox SET state = 'sent', sent_at = now(), payload = NULL
 WHERE recipient = '+4366400000001' AND state = 'queued';
SELECT is(pg_temp.sends('p2', '+4366400000001', '4'), 'sent 1', 'a code that has left');
SELECT is(pg_temp.queue('+4366400000001'), 'dead superseded empty, dead superseded empty, queued, sent empty', 'is followed by the next');
SELECT ok(postern.cancel_possession(pg_temp.realm(), pg_temp.uu('p2'), pg_temp.h('k1')), 'a person who gives up');
SELECT is(pg_temp.queue('+4366400000001'), 'dead superseded empty, dead superseded empty, dead superseded empty, sent empty',
          'gets no code any more');
SET LOCAL ROLE app_login;

-- A message names the host of the page that asked.
SELECT postern.queue_message(pg_temp.realm(), pg_temp.uu('m'), 'sms', '+4366412345678', 'otp', 'verify', '\x01',
                             p_page_origin => 'https://login.a.example:8443') \g /dev/null
SELECT is(pg_temp.sql($$SELECT page_host FROM postern.message_outbox WHERE recipient = '+4366412345678'$$), 'login.a.example',
          'its message names its host');
SELECT * FROM finish();
ROLLBACK;
