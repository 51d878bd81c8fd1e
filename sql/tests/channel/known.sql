\ir ../helpers/fixture.psql
-- A channel is a row of known_channel.
SELECT no_plan();
SELECT is((SELECT array_agg(channel ORDER BY place) FROM admin.known_channels), '{email,sms,voice,whatsapp,push}',
          'administrators see which there are');
SELECT is(pg_temp.refusal($$SELECT admin.put_channel('a', 'pigeon', 'loft', 'webhook')$$),
    '22023 channel "pigeon" is unknown | Allowed (spelled exactly so): sms, voice, whatsapp, push.', 'and no others');
SELECT matches(pg_temp.refusal($$SELECT admin.put_channel('a', 'email', 'x', 'webhook')$$),
               '^22023 channel "email" is unknown', 'mail has no providers');
SELECT throws_ok($$INSERT INTO postern.channel (realm_id, channel, name, provider)
                   VALUES (pg_temp.realm(), 'No channel', 'x', 'outbox')$$, '23514', NULL, 'a channel has a plain name');
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
CREATE FUNCTION pg_temp.queue(channel text) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT postern.queue_message(pg_temp.realm(), gen_random_uuid(), %L, %L, %L, %L, %L)', channel,
                  '+4366412345678', 'otp', 'sign-in', '\x00') $$;
SELECT throws_ok(pg_temp.queue('pigeon'), 'P0001', 'there is no channel pigeon',
                 'no message is queued for a channel that there is not');
RESET ROLE;
SELECT lives_ok($$SET LOCAL ROLE postern_owner;
    INSERT INTO postern.known_channel (channel, reaches, amr, place) VALUES ('pigeon', 'phone', '{otp}', 99)$$,
    'a capability announces a channel');
RESET ROLE;
SELECT lives_ok($$SELECT admin.put_channel('a', 'pigeon', 'loft', 'webhook', 'https://loft.example/')$$,
                'administrators give it a provider');
SET LOCAL ROLE app_login;
SELECT is(postern.realm_config(pg_temp.realm()) -> 'channels', '["pigeon"]', 'servers know that the realm has it');
SELECT is((SELECT queued FROM postern.queue_figures(5) WHERE queue = 'pigeon' AND realm IS NULL), 0::bigint,
          'it has a queue of its own');
SELECT is(pg_temp.sql(pg_temp.queue('pigeon')), 'true', 'a message to a number is queued there');
SELECT is(pg_temp.sql($$SELECT bool_or(key LIKE 'phone-otp|%')::text FROM postern.rate_bucket
                         WHERE realm_id = pg_temp.realm() AND tat > now()$$), 'true', 'and takes the permits of phones');
SELECT * FROM finish();
ROLLBACK;
