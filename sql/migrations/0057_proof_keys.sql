-- Used proofs are found by a number of eight bytes instead of realm, slot and 32 bytes: the index is a third as large,
-- and each proof goes through it. Vacuum has nothing to do in slots that are truncated as a whole.
--
-- The store begins anew, as after a crash: it has no key for what it holds, and to make them takes as long as there
-- are proofs. For a minute proofs without a nonce of later are answered use_dpop_nonce. Where no proof was used,
-- nothing is forgotten.
SET LOCAL ROLE postern_owner;

LOCK TABLE postern.used_proof IN ACCESS EXCLUSIVE MODE;
UPDATE postern.schema_proof_store AS s SET since = (date_part('epoch', clock_timestamp()) * 1000)::bigint
 WHERE s.since < date_part('epoch', clock_timestamp()) * 1000 AND EXISTS (SELECT FROM postern.used_proof);
TRUNCATE postern.used_proof;

-- id and mark stay for statements that wait for this transaction, and go with a later release. Such a statement has a
-- proof that the store is too young for from now on.
ALTER TABLE postern.used_proof DROP CONSTRAINT used_proof_pkey;
ALTER TABLE postern.used_proof
    ALTER COLUMN id DROP NOT NULL,
    ALTER COLUMN mark DROP NOT NULL,
    ADD COLUMN key bigint,
    ADD COLUMN used_by bigint;
COMMENT ON COLUMN postern.used_proof.id IS 'Not used any more';
COMMENT ON COLUMN postern.used_proof.mark IS 'Not used any more';
COMMENT ON COLUMN postern.used_proof.key IS
    'The first eight bytes of SHA-256 over the thumbprint of the key and jti, and postern.proof_mix of the realm';
COMMENT ON COLUMN postern.used_proof.used_by IS 'Mark of the request that used it, which may run its statement again';
DO $do$ BEGIN
    FOR v_slot IN 0..9 LOOP
        EXECUTE format('ALTER TABLE postern.used_proof_%1$s ADD CONSTRAINT used_proof_%1$s_key UNIQUE (key)', v_slot);
        EXECUTE format('ALTER TABLE postern.used_proof_%s SET (autovacuum_enabled = off)', v_slot);
    END LOOP;
END $do$;

-- With the tables, so that no statement finds the one without the other; sql/functions has it with its reasons.
CREATE OR REPLACE FUNCTION postern.proof_mix(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || translate(left(p_realm::text, 18), '-', ''))::bit(64)::bigint;
GRANT EXECUTE ON FUNCTION postern.proof_mix TO postern_app;

CREATE OR REPLACE FUNCTION postern.mark_proof(p_realm uuid, p_proof bytea) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_time bigint := ('x' || encode(substr(p_proof, 65, 8), 'hex'))::bit(64)::bigint;
    v_before bigint := v_time - 60000 * (1 - (get_byte(p_proof, 80) & 1));
    v_slot integer := v_time / 300000 % 10;
    v_key bigint := ('x' || encode(substr(p_proof, 33, 8), 'hex'))::bit(64)::bigint # postern.proof_mix(p_realm);
    v_mark bigint := ('x' || encode(substr(p_proof, 73, 8), 'hex'))::bit(64)::bigint;
    v_used_by bigint;
BEGIN
    CASE v_slot
        WHEN 0 THEN
            INSERT INTO postern.used_proof_0 (realm_id, slot, key, used_by)
            SELECT p_realm, 0, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 1 THEN
            INSERT INTO postern.used_proof_1 (realm_id, slot, key, used_by)
            SELECT p_realm, 1, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 2 THEN
            INSERT INTO postern.used_proof_2 (realm_id, slot, key, used_by)
            SELECT p_realm, 2, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 3 THEN
            INSERT INTO postern.used_proof_3 (realm_id, slot, key, used_by)
            SELECT p_realm, 3, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 4 THEN
            INSERT INTO postern.used_proof_4 (realm_id, slot, key, used_by)
            SELECT p_realm, 4, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 5 THEN
            INSERT INTO postern.used_proof_5 (realm_id, slot, key, used_by)
            SELECT p_realm, 5, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 6 THEN
            INSERT INTO postern.used_proof_6 (realm_id, slot, key, used_by)
            SELECT p_realm, 6, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 7 THEN
            INSERT INTO postern.used_proof_7 (realm_id, slot, key, used_by)
            SELECT p_realm, 7, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        WHEN 8 THEN
            INSERT INTO postern.used_proof_8 (realm_id, slot, key, used_by)
            SELECT p_realm, 8, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO postern.used_proof_9 (realm_id, slot, key, used_by)
            SELECT p_realm, 9, v_key, v_mark FROM postern.schema_proof_store AS s WHERE s.since < v_before
                ON CONFLICT DO NOTHING;
    END CASE;
    IF FOUND THEN
        RETURN 'fresh';
    END IF;
    SELECT x.used_by INTO v_used_by
      FROM postern.used_proof AS x WHERE x.realm_id = p_realm AND x.slot = v_slot AND x.key = v_key;
    RETURN CASE WHEN v_used_by IS NULL THEN 'old' WHEN v_used_by = v_mark THEN 'fresh' ELSE 'used' END;
END
$$;

RESET ROLE;
