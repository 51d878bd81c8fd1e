\ir ../helpers/setup.psql
BEGIN;
SELECT plan(28);

-- 4.3 (a): every table with tenant data is under forced row security, and every key begins with the realm.
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname NOT LIKE 'schema\_%'
       AND NOT (c.relrowsecurity AND c.relforcerowsecurity)$$, 'row security is enabled and forced on every table');
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind IN ('r', 'p')
       AND c.relname <> 'realm' AND NOT pg_temp.holds_no_tenants(c.relname)
       AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'realm_id'
                       AND a.attnotnull)$$,
    'every other table has a realm_id that is not null');
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind IN ('r', 'p')
       AND NOT pg_temp.holds_no_tenants(c.relname)
       AND (SELECT count(*) FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polcmd = '*'
               AND pg_get_expr(p.polqual, c.oid) ~ '^\((realm_id|id) = postern.current_realm\(\)\)$'
               AND pg_get_expr(p.polwithcheck, c.oid) = pg_get_expr(p.polqual, c.oid)) <> 1$$,
                   'every tenant table has the realm policy, for reading and writing');
SELECT is_empty($$
    SELECT p.polname, p.polrelid::regclass FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND p.polname <> 'realm'
       AND p.polroles <> ARRAY['postern_owner'::regrole::oid]$$, 'any other policy is for the owner alone');
SELECT results_eq($$
    SELECT x.conrelid::regclass::text FROM pg_constraint AS x JOIN pg_class AS c ON c.oid = x.conrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND x.contype IN ('p', 'u') AND c.relname !~ '^(schema|used_proof)_'
       AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = x.conrelid AND a.attname = 'realm_id'
                       AND a.attnum = ANY (CASE x.contype WHEN 'p' THEN x.conkey[:1] ELSE x.conkey END)) ORDER BY 1$$,
    ARRAY['postern.client_setting', 'postern.event_type', 'postern.known_channel', 'postern.known_channel',
          'postern.known_permission', 'postern.rate_limit_policy', 'postern.realm',
          'postern.realm',
          'postern.realm_domain', 'postern.sweep_cursor', 'postern.sweep_rule', 'postern.text_key'],
    'every primary key but those of realm, of the host directory, of registries and of used proofs begins with '
    'realm_id, and every other key has it');
-- A table without statistics is read by any index that begins with the realm, as if few rows had it. So that only the
-- primary key fits a look-up by id, others begin with their own column, in tables whose rows strangers cause.
SELECT results_eq($$
    SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'realm_id' AND a.attnum = i.indkey[0]
     WHERE c.relname IN ('user_account', 'user_identifier', 'session', 'browser_session', 'sign_in_request',
                         'login_code', 'login_link', 'authorization_code', 'pushed_request', 'passkey', 'device_key',
                         'device_request', 'consent', 'undo_link', 'removed_identifier', 'address_verification',
                         'message_outbox') AND NOT i.indisprimary ORDER BY 1$$,
    -- What a worker takes next and what a realm has queued.
    ARRAY['postern.device_request_unresolved', 'postern.message_outbox_expiring',
          'postern.sign_in_request_undecided'],
    'other indexes begin with their own column');
SELECT is_empty($$
    SELECT x.conname, x.conrelid::regclass FROM pg_constraint AS x JOIN pg_class AS c ON c.oid = x.conrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND x.contype = 'f'
       AND (SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = x.conrelid
            AND a.attnum = x.conkey[1]) <> 'realm_id'$$, 'every foreign key begins with realm_id');
SELECT is_empty($$
    SELECT i.indexrelid::regclass FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
     WHERE c.relnamespace = 'postern'::regnamespace AND i.indisunique
       AND NOT EXISTS (SELECT FROM pg_constraint AS x WHERE x.conindid = i.indexrelid)$$,
           'no unique index beside the constraints');

-- Roles.
SELECT is_empty($$SELECT rolname FROM pg_roles WHERE rolname LIKE 'postern\_%'
                AND (rolcanlogin OR rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb)$$,
                    'no role can log in, bypass row security or create anything');
