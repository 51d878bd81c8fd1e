-- Used proofs of possession of a key (RFC 9449): each proof is used once.
--
-- A packed proof has 81 bytes: thumbprint of the key (32), id (32), its own time in milliseconds (8), mark of the
-- request (8), flags (1): 1 = its time is a nonce's, 2 = what the request opens is bound to the key.
SET LOCAL ROLE postern_owner;

-- By realm: what is added to the keys of its used proofs, so that proofs of two realms never meet.
CREATE OR REPLACE FUNCTION postern.proof_mix(p_realm uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || translate(left(p_realm::text, 18), '-', ''))::bit(64)::bigint;
COMMENT ON FUNCTION postern.proof_mix IS
    'The first half of the id of a realm as a number, for the keys of used proofs';
GRANT EXECUTE ON FUNCTION postern.proof_mix TO postern_app;

-- NULL: the proof was fresh, and is used now; used; old: from before the store began, so the database cannot know.
-- p_slot: five minutes of the proof's own time, in turn 0 to 9. p_before: its own time in milliseconds; for an iat a
-- minute less, because it may be a minute ahead of the moment in which its proof is used. p_key: the first eight bytes
-- of its id, mixed (#) with proof_mix of the realm. p_used_by: mark of the request; a proof whose request runs its
-- statement again is fresh again.
--
-- Each slot has a statement of its own, because to find the partition of a row costs more than to insert it. Arguments
-- are numbers, and comparisons few: PostgreSQL prepares each expression and each conversion anew in each transaction,
-- which costs more than to evaluate it.
CREATE OR REPLACE FUNCTION postern.use_up_proof(
    p_realm uuid, p_slot integer, p_before bigint, p_key bigint, p_used_by bigint) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_used_by bigint;
BEGIN
    IF p_slot < 5 THEN
        IF p_slot < 2 THEN
            IF p_slot = 0 THEN
                INSERT INTO postern.used_proof_0 (realm_id, slot, key, used_by)
                SELECT p_realm, 0, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                    ON CONFLICT DO NOTHING;
            ELSE
                INSERT INTO postern.used_proof_1 (realm_id, slot, key, used_by)
                SELECT p_realm, 1, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                    ON CONFLICT DO NOTHING;
            END IF;
        ELSIF p_slot = 2 THEN
            INSERT INTO postern.used_proof_2 (realm_id, slot, key, used_by)
            SELECT p_realm, 2, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                ON CONFLICT DO NOTHING;
        ELSIF p_slot = 3 THEN
            INSERT INTO postern.used_proof_3 (realm_id, slot, key, used_by)
            SELECT p_realm, 3, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO postern.used_proof_4 (realm_id, slot, key, used_by)
            SELECT p_realm, 4, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                ON CONFLICT DO NOTHING;
        END IF;
    ELSIF p_slot < 7 THEN
        IF p_slot = 5 THEN
            INSERT INTO postern.used_proof_5 (realm_id, slot, key, used_by)
            SELECT p_realm, 5, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO postern.used_proof_6 (realm_id, slot, key, used_by)
            SELECT p_realm, 6, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
                ON CONFLICT DO NOTHING;
        END IF;
    ELSIF p_slot = 7 THEN
        INSERT INTO postern.used_proof_7 (realm_id, slot, key, used_by)
        SELECT p_realm, 7, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
            ON CONFLICT DO NOTHING;
    ELSIF p_slot = 8 THEN
        INSERT INTO postern.used_proof_8 (realm_id, slot, key, used_by)
        SELECT p_realm, 8, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
            ON CONFLICT DO NOTHING;
    ELSE
        INSERT INTO postern.used_proof_9 (realm_id, slot, key, used_by)
        SELECT p_realm, 9, p_key, p_used_by FROM postern.schema_proof_store AS s WHERE s.since < p_before
            ON CONFLICT DO NOTHING;
    END IF;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT x.used_by INTO v_used_by
      FROM postern.used_proof AS x WHERE x.realm_id = p_realm AND x.slot = p_slot AND x.key = p_key;
    RETURN CASE WHEN v_used_by IS NULL THEN 'old' WHEN v_used_by = p_used_by THEN NULL ELSE 'used' END;
END
$$;
COMMENT ON FUNCTION postern.use_up_proof IS
    'Uses up a proof of possession; NULL, or why not: used before, or older than the store';
GRANT EXECUTE ON FUNCTION postern.use_up_proof TO postern_app;

-- Of a packed proof, as use_up_proof takes them.
CREATE OR REPLACE FUNCTION postern.proof_slot(p_proof bytea) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (('x' || encode(substr(p_proof, 65, 8), 'hex'))::bit(64)::bigint / 300000 % 10)::integer;
COMMENT ON FUNCTION postern.proof_slot IS 'The slot of a packed proof';
GRANT EXECUTE ON FUNCTION postern.proof_slot TO postern_app;

CREATE OR REPLACE FUNCTION postern.proof_before(p_proof bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || encode(substr(p_proof, 65, 8), 'hex'))::bit(64)::bigint - 60000 * (1 - (get_byte(p_proof, 80) & 1));
COMMENT ON FUNCTION postern.proof_before IS 'The moment before which the store must have begun for a packed proof';
GRANT EXECUTE ON FUNCTION postern.proof_before TO postern_app;

-- The same for a packed proof: fresh, used or old.
CREATE OR REPLACE FUNCTION postern.mark_proof(p_realm uuid, p_proof bytea) RETURNS text
LANGUAGE sql
RETURN coalesce(
    postern.use_up_proof(
        p_realm, postern.proof_slot(p_proof), postern.proof_before(p_proof),
        ('x' || encode(substr(p_proof, 33, 8), 'hex'))::bit(64)::bigint # postern.proof_mix(p_realm),
        ('x' || encode(substr(p_proof, 73, 8), 'hex'))::bit(64)::bigint),
    'fresh');
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
        IF p_slot < 5 THEN
            IF p_slot < 2 THEN
                IF p_slot = 0 THEN
                    INSERT INTO postern.used_proof_0 (realm_id, slot, key, used_by)
                    SELECT p_realm, 0, unnest(p_keys) # v_mix, unnest(p_used_by)
                      FROM postern.schema_proof_store AS s WHERE s.since < p_before;
                ELSE
                    INSERT INTO postern.used_proof_1 (realm_id, slot, key, used_by)
                    SELECT p_realm, 1, unnest(p_keys) # v_mix, unnest(p_used_by)
                      FROM postern.schema_proof_store AS s WHERE s.since < p_before;
                END IF;
            ELSIF p_slot = 2 THEN
                INSERT INTO postern.used_proof_2 (realm_id, slot, key, used_by)
                SELECT p_realm, 2, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            ELSIF p_slot = 3 THEN
                INSERT INTO postern.used_proof_3 (realm_id, slot, key, used_by)
                SELECT p_realm, 3, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            ELSE
                INSERT INTO postern.used_proof_4 (realm_id, slot, key, used_by)
                SELECT p_realm, 4, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            END IF;
        ELSIF p_slot < 7 THEN
            IF p_slot = 5 THEN
                INSERT INTO postern.used_proof_5 (realm_id, slot, key, used_by)
                SELECT p_realm, 5, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            ELSE
                INSERT INTO postern.used_proof_6 (realm_id, slot, key, used_by)
                SELECT p_realm, 6, unnest(p_keys) # v_mix, unnest(p_used_by)
                  FROM postern.schema_proof_store AS s WHERE s.since < p_before;
            END IF;
        ELSIF p_slot = 7 THEN
            INSERT INTO postern.used_proof_7 (realm_id, slot, key, used_by)
            SELECT p_realm, 7, unnest(p_keys) # v_mix, unnest(p_used_by)
              FROM postern.schema_proof_store AS s WHERE s.since < p_before;
        ELSIF p_slot = 8 THEN
            INSERT INTO postern.used_proof_8 (realm_id, slot, key, used_by)
            SELECT p_realm, 8, unnest(p_keys) # v_mix, unnest(p_used_by)
              FROM postern.schema_proof_store AS s WHERE s.since < p_before;
        ELSE
            INSERT INTO postern.used_proof_9 (realm_id, slot, key, used_by)
            SELECT p_realm, 9, unnest(p_keys) # v_mix, unnest(p_used_by)
              FROM postern.schema_proof_store AS s WHERE s.since < p_before;
        END IF;
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

-- After PD002: the store begins to remember used proofs. Returns the time from which it does, in seconds since the
-- epoch; nonces from after that time are taken. If two calls begin the store at once, the second waits for the first
-- one's row. p_after: the store begins no earlier than this time (seconds since the epoch). A standby that takes over
-- may have a clock that is behind, and by its own time it would take used proofs again. The bound of two minutes limits
-- the harm of a node whose clock is far ahead: until that time all proofs are refused.
CREATE OR REPLACE FUNCTION postern.begin_proof_store(p_after double precision) RETURNS double precision
LANGUAGE plpgsql
AS $$
DECLARE
    v_now double precision := date_part('epoch', clock_timestamp());
BEGIN
    INSERT INTO postern.schema_proof_store (since)
    VALUES ((greatest(v_now, least(p_after, v_now + 120)) * 1000)::bigint)
        ON CONFLICT DO NOTHING;
    RETURN (SELECT s.since / 1000.0 FROM postern.schema_proof_store AS s);
END
$$;
COMMENT ON FUNCTION postern.begin_proof_store(double precision) IS
    'Since when used proofs are remembered; begins now, or at p_after if that is later, when the store is empty';
GRANT EXECUTE ON FUNCTION postern.begin_proof_store(double precision) TO postern_app;

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
