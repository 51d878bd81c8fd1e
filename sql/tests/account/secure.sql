\ir ../helpers/fixture.psql
SELECT no_plan();
-- Ada's account: what was hers before an incident, and what came with the thief. Since when: an hour ago.
\ir ../helpers/approvals.psql
\ir ../helpers/browsers.psql
SELECT admin.set_phone_policy('a', '{AT}'), admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/'),
       admin.put_identifier('a', pg_temp.sub('ada@example.com'), 'phone', '+4366411111111'),
       admin.put_identifier('a', pg_temp.sub('ada@example.com'), 'email', 'second@example.com') \g /dev/null
SELECT set_config('test.ada', pg_temp.sub('ada@example.com')::text, true) \g /dev/null
CREATE FUNCTION pg_temp.ada() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.ada')::uuid $$;
CREATE FUNCTION pg_temp.key_of_phone(name text, number text, age interval) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, phone, phone_at, phone_by, phone_client)
    VALUES (pg_temp.realm(), pg_temp.uu(name), pg_temp.h(name), pg_temp.h('p') || pg_temp.h('p'), number, clock_timestamp() - age,
            'code', pg_temp.client()) $$;
CREATE FUNCTION pg_temp.adds_factors(whose text, age interval) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state,
                                 display_name, created_at)
    VALUES (pg_temp.realm(), pg_temp.uu(whose || ' passkey'), pg_temp.ada(), 'a.example', pg_temp.h(whose), '\x01', false,
            false, whose, now() - age);
    INSERT INTO postern.consent (realm_id, user_id, client, given_at, scope, resource)
    VALUES (pg_temp.realm(), pg_temp.ada(), pg_temp.client(CASE whose WHEN 'owner' THEN 'app' ELSE 'second' END), now() - age,
            '{openid}', '{}');
    INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, user_id, client, added_at, display_name)
    VALUES (pg_temp.realm(), pg_temp.uu(whose || ' device'), pg_temp.h(whose || ' device'), pg_temp.h('p') || pg_temp.h('p'),
            pg_temp.ada(), pg_temp.client(), now() - age, whose) $$;
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET added_at = now() - interval '30 days' WHERE user_id = pg_temp.ada() RETURNING 1$$),
       pg_temp.adds_factors('owner', '20 days'), pg_temp.key_of_phone('owner key', '+4366411111111', '10 days') \g /dev/null
-- The thief.
SELECT pg_temp.sign_in('thief'), pg_temp.adds_factors('thief', '10 minutes'),
       pg_temp.key_of_phone('thief key', '+4366411111111', '5 minutes'),
       pg_temp.sql($$INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed, created_at)
           SELECT pg_temp.realm(), pg_temp.ada(), pg_temp.uu('totp'), pg_temp.uu('thief'), now(), '\x00', now() - interval '9 minutes'
           RETURNING 1$$),
       postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'thief@example.com'),
       postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'phone', '+4366499999999'),
       pg_temp.key_of_phone('thief own key', '+4366499999999', '1 minute'),
       postern.remove_own_identifier(pg_temp.realm(), pg_temp.uu('thief'), i.id, NULL)
  FROM postern.user_identifier AS i WHERE i.realm_id = pg_temp.realm() AND i.key = 'second@example.com' \g /dev/null
SELECT pg_temp.ask('h', 'ada@example.com', '1'), pg_temp.browse('jar', request => pg_temp.wanted('code')),
       pg_temp.asks('approval', 'ada@example.com') \g /dev/null
SELECT pg_temp.sql($$DELETE FROM postern.message_outbox RETURNING 1$$) \g /dev/null
CREATE FUNCTION pg_temp.secured(since interval, restore boolean DEFAULT NULL, dry boolean DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(x.what || ' ' || x.n || ' ' || x.done, ', ' ORDER BY x.what, x.done) FROM (
        SELECT what, done, count(*) AS n FROM admin.secure_user('a', pg_temp.ada()::text, now() - since, restore, dry) GROUP BY 1, 2) AS x $$;
CREATE FUNCTION pg_temp.state() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT concat_ws(' | ',
        (SELECT string_agg(display_name, ',' ORDER BY 1) FROM postern.passkey WHERE user_id = pg_temp.ada()),
        (SELECT count(*) FROM postern.totp_factor WHERE user_id = pg_temp.ada()),
        (SELECT string_agg(n, ',' ORDER BY n) FROM unnest('{owner device,thief device,owner key,thief key,thief own key}'::text[]) AS n
          JOIN postern.device_key AS k ON k.id = pg_temp.uu(n)),
        (SELECT string_agg(key, ',' ORDER BY key) FROM postern.user_identifier WHERE user_id = pg_temp.ada()),
        (SELECT count(*) FROM postern.consent WHERE user_id = pg_temp.ada())) $$;

SELECT is(pg_temp.refusal($$SELECT admin.secure_user('a', 'ada@example.com', NULL)$$),
    '22023 since NULL is not a moment of the past | Give the moment from which on a thief may have had access. What was added then or later is removed.', 'NULL');
SELECT matches(pg_temp.refusal($$SELECT admin.secure_user('a', 'ada@example.com', now() + interval '1 hour')$$), '^22023 since .* is not a moment', 'the future');
SELECT matches(pg_temp.refusal($$SELECT admin.secure_user('a', 'nobody@example.com', now())$$), '^22023 email "nobody@example.com" is not a user', 'unknown');
SELECT matches(pg_temp.refusal($$SELECT admin.secure_user('a', 'ada@example.com', now() - interval '60 days')$$),
    '^22023 since .* leaves no address of the account \| Give a later since.*set_user_enabled', 'nobody could sign in');
SELECT set_config('test.before', pg_temp.state(), true) \g /dev/null
SELECT is(pg_temp.secured('1 hour', dry => true),
    'address 2 false, approval 1 false, authorization-code 1 false, browser-session 1 false, code 1 false, consent 1 false, '
    'device 1 false, handle 1 false, passkey 1 false, phone-key 2 false, removed-address 1 false, second-factor 1 false, '
    'session 1 false, undo-link 3 false', 'a dry run lists everything');
SELECT ok(pg_temp.alive('thief') AND pg_temp.state() = current_setting('test.before')
          AND pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'user_secured'$$) = '0', 'and does nothing');
