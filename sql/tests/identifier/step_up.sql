\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
-- A signed-in browser proves one more address of its user.
SELECT no_plan();
SELECT admin.set_phone_policy('a', '{AT}'), admin.put_user('a', 'eve@example.com') \g /dev/null
CREATE FUNCTION pg_temp.browses(cookie text, address text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT pg_temp.browse(cookie, address) $$;
SELECT pg_temp.browses('c1', 'ada@example.com'), pg_temp.browses('c2', 'eve@example.com') \g /dev/null
CREATE FUNCTION pg_temp.begins(handle text, address text, code text, who text DEFAULT 'ada@example.com') RETURNS text
LANGUAGE sql SECURITY DEFINER AS $$
    SELECT outcome FROM postern.begin_identifier(
        pg_temp.caller(NULL), NULL, postern.find_user(pg_temp.realm(), who),
        pg_temp.request(handle, address, channel => 'sms', sends => 3), pg_temp.b16('salt'), pg_temp.h(code),
        gen_random_uuid(), '\x01') $$;
CREATE FUNCTION pg_temp.proves(cookie text, next text, handle text, code text, request postern.code_request DEFAULT NULL)
RETURNS text
LANGUAGE sql AS $$
    SELECT postern.prove_in_browser(pg_temp.realm(), pg_temp.h(cookie), 'a.example', pg_temp.h(next), pg_temp.b16(handle),
        ARRAY[pg_temp.h(code)], '{otp,sms}', request, '192.0.2.1') $$;
CREATE FUNCTION pg_temp.wants_phone(code text) RETURNS postern.code_request LANGUAGE sql AS $$
    SELECT pg_temp.wanted(code, '{"acr_values":["urn:postern:acr:phone"]}') $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.answered('c1', pg_temp.wants_phone(NULL)), 'acr', 'a number is wanted');
SELECT is(pg_temp.begins('h1', '+4366412345678', '111111'), 'sent', 'a code is sent');
SELECT is(pg_temp.proves('c1', 'n1', 'h1', '999999'), 'refused', 'a wrong one');
SELECT is(pg_temp.proves('c2', 'n1', 'h1', '111111'), 'refused', 'in the browser of another user');
SELECT is(pg_temp.proves('c3', 'n1', 'h1', '111111'), 'login', 'in a browser that is not signed in');
SELECT is(pg_temp.proves('c1', 'n1', 'h1', '111111', pg_temp.wants_phone('k1')), 'issued', 'the right one answers the request');
SELECT is(pg_temp.exchange('k1', 's1'), 'ok', 'by a code');
SELECT is(pg_temp.answered('c1'), 'login', 'the former cookie is dead');
SELECT is(pg_temp.answered('n1', pg_temp.wants_phone(NULL)), 'continue', 'the new one has proven a number');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', b.amr, i.value), ',') FROM postern.browser_session AS b
    JOIN postern.user_identifier AS i ON i.user_id = b.user_id AND i.value = b.proofs -> 'phone' ->> 'value'$$),
    '{otp,sms} +4366412345678', 'and knows which');
SELECT is(pg_temp.answered('n1', pg_temp.wanted(NULL, '{"proof":"phone"}')), 'continue', 'also for a client that wants its proof');
SELECT is(pg_temp.begins('h2', '+4366412345678', '222222', 'eve@example.com'), 'sent', 'what another account holds');
SELECT is(pg_temp.proves('c2', 'n2', 'h2', '222222'), 'in_use', 'is refused after its code');
SELECT is(pg_temp.answered('c2'), 'continue', 'and that browser stays as it is');
RESET ROLE;
-- Who adds an address is not shown to be the owner; who proves one that the account had before is.
UPDATE postern.user_identifier SET added_at = now() - interval '1 day' WHERE value = 'eve@example.com';
UPDATE postern.browser_session SET auth_time = now() - interval '9 minutes' WHERE cookie_hash = pg_temp.h('c2');
CREATE FUNCTION pg_temp.age(cookie text) RETURNS text LANGUAGE sql AS $$
    SELECT (now() - auth_time)::text FROM postern.browser_session WHERE cookie_hash = pg_temp.h(cookie) $$;
SELECT is(pg_temp.begins('h3', '+4366487654321', '333333', 'eve@example.com'), 'sent', 'a number is added');
SELECT is(pg_temp.proves('c2', 'n3', 'h3', '333333'), 'continue', 'by its code');
SELECT is(pg_temp.age('n3'), '00:09:00', 'the sign-in is as old as before');
SELECT is(pg_temp.begins('h4', '+4366487654321', '444444', 'eve@example.com'), 'sent', 'the number again');
SELECT is(pg_temp.proves('n3', 'n4', 'h4', '444444'), 'continue', 'is proven again');
SELECT is(pg_temp.age('n4'), '00:09:00', 'and does not renew the sign-in it was added in');
UPDATE postern.user_identifier SET added_at = now() - interval '1 day' WHERE value = '+4366487654321';
SELECT is(pg_temp.begins('h5', '+4366487654321', '555555', 'eve@example.com'), 'sent', 'a number of before');
SELECT is(pg_temp.proves('n4', 'n5', 'h5', '555555'), 'continue', 'is proven');
SELECT is(pg_temp.age('n5'), '00:00:00', 'and renews it');
SELECT * FROM finish();
