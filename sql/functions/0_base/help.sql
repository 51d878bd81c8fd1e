-- The manual of schema admin: what the comments of its functions and views say, in columns.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE VIEW admin.help AS
SELECT o.name, o.kind, o.signature,
       regexp_replace(coalesce(substring(t.description FROM '\A(.*?\.)(?=\s|\Z)'), t.description), '\s+', ' ', 'g')
           AS summary,
       t.description, coalesce(t.example, 'SELECT * FROM admin.' || o.name || ';') AS example
  FROM (SELECT p.proname::text AS name, 'function' AS kind, obj_description(p.oid, 'pg_proc') AS comment,
               format('admin.%s(%s) RETURNS %s', p.proname,
                      regexp_replace(pg_get_function_arguments(p.oid), '(DEFAULT (NULL|''[^'']*''))::[a-z ]+(\[\])?',
                                     '\1', 'g'),
                      pg_get_function_result(p.oid)) AS signature
          FROM pg_proc AS p WHERE p.pronamespace = 'admin'::regnamespace
        UNION ALL
        SELECT c.relname, 'view', obj_description(c.oid, 'pg_class'),
               format('admin.%s (%s)', c.relname,
                      (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute AS a
                        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))
          FROM pg_class AS c WHERE c.relnamespace = 'admin'::regnamespace AND c.relkind = 'v') AS o
 CROSS JOIN LATERAL (
      SELECT regexp_replace(o.comment, '\n*Example: .*\Z', '') AS description,
             regexp_replace(substring(o.comment FROM 'Example: (.*)\Z'), '\nExample: ', E'\n', 'g') AS example) AS t;
COMMENT ON VIEW admin.help IS
'The manual: every function and view of schema admin, what it takes, its ranges and an example.
Example: SELECT name, summary FROM admin.help ORDER BY name;
Example: SELECT signature, description, example FROM admin.help WHERE name = ''put_user'' \gx';

RESET ROLE;
