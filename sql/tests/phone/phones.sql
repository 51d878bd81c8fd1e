\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.set_phone_policy('a', '{AT,US}', 'AT', sends => 2), admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/'),
       admin.set_code_policy('a', resend_cooldown => '0 seconds'),
       admin.put_user('a', 'Ada@example.com', phone => '+4366412345678') \g /dev/null
CREATE FUNCTION pg_temp.who(address text DEFAULT '+4366412345678') RETURNS uuid LANGUAGE sql STABLE
    SECURITY DEFINER AS $$ SELECT postern.find_user(pg_temp.realm(), address) $$;
-- Asks for a code by SMS and decides; the handle is named, so is the code.
CREATE FUNCTION pg_temp.text_me(handle text, phone text, code text, resend boolean DEFAULT false, kind text DEFAULT 'otp',
    app text DEFAULT NULL, hint text DEFAULT NULL, budget text[] DEFAULT '{}', channel text DEFAULT 'sms')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a record;
    n integer := cardinality(budget);
    decided text;
BEGIN
    SELECT * INTO a FROM postern.record_sent_request(
        pg_temp.caller(NULL, client => NULL, app => app),
        ROW(budget, array_fill(1, ARRAY[n]), array_fill(2, ARRAY[n]), array_fill(3600::float8, ARRAY[n]),
            array_fill(2, ARRAY[n])),
        pg_temp.request(handle, phone, kind, channel, resend, hint_user => pg_temp.sub(hint), sends => 2,
                        hint_session => CASE WHEN hint IS NOT NULL THEN pg_temp.uu('phone') END), NULL);
    IF a.outcome <> 'accepted' THEN
        RETURN a.outcome;
    END IF;
    decided := postern.decide_code(pg_temp.realm(), a.handle, pg_temp.uu(code || handle), pg_temp.b16('salt' || handle),
                                   pg_temp.h(code), gen_random_uuid(), '\x01', 'otp');
    RETURN decided || ' ' || a.sends_left;
END
$$;
CREATE FUNCTION pg_temp.messages() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(concat_ws(' ', channel, recipient, template, purpose), ', ' ORDER BY created_at, channel, recipient)
      FROM postern.message_outbox WHERE template <> 'identifier-added' $$;
CREATE FUNCTION pg_temp.age(phone text, days integer) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.user_identifier SET proved_at = now() - make_interval(days => days) WHERE value = phone $$;

-- Sign-in.
SELECT is(pg_temp.text_me('h1', '+4366412345678', '111111'), 'sent 1', 'a code by SMS');
SELECT is(pg_temp.messages(), 'sms +4366412345678 otp sign-in', 'goes to the number');
SELECT is(pg_temp.redeem('+4366412345678', 'h1', '999999'), 'refused wrong', 'a wrong one is refused');
SELECT is(pg_temp.redeem('+4366412345678', 'h1', '111111'), 'ok', 'the right one signs in');
SELECT is(pg_temp.redeem('+4366412345678', 'h1', '111111'), 'refused unknown', 'once');
SELECT is(pg_temp.text_me('h2', '+4366412345678', '222222'), 'sent 1', 'another');
SELECT is(pg_temp.redeem('+4366412345678', NULL, '222222'), 'ok', 'signs in by number alone');
SELECT is(pg_temp.text_me('u1', '+4366499999999', '333333'), 'ignored 1', 'an unknown number gets none, and looks the same');

-- Messages of a handle.
SELECT is(pg_temp.text_me('h3', '+4366412345678', '333333'), 'sent 1', 'the first of two');
SELECT is(pg_temp.text_me('h3', '+4366412345678', '444444', resend => true, channel => 'voice'), 'sent 0', 'by another channel');
SELECT is(pg_temp.text_me('h3', '+4366412345678', '555555', resend => true), 'send_limit', 'the third is refused');
SELECT is(pg_temp.redeem('+4366412345678', 'h3', '444444'), 'ok', 'what was sent still works');
SELECT admin.set_code_policy('a', resend_cooldown => '60 seconds') \g /dev/null
SELECT is(pg_temp.text_me('h4', '+4366412345678', '666666', budget => '{b4}'), 'sent 1', 'within the cooldown');
SELECT is(pg_temp.text_me('h4', '+4366412345678', '777777', resend => true, budget => '{b4}'), 'ignored 1', 'nothing is sent');
SELECT is(pg_temp.sql($$SELECT (tat = now() + interval '1800 s')::text FROM postern.rate_bucket WHERE key = 'b4'$$), 'true',
    'and no permit taken');
SELECT is(pg_temp.text_me('h4', '+4366412345679', '777777', resend => true, budget => '{b4}'), 'ignored 1',
          'a handle is of one number: for another one');
SELECT is(pg_temp.text_me('h4', '+4366412345678', '777777', resend => true, kind => 'register', budget => '{b4}'), 'rate_limited',
          'and of one kind: both take a permit');
SELECT is(pg_temp.text_me('m4', 'ada@example.com', '666666', budget => '{b5}', channel => NULL), 'sent 1', 'by mail, too:');
SELECT is(pg_temp.text_me('m4', 'ada@example.com', '777777', resend => true, budget => '{b5}', channel => NULL),
          'ignored 1', 'nothing is sent');
SELECT is(pg_temp.sql($$SELECT (tat = now() + interval '1800 s')::text FROM postern.rate_bucket WHERE key = 'b5'$$), 'true',
    'and no permit taken');
SELECT pg_temp.sql($$UPDATE postern.sign_in_request SET attempts = 5 WHERE id = pg_temp.b16('m4'); SELECT 1$$) \g /dev/null
SELECT is(pg_temp.text_me('m4', 'ada@example.com', '777777', resend => true, budget => '{b5}', channel => NULL), 'sent 1',
          'but a request of a handle without tries is a new one');
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null

