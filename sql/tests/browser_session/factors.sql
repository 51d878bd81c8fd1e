\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
-- Every statement that redeems a factor opens a browser session on a page, also while native grants are off.
SELECT no_plan();
SELECT admin.put_app('a', 'jit', 'Jit', 'jit.a.example'),
       admin.put_app('a', 'explicit', 'Explicit', 'explicit.a.example', registration => 'ExplicitEndpoint'), admin.set_native_grants('a', false) \g /dev/null
-- A sign-in on a page; cookie is a name.
CREATE FUNCTION pg_temp.on_page(cookie text, proves text DEFAULT 'email', profile text DEFAULT NULL,
                                terms boolean DEFAULT false, amr text[] DEFAULT '{otp}') RETURNS postern.new_session
LANGUAGE sql AS $$
    SELECT pg_temp.opens(pg_temp.uu(cookie), refresh_hash => NULL, amr => amr, page => pg_temp.page(
        cookie, proves, pg_temp.wanted('code of ' || cookie), profile => profile, terms => terms)) $$;
CREATE FUNCTION pg_temp.type_in(address text, handle text, code text, cookie text, profile text DEFAULT NULL,
                                permission text DEFAULT 'gt:authorization_code', terms boolean DEFAULT false)
RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.answer_of(postern.redeem_code(
        pg_temp.caller(permission, user_agent => 'Browser/1'), pg_temp.no_permits(),
        pg_temp.on_page(cookie, profile => profile, terms => terms), address, pg_temp.b16(handle),
        ARRAY[pg_temp.h(code)], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL)) $$;
SET LOCAL ROLE app_login;
-- A code.
SELECT is(pg_temp.ask('h1', 'ada@example.com', '111111', pg_temp.client()), 'sent', 'a code is sent for a page');
SELECT is(pg_temp.type_in('ada@example.com', 'h1', '999999', 'c1'), 'refused wrong', 'a wrong code');
SELECT is(pg_temp.said() || pg_temp.answered('c1'), 'login', 'signs nobody in');
SELECT is(pg_temp.tried($$pg_temp.type_in('ada@example.com', 'h1', '111111', 'c1', permission => 'gt:urn:cocoar:otp')$$), 'PC003',
          'the right one under the native permission neither');
SELECT is(pg_temp.type_in('ada@example.com', 'h1', '111111', 'c1'), 'ok', 'the right one signs in');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c1'), 'issued continue', 'and answers the request');
SELECT is(pg_temp.exchange('code of c1', 's1'), 'ok', 'by a code');
SELECT is(pg_temp.type_in('ada@example.com', 'h1', '111111', 'c1b'), 'refused unknown', 'it works once');
SELECT is(pg_temp.sql($$SELECT string_agg(event || coalesce(detail ->> 'page', ''), ',' ORDER BY id)
                          FROM postern.audit_event WHERE event = 'sign_in'$$), 'sign_ina.example,sign_in',
          'the page and the client''s session are audited');
