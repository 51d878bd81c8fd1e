-- What capabilities register instead of editing a list in another capability's file.
SET LOCAL ROLE postern_owner;

-- Administrators may call every function of schema admin and read every view of it.
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT EXECUTE ON FUNCTIONS TO postern_admin;
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT SELECT ON TABLES TO postern_admin;

RESET ROLE;
