\ir ../helpers/fixture.psql
SELECT no_plan();
-- The account's owner.
CREATE FUNCTION pg_temp.who(address text DEFAULT 'ada@example.com') RETURNS uuid LANGUAGE sql STABLE
    SECURITY DEFINER AS $$
    SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm() AND address_key = address $$;
CREATE FUNCTION pg_temp.deleted(name text, address text DEFAULT 'ada@example.com', r uuid DEFAULT pg_temp.realm())
    RETURNS text LANGUAGE sql AS $$
    SELECT postern.delete_own_account(r, pg_temp.who(address), pg_temp.uu(name), 600, '192.0.2.1') $$;
CREATE FUNCTION pg_temp.mails() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(template || ' ' || recipient, ', ' ORDER BY created_at, template, recipient)
      FROM postern.message_outbox $$;
SELECT pg_temp.sign_in('s1'), pg_temp.sign_in('s2'), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
SELECT realm_id, id, 'a.example', '\x01', '\x01', false, false FROM postern.user_account WHERE id = pg_temp.who();
SET LOCAL ROLE app_login;
SELECT results_eq($$SELECT email, email_verified, first_name, last_name, has_totp, passkeys, sessions
                  FROM postern.own_account(pg_temp.realm(), pg_temp.who())$$,
    $$VALUES ('Ada@example.com', true, NULL::text, NULL::text, false, 1, 2)$$, 'own data');
SELECT is_empty($$SELECT * FROM postern.own_account(pg_temp.other(), pg_temp.who())$$, 'not in another realm');
SELECT ok(postern.set_own_names(pg_temp.realm(), pg_temp.who(), pg_temp.uu('s1'), true, 'Ada', true, 'King', 's'),
          'names are set');
SELECT ok(postern.set_own_names(pg_temp.realm(), pg_temp.who(), pg_temp.uu('s1'), false, NULL, true, NULL, 's'),
          'one is removed');
SELECT results_eq($$SELECT first_name, last_name FROM postern.own_account(pg_temp.realm(), pg_temp.who())$$,
                  $$VALUES ('Ada', NULL::text)$$, 'and the other left');
SELECT ok(NOT postern.set_own_names(pg_temp.other(), pg_temp.who(), pg_temp.uu('s1'), true, 'Eve', true, 'Eve', 's'),
          'nothing in another realm');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'names_changed'
                      AND detail IS NULL$$), '2', 'audited without the names');

-- Deletion.
SELECT is(pg_temp.deleted('bob'), 'signed_out', 'nobody deletes another account');
SELECT is(pg_temp.deleted('s1', r => pg_temp.other()), 'signed_out', 'nor through another realm');
SELECT is(pg_temp.sql($$UPDATE postern.session SET auth_time = now() - interval '601 s' WHERE id = pg_temp.uu('s2')
                      RETURNING 1$$), '1', 'with an old sign-in');
SELECT is(pg_temp.deleted('s2'), 'step_up', 'a newer one is asked for');
SELECT is(pg_temp.sql($$UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('s2') RETURNING 1$$), '1',
          'with one that ended');
SELECT is(pg_temp.deleted('s2'), 'signed_out', 'nothing');
SELECT ok(pg_temp.alive('s1'), 'the account is whole');
SELECT is(pg_temp.ask('h', 'ada@example.com', '123456'), 'sent', 'a code is on its way');
SELECT is(pg_temp.deleted('s1'), 'deleted', 'a fresh one deletes');
SELECT ok(NOT pg_temp.alive('s1') AND pg_temp.rotate('s1', 0) = 'refused unknown', 'every token is dead');
SELECT is(pg_temp.sql($$SELECT (SELECT count(*) FROM postern.user_account WHERE realm_id = pg_temp.realm()) || ' '
                      || (SELECT count(*) FROM postern.passkey) || ' '
    || (SELECT count(*) FROM postern.session) || ' ' || (SELECT count(*) FROM postern.login_code)$$), '1 0 1 0',
        'user, passkeys, sessions and codes are gone; others are not');
