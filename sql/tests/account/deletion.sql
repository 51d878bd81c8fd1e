\ir ../helpers/fixture.psql
SELECT no_plan();
-- Nothing of a deleted user is left in any table, but in the audit log and in what it tells clients and webhooks.
\ir ../helpers/approvals.psql
SELECT admin.put_user('a', 'eve@example.com', phone => '+4366412345678') \g /dev/null
SELECT admin.put_identifier('a', id, 'email', 'eve.second@example.com') FROM admin.users
 WHERE realm = 'a' AND email = 'eve@example.com' \g /dev/null
SELECT admin.put_client('a', 'srv', client_type => 'confidential'),
       admin.put_service_account('a', 'srv', 'srv') \g /dev/null
SELECT admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession'),
       admin.set_possession('a', true) \g /dev/null
CREATE FUNCTION pg_temp.eve() RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm() AND address_key = 'eve@example.com' $$;
SELECT set_config('test.eve', pg_temp.eve()::text, true) \g /dev/null

-- Every table that names people has a row of hers.
SELECT pg_temp.sign_in('s', 'eve@example.com'), pg_temp.ask('h', 'eve@example.com', '1'),
       pg_temp.ask('i', 'eve.second@example.com', '1', hint => 'eve@example.com'),
       pg_temp.device('eves', 'eve@example.com', push => '\x0102'), pg_temp.asks('r1', 'eve@example.com') \g /dev/null
INSERT INTO postern.approval_guard (realm_id, user_id) VALUES (pg_temp.realm(), pg_temp.eve());
INSERT INTO postern.device_guard (realm_id, user_id, device) SELECT pg_temp.realm(), pg_temp.eve(), gen_random_uuid();
INSERT INTO postern.device_request (realm_id, kind, state, expires_at, client, user_id, phone)
    SELECT pg_temp.realm(), kind, 'redeemed', now() + interval '900 seconds', pg_temp.client('srv'), owner, phone
      FROM (VALUES ('mobile', pg_temp.eve(), '+4366412345678'), ('desktop', NULL, '+4366412345678'),
                   ('none', pg_temp.eve(), NULL)) AS t (kind, owner, phone);
INSERT INTO postern.device_key (realm_id, thumbprint, public_key, phone, phone_at, phone_by, phone_client)
    SELECT pg_temp.realm(), pg_temp.h('prove key'), pg_temp.h('p') || pg_temp.h('p'), '+4366412345678', now(),
           'code', pg_temp.client('srv');
UPDATE postern.device_key SET phone = '+4366412345678', phone_at = now(), phone_by = 'code', phone_client = pg_temp.client('srv')
 WHERE thumbprint = pg_temp.h('eves');
INSERT INTO postern.phone_identity (realm_id, phone) VALUES (pg_temp.realm(), '+4366412345678');
INSERT INTO postern.code_guard (realm_id, address_key, consecutive)
    SELECT pg_temp.realm(), k, 3 FROM unnest('{eve@example.com,eve.second@example.com,+4366412345678}'::text[]) AS k
    ON CONFLICT DO NOTHING;
INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose, channel, state)
    SELECT pg_temp.realm(), gen_random_uuid(), r, 'otp', 'sign-in', c, 'sent'
      FROM (VALUES ('Eve@example.com', 'email'), ('eve.second@example.com', 'email'), ('+4366412345678', 'sms'),
                   ('sealed:AQI=', 'push')) AS m (r, c);
INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
    VALUES (pg_temp.realm(), pg_temp.eve(), 'a.example', '\x01', '\x01', false, false);

-- Columns that name a user or one of the user's addresses, found in the catalogue; with what a user's value would be.
CREATE FUNCTION pg_temp.traces() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    c record;
    n bigint;
BEGIN
    FOR c IN SELECT t.relname, a.attname FROM pg_class AS t JOIN pg_attribute AS a ON a.attrelid = t.oid
               JOIN pg_type AS y ON y.oid = a.atttypid
              WHERE t.relnamespace = 'postern'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
                AND a.attnum > 0 AND NOT a.attisdropped
                AND coalesce(NULLIF(y.typbasetype, 0), y.oid) IN ('uuid'::regtype, 'text'::regtype)
              ORDER BY 1, 2 LOOP
        EXECUTE format('SELECT count(*) FROM postern.%I AS t WHERE lower(t.%I::text COLLATE "C") = ANY ($1)', c.relname,
                       c.attname)
           INTO n USING ARRAY[current_setting('test.eve'), 'eve@example.com', 'eve.second@example.com',
                              '+4366412345678', 'sealed:aqi='];
        IF n > 0 THEN
            RETURN NEXT c.relname || '.' || c.attname;
        END IF;
    END LOOP;
END
$$;
SELECT is_empty($$SELECT unnest('{approval_guard.user_id,sign_in_request.address_key,sign_in_request.hint_user,
        code_guard.address_key,device_guard.user_id,device_key.phone,device_key.user_id,message_outbox.recipient,
        passkey.user_id,phone_identity.phone,session.user_id,device_request.hint,device_request.phone,device_request.user_id,
        user_account.address_key,user_identifier.value}'::text[]) EXCEPT SELECT pg_temp.traces()$$,
    'before, many tables name her');
SELECT lives_ok($$SELECT admin.delete_user('a', 'eve@example.com')$$, 'she is deleted');
SELECT results_eq($$SELECT pg_temp.traces()$$, ARRAY['audit_event.user_id'], 'only the audit log names her still');
SELECT is((SELECT count(*)::int FROM postern.device_request), 1, 'to its asker, a request for approval looks unanswered');
SELECT is((SELECT count(*)::int FROM postern.device_key), 0, 'keys that proved her number are gone');

-- A number that somebody only claims may be somebody else's.
SELECT admin.put_user('a', 'mallory@example.com') \g /dev/null
SELECT admin.put_identifier('a', id, 'phone', '+4366412345678', verified => false) FROM admin.users
 WHERE realm = 'a' AND email = 'mallory@example.com' \g /dev/null
INSERT INTO postern.phone_identity (realm_id, phone) VALUES (pg_temp.realm(), '+4366412345678');
SELECT admin.delete_user('a', 'mallory@example.com') \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.phone_identity), 1, 'the end of an account that only claims it does nothing');
SELECT * FROM finish();
ROLLBACK;