SELECT is(pg_temp.secured('1 hour'),
    'address 2 true, approval 1 true, authorization-code 1 true, browser-session 1 true, code 1 true, consent 1 true, '
    'device 1 true, handle 1 true, passkey 1 true, phone-key 2 true, removed-address 1 false, second-factor 1 true, '
    'session 1 true, undo-link 3 true', 'then it is done, but for the address that was not asked back');
SELECT is(pg_temp.state(), 'owner | 0 | owner device,owner key | +4366411111111,ada@example.com | 1', 'what is older stays');
SELECT ok(NOT pg_temp.alive('thief'), 'no session lives');
SELECT matches(pg_temp.redeem('ada@example.com', 'h', '1'), '^refused', 'no code');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient || ' ' || template || ' ' || detail, ',') FROM postern.message_outbox$$),
    'Ada@example.com account-secured {}', 'one notice, without a link');
SELECT is(pg_temp.sql($$SELECT string_agg(event, ',' ORDER BY event) FROM (SELECT DISTINCT event FROM postern.audit_event
    WHERE source LIKE 'sql:%' AND user_id = pg_temp.ada() AND event NOT IN ('identifier_added', 'user_created')) AS x$$),
    'consent_revoked,device_removed,identifier_removed,passkey_deleted,totp_removed,user_secured,user_signed_out', 'and events as ever');
SELECT is(pg_temp.sql($$SELECT detail - 'since' FROM postern.audit_event WHERE event = 'user_secured'$$),
    '{"code": 1, "device": 1, "handle": 1, "address": 2, "consent": 1, "passkey": 1, "session": 1, "approval": 1, "phone-key": 2, '
    '"undo-link": 3, "second-factor": 1, "browser-session": 1, "authorization-code": 1}', 'the log counts');
SELECT is(postern.knows_device(pg_temp.realm(), pg_temp.ada(), pg_temp.uu('thief')), false, 'the thief''s device is unknown');
SELECT is(postern.knows_device(pg_temp.realm(), pg_temp.ada(), (
    SELECT session FROM postern.browser_device(pg_temp.realm(), pg_temp.h('jar'), 'a.example'))), false, 'so is the browser');

-- Again: only what is new.
SELECT is(pg_temp.secured('1 hour'), 'removed-address 1 false', 'nothing is left to do');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.message_outbox$$) || pg_temp.sql(
    $$SELECT count(*)::text FROM postern.audit_event WHERE event = 'user_secured'$$), '11', 'nobody is told of nothing');
SELECT pg_temp.sign_in('later') \g /dev/null
SELECT is(pg_temp.secured('1 hour', restore => true), 'removed-address 1 true, session 1 true', 'the address comes back');
SELECT is(pg_temp.sql($$SELECT string_agg(key || ' ' || (proved_at < now()), ',' ORDER BY key) FROM postern.user_identifier
    WHERE user_id = pg_temp.ada() AND kind = 'email'$$), 'ada@example.com false,second@example.com false', 'as proven');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient, ',' ORDER BY recipient) FROM postern.message_outbox WHERE template = 'account-secured'$$),
    'Ada@example.com,Ada@example.com,second@example.com', 'and is told');

-- An address that another person has proven meanwhile stays there.
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET added_at = now() - interval '30 days' WHERE user_id = pg_temp.ada() RETURNING 1$$),
       pg_temp.sign_in('thief2') \g /dev/null
SELECT postern.remove_own_identifier(pg_temp.realm(), pg_temp.uu('thief2'), i.id, NULL)
  FROM postern.user_identifier AS i WHERE i.realm_id = pg_temp.realm() AND i.key = 'second@example.com' \g /dev/null
SELECT admin.put_user('a', 'second@example.com') \g /dev/null
SELECT is(pg_temp.secured('1 hour', restore => true), 'removed-address 1 false, session 1 true, undo-link 1 true', 'it is listed, and not given back');
SELECT is((SELECT count(*)::int FROM postern.user_identifier AS i WHERE i.key = 'second@example.com' AND i.user_id <> pg_temp.ada()), 1, 'and its holder keeps it');

-- All addresses are the thief's, who removed the owner's: one call with restore_addresses mends it.
SELECT pg_temp.sign_in('thief3'), postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'thief@example.com') \g /dev/null
SELECT postern.remove_own_identifier(pg_temp.realm(), pg_temp.uu('thief3'), i.id, NULL)
  FROM postern.user_identifier AS i WHERE i.user_id = pg_temp.ada() AND i.key <> 'thief@example.com' \g /dev/null
SELECT matches(pg_temp.refusal(format($$SELECT admin.secure_user('a', '%s', now() - interval '1 hour')$$, pg_temp.ada())), 'leaves no address', 'without it nobody could sign in');
SELECT matches(pg_temp.secured('1 hour', restore => true), 'address 1 true.*removed-address 2 true', 'with it');
SELECT is(pg_temp.sql($$SELECT string_agg(CASE WHEN is_primary THEN '*' ELSE '' END || key, ',' ORDER BY key) FROM postern.user_identifier
    WHERE user_id = pg_temp.ada()$$), '*+4366411111111,*ada@example.com', 'the account is the owner''s');
SELECT * FROM finish();
ROLLBACK;
