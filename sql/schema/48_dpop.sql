-- Proofs of possession (RFC 9449) that were used.
SET LOCAL ROLE postern_owner;

-- Not logged: after a crash of PostgreSQL or a failover both tables are empty, and proofs from before are refused by
-- schema_proof_store. A ring of ten slots of five minutes by the proof's own time, so that a replay meets its slot. Old
-- slots are truncated, so vacuum has nothing to do. The key is a number of eight bytes without the realm: the index is
-- a third as large as one over realm, slot and 32 bytes, and each proof goes through it.
CREATE UNLOGGED TABLE postern.used_proof (
    realm_id uuid NOT NULL,
    slot     smallint NOT NULL,
    key      bigint NOT NULL,
    used_by  bigint NOT NULL
) PARTITION BY LIST (slot);
COMMENT ON TABLE postern.used_proof IS 'Proofs of possession that were used (RFC 9449 section 11.1); not logged';
COMMENT ON COLUMN postern.used_proof.key IS
    'The first eight bytes of SHA-256 over the thumbprint of the key and jti, and postern.proof_mix of the realm';
COMMENT ON COLUMN postern.used_proof.used_by IS 'Mark of the request that used it, which may run its statement again';
CALL postern.tenant_table('used_proof', 'SELECT', 'keep');
DO $do$ BEGIN
    FOR v_slot IN 0..9 LOOP
        EXECUTE format('CREATE UNLOGGED TABLE postern.used_proof_%1$s PARTITION OF postern.used_proof'
                       ' FOR VALUES IN (%1$s) WITH (autovacuum_enabled = off)', v_slot);
        EXECUTE format('ALTER TABLE postern.used_proof_%1$s ADD CONSTRAINT used_proof_%1$s_key UNIQUE (key)', v_slot);
        EXECUTE format('COMMENT ON TABLE postern.used_proof_%s IS %L', v_slot, 'A slot of used_proof');
        CALL postern.tenant_table('used_proof_' || v_slot, 'SELECT, INSERT', 'keep');
    END LOOP;
END $do$;

-- A table and not a sequence: PostgreSQL 15 loses an unlogged sequence when a standby takes over before the first
-- checkpoint after the migration. Tables have an empty form that standbys get at once.
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
-- No proof was used before.
INSERT INTO postern.schema_proof_store (since) VALUES (0);

RESET ROLE;
