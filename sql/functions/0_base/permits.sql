-- Rate limits: what is in force for a realm, and GCRA in one row per key: tat is the time at which the bucket is empty
-- again.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('rate_bucket', 't.tat < now()')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- Of the token endpoint, and of refused calls of all others. A capability's own limits stand in its own files.
INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('token', 'source', 600, interval '1 minute', 200, 'enforce'),
    ('token', 'failures', 5, interval '10 minutes', 5, 'enforce'),
    ('token', 'client', NULL, NULL, NULL, NULL),
    ('token', 'app', NULL, NULL, NULL, NULL),
    ('refused', 'source', 600, interval '1 minute', 200, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- SECURITY DEFINER: the registry is no table of tenants, so the app role may not read it.
CREATE OR REPLACE FUNCTION postern.default_rate_limits()
RETURNS TABLE (policy text, dimension text, permits integer, per interval, burst integer, mode text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT p.policy, p.dimension, p.permits, p.per, p.burst, p.mode
      FROM postern.rate_limit_policy AS p WHERE p.permits IS NOT NULL
$$;
COMMENT ON FUNCTION postern.default_rate_limits IS 'The rate limits of a realm that overrides none';
GRANT EXECUTE ON FUNCTION postern.default_rate_limits TO postern_app, postern_admin;

CREATE OR REPLACE FUNCTION postern.effective_rate_limits(p_realm uuid)
RETURNS TABLE (policy text, dimension text, permits integer, per interval, burst integer, mode text, is_default boolean)
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(r.policy, d.policy), coalesce(r.dimension, d.dimension), coalesce(r.permits, d.permits),
           coalesce(r.per, d.per), coalesce(r.burst, d.burst), coalesce(r.mode, d.mode), r.policy IS NULL
      FROM postern.default_rate_limits() AS d
      FULL JOIN (SELECT l.policy, l.dimension, l.permits, l.per, l.burst, l.mode
                   FROM postern.rate_limit AS l WHERE l.realm_id = p_realm) AS r
        ON r.policy = d.policy AND r.dimension = d.dimension
$$;
COMMENT ON FUNCTION postern.effective_rate_limits IS 'Defaults merged with the overrides of a realm';
GRANT EXECUTE ON FUNCTION postern.effective_rate_limits TO postern_app;

-- Takes up to p_wanted[i] permits of key i, in order, and stops at the first key that has none (later keys are not
-- touched).
-- A refused key has granted = 0 and says when one permit will be available. A key of which none is wanted is looked at:
-- granted = 1 and nothing is taken, or it is refused when no permit is available. A negative p_wanted[i] is a limit in
-- mode log-only: it is counted alike, but when no permit is available it is not refused and only has granted = 0. The
-- realm is that of the transaction.
CREATE OR REPLACE FUNCTION postern.take_permits(
    p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[])
RETURNS TABLE (ord integer, granted integer, retry_after double precision)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.current_realm();
    v_wanted integer;
    v_step interval;
    v_tat timestamptz;
    v_free integer;
    v_overfull interval;
BEGIN
    FOR i IN 1 .. coalesce(cardinality(p_keys), 0) LOOP
        ord := i;
        granted := 0;
        retry_after := NULL;
        v_wanted := abs(p_wanted[i]);
        v_step := make_interval(secs => p_per[i] / p_permits[i]);
        IF v_wanted = 0 THEN
            SELECT extract(epoch FROM b.tat - now() - (p_burst[i] - 1) * v_step)::float8 INTO retry_after
              FROM postern.rate_bucket AS b
             WHERE b.realm_id = v_realm AND b.key = p_keys[i] AND b.tat > now() + (p_burst[i] - 1) * v_step
               AND b.tat <= clock_timestamp() + p_burst[i] * v_step + interval '100 milliseconds';
            granted := CASE WHEN retry_after IS NULL THEN 1 ELSE 0 END;
        ELSE
            -- A bucket above its maximum was filled under another limit or another clock: it counts as empty. (By
            -- clock_timestamp() and not by now(): after a wait for this row, now() is earlier than the value just
            -- written. A tenth of a second, because a permit is given a millionth of a step early below, and a step is
            -- a day at most: 86 ms. With less, a request in that moment would empty the bucket.)
            v_overfull := p_burst[i] * v_step + interval '100 milliseconds';
            -- All wanted permits in one statement, which waits for the row lock.
            INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)
            SELECT v_realm, p_keys[i], now() + v_wanted * v_step WHERE v_wanted <= p_burst[i]
                ON CONFLICT (realm_id, key) DO UPDATE
                   SET tat = CASE WHEN b.tat > clock_timestamp() + v_overfull THEN now()
                       ELSE greatest(b.tat, now()) END + v_wanted * v_step
                 WHERE greatest(b.tat, now()) + v_wanted * v_step <= now() + p_burst[i] * v_step
                    OR b.tat > clock_timestamp() + v_overfull
            RETURNING b.tat INTO v_tat;
            IF FOUND THEN
                granted := v_wanted;
            ELSE
                -- Fewer permits than wanted: take those that are available.
                INSERT INTO postern.rate_bucket AS b (realm_id, key, tat) VALUES (v_realm, p_keys[i], now())
                    ON CONFLICT (realm_id, key) DO UPDATE
                   SET tat = CASE WHEN b.tat > clock_timestamp() + v_overfull THEN now() ELSE greatest(b.tat, now()) END
                RETURNING b.tat INTO v_tat;
                v_free := least(v_wanted::float8, floor(extract(epoch FROM now() + p_burst[i] * v_step - v_tat)::float8
                                                           / extract(epoch FROM v_step)::float8 + 1e-6))::integer;
                IF v_free >= 1 THEN
                    UPDATE postern.rate_bucket AS b SET tat = v_tat + v_free * v_step
                     WHERE b.realm_id = v_realm AND b.key = p_keys[i];
                    granted := v_free;
                ELSIF p_wanted[i] > 0 THEN
                    retry_after := greatest(extract(epoch FROM v_tat - now() - (p_burst[i] - 1) * v_step)::float8,
                                            0.001);
                END IF;
            END IF;
        END IF;
        RETURN NEXT;
        EXIT WHEN retry_after IS NOT NULL;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.take_permits IS
    'Takes permits from the buckets of this transaction''s realm; stops at the first empty one';
GRANT EXECUTE ON FUNCTION postern.take_permits TO postern_app;

-- The first step of every limited statement: the realm of the transaction, and the permits of the request. outcome is
-- rate_limited when a permit was refused, which limit_ord names, and else NULL.
-- The hottest statements (a code, a passkey, a refresh) set the realm themselves, by an assignment, which is cheaper
-- than PERFORM, and call this only when there are permits to take.
CREATE OR REPLACE FUNCTION postern.enter_realm(
    p_realm uuid, p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
    v_permit record;
BEGIN
    IF cardinality(p_keys) > 0 THEN
        FOR v_permit IN
            SELECT t.ord, t.granted, t.retry_after
              FROM postern.take_permits(p_keys, p_wanted, p_permits, p_per, p_burst) AS t
        LOOP
            granted := granted || v_permit.granted;
            IF v_permit.retry_after IS NOT NULL THEN
                outcome := 'rate_limited';
                limit_ord := v_permit.ord;
                retry_after := v_permit.retry_after;
            END IF;
        END LOOP;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.enter_realm IS
    'Begins a limited statement: sets the realm and takes the permits of the request; limit_ord names the refused one';
GRANT EXECUTE ON FUNCTION postern.enter_realm TO postern_app;

CREATE OR REPLACE FUNCTION postern.take_realm_permits(
    p_realm uuid, p_keys text[], p_wanted integer[], p_permits integer[], p_per double precision[], p_burst integer[],
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_keys, p_wanted, p_permits, p_per, p_burst) AS t;
END
$$;
COMMENT ON FUNCTION postern.take_realm_permits IS 'Takes the permits of one request; limit_ord names the refused one';
GRANT EXECUTE ON FUNCTION postern.take_realm_permits TO postern_app;

RESET ROLE;
