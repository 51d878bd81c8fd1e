\ir ../helpers/setup.psql
BEGIN;
SELECT plan(2);

-- While nodes are upgraded one after the other, older binaries call these functions: they may be rewritten, never
-- dropped.
-- A release adds its own list: scripts/sql-calls RELEASE writes it, and a line below reads it.
CREATE TEMP TABLE called (release text, signature text);
\ir called_by/version_0.psql
\ir called_by/1334bca.psql

SELECT is_empty($$
    SELECT c.release, c.signature FROM called AS c
     WHERE to_regprocedure(c.signature) IS NULL
        OR NOT has_function_privilege('postern_app', to_regprocedure(c.signature), 'EXECUTE')$$,
    'every function that an older binary calls is there for it');
SELECT results_eq('SELECT release FROM called GROUP BY release HAVING count(*) > 40 ORDER BY release',
    ARRAY['1334bca', 'version 0'], 'the lists are whole');

SELECT * FROM finish();
ROLLBACK;
