\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
-- A phone number that its account has not used for long: on a page its code waits for one more proof.
SELECT no_plan();
SELECT admin.set_phone_policy('a', '{AT,US}', 'AT'), admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/'),
       admin.set_code_policy('a', resend_cooldown => '0 seconds'), admin.put_app('a', 'jit', 'Jit', 'jit.a.example',
       registration => 'JitOnOtp'), admin.put_user('a', 'Ada@example.com', phone => '+4366412345678') \g /dev/null
CREATE FUNCTION pg_temp.on_page(cookie text, proves text, number text DEFAULT NULL, held text DEFAULT NULL)
RETURNS postern.page_sign_in LANGUAGE sql AS $$
    SELECT pg_temp.page(cookie, proves,
                        pg_temp.wanted('code of ' || cookie, '{"acr_values":["urn:postern:acr:phone"]}'),
                        number => number, held => held) $$;
CREATE FUNCTION pg_temp.text_me(handle text, code text, app text DEFAULT NULL, phone text DEFAULT '+4366412345678')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a record;
BEGIN
    SELECT * INTO a FROM postern.record_sent_request(
        pg_temp.caller(NULL, app => app), NULL, pg_temp.request(handle, phone, channel => 'sms', sends => 3), NULL);
    RETURN postern.decide_code(pg_temp.realm(), a.handle, pg_temp.uu(code || handle), pg_temp.b16('salt' || handle),
                               pg_temp.h(code), gen_random_uuid(), '\x01', 'otp');
END
$$;
CREATE FUNCTION pg_temp.type_in(address text, handle text, code text, page postern.page_sign_in,
                                permission text DEFAULT 'gt:authorization_code') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, reason, page_outcome) FROM postern.redeem_code(
        pg_temp.caller(permission), pg_temp.no_permits(),
        pg_temp.opens(pg_temp.uu(handle), refresh_hash => NULL, page => page), address, pg_temp.b16(handle),
        ARRAY[pg_temp.h(code)], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL) $$;
CREATE FUNCTION pg_temp.age() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '+4366412345678' $$;
CREATE FUNCTION pg_temp.holder() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT coalesce(u.email, 'nobody known') || CASE WHEN i.proved_at = now() THEN ', fresh' ELSE '' END
      FROM postern.user_identifier AS i JOIN postern.user_account AS u ON u.id = i.user_id
     WHERE i.value = '+4366412345678' $$;
SELECT pg_temp.age() \g /dev/null
SET LOCAL ROLE app_login;

SELECT is(pg_temp.text_me('h1', '111111'), 'sent', 'a code is sent, as ever');
SELECT is(pg_temp.type_in('+4366412345678', 'h1', '999999', pg_temp.on_page('c1', 'phone', 'h1')), 'refused wrong',
          'a wrong one is wrong');
SELECT is(pg_temp.type_in('+4366412345678', 'h1', '111111', NULL, 'gt:urn:cocoar:otp'),
          'refused disabled',
          'apart from pages the right one is refused');
SELECT is(pg_temp.type_in('+4366412345678', 'h1', '111111', pg_temp.on_page('c1', 'phone', 'h1')),
          'refused unknown second-proof', 'on a page it asks for one more proof');
SELECT is(pg_temp.answered('c1') || ', ' || pg_temp.holder(), 'login, Ada@example.com', 'and signs nobody in');
SELECT is(pg_temp.type_in('+4366412345678', 'h1', '111111', pg_temp.on_page('c1', 'phone', 'h1')), 'refused unknown',
          'it works once');
SELECT pg_temp.ask('e1', 'bob@example.com', '222222', pg_temp.client()) \g /dev/null
SELECT is(pg_temp.type_in('bob@example.com', 'e1', '222222', pg_temp.on_page('c2', 'email', held => 'h1')), 'ok acr',
          'the address of another account does not complete it');
SELECT is(pg_temp.holder(), 'Ada@example.com', 'nor touch the number');
SELECT pg_temp.ask('e2', 'ada@example.com', '333333', pg_temp.client()) \g /dev/null
SELECT is(pg_temp.type_in('ada@example.com', 'e2', '333333', pg_temp.on_page('c3', 'email', held => 'h1')), 'ok issued',
          'the address of the account does');
SELECT is(pg_temp.holder(), 'Ada@example.com, fresh', 'the number is proven again');
SELECT results_eq($$SELECT amr, phone_proved_at IS NOT NULL, email_proved_at IS NOT NULL
                      FROM postern.continue_browser_session(pg_temp.realm(), pg_temp.h('c3'), 'a.example', NULL)$$,
                  $$VALUES ('{otp,sms}'::text[], true, true)$$, 'the session knows both proofs');