-- Redeemed codes give their permits back, but for what they cost.
CREATE FUNCTION pg_temp.used() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(substr(key, 11), ' ' ORDER BY key) FROM postern.rate_bucket
     WHERE key LIKE 'phone-otp|%' AND tat > now() + interval '1 second' $$;
SELECT is(pg_temp.text_me('g1', '+4366412345678', '121212', budget =>
    '{phone-otp|source|192.0.2.1,phone-otp|prefix|+436641234,phone-otp|country|AT,phone-otp|spend|all}'), 'sent 1', 'a message');
SELECT is(pg_temp.used(), 'country|AT prefix|+436641234 source|192.0.2.1 spend|all', 'takes of every budget');
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = now() + interval '12 s' WHERE key = 'phone-otp|country|AT';
    UPDATE postern.rate_bucket SET tat = now() + interval '144 s' WHERE key = 'phone-otp|prefix|+436641234';
    UPDATE postern.rate_bucket SET tat = now() + interval '12 s' WHERE key = 'phone-otp|source|192.0.2.1'; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.redeem('+4366412345678', 'g1', '121212'), 'ok', 'redeemed');
SELECT is(pg_temp.used(), 'spend|all', 'and only the cost stays');

-- A number that was not proven for long.
SELECT pg_temp.sign_in('s') \g /dev/null
SELECT pg_temp.age('+4366412345678', 89) \g /dev/null
SELECT is(pg_temp.text_me('o1', '+4366412345678', '131313'), 'sent 1', 'after 89 days');
SELECT is(pg_temp.redeem('+4366412345678', 'o1', '131313'), 'ok', 'it signs in');
SELECT ok(pg_temp.sql($$SELECT (proved_at = now())::text FROM postern.user_identifier WHERE value = '+4366412345678'$$)::boolean,
    'and is proven anew');
SELECT pg_temp.age('+4366412345678', 91) \g /dev/null
SELECT is(pg_temp.text_me('o2', '+4366412345678', '141414'), 'sent 1', 'after 91 days a code is sent all the same');
SELECT is(pg_temp.redeem('+4366412345678', 'o2', '141414'), 'refused disabled', 'but signs nobody in');
SELECT is(pg_temp.who(), pg_temp.who('ada@example.com'), 'the number stays');
SELECT admin.put_app('a', 'shop', 'Shop', 'shop.a.example', 'JitOnOtp', '{app}', true) \g /dev/null
SELECT is(pg_temp.text_me('o3', '+4366412345678', '151515', app => 'shop'), 'sent 1', 'who may register');
SELECT is(pg_temp.redeem('+4366412345678', 'o3', '151515'), 'ok', 'gets an account');
SELECT isnt(pg_temp.who(), pg_temp.who('ada@example.com'), 'of their own, with the number');
SELECT ok(pg_temp.alive('s'), 'the sessions of the former holder live');
SELECT matches(pg_temp.messages(), 'email Ada@example.com identifier-moved notice|email Ada@example.com identifier-moved', 'who is told');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'identifier_moved'$$), '1', 'audited');
SELECT is(pg_temp.sql($$SELECT phone IS NULL FROM admin.users WHERE email = 'Ada@example.com' AND realm = 'a'$$), 'true', 'the former account has none');

-- Policies.
SELECT matches(pg_temp.refusal(s), m, s) FROM (VALUES
    ($$SELECT admin.set_phone_policy('a', '{at}')$$, 'not a country'), ($$SELECT admin.set_phone_policy('a', '{AUT}')$$, 'not a country'),
    ($$SELECT admin.set_phone_policy('a', default_region => 'austria')$$, 'default_region "austria" is'),
    ($$SELECT admin.set_phone_policy('a', '{GB,UK}')$$, 'regions: "UK" is'),
    ($$SELECT admin.set_phone_policy('a', sends => 6)$$, '1 to 5'), ($$SELECT admin.set_phone_policy('a', daily_budget => 0)$$, '1 to 1,000,000'),
    ($$SELECT admin.set_phone_policy('a', stale_after => '1 hour')$$, 'out of range'),
    ($$SELECT admin.put_phone_prefix('a', '43')$$, 'beginning of a phone number'),
    ($$SELECT admin.put_phone_prefix('a', '+43', 'maybe')$$, 'allow, deny'), ($$SELECT admin.put_phone_prefix('a', '+43', cost => 0)$$, '1 to 1000'),
    ($$SELECT admin.delete_phone_prefix('a', '+43')$$, 'has no rule')) AS v (s, m);
SELECT admin.set_phone_policy('a', daily_budget => 500), admin.put_phone_prefix('a', '+437', 'deny'),
       admin.put_phone_prefix('a', '+1876', cost => 12) \g /dev/null
SELECT results_eq($$SELECT regions, default_region, sends, daily_budget FROM admin.phone_policies WHERE realm = 'a'$$,
    $$VALUES ('{AT,US}'::text[], 'AT', 2, 500)$$, 'what is set stays');
SELECT is(postern.realm_config(pg_temp.realm()) #>> '{phones,prefixes}',
    '[{"cost": 1, "denied": true, "prefix": "+437"}, {"cost": 12, "denied": false, "prefix": "+1876"}]', 'servers read it');
SELECT is(postern.realm_config(pg_temp.other()) ->> 'phones', NULL, 'a realm without a policy has none');
SELECT ok(EXISTS (SELECT FROM admin.scopes WHERE realm = 'a' AND scope = 'phone'), 'with a policy comes the scope');
SELECT finish();
ROLLBACK;
