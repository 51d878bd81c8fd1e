\ir ../helpers/fixture.psql
SELECT no_plan();
-- One row in every table, in each of two realms.
SELECT admin.put_scope(r, 'x'), admin.set_rate_limit(r, 'token', 'client', 1, '1 s'), admin.rotate_signing_key(r),
       admin.put_app(r, 'shop', client_ids => ARRAY['app']),
       admin.set_branding(r, 'Shop', logo => '\x89504e470d0a1a0a'), admin.put_text(r, 'de', 'cancel', 'Nein'),
           admin.put_web_origin(r, 'app', 'https://' || r || '.example'),
       admin.put_ios_app(r, 'app', 'A1B2C3D4E5', 'a.b'),
           admin.put_android_app(r, 'app', 'a.b',
    ARRAY['14:6D:E9:83:C5:73:06:50:D8:EE:B9:95:2F:34:FC:64:16:A0:83:42:E6:1D:BE:A8:8A:04:96:B2:3F:CF:44:E5']),
       admin.put_client(r, 'robot', 'confidential'), admin.put_service_account(r, 'robot', 'robot'),
       admin.put_redirect_uri(r, 'app', 'https://a.example/cb'),
       admin.put_logout_uri(r, 'app', 'https://a.example/out', 'post-logout'),
       admin.put_test_identity(r, 'review@example.com', 'app'), admin.suppress_address(r, 'eve@example.com'),
       admin.put_channel(r, 'sms', 'gateway', 'webhook', 'https://hooks.example/sms'),
       admin.put_address_rule(r, 'example.org', 'deny'), admin.set_pre_send_hook(r, 'https://hooks.example/check'),
       admin.set_phone_policy(r, '{AT}'), admin.put_phone_prefix(r, '+437', 'deny'),
       admin.put_webhook(r, 'crm', 'https://hooks.example/events')
           FROM (VALUES ('a'), ('b')) AS v (r) \g /dev/null
INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private) SELECT id, 'k', 'ES256', '{}', '\x00'
    FROM postern.realm;
INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at,
                             token_salt, scope, resource, amr)
SELECT u.realm_id, pg_temp.uu('s'), u.id, c.id, 'app', u.security_stamp, now(), now() + interval '1 day',
       pg_temp.b16('s'), '{}', '{}', '{}' FROM postern.user_account AS u
           JOIN postern.client AS c ON c.realm_id = u.realm_id AND c.client_id = 'app'
               WHERE u.email_key = 'ada@example.com';
INSERT INTO postern.passkey (realm_id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
    SELECT realm_id, id, 'a.example', '\x01', '\x01', false, false FROM postern.user_account
     WHERE email_key = 'ada@example.com';
INSERT INTO postern.approval_guard (realm_id, user_id) SELECT realm_id, id FROM postern.user_account;
INSERT INTO postern.transaction (realm_id, kind, expires_at, client) SELECT realm_id, 'approval', now() + '1 hour', id
    FROM postern.client;
INSERT INTO postern.device_key (realm_id, thumbprint, public_key, user_id, added_at) SELECT realm_id, pg_temp.h('k'),
    pg_temp.h('x') || pg_temp.h('y'), id, now() FROM postern.user_account WHERE email_key = 'ada@example.com';
INSERT INTO postern.auth_session (realm_id, id, kind, email, email_key, expires_at) SELECT id, pg_temp.b16('h'), 'otp',
    'ada@example.com', 'ada@example.com', now() FROM postern.realm;
INSERT INTO postern.login_code (realm_id, email_key, id, expires_at, salt, mac) SELECT id, 'ada@example.com',
    pg_temp.uu('c'), now(), pg_temp.b16('s'), pg_temp.h('m') FROM postern.realm;
INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, email_key, source, expires_at) SELECT realm_id,
    id, pg_temp.h('l'), pg_temp.b16('h'), email_key, '192.0.2.1', now() FROM postern.user_account
        WHERE email_key = 'ada@example.com';
INSERT INTO postern.code_guard (realm_id, email_key) SELECT id, 'ada@example.com' FROM postern.realm;
INSERT INTO postern.device_guard (realm_id, user_id, device) SELECT realm_id, id, gen_random_uuid()
    FROM postern.user_account;
