-- How a statement that takes a caller begins.
SET LOCAL ROLE postern_owner;

-- The realm of the transaction, the permits, then the proof: a refusal for want of permits uses up no proof, and a
-- proof that fails takes back the permits too. outcome is rate_limited when a permit was refused, which limit_ord
-- names, and else NULL.
CREATE OR REPLACE FUNCTION postern.admit(p_caller postern.caller, p_permits postern.permits)
RETURNS postern.sign_in_result
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_caller.realm::text, true);
    v postern.sign_in_result;
BEGIN
    v.db_now := date_part('epoch', now());
    v.compared := 0;
    IF cardinality(p_permits.keys) > 0 THEN
        SELECT t.outcome, t.limit_ord, t.retry_after, t.granted
          INTO v.outcome, v.limit_ord, v.retry_after, v.granted
          FROM postern.enter_realm(p_caller.realm, p_permits) AS t;
        IF v.outcome IS NOT NULL THEN
            RETURN v;
        END IF;
    END IF;
    IF (p_caller.proof).slot IS NOT NULL THEN
        PERFORM postern.use_proof(p_caller.realm, p_caller.proof);
    END IF;
    RETURN v;
END
$$;
COMMENT ON FUNCTION postern.admit IS
    'Begins a statement: sets its realm, takes its permits and uses up its proof; limit_ord names a refused permit';
GRANT EXECUTE ON FUNCTION postern.admit TO postern_app;

RESET ROLE;