SELECT is(pg_temp.mails(), 'account-deleted Ada@example.com', 'one mail says so');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'account_deleted'
                      AND user_id IS NOT NULL AND session_id = pg_temp.uu('s1')$$), '1', 'it is audited');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event AS a WHERE a::text ILIKE '%ada@%'$$), '0',
          'without the address');
SELECT is(pg_temp.deleted('s1', 'bob@example.com'), 'signed_out', 'once');

-- A test identity is emptied.
RESET ROLE;
SELECT admin.put_test_identity('a', 'review@example.com', 'app', '4183052972') \g /dev/null
SELECT pg_temp.sign_in('review', 'review@example.com') \g /dev/null
SELECT postern.store_test_code(
           pg_temp.realm(), pg_temp.who('review@example.com'), '4183052972', pg_temp.b16('x'),
           pg_temp.h('4183052972'), NULL) \g /dev/null
UPDATE postern.user_account SET first_name = 'Rita' WHERE address_key = 'review@example.com';
SET LOCAL ROLE app_login;
SELECT is(pg_temp.deleted('review', 'review@example.com'), 'deleted', 'a test identity deletes its account');
SELECT ok(NOT pg_temp.alive('review'), 'its sessions end');
SELECT is(pg_temp.mails(), 'account-deleted Ada@example.com', 'nothing is mailed');
SELECT results_eq($$SELECT first_name FROM postern.own_account(pg_temp.realm(), pg_temp.who('review@example.com'))$$,
                  $$VALUES (NULL::text)$$, 'its names are gone');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.login_code WHERE is_test$$), '1', 'its code works again');
RESET ROLE;

-- The administrator.
SELECT pg_temp.sign_in('b2', 'bob@example.com') \g /dev/null
CREATE FUNCTION pg_temp.latest() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', event, detail, source LIKE 'sql:%') FROM postern.audit_event ORDER BY id DESC LIMIT 1 $$;
SELECT ok(admin.end_session('a', pg_temp.uu('bob')), 'one session is ended');
SELECT ok(NOT pg_temp.alive('bob') AND pg_temp.alive('b2'), 'that one');
SELECT is(pg_temp.latest(), 'session_revoked {"reason": "administrator"} t', 'audited');
SELECT ok(NOT admin.end_session('a', pg_temp.uu('bob')), 'once');
SELECT is(pg_temp.refusal($$SELECT admin.end_session('b', pg_temp.uu('b2'))$$),
          format('22023 id "%s" is not a session of this realm | SELECT id FROM admin.sessions WHERE realm = … AND '
                 'email = … lists them.', pg_temp.uu('b2')), 'not through another realm');
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
SELECT realm_id, pg_temp.uu('p'), id, 'a.example', '\x02', '\x01', false, false FROM postern.user_account
 WHERE id = pg_temp.who('bob@example.com');
SELECT matches(pg_temp.refusal($$SELECT admin.delete_passkey('b', pg_temp.uu('p'))$$), 'is not a passkey of this realm',
               'a passkey of another realm is none');
SELECT lives_ok($$SELECT admin.delete_passkey('a', pg_temp.uu('p'))$$, 'a passkey is deleted');
SELECT is_empty('SELECT id FROM admin.passkeys', 'it is gone');
SELECT is(pg_temp.mails(), 'account-deleted Ada@example.com, passkey-removed bob@example.com', 'its owner is told');
INSERT INTO postern.code_guard (realm_id, address_key, consecutive, locked_until)
VALUES (pg_temp.realm(), 'bob@example.com', 100, now() + interval '1 day');
SELECT ok((SELECT codes_locked_until > now() FROM admin.users WHERE email = 'bob@example.com'), 'closed codes');
SELECT ok(admin.unlock_codes('a', 'Bob@example.com'), 'are opened');
SELECT is((SELECT codes_locked_until FROM admin.users WHERE email = 'bob@example.com'), NULL, 'at once');
SELECT is(pg_temp.latest(), 'codes_unlocked {"locked": true} t', 'audited');
SELECT ok(NOT admin.unlock_codes('a', 'bob@example.com'), 'once');
SELECT matches(pg_temp.refusal($$SELECT admin.unlock_codes('a', 'nobody@example.com')$$),
               '^22023 email "nobody@example.com" is not a user of this realm', 'an unknown address is said');

