-- Which release the functions in force are of, and which binaries work on them. `postern migrate` writes the one row.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.schema_range (
    is_present    boolean PRIMARY KEY DEFAULT true CHECK (is_present),
    function_set  integer NOT NULL CHECK (function_set >= 0),
    oldest_binary integer NOT NULL CHECK (oldest_binary >= 0),
    changed_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE postern.schema_range IS
    'Number of the set of functions in force, and the oldest binary that works on this schema; one row, no tenant data';
COMMENT ON COLUMN postern.schema_range.oldest_binary IS
    'Number of a binary''s own set of functions. It is raised before a migration takes away what older binaries use';
REVOKE ALL ON postern.schema_range FROM PUBLIC;
GRANT SELECT ON postern.schema_range TO postern_app;

RESET ROLE;
