-- Tokens, handles and codes that are bound to a key of the device (RFC 9449), and the store of used proofs.
SET LOCAL ROLE postern_owner;

-- The statement that opens a session or records a request says in these settings which key it came with
-- (postern.with_proof). The columns have their defaults afterwards, so that no existing row is rewritten.
ALTER TABLE postern.session
    ADD COLUMN jkt bytea,
    ADD CONSTRAINT session_jkt CHECK (octet_length(jkt) = 32) NOT VALID;
ALTER TABLE postern.session
    ALTER COLUMN jkt SET DEFAULT decode(NULLIF(current_setting('postern.binding_key', true), ''), 'hex');
ALTER TABLE postern.session ADD COLUMN bound_from integer;
COMMENT ON COLUMN postern.session.bound_from IS
    'The first generation of refresh tokens that is bound to jkt, of a family that a refresh bound; NULL: all of them';
COMMENT ON COLUMN postern.session.jkt IS
    'SHA-256 thumbprint (RFC 7638) of the key that its refresh tokens are bound to; NULL: none';

ALTER TABLE postern.auth_session
    ADD COLUMN jkt bytea,
    ADD CONSTRAINT auth_session_jkt CHECK (octet_length(jkt) = 32) NOT VALID;
ALTER TABLE postern.auth_session
    ALTER COLUMN jkt SET DEFAULT decode(NULLIF(current_setting('postern.proof_key', true), ''), 'hex');
COMMENT ON COLUMN postern.auth_session.jkt IS
    'Thumbprint of the key that must be proven when the handle is redeemed; NULL: none';

ALTER TABLE postern.login_code ADD COLUMN jkt bytea;
COMMENT ON COLUMN postern.login_code.jkt IS 'Of the handle that it was sent for';

ALTER TABLE postern.authorization_code ADD COLUMN jkt bytea;
COMMENT ON COLUMN postern.authorization_code.jkt IS
    'Thumbprint of the key that must be proven when the code is redeemed (RFC 9449 section 10); NULL: none';
ALTER TABLE postern.address_proof ADD COLUMN jkt bytea;
COMMENT ON COLUMN postern.address_proof.jkt IS 'As in authorization_code';

-- Not logged: after a crash of PostgreSQL or a failover the tables are empty, and proofs from before are refused by
-- used_proof_since. A ring of ten slots of five minutes by the proof's own time, so that a replay meets its slot. Old slots
-- are truncated.
CREATE UNLOGGED TABLE postern.used_proof (
    realm_id uuid NOT NULL,
    slot     smallint NOT NULL,
    id       bytea NOT NULL,
    mark     bytea NOT NULL,
    PRIMARY KEY (realm_id, slot, id)
) PARTITION BY LIST (slot);
COMMENT ON TABLE postern.used_proof IS 'Proofs of possession that were used (RFC 9449 section 11.1); not logged';
COMMENT ON COLUMN postern.used_proof.id IS 'SHA-256 over the thumbprint of the key and jti';
COMMENT ON COLUMN postern.used_proof.mark IS 'Of the request that used it, which may run its statement again';
DO $do$
BEGIN
    PERFORM postern.tenant_table('used_proof', 'SELECT', 'keep');
    FOR v_slot IN 0..9 LOOP
        EXECUTE format('CREATE UNLOGGED TABLE postern.used_proof_%s PARTITION OF postern.used_proof FOR VALUES IN (%s)',
                       v_slot, v_slot);
        EXECUTE format('COMMENT ON TABLE postern.used_proof_%s IS %L', v_slot, 'A slot of used_proof');
        PERFORM postern.tenant_table('used_proof_' || v_slot, 'SELECT, INSERT', 'keep');
    END LOOP;
END
$do$;

-- Not logged either: PostgreSQL resets it, to a value that was not called, when it empties the tables.
CREATE UNLOGGED SEQUENCE postern.used_proof_since AS bigint MINVALUE 0 START 0;
COMMENT ON SEQUENCE postern.used_proof_since IS
    'Since when used proofs are remembered: milliseconds since the epoch; not called: they were forgotten';
-- No proof was used before.
DO $do$ BEGIN PERFORM setval('postern.used_proof_since', 0); END $do$;
REVOKE ALL ON SEQUENCE postern.used_proof_since FROM PUBLIC;
GRANT SELECT, UPDATE ON SEQUENCE postern.used_proof_since TO postern_app;

RESET ROLE;
