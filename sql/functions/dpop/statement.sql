-- The proof of possession of a key (RFC 9449) that a statement came with.
--
-- A statement hands its proof over as text of 127 characters, whose numbers PostgreSQL reads for less than bytes:
-- thumbprint of the key, hexadecimal (64); 1 when what the request opens is bound to the key, else 0 (1); slot (2), the
-- moment before which the store must have begun (20), key of the used proof (20) and mark of the request (20), as
-- use_up_proof takes them, with spaces before the digits.
SET LOCAL ROLE postern_owner;

-- Used in place of an argument of a statement, as opened_from is. Columns of what the statement writes read the keys.
-- One expression, which PostgreSQL puts into the statement in place of the call: it costs less than a call.
CREATE OR REPLACE FUNCTION postern.with_dpop_proof(p_value text, p_proof text) RETURNS text
LANGUAGE sql
RETURN CASE WHEN p_proof IS NULL
              OR (set_config('postern.proof', substr(p_proof, 66), true)
                  || set_config('postern.proof_key', left(p_proof, 64), true)
                  || set_config('postern.binding_key', CASE substr(p_proof, 65, 1) WHEN '1' THEN left(p_proof, 64)
                                                       ELSE '' END, true))
                 IS NOT NULL
            THEN p_value END;
COMMENT ON FUNCTION postern.with_dpop_proof(text, text) IS
    'The value as it is; the statement came with this proof';
GRANT EXECUTE ON FUNCTION postern.with_dpop_proof(text, text) TO postern_app;

CREATE OR REPLACE FUNCTION postern.with_dpop_proof(p_value uuid, p_proof text) RETURNS uuid
LANGUAGE sql
RETURN postern.with_dpop_proof(p_value::text, p_proof)::uuid;
COMMENT ON FUNCTION postern.with_dpop_proof(uuid, text) IS
    'The value as it is; the statement came with this proof';
GRANT EXECUTE ON FUNCTION postern.with_dpop_proof(uuid, text) TO postern_app;

-- The key that the statement came with.
CREATE OR REPLACE FUNCTION postern.proof_key() RETURNS bytea
LANGUAGE sql STABLE
RETURN decode(NULLIF(current_setting('postern.proof_key', true), ''), 'hex');
COMMENT ON FUNCTION postern.proof_key IS 'Thumbprint of the key whose proof came with this statement; NULL: none came';
GRANT EXECUTE ON FUNCTION postern.proof_key TO postern_app;

-- p_failure: what use_up_proof returned: NULL for a fresh proof, with which PostgreSQL does not call a STRICT function.
CREATE OR REPLACE FUNCTION postern.refuse_proof(p_failure text) RETURNS void
LANGUAGE plpgsql STRICT
AS $$
BEGIN
    CASE p_failure
        WHEN 'used' THEN RAISE EXCEPTION 'the proof was used before' USING ERRCODE = 'PD001';
        WHEN 'old' THEN RAISE EXCEPTION 'the proof is older than the store of used proofs' USING ERRCODE = 'PD002';
    END CASE;
END
$$;
COMMENT ON FUNCTION postern.refuse_proof IS
    'Fails as use_up_proof says; exception PD001: used before; PD002: older than the store';
GRANT EXECUTE ON FUNCTION postern.refuse_proof TO postern_app;

-- Called by each statement that takes a proof, once its permits are granted and before anything else is looked at. The
-- exceptions take back the permits too.
CREATE OR REPLACE FUNCTION postern.use_proof(p_realm uuid) RETURNS void
LANGUAGE sql
RETURN postern.refuse_proof(CASE length(current_setting('postern.proof', true))
           WHEN 62 THEN
               postern.use_up_proof(
                   p_realm, substr(current_setting('postern.proof', true), 1, 2)::integer,
                   substr(current_setting('postern.proof', true), 3, 20)::bigint,
                   substr(current_setting('postern.proof', true), 23, 20)::bigint,
                   substr(current_setting('postern.proof', true), 43, 20)::bigint)
           ELSE NULLIF(current_setting('postern.proof', true), '')
       END);
COMMENT ON FUNCTION postern.use_proof IS
    'Uses up the proof that the statement came with, if any; exception PD001: used before; PD002: older than the store';
GRANT EXECUTE ON FUNCTION postern.use_proof TO postern_app;

CREATE OR REPLACE FUNCTION postern.spend_proof(
    p_realm uuid, p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
    IF outcome IS NULL THEN
        PERFORM postern.use_proof(p_realm);
        outcome := 'fresh';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.spend_proof IS
    'For requests that write nothing but their proof: takes permits and uses it up';
GRANT EXECUTE ON FUNCTION postern.spend_proof TO postern_app;

RESET ROLE;
