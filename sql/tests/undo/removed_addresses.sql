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
-- Signs in by these methods and removes an address.
CREATE FUNCTION pg_temp.removes(address text, methods text[], by_device uuid DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_session uuid := gen_random_uuid();
BEGIN
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, token_salt,
                                 scope, resource, amr, device)
    SELECT u.realm_id, v_session, u.id, pg_temp.client(), 'app', u.security_stamp, now(), now() + interval '1 day',
           pg_temp.b16('s'), '{openid}', '{}', methods, by_device
      FROM postern.user_account AS u WHERE u.id = pg_temp.ada();
    RETURN postern.remove_own_identifier(pg_temp.realm(), pg_temp.ada(), v_session, pg_temp.id(address), '192.0.2.7');
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
             '{}', '{}', '{}', '{}', '{}') $$;
-- As it was before a scenario.
CREATE FUNCTION pg_temp.begins(days integer DEFAULT 100) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com');
    SELECT postern.make_primary(pg_temp.realm(), pg_temp.ada(), 'email', pg_temp.id('ada@example.com'));
    SELECT postern.remove_identifier(pg_temp.realm(), i.id) FROM postern.user_identifier AS i
     WHERE i.user_id = pg_temp.ada() AND i.key <> 'ada@example.com';
    DELETE FROM postern.undo_link;
    DELETE FROM postern.removed_identifier;
    DELETE FROM postern.totp_factor;
    DELETE FROM postern.message_outbox;
    UPDATE postern.user_identifier SET added_at = now() - make_interval(days => days),
           proved_at = now() - make_interval(days => days) WHERE user_id = pg_temp.ada() $$;
CREATE FUNCTION pg_temp.enrols() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed)
    VALUES (pg_temp.realm(), pg_temp.ada(), pg_temp.uu('totp'), pg_temp.uu('x'), now(), '\x00');
    SELECT postern.queue_notice(pg_temp.realm(), pg_temp.ada(), 'totp-added',
        postern.offer_undo(pg_temp.realm(), pg_temp.ada(), 'totp', pg_temp.uu('totp'), 'app', '192.0.2.1')) $$;

-- A thief reads the mailbox that Ada gives up. She has signed in by more than a message: every link that was sent there
-- stops, and there is none to take the address back.
CREATE FUNCTION pg_temp.given_up(how text, methods text[], device uuid) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.begins(), pg_temp.adds('new@example.com', 1), pg_temp.enrols();
    RETURN NEXT is(pg_temp.removes('ada@example.com', methods, device), 'removed', how || ': the address is removed');
    RETURN NEXT is(pg_temp.links('ada@example.com'), NULL, how || ': no link is left there');
    RETURN NEXT is(pg_temp.uses('ada@example.com', 'totp app'), 'gone', how || ': not the one against the new factor');
    RETURN NEXT is(pg_temp.uses('ada@example.com', 'identifier new@example.com'), 'gone', how || ': nor against the new address');
    RETURN NEXT is(pg_temp.uses('new@example.com', 'totp app'), 'undone', how || ': the new address has its own');
    RETURN NEXT is(pg_temp.has(), '*new@example.com', how || ': which gives nothing back');
END
$$;
SELECT pg_temp.given_up('a second factor', '{otp,mfa}', NULL);
SELECT pg_temp.given_up('a passkey', '{hwk,user,mfa}', NULL);
SELECT pg_temp.given_up('a trusted device', '{pop}', gen_random_uuid());
SELECT pg_temp.given_up('an approval by one', '{pop,mca}', NULL);
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

-- A thief adds an address and removes the owner's.
SELECT pg_temp.begins(), pg_temp.adds('thief@example.com', 0) \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.undo_link SET created_at = now() - interval '1 second' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'a thief removes the owner''s address');
SELECT is(pg_temp.uses('ada@example.com', 'identifier thief@example.com'), 'undone', 'the owner undoes the thief''s');
SELECT is(pg_temp.has() || ' ' || coalesce(pg_temp.links('thief@example.com'), 'none'), '*ada@example.com none', 'with all that it did');

-- A number, and what the account has left.
SELECT pg_temp.begins(), pg_temp.adds('+4366412345678', 1) \g /dev/null
SELECT is(pg_temp.removes('+4366412345678', '{otp}'), 'removed', 'a number is removed');
SELECT is(pg_temp.sql($$SELECT string_agg(recipient || ' ' || (detail ? 'undo'), ',' ORDER BY recipient) FROM postern.message_outbox
    WHERE template = 'identifier-removed'$$), '+4366412345678 true,Ada@example.com true', 'both are told, with a link each');

-- Nothing that was sent to an address serves its next holder, nor takes it from there.
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 1) \g /dev/null
SELECT is(pg_temp.removes('ada@example.com', '{otp}'), 'removed', 'an address is removed');
SELECT isnt(pg_temp.links('ada@example.com'), NULL, 'which has links');
SELECT is(postern.create_user(pg_temp.realm(), 'email', 'ada@example.com', NULL, NULL, NULL) IS NULL, false, 'another person proves it');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.undo_link WHERE sent_to = 'ada@example.com'$$), '0', 'it has none');
SELECT is(pg_temp.uses('new@example.com', 'removal Ada@example.com'), 'gone', 'and nobody takes it back');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.removed_identifier$$), '0', 'nothing is kept of it');

-- An administrator's removal is final, and so is that of a number that passed to another person.
SELECT admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT postern.prove_identifier(pg_temp.realm(), pg_temp.ada(), 'email', 'Ada@example.com') \g /dev/null
SELECT pg_temp.begins(), pg_temp.adds('new@example.com', 2), pg_temp.adds('+4366412345678', 1) \g /dev/null
SELECT isnt(pg_temp.links('new@example.com'), NULL, 'an address with links');
SELECT admin.delete_identifier('a', pg_temp.ada(), 'email', 'new@example.com') \g /dev/null
SELECT is(pg_temp.links('new@example.com'), NULL, 'has none when an administrator has removed it');
SELECT is(pg_temp.sql($$SELECT string_agg(value || ' ' || is_contested, ',') FROM postern.removed_identifier$$),
          'new@example.com false', 'it is kept for the incident that comes to light later');
SELECT pg_temp.sql($$UPDATE postern.removed_identifier SET removed_at = now() - interval '31 days' RETURNING 1$$) \g /dev/null
SELECT lives_ok($$SELECT postern.sweep(1000)$$, 'and goes');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.removed_identifier$$), '0', 'after 30 days');
SELECT * FROM finish();
ROLLBACK;