-- A second factor is asked for first.
RESET ROLE;
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed)
SELECT pg_temp.realm(), pg_temp.sub('bob@example.com'), pg_temp.uu('f'), pg_temp.uu('s'), 'epoch', '\x00';
UPDATE postern.user_account SET has_totp = true WHERE id = pg_temp.sub('bob@example.com');
SET LOCAL ROLE app_login;
SELECT pg_temp.ask('h2', 'bob@example.com', '222222', pg_temp.client()) \g /dev/null
SELECT is(pg_temp.type_in('bob@example.com', 'h2', '222222', 'c2'), 'second_factor', 'an account with TOTP');
SELECT is(pg_temp.answered('c2'), 'login', 'is not signed in by a code alone');
-- A link, opened and confirmed.
CREATE FUNCTION pg_temp.mailed(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asked record;
    decided record;
BEGIN
    SELECT * INTO asked FROM postern.record_sent_request(
        pg_temp.caller(NULL), NULL, pg_temp.request(name, 'ada@example.com', 'magic', lifetime => 900), NULL);
    SELECT * INTO decided FROM postern.decide_link_request(pg_temp.realm(), asked.handle);
    PERFORM postern.add_link(pg_temp.realm(), asked.handle, decided.user_id, pg_temp.h('token ' || name),
                             gen_random_uuid(), '\x01');
    RETURN decided.outcome;
END
$$;
SELECT is(pg_temp.mailed('l1'), 'send', 'a link is sent for a page');
SELECT is(pg_temp.answer_of(postern.redeem_link(
    pg_temp.caller('gt:authorization_code'), pg_temp.no_permits(), pg_temp.on_page('c3'),
    pg_temp.sub('ada@example.com'), pg_temp.h('token l1'), NULL, NULL)), 'ok', 'it is opened in the browser');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c3'), 'issued continue', 'which is signed in');
SELECT pg_temp.mailed('l2'), (SELECT outcome FROM postern.confirm_link(
    pg_temp.realm(), pg_temp.sub('ada@example.com'), pg_temp.h('token l2'), postern.match_number(pg_temp.b16('l2')),
    '192.0.2.1', NULL)) \g /dev/null
SELECT is(pg_temp.answer_of(postern.poll_link(
    pg_temp.caller('gt:authorization_code'), pg_temp.no_permits(), pg_temp.on_page('c4'), pg_temp.b16('l2'),
    NULL)), 'ok',
    'it is confirmed elsewhere');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c4'), 'issued continue', 'the browser that waits is signed in');
-- A passkey.
RESET ROLE;
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
VALUES (pg_temp.realm(), pg_temp.uu('pk'), pg_temp.sub('ada@example.com'), 'a.example', '\x01', '\x02', false, false);
SET LOCAL ROLE app_login;
SELECT is(pg_temp.answer_of(postern.redeem_passkey(
    pg_temp.caller('gt:authorization_code'), pg_temp.on_page('c5', 'passkey', amr => '{hwk,user,mfa}'),
    pg_temp.uu('pk'), 0, false)), 'ok', 'a passkey');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c5'), 'issued continue', 'signs the browser in');
SELECT is((SELECT email_proved_at FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c5'), 'a.example', NULL)),
          NULL, 'and proves no address');
SELECT is(pg_temp.exchange('code of c5', 's5'), 'ok', 'a client''s session is opened there');
SELECT is(pg_temp.sql($$SELECT b.factor = pg_temp.uu('pk') AND s.factor = b.factor FROM postern.browser_session AS b
    JOIN postern.session AS s ON s.browser_session = b.id WHERE s.id = pg_temp.uu('s5')$$), 'true', 'both note which passkey it was');
-- A new user: the names come after the proof.
SELECT is(pg_temp.ask('n1', 'New@example.com', '333333', pg_temp.client(), app => 'jit'), 'sent', 'a registration');
SELECT is(pg_temp.type_in('new@example.com', 'n1', '333333', 'c6', 'n1'), 'refused unknown', 'no account yet');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c6'), 'profile login', 'the page asks for names');
SELECT is(pg_temp.sub('new@example.com'), NULL, 'there is no user');
SELECT is(pg_temp.type_in('new@example.com', 'n1', '333333', 'c6', 'n1'), 'refused unknown', 'the code is spent');
CREATE FUNCTION pg_temp.register(handle text, cookie text, first text, client text DEFAULT 'app') RETURNS text
LANGUAGE sql AS $$
    SELECT pg_temp.answer_of(postern.register_on_page(
        pg_temp.caller('gt:authorization_code', client => pg_temp.client(client)),
        pg_temp.on_page(cookie, terms => true), pg_temp.b16(handle), first, NULL)) $$;
SELECT is(pg_temp.register('h1', 'c6', 'Eve'), 'refused expired', 'a handle without a proof makes no account');
SELECT is(pg_temp.register('n1', 'c6', 'Eve', 'second'), 'refused expired', 'nor does another client');
SELECT is(pg_temp.register('n1', 'c6', 'Eve'), 'ok', 'with the names it does');
SELECT is(pg_temp.said() || ' ' || pg_temp.answered('c6'), 'issued continue', 'and signs in');
SELECT is(pg_temp.register('n1', 'c7', 'Mallory'), 'refused expired', 'once');
SELECT is(pg_temp.sql($$SELECT email || ' ' || first_name || ' ' || email_verified FROM postern.user_account
                         WHERE address_key = 'new@example.com'$$), 'New@example.com Eve true', 'as it was asked for');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
                         WHERE user_id = pg_temp.sub('new@example.com')$$), 'user_registered,sign_in,terms_accepted',
          'all of it is audited');