-- put_user: id.
SELECT is(admin.put_user('a', 'carl@example.com', id => '00000000-0000-4000-8000-000000000001'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'an import keeps sub');
SELECT is(admin.put_user('a', 'Carl@example.com', 'Carl', id => '00000000-0000-4000-8000-000000000001'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'and can be run again');
SELECT is(pg_temp.refusal($$SELECT admin.put_user('a', 'carl@example.com',
                                                  id => '00000000-0000-4000-8000-000000000002')$$),
    '22023 id "00000000-0000-4000-8000-000000000002" is not that of the user "carl@example.com" | id counts only when '
    'a user is created, and stays: leave it out, or delete the user first.', 'an id never changes');
SELECT is(pg_temp.refusal($$SELECT admin.put_user('a', 'dora@example.com',
                                                  id => '00000000-0000-4000-8000-000000000001')$$),
    '22023 id "00000000-0000-4000-8000-000000000001" is that of the user "carl@example.com" | An id belongs to one '
    'user. To change the address of that user, put it by its present address with new_email.',
        'and belongs to one user');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a', 'dora@example.com',
                                                       id => '00000000-0000-8000-8000-000000000001')$$),
                                                           '^22023 id .* is a UUID of version 8 \| Version 8 marks '
                                                           'test identities', 'nobody is made a test identity by it');
SELECT is(admin.put_user('b', 'carl@example.com', id => '00000000-0000-4000-8000-000000000001'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'another realm has its own ids');

-- put_user: new_email.
SELECT pg_temp.sign_in('carl', 'carl@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('old', 'carl@example.com', '111111') || pg_temp.ask('new', 'carl@new.example', '222222'),
          'sentignored', 'a code for the old address');
RESET ROLE;
DELETE FROM postern.message_outbox;
SELECT is(pg_temp.refusal($$SELECT admin.put_user('a', 'carl@example.com', new_email => 'BOB@example.com')$$),
    '22023 new_email "BOB@example.com" is the address of another user | An address belongs to one user of a realm: '
    'choose another, or delete that user first.', 'an address belongs to one user');
SELECT ok(pg_temp.alive('carl'), 'and a refusal changes nothing');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a', 'carl@example.com', new_email => 'carl')$$),
               '^22023 new_email "carl" is not an address', 'it is an address');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a', 'dora@example.com', new_email => 'dora@new.example')$$),
               '^22023 email "dora@example.com" is not a user', 'of a user');
