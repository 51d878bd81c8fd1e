\ir ../helpers/fixture.psql
SELECT no_plan();
-- Nothing is left of what is deleted.
CREATE FUNCTION pg_temp.leftovers() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t regclass;
    n bigint;
    result text := '';
BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r'
              AND relname NOT IN ('realm', 'deleted_realm') AND NOT pg_temp.holds_no_tenants(relname)
            ORDER BY relname LOOP
        EXECUTE format('SELECT count(*) FROM %s WHERE realm_id = pg_temp.realm()', t) INTO n;
        IF n > 0 THEN
            result := result || ' ' || t;
        END IF;
    END LOOP;
    RETURN result;
END
$$;
SELECT pg_temp.sign_in('s'), pg_temp.sign_in('bob', 'bob@example.com'), pg_temp.ask('h', 'ada@example.com', '1'),
       pg_temp.ask('u', 'nobody@example.com', '1') \g /dev/null
INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
    SELECT realm_id, id, 'a.example', '\x01', '\x01', false, false FROM postern.user_account
     WHERE address_key = 'ada@example.com';
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed) SELECT realm_id, id, id,
    id, now(), '\x00' FROM postern.user_account WHERE realm_id = pg_temp.realm();
INSERT INTO postern.recovery_code (realm_id, user_id, mac) SELECT realm_id, user_id, pg_temp.h('r')
    FROM postern.totp_factor;
SELECT admin.put_client('a', 'robot', 'confidential'), admin.put_service_account('a', 'robot', 'robot') \g /dev/null
SELECT admin.grant_permission('a', 'robot', 'gt:client_credentials'),
       admin.put_app('a', 'shop', subdomain => 'shop.a.example', client_ids => ARRAY['app', 'robot']),
           admin.put_web_origin('a', 'app', 'https://a.example') \g /dev/null
SELECT lives_ok($$SELECT admin.delete_user('a', 'ada@example.com')$$, 'a user is deleted');
SELECT is((SELECT count(*)::int FROM postern.session WHERE realm_id = pg_temp.realm()), 1, 'with the sessions');
SELECT is((SELECT count(*)::int FROM postern.passkey WHERE realm_id = pg_temp.realm()) + (SELECT count(*)::int - 1
    FROM postern.totp_factor) + (SELECT count(*)::int - 1 FROM postern.recovery_code) + (SELECT count(*)::int
         FROM postern.login_code) + (SELECT count(*)::int FROM postern.message_outbox)
        + (SELECT count(*)::int FROM postern.sign_in_request WHERE address_key = 'ada@example.com'), 0,
            'passkeys, second factor, codes, mail and requests');
SELECT ok(NOT pg_temp.alive('s') AND pg_temp.alive('bob'), 'the tokens are dead, and nobody else''s');
SELECT is(pg_temp.rotate('s', 0), 'refused unknown', 'refresh fails');
SELECT is((SELECT count(*)::int FROM postern.audit_event WHERE event = 'user_deleted' AND user_id IS NOT NULL), 1,
          'the audit log keeps the id');
SELECT is_empty($$SELECT detail FROM postern.audit_event WHERE detail::text ILIKE '%ada@%'$$, 'and no address');
SELECT is((SELECT count(*)::int FROM postern.user_account WHERE realm_id = pg_temp.other()), 1,
          'a user of the same address in another realm stays');
SELECT lives_ok($$SELECT admin.delete_client('a', 'robot')$$, 'a client with a service account is deleted');
SELECT is((SELECT client_ids FROM admin.apps), ARRAY['app'], 'Apps forget it');
SELECT lives_ok($$SELECT admin.delete_client('a', 'app', end_sessions => true)$$, 'a client is deleted');
SELECT is((SELECT count(*)::int FROM postern.session) + (SELECT count(*)::int FROM postern.client_web_origin), 0,
          'with its sessions and origins');
SELECT lives_ok($$SELECT admin.delete_app('a', 'shop')$$, 'an App is deleted');
SELECT is((SELECT domains FROM admin.realms WHERE slug = 'a'), ARRAY['a.example'], 'with its subdomain');
SELECT isnt(pg_temp.leftovers(), '', 'the realm still has rows');
SELECT lives_ok($$SELECT admin.put_realm('a', enabled => false), admin.delete_realm('a', 'a', '0'), postern.sweep(10000)$$, 'a realm is deleted');
SELECT is(pg_temp.leftovers(), '', 'and nothing of it is left');
SELECT results_eq($$SELECT slug, id, issuer, deleted_by LIKE 'sql:%', users, clients FROM admin.deleted_realms$$,
    $$VALUES ('a', pg_temp.realm(), 'https://a.example', true, 1::bigint, 1::bigint)$$, 'but that it happened');
SELECT is((SELECT count(*)::int FROM admin.users WHERE realm = 'b'), 1, 'the other realm is whole');
SELECT * FROM finish();
ROLLBACK;