-- The proof is older than the account of somebody else who has the address now: it opens nothing.
SELECT pg_temp.ask(h, h || '@example.com', '333333', pg_temp.client(), app => 'jit') FROM unnest('{taken,confirmed}'::text[]) AS h \g /dev/null
SELECT is(pg_temp.type_in(h || '@example.com', h, '333333', 'c6' || h, h) || ' ' || pg_temp.said(), 'refused unknown profile', 'an address is proven, names are due')
  FROM unnest('{taken,confirmed}'::text[]) AS h;
RESET ROLE;
SELECT admin.put_user('a', 'taken@example.com'), admin.put_user('a', 'confirmed@example.com', email_verified => false) \g /dev/null
SELECT is((SELECT proved_at FROM postern.sign_in_request WHERE id = pg_temp.b16('taken')), NULL, 'the proof ends when the address is an account''s');
UPDATE postern.sign_in_request SET proved_at = now() - interval '1 minute', expires_at = now() + interval '1 minute' WHERE id = pg_temp.b16('taken');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.register('taken', 'c6taken', 'Eve'), 'refused exists', 'and would sign in to none that was made meanwhile');
SELECT is(pg_temp.register('confirmed', 'c6confirmed', 'Eve'), 'ok', 'it confirms one that was never proven');
-- Terms that were accepted before the code was asked for.
SELECT is(pg_temp.ask('n3', 'Early@example.com', '555555', pg_temp.client(), kind => 'register', app => 'explicit'), 'sent',
          'a registration on a page of its own');
SELECT is(pg_temp.type_in('early@example.com', 'n3', '555555', 'c9', terms => true), 'ok', 'its code makes the account');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
                         WHERE user_id = pg_temp.sub('early@example.com') AND event <> 'registration_requested'$$),
          'user_registered,sign_in,terms_accepted', 'and the terms are audited with it');
-- Registration was closed in the meantime.
SELECT pg_temp.ask('n4', 'late@example.com', '666666', pg_temp.client(), app => 'jit'),
       pg_temp.ask('n5', 'later@example.com', '777777', pg_temp.client(), app => 'jit') \g /dev/null
SELECT is(pg_temp.type_in('later@example.com', 'n5', '777777', 'c11', 'n5') || ' ' || pg_temp.said(),
          'refused unknown profile', 'one was at the page of names');
SELECT pg_temp.sql($$UPDATE postern.app SET registration = 'Off' WHERE slug = 'jit' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.type_in('late@example.com', 'n4', '999999', 'c10') || ' ' || pg_temp.said(), 'refused wrong ',
          'a wrong code is told nothing');
SELECT is(pg_temp.type_in('late@example.com', 'n4', '666666', 'c10') || ' ' || pg_temp.said(),
          'refused disabled registration-closed', 'a right one is');
SELECT is(pg_temp.register('n5', 'c11', 'Eve') || ' ' || pg_temp.said(), 'refused registration closed registration-closed',
          'and so is who has given names');
SELECT is(pg_temp.sub('late@example.com')::text || pg_temp.sub('later@example.com'), NULL, 'no account was made');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.session$$), '2', 'pages opened no session of a client, but by their codes');
SELECT * FROM finish();
ROLLBACK;
