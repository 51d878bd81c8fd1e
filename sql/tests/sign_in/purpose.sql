\ir ../helpers/fixture.psql
-- What a page asks for without a client, for a purpose of the host itself, opens nothing at a client. What was asked
-- for at a client, or by an app that named none, opens nothing for a purpose.
SELECT no_plan();
\ir ../helpers/links.psql
SELECT pg_temp.permit('second', 'gt:urn:cocoar:otp'), admin.set_hosted('a', true),
       admin.put_app('a', 'shop', 'Shop', 'shop.a.example', registration => 'JitOnOtp') \g /dev/null
-- Asks on a page of ada's browser for a code or a link, for a purpose unless a client is named.
CREATE FUNCTION pg_temp.asks(
    handle text, kind text DEFAULT 'otp', browser text DEFAULT 'ada''s', client text DEFAULT NULL,
    address text DEFAULT 'ada@example.com', app text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    asked record;
    decided record;
BEGIN
    SELECT * INTO asked FROM postern.record_sent_request(
        pg_temp.caller(NULL, client => pg_temp.client(client), app => app), NULL,
        pg_temp.request(handle, address, kind, browser => browser, origin => 'https://a.example'), NULL);
    IF kind <> 'magic' THEN
        RETURN postern.decide_code(pg_temp.realm(), asked.handle, pg_temp.uu(handle), pg_temp.b16('salt'),
                                   pg_temp.h(handle), gen_random_uuid(), '\x01', 'otp');
    END IF;
    SELECT * INTO decided FROM postern.decide_link_request(pg_temp.realm(), asked.handle);
    PERFORM postern.add_link(pg_temp.realm(), asked.handle, decided.user_id, pg_temp.h(handle),
                             gen_random_uuid(), '\x01');
    RETURN decided.outcome;
END
$$;
-- As a page of a purpose would: without a client, with a permission that every client has.
CREATE FUNCTION pg_temp.types(handle text, permission text DEFAULT 'gt:urn:cocoar:otp') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason) FROM postern.redeem_code(
        pg_temp.caller(permission, client => NULL), NULL, pg_temp.opens(), 'ada@example.com', pg_temp.b16(handle),
        ARRAY[pg_temp.h(handle)], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL) $$;
SET LOCAL ROLE app_login;

-- Codes.
SELECT is(pg_temp.asks('c'), 'sent', 'a code for a purpose');
SELECT is(pg_temp.redeem('ada@example.com', 'c', 'c'), 'refused client', 'opens nothing at a client by its handle');
SELECT is(pg_temp.redeem('ada@example.com', NULL, 'c'), 'refused client', 'and nothing by the address');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code$$), '1', 'it is not spent');
SELECT is(pg_temp.asks('n', client => 'app'), 'sent', 'a page of a client');
SELECT is(pg_temp.after($$UPDATE postern.login_code SET mac = mac$$,
                        $$pg_temp.redeem('ada@example.com', 'n', 'n')$$), 'ok', 'asks for one that its client takes');
SELECT throws_ok($$SELECT pg_temp.types('n')$$, 'PC001', NULL, 'and that a purpose does not');
SELECT is(pg_temp.asks('o', browser => NULL), 'sent', 'an app that names no client');
SELECT throws_ok($$SELECT pg_temp.types('o')$$, 'PC001', NULL, 'gets one that a purpose does not take');
SELECT is(pg_temp.redeem('ada@example.com', NULL, 'o'), 'ok', 'and every client does');
SELECT is(pg_temp.asks('r', address => 'new@example.com', app => 'shop'), 'sent', 'a code that registers');
SELECT is(pg_temp.redeem('new@example.com', 'r', 'r'), 'refused client', 'makes no account at a client');
SELECT is(pg_temp.sub('new@example.com'), NULL, 'there is no account');

-- Links.
SELECT is(pg_temp.asks('l', 'magic'), 'send', 'a link for a purpose');
SELECT is(pg_temp.open('ada@example.com', 'l'), 'refused client', 'opens nothing at a client');
SELECT is(pg_temp.poll('l'), 'refused client', 'nor does its handle');
SELECT is(pg_temp.answer('ada@example.com', 'l', 'l'), 'confirmed', 'once it is confirmed');
SELECT is(pg_temp.poll('l'), 'refused client', 'it still does not');
SELECT is(pg_temp.asks('m', 'magic', client => 'app'), 'send', 'a page of a client');
SELECT is(pg_temp.open('ada@example.com', 'm'), 'ok', 'asks for a link that its client takes');
SELECT is(pg_temp.link('k', 'ada@example.com', 'k'), 'send', 'an app that names no client');
SELECT is(pg_temp.answer('ada@example.com', 'k', 'k'), 'confirmed', 'gets a link');
SELECT throws_ok(format($$SELECT postern.poll_link(pg_temp.caller('gt:urn:cocoar:magic', client => NULL), NULL,
                                                   pg_temp.opens(), %L, NULL)$$, pg_temp.b16('k')),
                 'PC001', NULL, 'that a purpose does not take');
SELECT is(pg_temp.poll('k'), 'ok', 'and every client does');
SELECT * FROM finish();
ROLLBACK;
