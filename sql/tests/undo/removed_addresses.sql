\ir ../helpers/fixture.psql
SELECT no_plan();
-- Who may undo what after an address was removed. Ada has an old address; a newer one is added and the old one removed.
SELECT admin.set_phone_policy('a', '{AT}'), admin.put_channel('a', 'sms', 'main', 'webhook', 'https://sms.example/')
    \g /dev/null
SELECT set_config('test.ada', pg_temp.sub('ada@example.com')::text, true) \g /dev/null
CREATE FUNCTION pg_temp.ada() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.ada')::uuid $$;
CREATE FUNCTION pg_temp.id(address text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT id FROM postern.user_identifier WHERE realm_id = pg_temp.realm() AND key = address $$;
CREATE FUNCTION pg_temp.has() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(CASE WHEN is_primary THEN '*' ELSE '' END || key, ' ' ORDER BY added_at)
      FROM postern.user_identifier WHERE user_id = pg_temp.ada() $$;
-- An address of hers since some days; its addition told the others with a link.
CREATE FUNCTION pg_temp.adds(address text, days integer) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), CASE WHEN address LIKE '+%' THEN 'phone' ELSE 'email' END,
                                    address);
    UPDATE postern.user_identifier SET added_at = now() - make_interval(days => days),
           proved_at = now() - make_interval(days => days) WHERE realm_id = pg_temp.realm() AND key = address;
    SELECT postern.queue_notice(pg_temp.realm(), pg_temp.ada(), 'identifier-added',
        jsonb_build_object('identifier', postern.masked_identifier(address)) || postern.offer_undo(pg_temp.realm(),
            pg_temp.ada(), 'identifier', pg_temp.id(address), address, '192.0.2.1'));
    UPDATE postern.undo_link SET created_at = now() - make_interval(days => days) WHERE label = address $$;
-- Signs in by these methods, and the passkey or device that is named, and removes an address.
CREATE FUNCTION pg_temp.removes(address text, methods text[], by text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_session uuid := gen_random_uuid();
BEGIN
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, token_salt,
                                 scope, resource, amr, factor)
    SELECT u.realm_id, v_session, u.id, pg_temp.client(), 'app', u.security_stamp, now(), now() + interval '1 day',
           pg_temp.b16('s'), '{openid}', '{}', methods, pg_temp.uu(by)
      FROM postern.user_account AS u WHERE u.id = pg_temp.ada();
    RETURN postern.remove_own_identifier(pg_temp.realm(), v_session, pg_temp.id(address), '192.0.2.7');
END
$$;
-- The live links of a mailbox: what each undoes.
CREATE FUNCTION pg_temp.links(address text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(l.kind || ' ' || l.label, ', ' ORDER BY l.kind, l.label) FROM postern.undo_link AS l
     WHERE l.sent_to = address AND l.used_at IS NULL AND l.expires_at > now()
       AND postern.has_factor(l.realm_id, l.user_id, l.kind, l.target) $$;
CREATE FUNCTION pg_temp.uses(address text, which text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT outcome FROM postern.undo_factor(pg_temp.realm(), coalesce((SELECT l.id FROM postern.undo_link AS l
             WHERE l.sent_to = address AND l.kind || ' ' || l.label = which 
             ORDER BY l.used_at IS NULL AND postern.has_factor(l.realm_id, l.user_id, l.kind, l.target) DESC LIMIT 1), gen_random_uuid()), '192.0.2.9',
             NULL) $$;
-- As it was before a scenario.
CREATE FUNCTION pg_temp.begins(days integer DEFAULT 100) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com');
    SELECT postern.make_primary(pg_temp.realm(), pg_temp.ada(), 'email', pg_temp.id('ada@example.com'));
    SELECT postern.remove_identifier(pg_temp.realm(), i.id) FROM postern.user_identifier AS i
     WHERE i.user_id = pg_temp.ada() AND i.key <> 'ada@example.com';
    DELETE FROM postern.undo_link;
    DELETE FROM postern.removed_identifier;
    DELETE FROM postern.totp_factor;
    DELETE FROM postern.passkey;
    DELETE FROM postern.device_key;
    DELETE FROM postern.message_outbox;
    UPDATE postern.user_identifier SET added_at = now() - make_interval(days => days),
           proved_at = now() - make_interval(days => days) WHERE user_id = pg_temp.ada() $$;
CREATE FUNCTION pg_temp.enrols(days integer DEFAULT 0) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed, created_at)
    VALUES (pg_temp.realm(), pg_temp.ada(), pg_temp.uu('totp'), pg_temp.uu('x'), now(), '\x00',
            now() - make_interval(days => days));
    SELECT postern.queue_notice(pg_temp.realm(), pg_temp.ada(), 'totp-added',
        postern.offer_undo(pg_temp.realm(), pg_temp.ada(), 'totp', pg_temp.uu('totp'), 'app', '192.0.2.1')) $$;

CREATE FUNCTION pg_temp.adds_passkey(name text, days numeric) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state, created_at)
    VALUES (pg_temp.realm(), pg_temp.uu(name), pg_temp.ada(), 'a.example', pg_temp.h(name), '\x01', false, false,
            now() - days * interval '1 day') $$;