SELECT is(admin.put_user('a', 'carl@example.com', new_email => 'Carl@new.example'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'an address is changed');
SELECT results_eq($$SELECT email, email_verified, first_name FROM admin.users
                  WHERE id = '00000000-0000-4000-8000-000000000001' AND realm = 'a'$$, $$
                      VALUES ('Carl@new.example', false, 'Carl')$$, 'unverified, the rest as it was');
SELECT is(pg_temp.mails(), 'address-changed Carl@new.example, address-changed carl@example.com',
          'both mailboxes are told');
SELECT is((SELECT count(*)::int FROM postern.login_code WHERE NOT is_test) + (SELECT count(*)::int
    FROM postern.sign_in_request WHERE address_key LIKE 'carl%'), 0, 'codes of both addresses are gone');
SELECT ok(NOT pg_temp.alive('carl') AND pg_temp.rotate('carl', 0) = 'refused revoked', 'sessions have ended');
SELECT is((SELECT count(*)::int FROM postern.audit_event WHERE event = 'address_changed'
           AND NOT detail::text LIKE '%carl%'), 1, 'it is audited without the addresses');
SELECT is(admin.put_user('a', 'carl@example.com', new_email => 'carl@new.example'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'the same call again');
SELECT results_eq($$SELECT email, email_verified FROM admin.users WHERE id = '00000000-0000-4000-8000-000000000001'
                  AND realm = 'a'$$, $$VALUES ('carl@new.example', false)$$, 'changes a spelling at most');
SELECT is(pg_temp.mails(), 'address-changed Carl@new.example, address-changed carl@example.com',
          'of which nobody is told');
SELECT is(admin.put_user('a', 'carl@new.example', email_verified => true, new_email => 'carl@third.example'),
          '00000000-0000-4000-8000-000000000001'::uuid, 'an administrator who knows');
SELECT results_eq($$SELECT email, email_verified FROM admin.users WHERE id = '00000000-0000-4000-8000-000000000001'
                  AND realm = 'a'$$, $$VALUES ('carl@third.example', true)$$, 'may say that it is verified');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a', 'review@example.com',
                                                       new_email => 'carl@fourth.example')$$),
                                                           '^22023 email "review@example.com" is a test identity',
                                                               'a test identity keeps its address');

-- What another primary domain leaves behind.
CREATE FUNCTION pg_temp.effects() RETURNS jsonb LANGUAGE sql AS $$
    SELECT detail FROM postern.audit_event WHERE event = 'realm_updated' ORDER BY id DESC LIMIT 1 $$;
INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
SELECT realm_id, id, 'a.example', sha256(uuid_send(id)), '\x01', false, false FROM postern.user_account
 WHERE realm_id = pg_temp.realm();
SELECT lives_ok($$SELECT admin.put_realm('a', display_name => 'A')$$, 'what concerns neither');
SELECT ok(NOT pg_temp.effects() ?| ARRAY['passkeys_of_it', 'former_issuer'], 'says nothing');
SELECT lives_ok($$SELECT admin.put_realm('a', 'new.example')$$, 'another primary domain');
SELECT is(pg_temp.effects() - ARRAY['primary_domain', 'sessions'],
          '{"former_primary_domain": "a.example", "passkeys_of_it": 3, "former_issuer": "https://a.example"}',
              'is recorded with what it left behind');
SELECT is((pg_temp.effects() -> 'sessions')::int,
          (SELECT count(*)::int FROM postern.session WHERE realm_id = pg_temp.realm() AND revoked_at IS NULL),
              'and for how many sessions');
SELECT lives_ok($$SELECT admin.put_realm('a', 'third.example', public_origin => 'https://new.example')$$,
                'with the issuer kept');
SELECT is(pg_temp.effects() -> 'former_issuer', NULL, 'no token is left behind');
SELECT lives_ok($$SELECT admin.put_client('a', 'app', rp_id => 'third.example'),
                admin.put_client('a', 'second', rp_id => 'third.example')$$, 'with the RP-ID of every client');
SELECT lives_ok($$SELECT admin.put_realm('a', 'fourth.example')$$, 'a further one');
SELECT is(pg_temp.effects() -> 'passkeys_of_it', NULL, 'leaves no passkey behind');
-- docs/security.md: how to give somebody one thing in one realm.
CREATE ROLE olga;
CREATE SCHEMA support AUTHORIZATION admin_login;
GRANT USAGE ON SCHEMA support TO olga;
SET LOCAL ROLE admin_login;
CREATE FUNCTION support.sign_out(email text) RETURNS integer LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog,
    pg_temp
    RETURN admin.sign_out_everywhere('a', email);
REVOKE ALL ON FUNCTION support.sign_out(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION support.sign_out(text) TO olga;
SET LOCAL ROLE olga;
SELECT is(support.sign_out('bob@example.com'), 1, 'whoever may call it signs people of that realm out');
SELECT throws_ok($$SELECT admin.sign_out_everywhere('a', 'bob@example.com')$$, '42501', NULL, 'and nothing else');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
