-- The proof of possession of a key (RFC 9449) that a statement came with.
SET LOCAL ROLE postern_owner;

-- Called by each statement that takes a proof, once its permits are granted and before anything else is looked at. The
-- exceptions take back the permits too.
CREATE OR REPLACE FUNCTION postern.use_proof(p_realm uuid, p_proof postern.proof_use) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_failure text;
BEGIN
    IF p_proof.slot IS NOT NULL THEN
        v_failure := postern.use_up_proof(p_realm, p_proof.slot, p_proof.before, p_proof.id, p_proof.used_by);
        IF v_failure = 'used' THEN
            RAISE EXCEPTION 'the proof was used before' USING ERRCODE = 'PD001';
        ELSIF v_failure = 'old' THEN
            RAISE EXCEPTION 'the proof is older than the store of used proofs' USING ERRCODE = 'PD002';
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.use_proof IS
    'Uses up the proof that a statement came with, if any; exception PD001: used before; PD002: older than the store';
GRANT EXECUTE ON FUNCTION postern.use_proof TO postern_app;

CREATE OR REPLACE FUNCTION postern.spend_proof(
    p_realm uuid, p_proof postern.proof_use, p_permits postern.permits,
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome IS NULL THEN
        PERFORM postern.use_proof(p_realm, p_proof);
        outcome := 'fresh';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.spend_proof IS
    'For requests that write nothing but their proof: takes permits and uses it up';
GRANT EXECUTE ON FUNCTION postern.spend_proof TO postern_app;

RESET ROLE;