INSERT INTO postern.rate_bucket (realm_id, key, tat) SELECT id, 'k', now() FROM postern.realm;
INSERT INTO postern.spent_ceremony (realm_id, id, expires_at) SELECT id, pg_temp.b16('p'), now() FROM postern.realm;
INSERT INTO postern.spent_assertion (realm_id, id, expires_at) SELECT id, pg_temp.h('a'), now() FROM postern.realm;
INSERT INTO postern.revoked_service_token (realm_id, jti, account, expires_at) SELECT realm_id, pg_temp.b16('j'), id,
    now() FROM postern.service_account;
INSERT INTO postern.service_account_use (realm_id, account, source, at) SELECT realm_id, id, '192.0.2.1', now()
    FROM postern.service_account;
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed) SELECT realm_id, id, id,
    id, now(), '\x00' FROM postern.user_account WHERE email_key = 'ada@example.com';
INSERT INTO postern.recovery_code (realm_id, user_id, mac) SELECT realm_id, user_id, pg_temp.h('r')
    FROM postern.totp_factor;
INSERT INTO postern.data_key (realm_id, id, purpose, number, file_key, sealed) SELECT id, pg_temp.uu('d'), 'totp-seed',
    1, '\x00112233', decode(repeat('00', 64), 'hex') FROM postern.realm;
INSERT INTO postern.mail_refusal (realm_id, email_key, in_a_row) SELECT id, 'bob@example.com', 1 FROM postern.realm;
INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload) SELECT id, pg_temp.uu('m'),
    'Ada@example.com', 'otp', '\x00' FROM postern.realm;
INSERT INTO postern.deleted_realm (realm_id, created_at, users, clients, slug, deleted_by) SELECT id, now(), 0, 0, slug,
    'sql:test' FROM postern.realm;

INSERT INTO postern.browser_session (realm_id, id, user_id, security_stamp, idle_expires_at, expires_at, cookie_hash,
                                     host, amr)
SELECT realm_id, pg_temp.uu('b'), id, security_stamp, now(), now(), pg_temp.h('b'), 'a.example', '{otp}'
  FROM postern.user_account WHERE email_key = 'ada@example.com';
INSERT INTO postern.authorization_code (realm_id, code_hash, user_id, client, browser_session, security_stamp,
                                        auth_time, expires_at, redirect_uri, acr, scope, resource, amr)
SELECT b.realm_id, pg_temp.h('k'), b.user_id, c.id, b.id, b.security_stamp, now(), now(), 'https://a.example/cb', 'phr',
       '{}', '{}', '{}'
  FROM postern.browser_session AS b JOIN postern.client AS c ON c.realm_id = b.realm_id AND c.client_id = 'app';
INSERT INTO postern.address_proof (realm_id, id, client, expires_at, kind, sealed_address)
SELECT realm_id, gen_random_uuid(), id, now() + interval '1 hour', 'email', '\x01' FROM postern.client WHERE client_id = 'app';
SELECT admin.set_possession(r, true),
       admin.grant_permission(r, 'robot', 'gt:client_credentials', 'ept:possession'),
       admin.put_provider(r, 'risk', 'https://hooks.example/risk'),
       admin.put_test_number(r, '+4366400000001', 'robot', 'pass') FROM (VALUES ('a'), ('b')) AS v (r) \g /dev/null
INSERT INTO postern.phone_identity (realm_id, phone) SELECT id, '+4366400000002' FROM postern.realm;
INSERT INTO postern.transaction (realm_id, kind, client, expires_at) SELECT id, 'mobile', id, now() FROM postern.realm;
INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, expires_at, ends_at, sealed)
SELECT realm_id, pg_temp.h('u'), id, '192.0.2.1', now(), now(), '\x00' FROM postern.client WHERE client_id = 'app';
INSERT INTO postern.consent (realm_id, user_id, client, scope, resource)
SELECT realm_id, user_id, client, '{}', '{}' FROM postern.authorization_code;
INSERT INTO postern.logout_token (realm_id, id, client, user_id, session, uri)
SELECT realm_id, pg_temp.uu('o'), client, user_id, pg_temp.uu('s'), 'https://a.example' FROM postern.authorization_code;

