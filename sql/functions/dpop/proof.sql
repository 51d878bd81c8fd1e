-- Proofs of possession of a key (RFC 9449): which one a statement came with, and that each is used once.
--
-- A packed proof has 81 bytes: thumbprint of the key (32), id (32), its own time in milliseconds (8), mark of the
-- request (8), flags (1): 1 = its time is a nonce's, 2 = what the request opens is bound to the key.
SET LOCAL ROLE postern_owner;

-- Used in place of an argument of a statement, as opened_from is. Columns of what the statement writes read the keys.
-- One expression, which PostgreSQL puts into the statement in place of the call: it costs less than a call.
CREATE OR REPLACE FUNCTION postern.with_proof(p_value text, p_proof bytea) RETURNS text
LANGUAGE sql
RETURN CASE WHEN p_proof IS NULL
              OR (set_config('postern.proof', encode(p_proof, 'hex'), true)
                  || set_config('postern.proof_key', encode(substr(p_proof, 1, 32), 'hex'), true)
                  || set_config('postern.binding_key', CASE get_byte(p_proof, 80) & 2 WHEN 0 THEN ''
                                                       ELSE encode(substr(p_proof, 1, 32), 'hex') END, true))
                 IS NOT NULL
            THEN p_value END;
COMMENT ON FUNCTION postern.with_proof(text, bytea) IS 'The value as it is; the statement came with this proof';
GRANT EXECUTE ON FUNCTION postern.with_proof(text, bytea) TO postern_app;

CREATE OR REPLACE FUNCTION postern.with_proof(p_value uuid, p_proof bytea) RETURNS uuid
LANGUAGE sql
RETURN postern.with_proof(p_value::text, p_proof)::uuid;
COMMENT ON FUNCTION postern.with_proof(uuid, bytea) IS 'The value as it is; the statement came with this proof';
GRANT EXECUTE ON FUNCTION postern.with_proof(uuid, bytea) TO postern_app;

-- The key that the statement came with.
CREATE OR REPLACE FUNCTION postern.proof_key() RETURNS bytea
LANGUAGE sql STABLE
RETURN decode(NULLIF(current_setting('postern.proof_key', true), ''), 'hex');
COMMENT ON FUNCTION postern.proof_key IS 'Thumbprint of the key whose proof came with this statement; NULL: none came';
GRANT EXECUTE ON FUNCTION postern.proof_key TO postern_app;

-- By realm: what is added to the keys of its used proofs, so that proofs of two realms never meet.
CREATE OR REPLACE FUNCTION postern.proof_mix(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || translate(left(p_realm::text, 18), '-', ''))::bit(64)::bigint;
COMMENT ON FUNCTION postern.proof_mix IS
    'The first half of the id of a realm as a number, for the keys of used proofs';
GRANT EXECUTE ON FUNCTION postern.proof_mix TO postern_app;

-- fresh; used; old: from before the store began, so the database cannot know. An iat may be a minute ahead of the
-- moment in which its proof is used. A proof whose request runs its statement again (mark) is fresh again. Each slot
-- has a statement of its own, because to find the partition of a row costs more than to insert it.
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
COMMENT ON FUNCTION postern.mark_proof IS 'Uses up a proof of possession: fresh, used before, or older than the store';
GRANT EXECUTE ON FUNCTION postern.mark_proof TO postern_app;

-- Uses up the proofs of a batch by one statement, which costs less than half of mark_proof for each. True when all were
-- fresh; otherwise none of them is used up, and mark_proof says what holds for each. A subtransaction, because ON
-- CONFLICT looks each key up twice. p_slot: of all of them; p_before: the least of what the store must have begun
-- before, as in mark_proof; p_keys: the first eight bytes of each proof's id, ascending, so that two batches with equal
-- proofs cannot deadlock; p_used_by: the marks.
CREATE OR REPLACE FUNCTION postern.mark_proofs(
    p_realm uuid, p_slot integer, p_before bigint, p_keys bigint[], p_used_by bigint[]) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
    v_mix bigint := postern.proof_mix(p_realm);
    v_marked integer;
