\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.set_phone_policy('a', '{AT}'), admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/'),
       admin.set_code_policy('a', resend_cooldown => '0 seconds') \g /dev/null
SELECT pg_temp.sign_in('ada'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
CREATE FUNCTION pg_temp.who(address text DEFAULT 'ada@example.com') RETURNS uuid LANGUAGE sql STABLE
    SECURITY DEFINER AS $$ SELECT postern.find_user(pg_temp.realm(), address) $$;
CREATE FUNCTION pg_temp.begins(handle text, address text, code text, who text DEFAULT 'ada@example.com', resend boolean DEFAULT false)
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, sends_left) FROM postern.begin_identifier(
        pg_temp.caller(NULL), NULL, pg_temp.who(who),
        pg_temp.request(handle, address, channel => CASE WHEN address LIKE '+%' THEN 'sms' END, resend => resend,
                        sends => 3), pg_temp.b16('salt'), pg_temp.h(code), gen_random_uuid(), '\x01') $$;
CREATE FUNCTION pg_temp.adds(handle text, code text, who text DEFAULT 'ada@example.com', session text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
    SELECT outcome FROM postern.add_identifier(pg_temp.realm(), pg_temp.who(who),
        pg_temp.uu(coalesce(session, CASE who WHEN 'ada@example.com' THEN 'ada' ELSE 'bob' END)), pg_temp.b16(handle), ARRAY[pg_temp.h(code)], '192.0.2.1') $$;
CREATE FUNCTION pg_temp.has(who text DEFAULT 'ada@example.com') RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(CASE WHEN is_primary THEN '*' ELSE '' END || value, ' ' ORDER BY kind, added_at)
      FROM postern.user_identifier WHERE user_id = pg_temp.who(who) $$;
CREATE FUNCTION pg_temp.removes(value_ text, who text DEFAULT 'ada@example.com') RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT postern.remove_own_identifier(pg_temp.realm(), pg_temp.uu(CASE who WHEN 'bob@example.com' THEN 'bob' ELSE 'ada' END),
        (SELECT id FROM postern.user_identifier WHERE value = value_ AND realm_id = pg_temp.realm()), '192.0.2.1') $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begins('h1', '+4366412345678', '111111'), 'sent 2', 'a code is sent');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', channel, recipient, purpose), ',') FROM postern.message_outbox$$),
    'sms +4366412345678 identifier', 'to the number');
SELECT is(pg_temp.sql($$SELECT string_agg(priority::text, ',') FROM postern.message_outbox$$), '2',
    'which nobody has proven: it leaves after what members wait for');
SELECT is(pg_temp.redeem('+4366412345678', 'h1', '111111'), 'refused attempts', 'the code signs nobody in by its handle');
SELECT is(pg_temp.redeem('+4366412345678', NULL, '111111'), 'refused unknown', 'nor by number');
SELECT is(pg_temp.adds('h1', '999999'), 'refused', 'a wrong code');
SELECT is(pg_temp.adds('h1', '111111', 'bob@example.com'), 'refused', 'another user');
SELECT is(pg_temp.adds('h1', '111111'), 'added', 'the right one adds it');
SELECT is(pg_temp.adds('h1', '111111'), 'refused', 'once');
SELECT is(pg_temp.begins('again', '+4366412345678', '111111'), 'sent 2', 'a code for a number of his own');
SELECT is(pg_temp.sql($$SELECT string_agg(purpose || priority, ',' ORDER BY created_at DESC, purpose DESC)
                          FROM postern.message_outbox WHERE purpose <> 'notice'$$), 'sign-in0,identifier2', 'leaves with those of members');
SELECT is(pg_temp.has(), '*Ada@example.com *+4366412345678', 'proven');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient || ' ' || template || ' ' || (detail ? 'undo'), ',') FROM postern.message_outbox
    WHERE template LIKE 'identifier%'$$), 'Ada@example.com identifier-added true', 'the other address is told, with a way back');
SELECT is(pg_temp.begins('h2', 'bob@example.com', '222222'), 'sent 2', 'what another account holds gets a code as ever');
SELECT is(pg_temp.adds('h2', '000000'), 'refused', 'a wrong code tells nothing');
SELECT is(pg_temp.adds('h2', '222222'), 'in_use', 'the right one does');
SELECT is(pg_temp.begins('h3', 'a@x.example', '333333'), 'sent 2', 'the first');
SELECT is(pg_temp.begins('h3', 'a@x.example', '444444', resend => true), 'sent 1', 'second');
SELECT is(pg_temp.adds('h3', '333333'), 'refused', 'the former code is replaced');
SELECT is(pg_temp.begins('h3', 'a@x.example', '777777', 'bob@example.com', true), 'sent 2', 'another user sends by a handle of his own');
SELECT is(pg_temp.begins('h3', 'a@x.example', '555555', resend => true), 'sent 0', 'and third message');
SELECT is(pg_temp.begins('h3', 'a@x.example', '666666', resend => true), 'send_limit', 'no fourth');
SELECT is(pg_temp.adds('h3', '555555'), 'added', 'the last code works');
SELECT ok(postern.set_primary_identifier(pg_temp.realm(), pg_temp.uu('ada'),
    (SELECT id FROM postern.own_identifiers(pg_temp.realm(), pg_temp.who(), NULL) WHERE value = 'a@x.example')), 'made primary');
