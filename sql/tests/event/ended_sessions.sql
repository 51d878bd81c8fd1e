\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
-- What a receiver is told when sessions end: the events queued since the last look, with the session and the client.
CREATE TEMP SEQUENCE number START 10;
CREATE FUNCTION pg_temp.told() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_told text;
BEGIN
    UPDATE postern.audit_event SET xid = nextval('pg_temp.number')::text::xid8 WHERE xid = pg_current_xact_id();
    PERFORM postern.collect_events(500);
    SELECT string_agg(concat_ws(' ', a.event, n.name, c.client_id, a.detail ->> 'reason'), ', '
                      ORDER BY a.event, n.name) INTO v_told
      FROM postern.webhook_delivery AS d JOIN postern.audit_event AS a ON a.realm_id = d.realm_id AND a.id = d.event
      LEFT JOIN postern.client AS c ON c.realm_id = a.realm_id AND c.id = a.client
      LEFT JOIN unnest('{s1,s2,s3,b,b2,b3,b4,stays,goes,hinted,last}'::text[]) AS n (name)
             ON pg_temp.uu(n.name) = a.session_id;
    DELETE FROM postern.webhook_delivery;
    RETURN coalesce(v_told, '');
END
$$;
SELECT admin.put_webhook('a', 'crm', 'https://crm.example/x') \g /dev/null
-- As if this transaction had begun later.
UPDATE postern.webhook_cursor SET xid = '0', id = 0;
DELETE FROM postern.audit_event;

-- A user signs out everywhere else: an event for each session that ended, and none about all.
SET LOCAL ROLE app_login;
SELECT pg_temp.browse('b'), pg_temp.sign_in('s1'), pg_temp.sign_in('s2'), pg_temp.sign_in('s3'), pg_temp.told() \g /dev/null
CREATE FUNCTION pg_temp.everywhere(keep boolean) RETURNS integer LANGUAGE sql AS $$
    SELECT postern.end_own_sessions(pg_temp.realm(), pg_temp.sub('ada@example.com'), pg_temp.uu('s1'), keep, '192.0.2.1') $$;
SELECT is(pg_temp.everywhere(true), 2, 'all but the calling session end');
SELECT is(pg_temp.told(), 'session_revoked b signed_out, session_revoked s2 app signed_out, session_revoked s3 app signed_out',
          'each that ended is named, the browser''s too');
SELECT ok(pg_temp.alive('s1'), 'the calling one lives');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.audit_event WHERE event = 'user_signed_out'$$), '1',
          'the audit log has the call too');
SELECT is(pg_temp.everywhere(true), 0, 'nothing is left to end');
SELECT is(pg_temp.told(), '', 'which is no event');
SELECT is(pg_temp.everywhere(false), 1, 'the last one too');
SELECT is(pg_temp.told(), 'user_signed_out s1 app', 'one event about all');

-- The kept session's client is told nothing.
RESET ROLE;
SELECT admin.put_logout_uri('a', 'app', 'https://app.example/logged-out', 'backchannel') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.sql($$DELETE FROM postern.session RETURNING 1$$), '1', 'anew');
SELECT pg_temp.sql('DELETE FROM postern.logout_token RETURNING 1'), pg_temp.sign_in('s1'), pg_temp.sign_in('s2'),
       pg_temp.everywhere(true), pg_temp.told() \g /dev/null
SELECT is(pg_temp.sql('SELECT array_agg(session)::text FROM postern.logout_token')::uuid[], ARRAY[pg_temp.uu('s2')],
          'a session that is kept has no logout token');

-- A browser signs out. Sessions opened through it without offline_access end with it.
SELECT pg_temp.browse('b2', request => pg_temp.wanted('k1')), pg_temp.exchange('k1', 'stays'),
       pg_temp.answered('b2', pg_temp.wanted('k2', '{"scope":["openid"]}')), pg_temp.exchange('k2', 'goes'),
       pg_temp.answered('b2', pg_temp.wanted('k3', '{"scope":["openid"]}')), pg_temp.exchange('k3', 'hinted'),
       pg_temp.told() \g /dev/null
SELECT is((SELECT outcome FROM postern.sign_out_browser(pg_temp.realm(), pg_temp.h('b2'), 'a.example', pg_temp.uu('hinted'),
           pg_temp.sub('ada@example.com'), false, '192.0.2.1')), 'signed_out', 'a browser signs out');
SELECT is(pg_temp.told(), 'session_revoked goes app signed_out, session_revoked hinted app signed_out, '
                          'signed_out b2 signed_out', 'each session that ended is named by its sid, once');
SELECT ok(pg_temp.alive('stays'), 'one with offline_access lives');
SELECT pg_temp.browse('b3', request => pg_temp.wanted('k4', '{"scope":["openid"]}')), pg_temp.exchange('k4', 'last'),
       pg_temp.told() \g /dev/null
SELECT is(pg_temp.browse('b4', 'bob@example.com', former => 'b3'), 'continue', 'another user signs in');
SELECT is(pg_temp.told(), 'session_revoked last app replaced, sign_in b4 app, signed_out b3 replaced',
          'what is replaced is told as well');

