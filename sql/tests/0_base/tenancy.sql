\ir ../helpers/fixture.psql
SELECT no_plan();
\ir ../helpers/rows.psql

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
    ('postern.code_guard (realm_id, address_key)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.scope (realm_id, name)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.audit_event (realm_id, event)', format($$(SELECT %L::uuid, 'z') AS x$$, pg_temp.realm())),
    ('postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at)',
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
SELECT is((SELECT active FROM postern.live_session(pg_temp.other(), pg_temp.uu('s'), pg_temp.b16('j'))), true,
          'a call for another realm sets that one');
SELECT is(current_setting('postern.realm'), pg_temp.other()::text, 'for the transaction');

-- Plans made for one realm are right for the next (CVE-2023-2455).
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE mine AS SELECT string_agg(email, ',' ORDER BY address_key) FROM postern.user_account;
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