CREATE FUNCTION pg_temp.adds_device(name text, days numeric, probation interval DEFAULT NULL) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, user_id, client, added_at, probation_until)
    VALUES (pg_temp.realm(), pg_temp.uu(name), pg_temp.h(name), pg_temp.h('p') || pg_temp.h('p'), pg_temp.ada(), pg_temp.client(),
            now() - days * interval '1 day', now() + probation) $$;

-- A thief reads the mailbox that Ada gives up. She has signed in by more than a message, and by what she has for long:
-- every link that was sent there stops, and there is none to take the address back.
CREATE FUNCTION pg_temp.given_up(how text, methods text[], factor text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.adds_passkey('passkey', 8), pg_temp.adds_device('device', 8),
            pg_temp.enrols(CASE factor WHEN 'totp' THEN 8 ELSE 0 END);
    RETURN NEXT is(pg_temp.removes('ada@example.com', methods, factor), 'removed', how || ': the address is removed');
    RETURN NEXT is(pg_temp.links('ada@example.com'), NULL, how || ': no link is left there');
    RETURN NEXT is(pg_temp.uses('ada@example.com', 'totp app'), 'gone', how || ': not the one against the new factor');
    RETURN NEXT is(pg_temp.uses('ada@example.com', 'identifier new@example.com'), 'gone', how || ': nor against the new address');
    RETURN NEXT is(pg_temp.uses('new@example.com', 'totp app'), 'undone', how || ': the new address has its own');
    RETURN NEXT is(pg_temp.has(), '*new@example.com', how || ': which gives nothing back');
END
$$;
SELECT pg_temp.given_up('a second factor', '{otp,mfa}', 'totp');
SELECT pg_temp.given_up('a passkey', '{hwk,user,mfa}', 'passkey');
SELECT pg_temp.given_up('a trusted device', '{pop}', 'device');
SELECT pg_temp.given_up('an approval by one', '{pop,mca}', 'device');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient, ',' ORDER BY recipient) FROM postern.message_outbox
    WHERE template = 'identifier-removed'$$), 'Ada@example.com,new@example.com', 'both mailboxes are told');

-- A session that has proven an address alone may be a thief's: both mailboxes can undo.
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.enrols() \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'after a code by mail');
SELECT is(pg_temp.links('ada@example.com'), 'identifier new@example.com, removal Ada@example.com, totp app',
          'the removed address has its links still, and one to come back');
SELECT is(pg_temp.links('new@example.com'), 'removal Ada@example.com, totp app', 'so has the one that is left');
SELECT is(pg_temp.uses('ada@example.com', 'removal Ada@example.com'), 'restored', 'the older address comes back');
SELECT is(pg_temp.has(), '*ada@example.com new@example.com', 'as the primary one, and nothing older than its removal goes');
SELECT is(pg_temp.sql('SELECT count(*)::text FROM postern.totp_factor'), '1', 'nor the factor');
SELECT is(pg_temp.sql($$SELECT added_at = proved_at AND proved_at = now() - interval '100 days'
                            FROM postern.user_identifier WHERE id = pg_temp.id('ada@example.com')$$),
          'true', 'proven when it was');
SELECT is(pg_temp.links('new@example.com'), NULL, 'the newer address cannot undo that');
SELECT is(pg_temp.uses('ada@example.com', 'removal Ada@example.com'), 'gone', 'once');
SELECT is(pg_temp.uses('ada@example.com', 'identifier new@example.com'), 'undone', 'the older one removes the newer');
SELECT is(pg_temp.has(), '*ada@example.com', 'and is alone');
SELECT is(pg_temp.links('new@example.com'), NULL, 'which cannot come back');

-- The removed address is the newer one.
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1) \g /dev/null
SELECT is(pg_temp.removes('new@example.com', '{otp}'), 'removed', 'the newer one is removed');
SELECT is(pg_temp.uses('new@example.com', 'removal new@example.com'), 'restored', 'it takes itself back');
SELECT is(pg_temp.links('ada@example.com'), 'identifier new@example.com',
          'the older one is told, and can undo that');