SELECT is(pg_temp.has(), 'Ada@example.com *a@x.example *+4366412345678', 'one is');
SELECT ok(NOT postern.set_primary_identifier(pg_temp.realm(), pg_temp.uu('bob'),
    (SELECT id FROM postern.own_identifiers(pg_temp.realm(), pg_temp.who(), NULL) WHERE value = 'a@x.example')), 'not by another user');
SELECT is(pg_temp.removes('Ada@example.com', 'bob@example.com'), 'unknown', 'nor removed');
SELECT is(pg_temp.removes('Ada@example.com'), 'removed', 'by its owner');
SELECT is(pg_temp.has('a@x.example'), '*a@x.example *+4366412345678', 'the rest stays');
SELECT ok(pg_temp.alive('ada'), 'and the session');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE kind = 'phone'; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.removes('a@x.example', 'a@x.example'), 'last_way_in', 'an old number is no way in');
SELECT is(pg_temp.removes('+4366412345678', 'a@x.example'), 'removed', 'it may go');
SELECT is(pg_temp.removes('a@x.example', 'a@x.example'), 'last_way_in', 'the last one stays');

-- Guessing costs the guesser.
CREATE FUNCTION pg_temp.guesses(first integer, last integer) RETURNS integer LANGUAGE sql AS $$
    SELECT count(*)::int FROM generate_series(first, last) AS n, LATERAL (SELECT pg_temp.begins('g' || n, 'v@x.example', '1', 'bob@example.com')) AS b,
        LATERAL (SELECT pg_temp.adds('g' || n, '2', 'bob@example.com')) AS a $$;
SELECT is(pg_temp.guesses(1, 99), 99, 'ninety-nine wrong codes');
SELECT pg_temp.begins('own', 'bob@example.com', '1', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.adds('own', '1', 'bob@example.com'), 'added', 'the guesser proves an address of his own');
SELECT is(pg_temp.guesses(100, 100), 1, 'which forgets none of them');
SELECT is(pg_temp.adds('g1', '1', 'bob@example.com'), 'refused', 'close this for the guesser');
SELECT is(pg_temp.ask('mine', 'v@x.example', '121212'), 'ignored', 'and nobody else');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.code_guard$$), '1', 'the address is not counted against');

-- A notice to a user without an address goes to the phone, and takes of the day's budget alone.
RESET ROLE;
SELECT set_config('test.eve', admin.put_user('a', phone => '+4366411111111')::text, true) \g /dev/null
DELETE FROM postern.rate_bucket;
SET LOCAL ROLE app_login;
SELECT lives_ok($$SELECT postern.queue_notice(pg_temp.realm(), current_setting('test.eve')::uuid, 'passkey-added')$$, 'a notice');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', channel, template, purpose), ',') FROM postern.message_outbox
    WHERE recipient = '+4366411111111'$$), 'sms passkey-added notice', 'goes to the phone');
SELECT is(pg_temp.sql($$SELECT string_agg(key, ',') FROM postern.rate_bucket WHERE key LIKE 'phone-otp%'$$), 'phone-otp|spend|all',
    'and takes of the budget alone');

-- The first address beside a number: the number is the one that can tell its owner.
RESET ROLE;
SELECT set_config('test.ivo', admin.put_user('a', phone => '+4366411111119')::text, true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT postern.prove_identifier(pg_temp.realm(), current_setting('test.ivo')::uuid, 'email', 'new@x.example') \g /dev/null
SELECT postern.queue_notice(pg_temp.realm(), current_setting('test.ivo')::uuid, 'identifier-added',
    jsonb_build_object('identifier', 'new@x.example')
    || postern.offer_undo(pg_temp.realm(), current_setting('test.ivo')::uuid, 'identifier', gen_random_uuid(), '', '192.0.2.1')) \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', channel, recipient, detail ? 'undo'), ',') FROM postern.message_outbox
    WHERE template = 'identifier-added' AND recipient IN ('+4366411111119', 'new@x.example')$$), 'sms +4366411111119 t',
    'the phone is told of the first address, with a way back');

-- Strangers have used up the budget of the day.
RESET ROLE;
SELECT admin.set_rate_limit('a', 'phone-otp', 'spend', 1, '1 day', 1) \g /dev/null
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.notices(who uuid, n int, OUT sent bigint, OUT unsent bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM postern.queue_notice(pg_temp.realm(), who, 'passkey-removed');
    sent := pg_temp.sql(format($q$SELECT count(*)::text FROM postern.message_outbox AS m, postern.user_identifier AS i
        WHERE m.template = 'passkey-removed' AND m.recipient = i.value AND i.user_id = %L$q$, who));
    unsent := pg_temp.sql(format($q$SELECT count(*)::text FROM postern.audit_event WHERE event = 'notice_unsent'
        AND detail ->> 'template' = 'passkey-removed' AND user_id = %L$q$, who));
END
$$;
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = now() + interval '1 day' - interval '1 s' WHERE key = 'phone-otp|spend|all'
    RETURNING ''$$) \g /dev/null
