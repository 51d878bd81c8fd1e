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

-- The first step of every limited statement: the realm of the transaction, and the permits of the request. Takes up to
-- wanted[i] permits of key i, in order, and stops at the first key that has none (later keys are not touched): then
-- outcome is rate_limited, limit_ord names the key and retry_after says when one permit will be available; else outcome
-- is NULL. granted: of each key that was asked, 0 for the refused one. A key of which none is wanted is looked at:
-- granted = 1 and nothing is taken, or it is refused when no permit is available. A negative wanted[i] is a limit in
-- mode log-only: it is counted alike, but when no permit is available it is not refused and only has granted = 0.
-- The hottest statements (a code, a passkey, a refresh) set the realm themselves, by an assignment, which is cheaper
-- than PERFORM, and call this only when there are permits to take.
CREATE OR REPLACE FUNCTION postern.enter_realm(
    p_realm uuid, p_permits postern.permits,
    OUT outcome text, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_set text := set_config('postern.realm', p_realm::text, true);
    -- Once: an element of a member is taken out of the whole value each time.
    v_keys text[] := p_permits.keys;
    v_all integer[] := p_permits.wanted;
    v_burst integer[] := p_permits.burst;
    v_wanted integer;
    v_step interval;
    v_taken interval;
    v_latest timestamptz;
    v_granted integer;
BEGIN
    FOR i IN 1 .. coalesce(cardinality(v_keys), 0) LOOP
        v_wanted := abs(v_all[i]);
        v_step := make_interval(secs => p_permits.per[i] / p_permits.permits[i]);
        v_granted := NULL;
        IF v_wanted BETWEEN 1 AND v_burst[i] THEN
            v_taken := v_wanted * v_step;
            v_latest := now() + (v_burst[i] - v_wanted) * v_step;
            -- All wanted permits in one statement, which waits for the row lock.
            INSERT INTO postern.rate_bucket AS b (realm_id, key, tat) VALUES (p_realm, v_keys[i], now() + v_taken)
                ON CONFLICT (realm_id, key) DO UPDATE SET tat = greatest(b.tat, now()) + v_taken
             WHERE b.tat <= v_latest;
            IF FOUND THEN
                v_granted := v_wanted;
            END IF;
        END IF;
        IF v_granted IS NULL THEN
            SELECT t.granted, t.retry_after INTO v_granted, retry_after
              FROM postern.take_what_is_left(p_realm, v_keys[i], v_all[i], v_burst[i], v_step) AS t;
        END IF;
        granted := granted || v_granted;
        IF retry_after IS NOT NULL THEN
            outcome := 'rate_limited';
            limit_ord := i;
            RETURN;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.enter_realm IS
    'Begins a limited statement: sets the realm and takes the permits of the request; limit_ord names the refused one';
GRANT EXECUTE ON FUNCTION postern.enter_realm TO postern_app;

-- For enter_realm: a key of which none is wanted, or whose bucket does not have all that are wanted. A bucket above its
-- maximum was filled under another limit or another clock: it counts as empty. (By clock_timestamp() and not by now():
-- after a wait for this row, now() is earlier than the value just written. A tenth of a second, because a permit is
-- given a millionth of a step early below, and a step is a day at most: 86 ms. With less, a request in that moment
-- would empty the bucket.)
CREATE OR REPLACE FUNCTION postern.take_what_is_left(
    p_realm uuid, p_key text, p_wanted integer, p_burst integer, p_step interval,
    OUT granted integer, OUT retry_after double precision)
LANGUAGE plpgsql
AS $$
DECLARE
    v_overfull interval := p_burst * p_step + interval '100 milliseconds';
    v_tat timestamptz;
BEGIN
    IF p_wanted = 0 THEN
        SELECT extract(epoch FROM b.tat - now() - (p_burst - 1) * p_step)::float8 INTO retry_after
          FROM postern.rate_bucket AS b
         WHERE b.realm_id = p_realm AND b.key = p_key AND b.tat > now() + (p_burst - 1) * p_step
           AND b.tat <= clock_timestamp() + v_overfull;
        granted := CASE WHEN retry_after IS NULL THEN 1 ELSE 0 END;
        RETURN;
    END IF;
    INSERT INTO postern.rate_bucket AS b (realm_id, key, tat) VALUES (p_realm, p_key, now())
        ON CONFLICT (realm_id, key) DO UPDATE
       SET tat = CASE WHEN b.tat > clock_timestamp() + v_overfull THEN now() ELSE greatest(b.tat, now()) END
    RETURNING b.tat INTO v_tat;
    granted := greatest(0, least(abs(p_wanted)::float8,
                                 floor(extract(epoch FROM now() + p_burst * p_step - v_tat)::float8
                                       / extract(epoch FROM p_step)::float8 + 1e-6)))::integer;
    IF granted >= 1 THEN
        UPDATE postern.rate_bucket AS b SET tat = v_tat + granted * p_step
         WHERE b.realm_id = p_realm AND b.key = p_key;
    ELSIF p_wanted > 0 THEN
        retry_after := greatest(extract(epoch FROM v_tat - now() - (p_burst - 1) * p_step)::float8, 0.001);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.take_what_is_left IS
    'Takes as many permits of one key as there are; retry_after: the key is refused';
GRANT EXECUTE ON FUNCTION postern.take_what_is_left TO postern_app;

-- enter_realm for the realm of the transaction, a row for each key that was asked.
CREATE OR REPLACE FUNCTION postern.take_permits(p_permits postern.permits)
RETURNS TABLE (ord integer, granted integer, retry_after double precision)
LANGUAGE sql
AS $$
    SELECT g.ord::integer, g.granted, CASE WHEN g.ord = t.limit_ord THEN t.retry_after END
      FROM postern.enter_realm(postern.current_realm(), p_permits) AS t,
           LATERAL unnest(t.granted) WITH ORDINALITY AS g (granted, ord)
$$;
COMMENT ON FUNCTION postern.take_permits IS
    'Takes permits from the buckets of this transaction''s realm; stops at the first empty one';
GRANT EXECUTE ON FUNCTION postern.take_permits TO postern_app;

CREATE OR REPLACE FUNCTION postern.take_realm_permits(
    p_realm uuid, p_permits postern.permits,
    OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql
AS $$
BEGIN
    SELECT t.limit_ord, t.retry_after, t.granted INTO limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
END
$$;
COMMENT ON FUNCTION postern.take_realm_permits IS 'Takes the permits of one request; limit_ord names the refused one';
GRANT EXECUTE ON FUNCTION postern.take_realm_permits TO postern_app;

RESET ROLE;
