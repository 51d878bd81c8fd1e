-- Restores of this database to an earlier time: what was sealed before one, and is in no table, is void.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.schema_restore (
    at          timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
    restored_to timestamptz NOT NULL,
    noted_by    text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE postern.schema_restore IS
    'When this database was restored from a backup, and to which moment; no tenant data';
REVOKE ALL ON postern.schema_restore FROM PUBLIC;
GRANT SELECT ON postern.schema_restore TO postern_app;

RESET ROLE;
