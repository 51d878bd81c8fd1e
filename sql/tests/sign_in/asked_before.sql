\ir ../helpers/fixture.psql
-- A page that begins anew within the cooldown gets the handle that its browser has, and no other message is sent.
SELECT no_plan();
\ir ../helpers/browsers.psql
SELECT admin.set_code_policy('a', resend_cooldown => '60 seconds') \g /dev/null
-- Asks on a page; names are those of handle and browser. Returns whose handle is answered, and what the worker does.
CREATE FUNCTION pg_temp.asks(
    handle text, browser text DEFAULT 'ada''s', address text DEFAULT 'ada@example.com', kind text DEFAULT 'otp',
    client text DEFAULT 'app', origin text DEFAULT 'https://a.example', first_name text DEFAULT NULL,
    hint uuid DEFAULT NULL, app text DEFAULT NULL, permits postern.permits DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    answer record;
BEGIN
    SELECT * INTO answer FROM postern.record_sent_request(
        pg_temp.caller(NULL, client => pg_temp.client(client), app => app), permits,
        pg_temp.request(handle, address, kind, sends => 5, browser => browser, origin => origin,
                        first_name => first_name, hint_session => hint), NULL);
    RETURN concat_ws(' ', CASE WHEN answer.handle = pg_temp.b16('first') THEN 'first' ELSE 'another' END,
        answer.outcome, answer.sends_left,
        postern.decide_code(pg_temp.realm(), answer.handle, pg_temp.uu(handle), pg_temp.b16('salt'), pg_temp.h(handle),
                            gen_random_uuid(), '\x01', 'otp'));
END
$$;
CREATE FUNCTION pg_temp.nothing() RETURNS text LANGUAGE sql AS $$ SELECT 'UPDATE postern.realm SET slug = slug' $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.asks('first'), 'first accepted 4 sent', 'a page asks for a code');
SELECT is(pg_temp.asks('second'), 'first accepted 4 ignored', 'asked again it has the same handle, and no message is due');
SELECT is(pg_temp.asks('second', permits => ROW('{x}', '{1}', '{0}', '{60}', '{0}')), 'first accepted 4 ignored',
          'which takes no permit');
SELECT is(pg_temp.after(pg_temp.nothing(), format('pg_temp.asks(''other'', %s)', args)), 'another accepted 4 sent',
          'what is another request has a handle of its own: ' || args)
  FROM unnest(ARRAY['''bob''''s''', 'address => ''bob@example.com''', 'client => ''second''',
                    'origin => ''https://other.example''', 'first_name => ''Ada''',
                    'hint => pg_temp.uu(''session'')']) AS args;
SELECT is(pg_temp.after(pg_temp.nothing(), $$pg_temp.asks('other', browser => NULL)$$), 'another accepted 4 sent',
          'an app that asks twice has two');
SELECT is(pg_temp.after(pg_temp.nothing(), $$pg_temp.asks('other', kind => 'register')$$), 'another accepted 4 ignored',
          'a registration is no sign-in');
SELECT is(pg_temp.after(change, $$pg_temp.asks('other')$$), 'another accepted 4 sent', change)
  FROM unnest(ARRAY[
      $$UPDATE postern.sign_in_request SET last_send_at = now() - interval '60 seconds'$$,
      $$UPDATE postern.sign_in_request SET expires_at = now()$$,
      $$UPDATE postern.sign_in_request SET attempts = 1$$,
      $$UPDATE postern.sign_in_request SET proved_at = now()$$,
      $$UPDATE postern.sign_in_request SET denied = true$$,
      $$UPDATE postern.sign_in_request SET confirmed_user = pg_temp.sub('ada@example.com')$$,
      $$UPDATE postern.realm SET resend_cooldown = '0 seconds'$$]) AS change;
SELECT is(pg_temp.after(pg_temp.nothing(),
                        $$(SELECT pg_temp.asks('other') FROM postern.give_up_request(pg_temp.realm(), pg_temp.b16('first')))$$),
          'another accepted 4 sent', 'one that was given up is not sent again');
SELECT is((SELECT outcome FROM postern.redeem_code(
              pg_temp.caller('gt:authorization_code'), NULL, pg_temp.opens(page => pg_temp.page('ada''s')),
              'ada@example.com', pg_temp.b16('first'), ARRAY[pg_temp.h('first')], ROW(5, 600, 5),
              ROW(3000, 3600, 1000), NULL)), 'ok', 'the code of the first is right on the page');
SELECT is(pg_temp.asks('other'), 'another accepted 4 sent', 'and who begins after that gets a new one');
SELECT is(pg_temp.asks('u', 'eve''s', 'no@example.com'), 'another accepted 4 ignored',
          'an address without an account');
SELECT is((SELECT count(*) FROM postern.sign_in_request WHERE address_key = 'no@example.com'), 1::bigint, 'has one handle')
  FROM pg_temp.asks('v', 'eve''s', 'no@example.com');
SELECT * FROM finish();
ROLLBACK;