SELECT is((SELECT string_agg(s::text, ' ') FROM generate_series(1, 4) AS n, LATERAL pg_temp.notices(current_setting('test.eve')::uuid, n) AS s),
          '(1,0) (2,0) (3,0) (3,1)', 'an account is told all the same, three times a day; what is not sent is audited');
RESET ROLE;
SELECT set_config('test.others', string_agg(admin.put_user('a', phone => '+43664111112' || to_char(n, 'FM00'))::text, ','), true)
  FROM generate_series(1, 11) AS n \g /dev/null
SET LOCAL ROLE app_login;
SELECT is((SELECT sum(s.sent) FROM unnest(string_to_array(current_setting('test.others'), ',')::uuid[]) WITH ORDINALITY AS u (id, n),
                  LATERAL pg_temp.notices(u.id, u.n::int) AS s), 7::numeric, 'the reserve is a twentieth of the budget, ten units at least');

-- Undo.
CREATE FUNCTION pg_temp.undo(n text) RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.undo_factor(pg_temp.realm(), n::uuid, '192.0.2.9', NULL) $$;
SELECT pg_temp.sql($$UPDATE postern.device_guard SET locked_until = NULL, consecutive = 0; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.begins('u1', '+4366400000000', '1', 'bob@example.com'), 'sent 2', 'a thief');
SELECT is(pg_temp.adds('u1', '1', 'bob@example.com'), 'added', 'adds a number');
SELECT set_config('test.undo', pg_temp.sql($$SELECT detail ->> 'undo' FROM postern.message_outbox
    WHERE recipient = 'bob@example.com' AND template = 'identifier-added'$$), true) \g /dev/null
SELECT results_eq($$SELECT outcome, kind, label, source FROM postern.undo_page(pg_temp.realm(), current_setting('test.undo')::uuid, NULL)$$,
    $$VALUES ('shown', 'identifier', '+43···0000', '192.0.2.1')$$, 'the page says what and from where') FROM generate_series(1, 3);
SELECT ok(pg_temp.alive('bob'), 'looking changes nothing');
SELECT is((SELECT outcome FROM postern.undo_factor(pg_temp.other(), current_setting('test.undo')::uuid, '', NULL)), 'gone', 'not in another realm');
SELECT is(pg_temp.undo(current_setting('test.undo')), 'undone', 'undone');
SELECT is(pg_temp.has('bob@example.com'), '*bob@example.com', 'the number is gone');
SELECT ok(NOT pg_temp.alive('bob'), 'so is every session');
SELECT is(pg_temp.undo(current_setting('test.undo')), 'gone', 'once');
SELECT is(pg_temp.undo(gen_random_uuid()::text), 'gone', 'an unknown one');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'factor_undone'$$), '1', 'audited');
-- A link that has ended.
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('bob@example.com'), 'identifier-added', postern.offer_undo(
    pg_temp.realm(), pg_temp.who('bob@example.com'), 'identifier',
    (SELECT id FROM postern.own_identifiers(pg_temp.realm(), pg_temp.who('bob@example.com'), NULL)), 'x', NULL)) \g /dev/null
SELECT is(pg_temp.undo(pg_temp.sql($$UPDATE postern.undo_link SET expires_at = now() WHERE used_at IS NULL AND label = 'x' RETURNING id::text$$)), 'gone', 'has ended');
-- A thief adds an address and removes the owner's: the undo gives it back.
SELECT set_config('test.bob', pg_temp.who('bob@example.com')::text, true) \g /dev/null
SELECT pg_temp.sign_in('bob2', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.begins('u2', 'thief@x.example', '1', 'bob@example.com'), 'sent 2', 'a thief again');
SELECT is(pg_temp.adds('u2', '1', 'bob@example.com'), 'refused', 'whose session the undo has ended');
SELECT is(pg_temp.adds('u2', '1', 'bob@example.com', 'bob2'), 'added', 'adds an address');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET added_at = now() - interval '1 day', proved_at = now() - interval '1 day'
                      WHERE key = 'bob@example.com' RETURNING 1$$) \g /dev/null
SELECT is(postern.remove_own_identifier(pg_temp.realm(), pg_temp.uu('bob2'),
    (SELECT id FROM postern.own_identifiers(pg_temp.realm(), current_setting('test.bob')::uuid, NULL) WHERE value = 'bob@example.com'),
    '192.0.2.1'), 'removed', 'and removes the owner''s');
SELECT is(pg_temp.undo(pg_temp.sql($$SELECT id::text FROM postern.undo_link WHERE label LIKE 'thief%' AND sent_to = 'bob@example.com'$$)), 'undone', 'the owner undoes it');
SELECT results_eq($$SELECT value, is_primary, proved_at < date_part('epoch', now())
                      FROM postern.own_identifiers(pg_temp.realm(), current_setting('test.bob')::uuid, NULL)$$,
                  $$VALUES ('bob@example.com', true, true)$$, 'and has the address again, proven when it was');
SELECT finish();
ROLLBACK;