SELECT is(pg_temp.uses('ada@example.com', 'identifier new@example.com'), 'undone', 'which it does');
SELECT is(pg_temp.has() || ' ' || coalesce(pg_temp.links('new@example.com'), 'none'), '*ada@example.com none', 'for good');

-- So is what Ada has added since: who reads the mailbox that she threw out cannot take that away.
SELECT pg_temp.begins(), pg_temp.adds('thief@example.com', 1), pg_temp.enrols() \g /dev/null
SELECT is(pg_temp.links('thief@example.com'), 'totp app', 'a thief''s address is told of a new factor');
SELECT is(pg_temp.removes('thief@example.com', '{otp}'), 'removed', 'its owner removes the address');
SELECT is(pg_temp.links('thief@example.com'), 'removal thief@example.com', 'it has no link left but to come back');
SELECT is(pg_temp.uses('thief@example.com', 'totp app'), 'gone', 'the factor stays');
SELECT is(pg_temp.uses('thief@example.com', 'removal thief@example.com'), 'restored', 'also when it comes back');
SELECT is(pg_temp.uses('thief@example.com', 'totp app'), 'gone', 'which gives it none of the old links');
SELECT is(pg_temp.uses('ada@example.com', 'identifier thief@example.com'), 'undone', 'the older one ends that');
SELECT is(pg_temp.has() || ' ' || pg_temp.sql('SELECT count(*)::text FROM postern.totp_factor'), '*ada@example.com 1',
          'for good, and the factor is there');

-- A thief adds an address and removes the owner's.
SELECT pg_temp.begins(), pg_temp.adds('thief@example.com', 0) \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.undo_link SET created_at = now() - interval '1 second' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'a thief removes the owner''s address');
SELECT is(pg_temp.uses('ada@example.com', 'identifier thief@example.com'), 'undone', 'the owner undoes the thief''s');
SELECT is(pg_temp.has() || ' ' || coalesce(pg_temp.links('thief@example.com'), 'none'), '*ada@example.com none', 'with all that it did');

-- A thief who reads the mailbox adds a factor, signs in by it, and removes the owner's address. The factor is younger
-- than the links against it: both mailboxes can undo.
CREATE FUNCTION pg_temp.thief(how text, methods text[], factor text, age numeric DEFAULT 0) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.begins(), pg_temp.adds('thief@example.com', 0);
    PERFORM pg_temp.adds_passkey('passkey', age) WHERE factor = 'passkey';
    PERFORM pg_temp.adds_device('device', age) WHERE factor = 'device';
    PERFORM pg_temp.enrols() WHERE factor = 'totp';
    -- The owner's own, which the thief has not.
    PERFORM pg_temp.adds_passkey('owner', 90) WHERE factor <> 'totp';
    PERFORM pg_temp.enrols(90) WHERE factor = 'passkey';
    PERFORM pg_temp.sql($u$UPDATE postern.undo_link SET created_at = now() - interval '1 second' RETURNING 1$u$);
    RETURN NEXT is(pg_temp.removes('ada@example.com', methods, factor), 'removed', how || ': a thief removes the address');
    RETURN NEXT matches(pg_temp.links('ada@example.com'), 'identifier thief@example.com.*removal Ada@example.com', how || ': which has its links');
    RETURN NEXT is(pg_temp.uses('ada@example.com', 'identifier thief@example.com'), 'undone', how || ': the owner undoes the thief''s');
    RETURN NEXT is(pg_temp.has() || ' ' || coalesce(pg_temp.links('thief@example.com'), 'none'), '*ada@example.com none', how || ': for good');
END
$$;
SELECT pg_temp.thief('a new passkey', '{otp,hwk,user,mfa}', 'passkey');
SELECT pg_temp.thief('a passkey of this week', '{hwk,user,mfa}', 'passkey', 6.9);
SELECT pg_temp.thief('a new second factor', '{otp,mfa}', 'totp');
SELECT pg_temp.thief('a new device', '{pop}', 'device');
SELECT pg_temp.thief('an approval by one', '{pop,mca}', 'device');
SELECT pg_temp.thief('a passkey that is gone', '{hwk,user,mfa}', 'device', 90);
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.adds_device('device', 9, '1 day') \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{pop}', 'device'), 'removed', 'by a device on probation');
SELECT matches(pg_temp.links('ada@example.com'), 'removal', 'there is a link, too');
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.adds_passkey('passkey', 3) \g /dev/null
SELECT is(pg_temp.removes('new@example.com', '{hwk,user,mfa}', 'passkey'), 'removed', 'an address that is younger than the passkey');
SELECT is(pg_temp.links('new@example.com'), NULL, 'cannot undo that passkey, and has no link');

