\ir ../helpers/fixture.psql
SELECT no_plan();
-- A device was linked to a phone number of an account: each address can undo that.
SELECT admin.put_client('a', 'srv', client_type => 'confidential', display_name => 'Server') \g /dev/null
SELECT admin.put_service_account('a', 'srv', 'srv'), admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession'),
       admin.grant_permission('a', 'app', 'gt:urn:postern:possession'), admin.put_possession_client('a', 'srv', login_client => 'app'),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'), admin.set_phone_policy('a', regions => '{AT}'),
       admin.put_user('a', 'holder@example.com', phone => '+4366400000002') \g /dev/null
SELECT set_config('test.holder', pg_temp.sub('holder@example.com')::text, true) \g /dev/null
SELECT admin.put_identifier('a', pg_temp.sub('holder@example.com'), 'email', 'second@example.com') \g /dev/null
\ir ../helpers/possession.psql
SELECT postern.begin_proof_store('-infinity'), pg_sleep(0.01) \g /dev/null
CREATE FUNCTION pg_temp.holder() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.holder')::uuid $$;
CREATE FUNCTION pg_temp.proves(id text, key text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.starts(id, '+4366400000002'), pg_temp.opens(id, key), pg_temp.sends(id, '+4366400000002', 'c', key => key);
    RETURN pg_temp.checks(id, 'c', key);
END
$$;
-- The newest link of a mailbox.
CREATE FUNCTION pg_temp.link_of(address text) RETURNS uuid LANGUAGE sql AS $$
    SELECT (m.detail ->> 'undo')::uuid FROM postern.message_outbox AS m
     WHERE m.recipient = address AND m.template = 'phone-key-added' ORDER BY m.created_at DESC, m.detail ->> 'undo' LIMIT 1 $$;
CREATE FUNCTION pg_temp.page(link uuid) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, kind, label, source) FROM postern.undo_page(pg_temp.realm(), link, NULL) $$;
CREATE FUNCTION pg_temp.undo(link uuid, r uuid DEFAULT pg_temp.realm()) RETURNS text LANGUAGE sql AS $$
    SELECT outcome FROM postern.undo_factor(r, link, '192.0.2.9', NULL) $$;
CREATE FUNCTION pg_temp.after_call(call text, attempt text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.after(format('UPDATE postern.realm SET id = id WHERE id = pg_temp.realm() AND (SELECT count(*) FROM (%s) AS c) > 0',
                                call), attempt) $$;

SELECT is(pg_temp.proves('p1', 'k1'), 'passed 0 passed', 'a device proves the number');
SELECT is(pg_temp.page(pg_temp.link_of('holder@example.com')), 'shown phone-key +43···0002 192.0.2.1', 'each address has a link');
SELECT isnt(pg_temp.link_of('second@example.com'), pg_temp.link_of('holder@example.com'), 'of its own');
SELECT is(pg_temp.after_call($$SELECT admin.delete_identifier('a', pg_temp.holder(), 'email', 'second@example.com')$$,
    $$pg_temp.undo(pg_temp.link_of('second@example.com'))$$), 'gone', 'it ends with its address');
SELECT is(pg_temp.after_call($$SELECT admin.delete_identifier('a', pg_temp.holder(), 'phone', '+4366400000002')$$,
    $$pg_temp.undo(pg_temp.link_of('holder@example.com'))$$), 'gone', 'and with the number');
SELECT is(pg_temp.after($$UPDATE postern.undo_link SET expires_at = now()$$,
    $$pg_temp.undo(pg_temp.link_of('holder@example.com'))$$), 'gone', 'and after seven days');
SELECT is((SELECT DISTINCT expires_at - created_at FROM postern.undo_link), interval '7 days', 'which are its time');
SELECT is(pg_temp.undo(pg_temp.link_of('holder@example.com'), pg_temp.other()), 'gone', 'another realm has none of that id');
SELECT is(pg_temp.proves('p2', 'k2'), 'passed 0 passed', 'another device proves it, too');
UPDATE postern.message_outbox SET created_at = created_at - interval '1 minute'
 WHERE detail ->> 'undo' IN (SELECT id::text FROM postern.undo_link WHERE target = pg_temp.device('k1'));
SELECT pg_temp.sign_in('session', 'holder@example.com') \g /dev/null
SELECT is(pg_temp.undo(pg_temp.link_of('second@example.com')), 'undone', 'the second link');
SELECT is(pg_temp.key_phone('k2'), NULL, 'takes the number from its device');
SELECT is(pg_temp.key_phone('k1'), '+4366400000002', 'and from no other');
SELECT is(pg_temp.alive('session'), false, 'every session ends');
SELECT is(pg_temp.signs_in('p2', 's1', 'k2'), 'refused transaction', 'what the device has passed signs nobody in');
SELECT is(pg_temp.undo(pg_temp.link_of('second@example.com')), 'gone', 'a link works once');
SELECT is(pg_temp.undo(pg_temp.link_of('holder@example.com')), 'gone', 'and the other address has nothing left to undo');
SELECT is((SELECT string_agg(event || ' ' || coalesce(detail ->> 'kind', detail ->> 'reason'), ', ' ORDER BY id) FROM postern.audit_event
            WHERE event IN ('key_revoked', 'factor_undone', 'user_signed_out')),
          'key_revoked owner, factor_undone phone-key, user_signed_out factor_undone', 'the log says so');
SELECT is((SELECT count(*)::int FROM postern.message_outbox WHERE template = 'device-removed'), 2, 'and all addresses are told');

-- A key that is a trusted device as well stays one.
UPDATE postern.device_key SET user_id = pg_temp.holder(), display_name = 'd', added_at = now(), client = pg_temp.client('app')
 WHERE thumbprint = pg_temp.h('k1');
SELECT is(pg_temp.after($$UPDATE postern.user_identifier SET value = '+4366400000009' WHERE user_id = pg_temp.holder() AND kind = 'phone'$$,
    $$(SELECT min(pg_temp.undo(l.id)) FROM postern.undo_link AS l
        WHERE l.target = pg_temp.device('k1') AND l.sent_to = 'holder@example.com')$$), 'gone', 'without the number there is nothing to undo');
SELECT is((SELECT string_agg(DISTINCT pg_temp.undo(l.id), ' ') FROM postern.undo_link AS l
            WHERE l.target = pg_temp.device('k1') AND l.sent_to = 'holder@example.com'), 'undone', 'the first link');
SELECT is(pg_temp.key_phone('k1') IS NULL AND pg_temp.device('k1') IS NOT NULL, true, 'takes the number and leaves the device');
SELECT * FROM finish();
ROLLBACK;