INSERT INTO postern.used_proof (realm_id, slot, key, used_by)
SELECT r.id, n, postern.proof_mix(r.id), 0 FROM postern.realm AS r, generate_series(0, 9) AS n;
INSERT INTO postern.realm_move (realm_id, state, peer) SELECT id, 'leaving', 'south' FROM postern.realm;
INSERT INTO postern.realm_move_mark (realm_id) SELECT id FROM postern.realm;
INSERT INTO postern.webhook_subject (realm_id, webhook, subject) SELECT realm_id, id, 's' FROM postern.webhook;
INSERT INTO postern.webhook_delivery (realm_id, webhook, event, xid, event_at, subject)
SELECT realm_id, id, 1, '1', now(), 's' FROM postern.webhook;

INSERT INTO postern.undo_link (realm_id, user_id, target, kind, label, sent_to, proven_at)
SELECT realm_id, id, id, 'totp', '', email_key, now() FROM postern.user_account WHERE email_key = 'ada@example.com';
INSERT INTO postern.removed_identifier (realm_id, id, user_id, added_at, proved_at, was_primary, kind, value)
SELECT realm_id, id, id, now(), now(), false, 'email', 'old@example.com' FROM postern.user_account
 WHERE email_key = 'ada@example.com';

CREATE TEMP TABLE tenant_table ON COMMIT DROP AS
SELECT c.oid::regclass::text AS name, CASE c.relname WHEN 'realm' THEN 'id' ELSE 'realm_id' END AS key
  FROM pg_class AS c
 WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND NOT pg_temp.holds_no_tenants(c.relname);
GRANT SELECT ON tenant_table TO PUBLIC;
-- As if the app role might do anything: row security alone has to hold.
SELECT lives_ok(format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO postern_app', name), 'DML for the test: ' || name)
  FROM tenant_table;
CREATE FUNCTION pg_temp.rows_of(t text) RETURNS bigint
    LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %s', t)
        INTO n; RETURN n; END $$;
CREATE FUNCTION pg_temp.foreign_rows(t text, k text) RETURNS bigint
    LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %s WHERE %I <> pg_temp.realm()',
                                                                  t, k) INTO n; RETURN n; END $$;
CREATE FUNCTION pg_temp.touched(statement text) RETURNS bigint
    LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE statement; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END $$;
SELECT cmp_ok(pg_temp.foreign_rows(name, key), '>=', 1::bigint, 'there is something to hide in ' || name)
  FROM tenant_table;

SET LOCAL SESSION AUTHORIZATION app_login;
SELECT is(pg_temp.rows_of(name), 0::bigint, '4.3 (b): without a realm nothing is seen in ' || name) FROM tenant_table;
SELECT set_config('postern.realm', '', true) \g /dev/null
SELECT is(pg_temp.rows_of(name), 0::bigint, 'nor with the empty setting that an earlier transaction leaves: ' || name)
  FROM tenant_table;
SELECT throws_ok(format('INSERT INTO %s SELECT * FROM %s', v.t, v.s), '42501', NULL,
                 '4.3 (b): without a realm nothing is written to ' || v.t) FROM (VALUES
    ('postern.rate_bucket', format($$(SELECT %L::uuid, now(), 'z') AS x$$, pg_temp.realm())),
    ('postern.code_guard (realm_id, email_key)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.scope (realm_id, name)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.audit_event (realm_id, event)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.auth_session (realm_id, id, kind, email, email_key, expires_at)',
     format($$(SELECT %L::uuid, '\x00112233445566778899aabbccddeeff'::bytea, 'otp', 'z', 'z', now()) AS x$$,
            pg_temp.realm()))) AS v (t, s);
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT cmp_ok(pg_temp.rows_of(name), '>=', 1::bigint, 'with a realm its rows are there: ' || name) FROM tenant_table;
SELECT is(pg_temp.foreign_rows(name, key), 0::bigint, '4.3 (c): and no others: ' || name) FROM tenant_table;
SELECT is(pg_temp.touched(format('UPDATE %s SET %I = %I WHERE %I = %L', name, key, key, key, pg_temp.other())),
          0::bigint, '4.3 (c): no other can be updated: ' || name) FROM tenant_table;