SELECT is((SELECT count(*)::int FROM pg_roles WHERE rolname IN ('postern_owner', 'postern_app', 'postern_admin')), 3,
          'the three roles exist');
SELECT is_empty($$SELECT objid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass
                AND refobjid IN ('postern_app'::regrole, 'postern_admin'::regrole) AND deptype = 'o'$$,
                    'the app and admin roles own nothing');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
                AND relowner <> 'postern_owner'::regrole$$, 'postern_owner owns every relation');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
                AND proowner <> 'postern_owner'::regrole$$, 'postern_owner owns every function');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
    AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) AS a WHERE a.grantee = 0))$$,
        'no function is for PUBLIC');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
                AND EXISTS (SELECT FROM aclexplode(relacl) AS a WHERE a.grantee = 0)$$, 'no relation is for PUBLIC');
SELECT ok(NOT has_schema_privilege('postern_admin', 'postern', 'USAGE'),
          'postern_admin cannot reach into schema postern');
SELECT ok(NOT has_schema_privilege('postern_app', 'admin', 'USAGE'), 'postern_app cannot reach into schema admin');
SELECT ok(NOT has_schema_privilege('postern_app', 'postern', 'CREATE')
          AND NOT has_schema_privilege('postern_admin', 'admin', 'CREATE'), 'neither can create objects');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r'
                AND has_table_privilege('postern_app', oid, 'TRUNCATE, REFERENCES, TRIGGER')$$,
                    'the app role may not truncate, reference or add triggers');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r'
                AND has_any_column_privilege('postern_admin', oid, 'SELECT, INSERT, UPDATE')$$,
                    'the admin role has no right on any table');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace = 'admin'::regnamespace
                AND NOT (prosecdef AND has_function_privilege('postern_admin', oid, 'EXECUTE'))$$,
                    'postern_admin may call every admin function');

-- Functions.
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc
                WHERE pronamespace IN ('postern'::regnamespace, 'admin'::regnamespace) AND prosecdef
    AND NOT coalesce(proconfig @> ARRAY['search_path=pg_catalog, postern, pg_temp'], false)$$,
        'every SECURITY DEFINER function has a fixed search_path that ends in pg_temp');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc
                WHERE pronamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
                  AND obj_description(oid, 'pg_proc') IS NULL$$, 'every function has a comment');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'admin'::regnamespace
                AND obj_description(oid, 'pg_proc') !~ 'Example: SELECT admin\.'$$,
                    'the comment of every admin function ends with an example');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace IN ('postern'::regnamespace, 'admin'::regnamespace)
                AND relkind IN ('r', 'v', 'S') AND relname NOT LIKE '%\_id\_seq'
                AND obj_description(oid, 'pg_class') IS NULL$$, 'every table, view and sequence has a comment');

-- Views show no secret.
SELECT is_empty($$SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
                AND a.attnum > 0 JOIN pg_type AS y ON y.oid = a.atttypid
     WHERE c.relnamespace = 'admin'::regnamespace AND ('bytea'::regtype IN (a.atttypid, y.typbasetype)
          OR a.attname ~ '(hash|sealed|payload|salt|mac|stamp|credential|public_key|code_ids)')$$,
    'no admin view has a secret column');
SELECT bag_has($$SELECT relname::text FROM pg_class WHERE relnamespace = 'admin'::regnamespace$$,
    $$VALUES ('realms'), ('clients'), ('permissions'), ('users'), ('passkeys'), ('sessions'), ('audit_log'), ('outbox'),
        ('rate_limits'), ('signing_keys')$$, 'all published views exist');

SELECT is((SELECT count(*)::int FROM postern.realm) + (SELECT count(*)::int FROM postern.client) + (SELECT count(*)::int
    FROM postern.user_account)
        + (SELECT count(*)::int FROM postern.signing_key), 0, 'a fresh installation has no realm, client, user or key');
SELECT * FROM finish();
ROLLBACK;