-- A further proof extends the session of a browser; the event names the session that lives.
SELECT pg_temp.browse('c', 'bob@example.com', former => 'b4') \g /dev/null
SELECT is(pg_temp.told(), 'sign_in b4 app', 'a session that was extended keeps its id');

-- The 65th revoked token ends the session.
SELECT pg_temp.sql('DELETE FROM postern.session RETURNING 1'), pg_temp.sign_in('s1'), pg_temp.told() \g /dev/null
CREATE FUNCTION pg_temp.revoked(n integer) RETURNS boolean LANGUAGE sql AS $$
    SELECT postern.revoke_access_token(pg_temp.realm(), pg_temp.client(), pg_temp.uu('s1'), pg_temp.b16('j' || n),
                                       date_part('epoch', now()) + 900) $$;
SELECT is((SELECT count(*)::int FROM generate_series(1, 64) AS n WHERE pg_temp.revoked(n)), 64, 'tokens are revoked');
SELECT is(pg_temp.told(), '', 'which ends no session');
SELECT ok(pg_temp.revoked(65) AND NOT pg_temp.revoked(66), 'one too many');
SELECT is(pg_temp.told(), 'session_revoked s1 app access_tokens_revoked', 'does, and is told once');
RESET ROLE;

-- A new security stamp ends all.
SELECT admin.put_user('a', 'bob@example.com', new_email => 'rob@example.com') \g /dev/null
SELECT is(pg_temp.told(), 'address_changed, user_signed_out address_changed', 'an administrator changes an address');
SELECT admin.put_user('a', 'rob@example.com', new_email => 'rob@example.com') \g /dev/null
SELECT is(pg_temp.told(), '', 'the same address again is no change');
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state,
                             uv_initialized, transports)
VALUES (pg_temp.realm(), pg_temp.uu('p'), pg_temp.sub('ada@example.com'), 'a.example', '\x01', '\x02', false, false,
        true, '{usb,nfc}');
SELECT postern.undo_link_for(pg_temp.realm(), pg_temp.sub('ada@example.com'),
           postern.offer_undo(pg_temp.realm(), pg_temp.sub('ada@example.com'), 'passkey', pg_temp.uu('p'), NULL,
                              '192.0.2.1') -> 'offer', 'ada@example.com') ->> 'undo' AS link \gset
SELECT pg_temp.sign_in('s2') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is((SELECT outcome FROM postern.undo_factor(pg_temp.realm(), :'link', '192.0.2.1', NULL)),
          'undone', 'an owner takes a passkey back');
SELECT is(pg_temp.told(), 'factor_undone, user_signed_out factor_undone', 'both are told');
SELECT is(pg_temp.sql($$SELECT detail ->> 'transports' FROM postern.audit_event WHERE event = 'factor_undone'$$)::jsonb,
          '["usb", "nfc"]', 'with what kind of passkey it was');
SELECT ok(NOT pg_temp.alive('s2'), 'the sessions ended');
RESET ROLE;

-- A line of the key file is lost; the database went back.
SELECT pg_temp.sign_in('s3') \g /dev/null
UPDATE postern.session SET server_key = '\xaaaaaaaa' WHERE id = pg_temp.uu('s3');
SELECT admin.forget_key_line('aaaaaaaa') \g /dev/null
SELECT is(pg_temp.told(), 'session_revoked s3 app key_line_forgotten', 'sessions of a line that is lost');
DELETE FROM postern.browser_session;
SELECT pg_temp.browse('b'), pg_temp.told() \g /dev/null
UPDATE postern.session SET revoked_at = NULL WHERE id = pg_temp.uu('s3');
SELECT admin.after_restore(now() - interval '1 hour', now()) \g /dev/null
SELECT is(pg_temp.told(), 'session_revoked b database_restored, session_revoked s3 app database_restored',
          'and those that a restore ended');

-- A client is deleted.
DELETE FROM postern.session;
SELECT pg_temp.sign_in('s1'), pg_temp.sign_in('s2'), pg_temp.sign_in('s3'), pg_temp.told() \g /dev/null
UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('s2');
UPDATE postern.session SET refresh_expires_at = now() WHERE id = pg_temp.uu('s3');
SELECT admin.delete_client('a', 'app', end_sessions => true) \g /dev/null
SELECT is(pg_temp.told(), 'session_revoked s1 client_deleted', 'its live sessions ended');
SELECT is((SELECT count(*) FROM postern.session), 0::bigint, 'and none of any kind is left');

-- A test identity goes to another client.
SELECT admin.put_client('a', 'first'), admin.put_client('a', 'second'),
       admin.put_test_identity('a', 'review@example.com', 'first'), pg_temp.told() \g /dev/null
SELECT admin.put_test_identity('a', 'review@example.com', 'first') \g /dev/null
SELECT is(pg_temp.told(), '', 'put again, it keeps its sessions');
SELECT admin.put_test_identity('a', 'review@example.com', 'second') \g /dev/null
SELECT is(pg_temp.told(), 'user_signed_out client_changed', 'for another client it loses them');
SELECT * FROM finish();
ROLLBACK;