-- A thief who removes the owner's address and adds it again does not make it younger than his own.
SELECT pg_temp.begins(), pg_temp.adds('thief@example.com', 0) \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.undo_link SET created_at = now() - interval '1 second' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'the owner''s address is removed');
SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com') \g /dev/null
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.ada(), 'identifier-added', postern.offer_undo(pg_temp.realm(),
           pg_temp.ada(), 'identifier', pg_temp.id('ada@example.com'), 'Ada@example.com', '192.0.2.1')) \g /dev/null
SELECT is(pg_temp.sql($$SELECT added_at = now() - interval '100 days' AND proved_at = added_at FROM postern.user_identifier
    WHERE id = pg_temp.id('ada@example.com')$$), 'true', 'and added again: as old as it was');
SELECT matches(pg_temp.links('ada@example.com'), 'identifier thief@example.com', 'with its links');
SELECT is(pg_temp.uses('thief@example.com', 'identifier Ada@example.com'), 'undone', 'the thief''s address undoes that');
SELECT matches(pg_temp.links('ada@example.com'), 'identifier thief@example.com.*removal Ada@example.com', 'and ends no link of the older one');
SELECT is(pg_temp.uses('ada@example.com', 'identifier thief@example.com'), 'undone', 'whose owner undoes the thief''s');
SELECT is(pg_temp.has() || ' ' || coalesce(pg_temp.links('thief@example.com'), 'none'), '*ada@example.com none', 'for good');
-- A number is as old as it was, and proven now.
SELECT pg_temp.begins(), pg_temp.adds('+4366412345678', 95) \g /dev/null
SELECT is(pg_temp.removes('+4366412345678', '{otp}'), 'removed', 'a number');
SELECT is(pg_temp.sql($$SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'phone', '+4366412345678') IS NOT NULL$$), 'true', 'comes back');
SELECT is(pg_temp.sql($$SELECT added_at = now() - interval '95 days' AND proved_at = now() FROM postern.user_identifier
    WHERE id = pg_temp.id('+4366412345678')$$), 'true', 'as old as it was, and proven now');
SELECT admin.delete_identifier('a', pg_temp.ada(), 'phone', '+4366412345678'),
       admin.put_identifier('a', pg_temp.ada(), 'phone', '+4366412345678') \g /dev/null
SELECT is(pg_temp.sql($$SELECT added_at = now() - interval '95 days' AND proved_at = now() FROM postern.user_identifier
    WHERE id = pg_temp.id('+4366412345678')$$), 'true', 'also when an administrator gives it back');
-- What was given up for good is new when it comes again, but from an administrator.
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.adds_passkey('passkey', 8),
       pg_temp.removes('ada@example.com', '{hwk,user,mfa}', 'passkey') \g /dev/null
SAVEPOINT given_up;
SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com') \g /dev/null
SELECT is(pg_temp.has(), '*new@example.com ada@example.com', 'an address that was given up is new when it comes again');
ROLLBACK TO given_up;
SELECT admin.put_identifier('a', pg_temp.ada(), 'email', 'Ada@example.com') \g /dev/null
SELECT is(pg_temp.has(), 'ada@example.com *new@example.com', 'an administrator gives it back as old as it was');

-- A number, and what the account has left.
SELECT pg_temp.begins(), pg_temp.adds('+4366412345678', 1) \g /dev/null
SELECT is(pg_temp.removes('+4366412345678', '{otp}'), 'removed', 'a number is removed');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient || ' ' || (detail ? 'undo'), ',' ORDER BY recipient) FROM postern.message_outbox
    WHERE template = 'identifier-removed'$$), '+4366412345678 true,Ada@example.com true', 'both are told, with a link each');

SELECT pg_temp.begins(), pg_temp.adds('+4366412345678', 1),
       postern.tell_of_removed_identifier(pg_temp.realm(), pg_temp.ada(), 'phone', '+4366412345678', true) \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(recipient || ' ' || (detail ? 'undo'), ',' ORDER BY recipient) FROM postern.message_outbox
    WHERE template = 'identifier-removed'$$), '+4366412345678 false,Ada@example.com false', 'without contest, without a link');

