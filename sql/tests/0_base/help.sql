-- The manual in SQL.
\ir ../helpers/setup.psql
BEGIN;
SELECT no_plan();
SET LOCAL ROLE admin_login;
SELECT is((SELECT count(*) FROM admin.help AS h WHERE h.kind = 'function'),
          (SELECT count(*) FROM pg_proc WHERE pronamespace = 'admin'::regnamespace), 'every function is in the manual');
SELECT is((SELECT count(*) FROM admin.help AS h WHERE h.kind = 'view'),
          (SELECT count(*) FROM pg_views WHERE schemaname = 'admin'), 'and every view');
SELECT is(array(SELECT h.name FROM admin.help AS h
                 WHERE num_nulls(h.signature, h.summary, h.description, h.example) > 0 OR h.summary ~ '\n'
                    OR length(h.summary) > 250), '{}', 'each has a signature, a summary of one line, and an example');
SELECT is(array(SELECT h.name FROM admin.help AS h WHERE h.example NOT LIKE '%admin.' || h.name || '%'), '{}',
          'the example is of the function or view');
SELECT is(array(SELECT h.name FROM admin.help AS h WHERE h.description ~ 'Example:'), '{}', 'and stands apart');
SELECT is((SELECT h.signature FROM admin.help AS h WHERE h.name = 'delete_webhook'),
          'admin.delete_webhook(realm text, name text) RETURNS void', 'a signature');
SELECT matches((SELECT h.signature FROM admin.help AS h WHERE h.name = 'put_webhook'),
               'url text DEFAULT NULL, events text\[\] DEFAULT NULL, ', 'with its defaults');
SELECT is((SELECT h.summary FROM admin.help AS h WHERE h.name = 'put_webhook'),
          'Names or changes a receiver of events.', 'a summary');
SELECT matches((SELECT h.example FROM admin.help AS h WHERE h.name = 'put_webhook'),
               '\ASELECT admin.put_webhook\(.*;\nSELECT admin.put_webhook\(.*;\Z', 'all examples');
SELECT is((SELECT h.signature || ' ' || h.example FROM admin.help AS h WHERE h.name = 'event_types'),
          'admin.event_types (event, type) SELECT * FROM admin.event_types;', 'a view');
SELECT * FROM finish();
ROLLBACK;
