-- Since when used proofs are remembered is a row of a table. It was an unlogged sequence, which PostgreSQL 15 loses
-- when a standby takes over before the first checkpoint after the migration: then every request with a proof failed.
-- Tables have an empty form that standbys get at once.
SET LOCAL ROLE postern_owner;

CREATE UNLOGGED TABLE postern.schema_proof_store (
    is_present boolean PRIMARY KEY DEFAULT true CHECK (is_present),
    since      bigint NOT NULL CHECK (since >= 0)
);
COMMENT ON TABLE postern.schema_proof_store IS
    'What used_proof remembers; one row, no tenant data, no row: all was forgotten; emptied together with used_proof';
COMMENT ON COLUMN postern.schema_proof_store.since IS
    'Proofs from before this time are refused, for those used by then are not known: milliseconds since the epoch';
REVOKE ALL ON postern.schema_proof_store FROM PUBLIC;
GRANT SELECT, INSERT ON postern.schema_proof_store TO postern_app;

-- What the sequence says; the functions of before, which read the sequence, are replaced next. A database that has
-- lost it begins anew, as after a crash. The sequence goes with a later release.
DO $do$ BEGIN
    INSERT INTO postern.schema_proof_store (since)
    SELECT s.last_value FROM postern.used_proof_since AS s WHERE s.is_called;
EXCEPTION WHEN data_corrupted OR internal_error OR undefined_file THEN
    NULL;
END $do$;

RESET ROLE;