SELECT is(pg_temp.touched(format('DELETE FROM %s WHERE %I = %L', name, key, pg_temp.other())), 0::bigint,
          '4.3 (c): nor deleted: ' || name) FROM tenant_table;
SELECT throws_ok(format('UPDATE %s SET %I = %L', name, key, pg_temp.other()), '42501', NULL,
                 '4.3 (c): no row can be moved there: ' || name) FROM tenant_table
                     WHERE name NOT IN ('postern.realm', 'postern.audit_event');
SELECT throws_ok(format($$INSERT INTO postern.rate_bucket (realm_id, key, tat)
                        VALUES (%L, 'k', now()) ON CONFLICT (realm_id, key) DO UPDATE SET tat = now()
                            RETURNING tat$$, pg_temp.other()), '42501', NULL,
                                '4.3 (c): ON CONFLICT … RETURNING does not show it');
SELECT throws_ok($$COPY postern.session TO PROGRAM 'true'$$, NULL, NULL, 'COPY TO PROGRAM');
SELECT is(pg_temp.touched('DELETE FROM postern.session'), 1::bigint, 'an unconditional DELETE stays in its realm');
SELECT is((SELECT active FROM postern.introspect(pg_temp.other(), pg_temp.uu('s'), pg_temp.b16('j'))), true,
          'a call for another realm sets that one');
SELECT is(current_setting('postern.realm'), pg_temp.other()::text, 'for the transaction');

-- Plans made for one realm are right for the next (CVE-2023-2455).
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE mine AS SELECT string_agg(email, ',' ORDER BY email_key) FROM postern.user_account;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT results_eq('EXECUTE mine', ARRAY['Ada@example.com,bob@example.com,review@example.com'],
                  '4.3 (f): a generic plan in one realm');
SELECT set_config('postern.realm', pg_temp.other()::text, true) \g /dev/null
SELECT results_eq('EXECUTE mine', ARRAY['ada@example.com,review@example.com'], '4.3 (f): and in another');

-- What the app role may not do.
SELECT throws_ok(v.statement, '42501', NULL, '' || v.statement) FROM (VALUES
    ('CREATE TABLE postern.mine (id int)'), ('ALTER TABLE postern.session DISABLE ROW LEVEL SECURITY'),
        ('ALTER TABLE postern.session NO FORCE ROW LEVEL SECURITY'), ('DROP TABLE postern.session'),
            ('TRUNCATE postern.session'),
    ('CREATE POLICY open ON postern.session USING (true)'), ('DROP POLICY realm ON postern.session'),
        ('SET LOCAL ROLE postern_owner'), ('SELECT * FROM pg_authid'), ('SELECT * FROM admin.users'),
            ($$SELECT admin.put_realm('evil', 'evil.example')$$),
    ('CREATE FUNCTION postern.evil() RETURNS int LANGUAGE sql RETURN 1'),
        ('ALTER FUNCTION postern.current_realm() OWNER TO app_login'), ('CREATE ROLE evil'),
            ('UPDATE postern.sweep_cursor SET block = 0'), ('DELETE FROM postern.schema_migration'),
    ($$SELECT postern.refuse('a', 'b')$$), ('SELECT postern.end_access(gen_random_uuid(), gen_random_uuid())'),
        ('SET LOCAL session_replication_role = replica'), ($$SELECT pg_read_file('/etc/passwd')$$)) AS v (statement);
RESET SESSION AUTHORIZATION;
SET LOCAL SESSION AUTHORIZATION admin_login;
SELECT throws_ok(v.statement, '42501', NULL, 'the admin role: ' || v.statement) FROM (VALUES
    ('SELECT * FROM postern.client'), ('SELECT postern.directory()'),
        ($$SELECT postern.realm_config(gen_random_uuid())$$), ('CREATE VIEW admin.mine AS SELECT 1'),
            ('UPDATE admin.realms SET enabled = false'), ('SET LOCAL ROLE postern_owner')) AS v (statement);
SELECT * FROM finish();
ROLLBACK;