BEGIN
    BEGIN
        CASE p_slot
            WHEN 0 THEN
                INSERT INTO postern.used_proof_0 (realm_id, slot, key, used_by)
                SELECT p_realm, 0, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 1 THEN
                INSERT INTO postern.used_proof_1 (realm_id, slot, key, used_by)
                SELECT p_realm, 1, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 2 THEN
                INSERT INTO postern.used_proof_2 (realm_id, slot, key, used_by)
                SELECT p_realm, 2, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 3 THEN
                INSERT INTO postern.used_proof_3 (realm_id, slot, key, used_by)
                SELECT p_realm, 3, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 4 THEN
                INSERT INTO postern.used_proof_4 (realm_id, slot, key, used_by)
                SELECT p_realm, 4, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 5 THEN
                INSERT INTO postern.used_proof_5 (realm_id, slot, key, used_by)
                SELECT p_realm, 5, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 6 THEN
                INSERT INTO postern.used_proof_6 (realm_id, slot, key, used_by)
                SELECT p_realm, 6, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 7 THEN
                INSERT INTO postern.used_proof_7 (realm_id, slot, key, used_by)
                SELECT p_realm, 7, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            WHEN 8 THEN
                INSERT INTO postern.used_proof_8 (realm_id, slot, key, used_by)
                SELECT p_realm, 8, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            ELSE
                INSERT INTO postern.used_proof_9 (realm_id, slot, key, used_by)
                SELECT p_realm, 9, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
        END CASE;
        GET DIAGNOSTICS v_marked = ROW_COUNT;
    EXCEPTION WHEN unique_violation THEN
        RETURN false;
    END;
    RETURN v_marked = cardinality(p_keys);
END
$$;
COMMENT ON FUNCTION postern.mark_proofs IS
    'Uses up the proofs of a batch; whether all were fresh';
GRANT EXECUTE ON FUNCTION postern.mark_proofs TO postern_app;

-- Called by each statement that takes a proof, once its permits are granted and before anything else is looked at. The
-- exceptions undo the permits too: such a request costs nobody anything.
CREATE OR REPLACE FUNCTION postern.use_proof(p_realm uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_proof text := NULLIF(current_setting('postern.proof', true), '');
BEGIN
    IF v_proof IS NULL THEN
        RETURN;
    END IF;
    CASE postern.mark_proof(p_realm, decode(v_proof, 'hex'))
        WHEN 'used' THEN RAISE EXCEPTION 'the proof was used before' USING ERRCODE = 'PD001';
        WHEN 'old' THEN RAISE EXCEPTION 'the proof is older than the store of used proofs' USING ERRCODE = 'PD002';
        ELSE NULL;
    END CASE;
END
$$;
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

-- After PD002: the store remembers from now on. Says since when, in seconds since the epoch: nonces of later are taken.
-- Two that begin at once: the second waits for the row of the first.
CREATE OR REPLACE FUNCTION postern.begin_proof_store() RETURNS double precision
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO postern.schema_proof_store (since) VALUES ((date_part('epoch', clock_timestamp()) * 1000)::bigint)
        ON CONFLICT DO NOTHING;
    RETURN (SELECT s.since / 1000.0 FROM postern.schema_proof_store AS s);
END
$$;
COMMENT ON FUNCTION postern.begin_proof_store IS
    'Since when used proofs are remembered; begins now when the store is empty';
GRANT EXECUTE ON FUNCTION postern.begin_proof_store TO postern_app;

-- Empties the slots that no proof can be of that would still be taken: times from 31 minutes ago, which is more than
-- the longest life of a nonce, to two minutes ahead. A slot that is in use is left for the next time.
CREATE OR REPLACE FUNCTION postern.empty_proof_slots() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_now double precision := date_part('epoch', now());
    v_emptied integer := 0;
BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    FOR v_slot IN 0..9 LOOP
        CONTINUE WHEN EXISTS (SELECT FROM generate_series(floor((v_now - 1860) / 300)::bigint,
                                                          floor((v_now + 120) / 300)::bigint) AS n
                               WHERE n % 10 = v_slot);
        CONTINUE WHEN pg_relation_size(format('postern.used_proof_%s', v_slot)::regclass) = 0;
        BEGIN
            EXECUTE format('TRUNCATE ONLY postern.used_proof_%s', v_slot);
            v_emptied := v_emptied + 1;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN v_emptied;
END
$$;
COMMENT ON FUNCTION postern.empty_proof_slots IS 'Empties slots of used proofs whose time is over; for the sweeper';

RESET ROLE;
