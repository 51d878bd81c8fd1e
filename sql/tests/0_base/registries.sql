\ir ../helpers/fixture.psql
SELECT no_plan();

-- A capability of its own: a table, a permission and a limit, announced in its own files.
SELECT lives_ok($$SET LOCAL ROLE postern_owner;
    CREATE TABLE postern.sample (realm_id uuid NOT NULL, id integer NOT NULL, expires_at timestamptz NOT NULL,
                               PRIMARY KEY (realm_id, id));
    CALL postern.tenant_table('sample', 'SELECT, INSERT', 'delete', 't.expires_at < now()');
    INSERT INTO postern.known_permission VALUES ('gt:urn:example:sample', 'Sample');
    INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode)
    VALUES ('sample', 'source', 7, '1 minute', 7, 'enforce'), ('sample', 'client', NULL, NULL, NULL, NULL)$$,
    'a table of tenants is set up by one call');
RESET ROLE;
INSERT INTO postern.sample SELECT r.id, 1, now() + interval '1 day' FROM postern.realm AS r;
INSERT INTO postern.sample SELECT r.id, 2, now() - interval '1 day' FROM postern.realm AS r;
SELECT ok(c.relrowsecurity AND c.relforcerowsecurity, 'row security is on and forced')
  FROM pg_class AS c WHERE c.oid = 'postern.sample'::regclass;
SELECT results_eq($$SELECT polname, polroles::regrole[]::text, pg_get_expr(polqual, polrelid) FROM pg_policy
                     WHERE polrelid = 'postern.sample'::regclass ORDER BY 1$$,
    $$SELECT polname, polroles::regrole[]::text, pg_get_expr(polqual, polrelid) FROM pg_policy
       WHERE polrelid = 'postern.login_code'::regclass ORDER BY 1$$, 'with the policies of every other table');
SELECT table_privs_are('postern', 'sample', 'postern_app', ARRAY['SELECT', 'INSERT'],
    'the app role may do what was said');
SELECT table_privs_are('postern', 'sample', 'postern_admin', '{}', 'the admin role nothing');
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT results_eq('SELECT realm_id FROM postern.sample', ARRAY[pg_temp.realm(), pg_temp.realm()],
    'it sees its realm only');
SELECT throws_ok(format('SELECT * FROM postern.%I', t), '42501', NULL, 'the app role cannot read ' || t)
  FROM unnest(ARRAY['sweep_rule', 'known_permission', 'rate_limit_policy', 'text_key', 'event_type', 'client_setting',
                    'known_channel']) AS t;
SELECT cmp_ok(postern.sweep(1000), '>=', 2::bigint, 'the sweeper goes through it');
RESET ROLE;
SELECT results_eq('SELECT DISTINCT id FROM postern.sample', ARRAY[1], 'and takes what has expired');

SELECT throws_like($$SELECT admin.grant_permission('a', 'app', 'gt:urn:example:other')$$,
    'permission "gt:urn:example:other" is unknown', 'a well-formed permission that nobody registered is unknown');
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'app', 'gt:urn:example:other')$$),
    'gt:urn:example:sample', 'the hint lists what is registered');
SELECT ok('gt:urn:example:sample' = ANY (admin.grant_permission('a', 'app', 'gt:urn:example:sample')),
    'a registered permission can be granted');
SELECT ok(NOT 'gt:urn:example:sample' = ANY (admin.revoke_permission('a', 'app', 'gt:urn:example:sample')),
    'and taken back');
SELECT results_eq('SELECT permission FROM admin.known_permissions ORDER BY permission COLLATE "C"',
    ARRAY['cap:assert-possession', 'cap:cotter', 'cap:trusted-forwarder', 'ept:authorization', 'ept:end_session',
          'ept:introspection', 'ept:possession', 'ept:pushed_authorization', 'ept:revocation', 'ept:token',
          'gt:authorization_code', 'gt:client_credentials', 'gt:refresh_token', 'gt:urn:cocoar:magic',
          'gt:urn:cocoar:otp', 'gt:urn:cocoar:passkey', 'gt:urn:example:sample',
          'gt:urn:openid:params:grant-type:ciba',
          'gt:urn:postern:device', 'gt:urn:postern:possession', 'rst:code'],
    'administrators see which there are');

SELECT results_eq($$SELECT dimension, permits, per, burst, mode, is_default FROM admin.rate_limits
                     WHERE realm = 'a' AND policy = 'sample'$$,
    $$VALUES ('source', 7, interval '1 minute', 7, 'enforce', true)$$, 'a default is in force in every realm');
SELECT is((SELECT count(*)::int FROM jsonb_array_elements(postern.realm_config(pg_temp.realm()) -> 'rate_limits') AS l
            WHERE l ->> 'policy' = 'sample'), 1, 'and part of its configuration');
SELECT lives_ok($$SELECT admin.set_rate_limit('a', 'sample', 'client', 5, '1 s')$$,
    'a limit without a default can be set');
SELECT is(pg_temp.refusal($$SELECT admin.set_rate_limit('a', 'sample', 'failures', 5, '1 s')$$),
    '22023 dimension "failures" does not exist for policy "sample" | Policies with this dimension: token.',
    'a dimension that nobody registered for the policy cannot');

-- How a table ends with its realm is said, and checked.
SELECT throws_ok($$SET LOCAL ROLE postern_owner;
    CREATE TABLE postern.stray (realm_id uuid PRIMARY KEY);
    CALL postern.tenant_table('stray', NULL, 'cascade')$$,
    'P0001', 'no foreign key of table stray deletes its rows with their realm', 'a cascade needs a foreign key');
SELECT throws_ok($$SET LOCAL ROLE postern_owner;
    CREATE TABLE postern.stray (realm_id uuid PRIMARY KEY);
    CALL postern.tenant_table('stray', NULL, 'whatever')$$, 'P0001', NULL, 'nothing else is understood');
SELECT lives_ok($$SET LOCAL ROLE postern_owner;
    CREATE TABLE postern.setting (realm_id uuid PRIMARY KEY REFERENCES postern.realm ON DELETE CASCADE);
    CALL postern.tenant_table('setting', 'SELECT', 'cascade', p_is_configuration => true)$$, 'a table of settings');
RESET ROLE;
SELECT postern.config_stamp() AS stamp \gset
INSERT INTO postern.setting VALUES (pg_temp.realm());
SELECT isnt(postern.config_stamp(), :'stamp', 'changes the configuration of its realm');
SELECT admin.put_realm('a', enabled => false), admin.delete_realm('a', 'a', '0'), postern.sweep(10000) \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.sample WHERE realm_id <> pg_temp.other()), 0, 'rows go with their realm');
SELECT is((SELECT count(*)::int FROM postern.sample), 1, 'and no others');

-- The rules of this version.
SELECT is_empty($$SELECT table_name FROM postern.sweep_rule WHERE to_regclass('postern.' || table_name) IS NULL$$,
    'every rule of the sweeper is of a table');
SELECT lives_ok(format('EXPLAIN DELETE FROM postern.%I AS t WHERE %s', table_name, condition),
                'the rule of ' || table_name)
  FROM postern.sweep_rule;
SELECT results_eq($$
    SELECT c.relname::text COLLATE "default"
      FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'expires_at'
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r'
       AND NOT EXISTS (SELECT FROM postern.sweep_rule AS r WHERE r.table_name = c.relname)$$,
    ARRAY['test_identity'], 'what expires is swept; test identities are ended instead');
SELECT * FROM finish();
ROLLBACK;