-- As long as the account can take it back no other account gets it: it is often a thief's, who reads the mailbox.
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.sign_in('bob', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'an address is removed');
SELECT isnt(pg_temp.links('ada@example.com'), NULL, 'which has links');
CREATE FUNCTION pg_temp.bob_adds(address text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_bob uuid := (SELECT s.user_id FROM postern.session AS s WHERE s.id = pg_temp.uu('bob'));
    v_handle bytea := sha256(gen_random_uuid()::text::bytea);
BEGIN
    PERFORM postern.begin_identifier(
        pg_temp.caller(NULL), NULL, v_bob, ROW(substr(v_handle, 1, 16), NULL, NULL, address, address, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, 600, 5), pg_temp.b16('salt'), pg_temp.h('1'), gen_random_uuid(), '\x01');
    RETURN (SELECT outcome FROM postern.add_identifier(pg_temp.realm(), v_bob, pg_temp.uu('bob'), substr(v_handle, 1, 16),
                                                       ARRAY[pg_temp.h('1')], '192.0.2.1'));
END
$$;
CREATE FUNCTION pg_temp.registers(address text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT CASE WHEN postern.register_user(pg_temp.realm(), pg_temp.client(), address, NULL, NULL, 'app', NULL, '192.0.2.1') IS NULL
                THEN 'refused' ELSE 'registered' END $$;
SELECT is(pg_temp.bob_adds('ada@example.com'), 'in_use', 'another account that proves it is told what it is told of an address in use');
SELECT is(pg_temp.registers('ada@example.com'), 'refused', 'no account is made of it');
SELECT is(postern.claim_user(pg_temp.realm(), 'ada@example.com', '192.0.2.1'), NULL, 'nor is one claimed by a link');
SELECT isnt(pg_temp.links('ada@example.com'), NULL, 'it keeps its links');
SAVEPOINT contested;
SELECT is(pg_temp.uses('ada@example.com', 'removal Ada@example.com'), 'restored', 'and takes itself back');
ROLLBACK TO contested;
-- Afterwards nothing that was sent to it serves its next holder, nor takes it from there.
SELECT pg_temp.sql($$UPDATE postern.removed_identifier SET removed_at = now() - interval '7 days' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.bob_adds('ada@example.com'), 'added', 'after the seven days it is');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.undo_link WHERE sent_to = 'ada@example.com'$$), '0', 'it has no link');
SELECT is(pg_temp.uses('new@example.com', 'removal Ada@example.com'), 'gone', 'and nobody takes it back');
SELECT is(pg_temp.sql($$SELECT string_agg(value || ' ' || is_contested, ',') FROM postern.removed_identifier WHERE user_id = pg_temp.ada()$$),
          'Ada@example.com false', 'it stays on record for the account that lost it');
SELECT pg_temp.sql($$UPDATE postern.user_identifier SET added_at = now() - interval '30 days' WHERE key = 'bob@example.com' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(what || ' ' || (id = pg_temp.ada()::text) || ' ' || detail || ' ' || done, ',')
    FROM admin.secure_user('a', 'ada@example.com', now() - interval '1 hour', dry_run => true) WHERE what = 'other-account'$$),
          'other-account true Ada@example.com false', 'an administrator who secures its new holder by it is told');
SELECT admin.delete_identifier('a', pg_temp.sub('bob@example.com'), 'email', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(what || ' ' || done, ',') FROM admin.secure_user('a', pg_temp.ada()::text, now() - interval '8 days',
    restore_addresses => true) WHERE what = 'removed-address'$$), 'removed-address true', 'and can give it back when it is free');
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.removes('ada@example.com', '{otp}') \g /dev/null
SELECT is(admin.put_user('a', 'ada@example.com') IS NULL, false, 'an administrator may give it to another account');
SELECT is(pg_temp.uses('new@example.com', 'removal Ada@example.com'), 'gone', 'then nobody takes it back');

-- An administrator's removal is final, and so is that of a number that passed to another person.
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com') \g /dev/null
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 2), pg_temp.adds('+4366412345678', 1) \g /dev/null
SELECT isnt(pg_temp.links('new@example.com'), NULL, 'an address with links');
SELECT admin.delete_identifier('a', pg_temp.ada(), 'email', 'new@example.com') \g /dev/null
SELECT is(pg_temp.links('new@example.com'), NULL, 'has none when an administrator has removed it');
SELECT is(pg_temp.sql($$SELECT string_agg(value || ' ' || is_contested, ',') FROM postern.removed_identifier
    WHERE user_id = pg_temp.ada()$$), 'new@example.com false', 'it is kept for the incident that comes to light later');
SELECT pg_temp.sql($$UPDATE postern.removed_identifier SET removed_at = now() - interval '31 days' RETURNING 1$$) \g /dev/null
SELECT lives_ok($$SELECT postern.sweep(1000)$$, 'and goes');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.removed_identifier$$), '0', 'after 30 days');
SELECT * FROM finish();
ROLLBACK;
