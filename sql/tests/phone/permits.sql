\ir ../helpers/fixture.psql
SELECT no_plan();
-- What messages to phones cost: only what left, and a fifth is kept for known devices and for proven numbers.
SELECT admin.set_phone_policy('a', '{AT}', 'AT', sends => 3, daily_budget => 100),
       admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/'),
       admin.set_rate_limit('a', 'phone-otp', 'prefix', 10, '1 hour', 10),
       admin.put_user('a', 'Ada@example.com', phone => '+4366412345678') \g /dev/null
CREATE FUNCTION pg_temp.takes(phone text, known boolean DEFAULT false, notice boolean DEFAULT false) RETURNS text
LANGUAGE sql AS $$
    SELECT coalesce(array_to_string(array_agg(substr(k, 11) ORDER BY k), ' '), 'none')
      FROM unnest(postern.take_message_permits(pg_temp.realm(), phone, 'AT', pg_temp.client(), NULL, notice, known))
               AS t (k) $$;
CREATE FUNCTION pg_temp.queues(phone text, id text DEFAULT 'm') RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.queue_message(pg_temp.realm(), pg_temp.uu(id), 'sms', phone, 'otp', 'sign-in', '\x01',
                                 p_client => pg_temp.client(), p_region => 'AT') $$;
CREATE FUNCTION pg_temp.used() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(substr(key, 11), ' ' ORDER BY key) FROM postern.rate_bucket
     WHERE key LIKE 'phone-otp|%' AND tat > now() + interval '1 second' $$;
SET ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null

SELECT is((SELECT count(*)::int FROM generate_series(1, 9) AS n WHERE pg_temp.takes('+436641234000' || n) <> 'none'), 8,
          'strangers find four fifths of a budget');
SELECT is(pg_temp.takes('+4366412345678'), 'client|app country|AT prefix|proven|+436641234 spend|all',
          'a proven number finds half of the rest');
SELECT is(pg_temp.takes('+4366412345678'), 'none', 'and no more');
SELECT is(pg_temp.takes('+4366412345678', true), 'client|app country|AT prefix|device|+436641234 spend|all',
          'a known device of it finds the other half');
SELECT is(pg_temp.takes('+4366412345678', true), 'client|app country|AT spend|all',
          'and then it needs none of prefix and country: other accounts beside it cannot shut it out');
SELECT is(pg_temp.sql($$SELECT round(extract(epoch FROM tat - now()) / (86400.0 / 80)) FROM postern.rate_bucket
                         WHERE key = 'phone-otp|spend|all'$$), '11', 'what was refused took nothing of other budgets');
SELECT is(pg_temp.takes('+4366412345678', notice => true), 'spend|all', 'a notice costs money only');

-- Messages that do not leave.
SELECT pg_temp.sql($$DELETE FROM postern.rate_bucket RETURNING ''$$) \g /dev/null
SELECT ok(pg_temp.queues('+4366412345678'), 'a message is queued');
SELECT is(pg_temp.used(), 'client|app country|AT prefix|+436641234 spend|all', 'with its permits');
SELECT ok(postern.message_failed(pg_temp.realm(), pg_temp.uu('m'), '404', '1 s', true, 'main', true, true, true), 'refused');
SELECT is(pg_temp.used(), NULL, 'it costs nothing');
SELECT pg_temp.queues('+4366412345678', 'm2'),
       postern.message_failed(pg_temp.realm(), pg_temp.uu('m2'), 'denied', '0', false, NULL, false, false, false)
    \g /dev/null
SELECT is(pg_temp.used(), NULL, 'nor does what a hook denies');
SELECT pg_temp.queues('+4366412345678', 'm3'),
       postern.message_failed(pg_temp.realm(), pg_temp.uu('m3'), '503', '1 day', false, 'main', false, true, true)
    \g /dev/null
SELECT is(pg_temp.used(), NULL, 'nor what expires');
SELECT pg_temp.queues('+4366412345678', 'm4'), postern.message_sent(pg_temp.realm(), pg_temp.uu('m4'), 'main', NULL)
    \g /dev/null
SELECT is(pg_temp.used(), 'client|app country|AT prefix|+436641234 spend|all', 'what left does');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.mail_outbox WHERE permits IS NOT NULL$$), '0',
          'no queue remembers whose number it was');
SELECT postern.give_back(pg_temp.realm(), '+4366412345678', 'AT', '192.0.2.1') \g /dev/null
SELECT is(pg_temp.used(), 'client|app spend|all', 'a redeemed code gives prefix and country back');

-- A budget that is too small to be divided, and one that is only watched.
RESET ROLE;
SELECT admin.set_rate_limit('a', 'phone-otp', 'prefix', 2, '1 hour', 2) \g /dev/null
SET ROLE app_login;
SELECT is((SELECT count(*)::int FROM generate_series(1, 3) AS n WHERE pg_temp.takes('+436641234000' || n) <> 'none'), 2,
          'a small budget is whole');
RESET ROLE;
SELECT admin.set_rate_limit('a', 'phone-otp', 'prefix', 2, '1 hour', 2, 'log-only') \g /dev/null
SET ROLE app_login;
SELECT isnt(pg_temp.takes('+4366412340009'), 'none', 'a limit that is only watched refuses nothing');
SELECT * FROM finish();
ROLLBACK;
