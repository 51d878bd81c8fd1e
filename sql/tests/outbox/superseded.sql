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
             FROM postern.mail_outbox WHERE recipient = %L$q$, address)) $$;
SELECT is(pg_temp.ask('h1', 'Ada@example.com', '111111', pg_temp.client()), 'sent', 'a code');
SELECT is(pg_temp.ask('h2', 'Ada@example.com', '222222', pg_temp.client()), 'sent', 'and one of another request');
SELECT is(pg_temp.queue('Ada@example.com'), 'queued, queued', 'both wait');
SELECT is(pg_temp.ask('h1', 'Ada@example.com', '333333', pg_temp.client(), resend => true), 'sent', 'again for the first');
SELECT is(pg_temp.queue('Ada@example.com'), 'dead superseded empty, queued, queued',
          'the former code of that request leaves no more, the other''s does');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '333333'), 'ok', 'the code that leaves is good');
SELECT is(pg_temp.ask('h3', 'bob@example.com', '444444', pg_temp.client()), 'sent', 'a code that has left');
SELECT pg_temp.sql($$UPDATE postern.mail_outbox SET state = 'sent', sent_at = now(), payload = NULL
                      WHERE recipient = 'bob@example.com' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.ask('h3', 'bob@example.com', '555555', pg_temp.client(), resend => true), 'sent', 'is followed');
SELECT is(pg_temp.queue('bob@example.com'), 'queued, sent empty', 'by the next');
SELECT is(pg_temp.redeem('bob@example.com', 'h3', '444444'), 'ok', 'and stays good, as it may arrive late');
SELECT is(pg_temp.ask('h4', 'bob@example.com', '666666', pg_temp.client()), 'sent', 'a code whose person');
SELECT ok(postern.give_up_request(pg_temp.realm(), pg_temp.b16('h4')), 'uses another address');
SELECT is(pg_temp.sql($$SELECT last_error FROM postern.mail_outbox WHERE recipient = 'bob@example.com' AND state = 'dead'$$),
          'superseded', 'does not leave');
-- A message names the host of the page that asked.
SELECT is(postern.requested_in('192.0.2.1', 'de', 'https://login.a.example:8443'), '192.0.2.1', 'a page asks');
SELECT postern.queue_message(pg_temp.realm(), pg_temp.uu('m'), 'sms', '+4366412345678', 'otp', 'verify', '\x01') \g /dev/null
SELECT is(pg_temp.sql($$SELECT page_host FROM postern.mail_outbox WHERE recipient = '+4366412345678'$$), 'login.a.example',
          'its message names its host');
SELECT * FROM finish();
ROLLBACK;