SELECT pg_temp.age(), pg_temp.ask('e3', 'ada@example.com', '444444', pg_temp.client())
\g /dev/null
SELECT is(pg_temp.type_in('ada@example.com', 'e3', '444444', pg_temp.on_page('c4', 'email', held => 'h1')), 'ok acr',
          'the wait of a number ends once');

-- A new account takes the number.
CREATE FUNCTION pg_temp.register(handle text, cookie text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.answer_of(postern.register_on_page(
        pg_temp.caller('gt:authorization_code'),
        pg_temp.opens(pg_temp.uu(cookie), refresh_hash => NULL, amr => '{otp,sms}',
                      page => pg_temp.on_page(cookie, 'phone')), pg_temp.b16(handle), NULL, NULL)) $$;
SELECT pg_temp.text_me('h2', '555555') \g /dev/null
SELECT is(pg_temp.register('h2', 'c5'), 'refused expired', 'not before the code');
SELECT is(pg_temp.type_in('+4366412345678', 'h2', '555555', pg_temp.on_page('c5', 'phone', 'h2')),
          'refused unknown second-proof', 'where registration is closed');
SELECT is(pg_temp.register('h2', 'c5'), 'refused registration closed', 'a number makes no account');
SELECT is(pg_temp.said(), 'registration-closed', 'and the page can say why');
SELECT pg_temp.text_me('h3', '666666', 'jit') \g /dev/null
SELECT is(pg_temp.type_in('+4366412345678', 'h3', '666666', pg_temp.on_page('c6', 'phone', 'h3')),
          'refused unknown second-proof', 'where one may register it asks as well');
SELECT is(pg_temp.holder(), 'Ada@example.com', 'and moves nothing');
SELECT is(pg_temp.register('h3', 'c6'), 'ok', 'until the person wants a new account');
SELECT is(pg_temp.holder(), 'nobody known, fresh', 'which has the number then');
SELECT is(pg_temp.register('h3', 'c7'), 'refused expired', 'once');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY id) FROM postern.audit_event
                         WHERE event ~ 'moved|registered'$$), 'identifier_moved,user_registered', 'and it is audited');
-- The holder proves the number again, or signs out everywhere, before the other person decides.
SELECT pg_temp.age(), pg_temp.text_me('h5', '777777', 'jit') \g /dev/null
SELECT is(pg_temp.type_in('+4366412345678', 'h5', '777777', pg_temp.on_page('c9', 'phone', 'h5')), 'refused unknown second-proof', 'a number waits');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET proved_at = now() WHERE value = '+4366412345678' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.register('h5', 'c9'), 'refused exists', 'its holder has proven it since, and is not signed in to');
SELECT pg_temp.age(), pg_temp.text_me('h6', '888888', 'jit') \g /dev/null
SELECT is(pg_temp.type_in('+4366412345678', 'h6', '888888', pg_temp.on_page('c9', 'phone', 'h6')), 'refused unknown second-proof', 'a number waits');
RESET ROLE;
SELECT admin.sign_out_everywhere('a', '+4366412345678') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.register('h6', 'c9'), 'refused expired', 'its holder has signed out everywhere since');
-- An account that has TOTP alone beside its number is asked for TOTP.
RESET ROLE;
SELECT admin.put_user('a', phone => '+4366400000000') \g /dev/null
UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '+4366400000000';
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed)
SELECT pg_temp.realm(), postern.find_user(pg_temp.realm(), '+4366400000000'), pg_temp.uu('f'), pg_temp.uu('s'), 'epoch', '\x00';
UPDATE postern.user_account SET has_totp = true WHERE id = postern.find_user(pg_temp.realm(), '+4366400000000');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.text_me('h4', '777777', phone => '+4366400000000'), 'sent', 'a code');
SELECT is(pg_temp.type_in('+4366400000000', 'h4', '777777', pg_temp.on_page('c8', 'phone', 'h4')), 'second_factor',
          'TOTP is due');
-- A browser whose session has ended is known.
SELECT is((SELECT user_id FROM postern.browser_device(pg_temp.realm(), pg_temp.h('c3'), 'a.example')),
          pg_temp.sub('ada@example.com'), 'a live browser session names its user');
SELECT pg_temp.sql($$UPDATE postern.browser_session SET ended_at = now() WHERE cookie_hash = pg_temp.h('c3') RETURNING 1$$)
\g /dev/null
SELECT is((SELECT session FROM postern.browser_device(pg_temp.realm(), pg_temp.h('c3'), 'a.example')),
          pg_temp.uu('e2'), 'and so does an ended one');
SELECT is((SELECT session FROM postern.browser_device(pg_temp.realm(), pg_temp.h('c3'), 'b.example')), NULL, 'on its host');
SELECT * FROM finish();
ROLLBACK;
