-- The role of the servers, with the password of the file that they read. Runs again without harm.
\set password `cut -d: -f5 /run/secrets/serve_pgpass`
SELECT 'CREATE ROLE postern_serve LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postern_serve') \gexec
ALTER ROLE postern_serve PASSWORD :'password';
GRANT postern_app TO postern_serve;
