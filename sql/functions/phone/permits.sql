-- What messages to phones may cost, whatever they are for. A message takes its permits when it is queued
-- (postern.queue_message), so that a request which sends nothing costs nothing, and gives them back when no provider
-- takes it. Requests look beforehand whether there are permits (RequestAdmission in Sources/Grants), and take none.
SET LOCAL ROLE postern_owner;

-- The budgets of one message, in the order in which they are taken. Each has up to three parts: open to every request;
-- device, which only known devices of the account may use; proven, for numbers that are proven identifiers. The last
-- two are a fifth of the whole: strangers can use up neither what is kept for a device nor, since they cause requests
-- for proven numbers too, all of the fifth. A budget of fewer than five permits is not divided.
-- wanted: negative for a limit in mode log-only, as postern.take_permits wants it.
CREATE OR REPLACE FUNCTION postern.message_budgets(
    p_realm uuid, p_phone text, p_region text, p_client uuid, p_app text)
RETURNS TABLE (dimension text, part text, key text, wanted integer, permits integer, per double precision,
               burst integer)
LANGUAGE plpgsql STABLE ROWS 15
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH whole AS (
        SELECT k.place, l.dimension, k.subject, l.permits, l.burst, extract(epoch FROM l.per)::float8 AS per,
               CASE l.mode WHEN 'enforce' THEN k.amount ELSE -k.amount END AS wanted,
               CASE WHEN l.permits >= 5 AND l.burst >= 5 THEN l.permits / 5 ELSE 0 END AS fifth,
               CASE WHEN l.permits >= 5 AND l.burst >= 5 THEN l.burst / 5 ELSE 0 END AS burst_fifth
          FROM (VALUES
                  (1, 'client', (SELECT c.client_id FROM postern.client AS c
                                  WHERE c.realm_id = p_realm AND c.id = p_client), 1),
                  (2, 'app', p_app, 1), (3, 'prefix', left(p_phone, -4), 1), (4, 'country', p_region, 1),
                  (5, 'spend', 'all', postern.message_cost(p_realm, p_phone))) AS k (place, dimension, subject, amount)
          JOIN postern.effective_rate_limits(p_realm) AS l
            ON l.policy = 'phone-otp' AND l.dimension = k.dimension
         WHERE k.subject IS NOT NULL)
    SELECT w.dimension, p.part,
           concat_ws('|', 'phone-otp', w.dimension, NULLIF(p.part, 'open'), w.subject),
           w.wanted, p.permits, w.per, p.burst
      FROM whole AS w,
           LATERAL (VALUES (1, 'open', w.permits - w.fifth, w.burst - w.burst_fifth),
                           (2, 'device', w.fifth - w.fifth / 2, w.burst_fifth - w.burst_fifth / 2),
                           (3, 'proven', w.fifth / 2, w.burst_fifth / 2)) AS p (place, part, permits, burst)
     WHERE p.permits > 0 AND p.burst > 0
     ORDER BY w.place, p.place;
END
$$;
COMMENT ON FUNCTION postern.message_budgets IS 'The budgets of a message to a phone, and the parts of each';
GRANT EXECUTE ON FUNCTION postern.message_budgets TO postern_app;

CREATE OR REPLACE FUNCTION postern.message_cost(p_realm uuid, p_phone text) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT coalesce((SELECT p.cost FROM postern.phone_prefix AS p
                      WHERE p.realm_id = p_realm AND starts_with(p_phone, p.prefix)
                      ORDER BY length(p.prefix) DESC LIMIT 1), 1)
$$;
COMMENT ON FUNCTION postern.message_cost IS 'Cost units of a message to a phone number';
GRANT EXECUTE ON FUNCTION postern.message_cost TO postern_app;

-- The keys of the permits that a message took; NULL: there are none, and nothing was taken. p_is_known: a known device
-- of the account asked. A notice takes of spend alone. The caller's transaction waits for those of other messages of
-- the realm, but for a notice, which holds nothing that they wait for before it.
CREATE OR REPLACE FUNCTION postern.take_message_permits(
    p_realm uuid, p_phone text, p_region text, p_client uuid, p_app text, p_is_notice boolean, p_is_known boolean)
RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
    v_holder uuid := (SELECT i.user_id FROM postern.user_identifier AS i
                       WHERE i.realm_id = p_realm AND i.proven_key = p_phone);
    v_taken text[] := '{}';
    v_done text;
    v_budget record;
    v_granted integer;
BEGIN
    IF NOT p_is_notice THEN
        PERFORM pg_advisory_xact_lock(postern.lock_of_message_permits(p_realm));
    END IF;
    FOR v_budget IN
        SELECT b.*, lead(b.dimension) OVER (ORDER BY b.ordinality) IS DISTINCT FROM b.dimension AS is_last
          FROM postern.message_budgets(p_realm, p_phone, p_region, p_client, p_app) WITH ORDINALITY AS b
         WHERE (NOT p_is_notice OR b.dimension = 'spend')
           AND (b.part = 'open' OR b.part = 'proven' AND v_holder IS NOT NULL OR b.part = 'device' AND p_is_known)
    LOOP
        CONTINUE WHEN v_budget.dimension = v_done;
        SELECT t.granted INTO v_granted
          FROM postern.take_permits(
                   ROW(ARRAY[v_budget.key], ARRAY[v_budget.wanted], ARRAY[v_budget.permits], ARRAY[v_budget.per],
                       ARRAY[v_budget.burst])::postern.permits) AS t;
        -- A known device asks for the number of its own account: other accounts with numbers beside it cannot shut it
        -- out. Its own limits and what messages may cost bound it.
        IF v_granted > 0 OR v_budget.wanted < 0 OR p_is_known AND v_budget.is_last
                                                   AND v_budget.dimension IN ('prefix', 'country') THEN
            v_done := v_budget.dimension;
            v_taken := v_taken || CASE WHEN v_granted > 0 THEN v_budget.key END;
        ELSIF v_budget.is_last THEN
            PERFORM postern.return_message_permits(p_realm, p_phone, v_taken);
            RETURN NULL;
        END IF;
    END LOOP;
    -- All devices of one account together take no more of what is kept for devices than one device may ask for.
    IF EXISTS (SELECT FROM unnest(v_taken) AS k (key) WHERE split_part(k.key, '|', 3) = 'device')
       AND postern.is_over(p_realm, 'phone-otp', 'target-total', 'reserve|' || v_holder) THEN
        PERFORM postern.return_message_permits(p_realm, p_phone, v_taken);
        RETURN NULL;
    END IF;
    RETURN array_remove(v_taken, NULL);
END
$$;
COMMENT ON FUNCTION postern.take_message_permits IS
    'Takes the permits of a message to a phone; NULL when there are none';
GRANT EXECUTE ON FUNCTION postern.take_message_permits TO postern_app;

-- Takes one permit of a limit, where the realm enforces it. True: there was none.
CREATE OR REPLACE FUNCTION postern.is_over(p_realm uuid, p_policy text, p_dimension text, p_subject text)
RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce((
        SELECT t.retry_after IS NOT NULL
          FROM postern.effective_rate_limits(p_realm) AS l,
               LATERAL postern.take_permits(
                   ROW(ARRAY[concat_ws('|', p_policy, p_dimension, p_subject)],
                       ARRAY[CASE l.mode WHEN 'enforce' THEN 1 ELSE -1 END], ARRAY[l.permits],
                       ARRAY[extract(epoch FROM l.per)::float8], ARRAY[l.burst])::postern.permits) AS t
         WHERE l.policy = p_policy AND l.dimension = p_dimension), false);
END
$$;
COMMENT ON FUNCTION postern.is_over IS 'Takes a permit of a limit that a worker looks at; true when there was none';
GRANT EXECUTE ON FUNCTION postern.is_over TO postern_app;

-- p_keys: as taken. Waits for other messages of the realm, which take a moment; after a lock timeout they stay taken.
CREATE OR REPLACE FUNCTION postern.return_message_permits(p_realm uuid, p_phone text, p_keys text[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_key text;
    v_dimension text;
    v_subject text;
BEGIN
    PERFORM pg_advisory_xact_lock(postern.lock_of_message_permits(p_realm));
    FOREACH v_key IN ARRAY p_keys LOOP
        v_dimension := split_part(v_key, '|', 2);
        v_subject := split_part(v_key, '|', -1);
        PERFORM postern.return_permits(p_realm, m.key, abs(m.wanted), m.permits, m.per)
           FROM postern.message_budgets(
                    p_realm, p_phone, CASE v_dimension WHEN 'country' THEN v_subject END,
                    CASE v_dimension WHEN 'client' THEN postern.client_key(p_realm, v_subject) END,
                    CASE v_dimension WHEN 'app' THEN v_subject END) AS m
          WHERE m.key = v_key;
    END LOOP;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN;
END
$$;
COMMENT ON FUNCTION postern.return_message_permits IS 'Gives back the permits of a message that did not leave';
GRANT EXECUTE ON FUNCTION postern.return_message_permits TO postern_app;

CREATE OR REPLACE FUNCTION postern.client_key(p_realm uuid, p_client_id text) RETURNS uuid
LANGUAGE sql STABLE
AS $$ SELECT c.id FROM postern.client AS c WHERE c.realm_id = p_realm AND c.client_id = p_client_id $$;
COMMENT ON FUNCTION postern.client_key IS 'The key of a client''s row';
GRANT EXECUTE ON FUNCTION postern.client_key TO postern_app;

CREATE OR REPLACE FUNCTION postern.return_permits(
    p_realm uuid, p_key text, p_amount integer, p_permits integer, p_per double precision) RETURNS void
LANGUAGE sql
AS $$
    UPDATE postern.rate_bucket AS b SET tat = b.tat - make_interval(secs => p_amount * p_per / p_permits)
     WHERE b.realm_id = p_realm AND b.key = p_key
$$;
COMMENT ON FUNCTION postern.return_permits IS 'Puts permits back into one bucket';
GRANT EXECUTE ON FUNCTION postern.return_permits TO postern_app;

-- A redeemed code gives back the permits that its request took of source, and its message of prefix and country:
-- traffic that converts is not limited. What it cost stays spent. What is kept for devices and proven numbers is filled
-- first. Waits for other messages of the realm, which take a moment. After a lock timeout the permit stays taken: a
-- sign-in does not fail for it.
CREATE OR REPLACE FUNCTION postern.give_back(p_realm uuid, p_phone text, p_region text, p_source text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(postern.lock_of_message_permits(p_realm));
    PERFORM postern.return_permits(
                p_realm, 'phone-otp|source|' || p_source, 1, l.permits, extract(epoch FROM l.per)::float8)
       FROM postern.effective_rate_limits(p_realm) AS l
      WHERE l.policy = 'phone-otp' AND l.dimension = 'source';
    PERFORM postern.return_permits(p_realm, f.key, 1, f.permits, f.per)
       FROM (SELECT DISTINCT ON (m.dimension) m.*
               FROM postern.message_budgets(p_realm, p_phone, p_region, NULL, NULL) AS m
              WHERE m.dimension IN ('prefix', 'country')
                AND (m.part = 'open' OR postern.is_used(p_realm, m.key))
              ORDER BY m.dimension DESC, m.part <> 'device', m.part <> 'proven') AS f;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN;
END
$$;
COMMENT ON FUNCTION postern.give_back IS 'Gives back the permits of a message to a phone whose code was redeemed';
GRANT EXECUTE ON FUNCTION postern.give_back TO postern_app;

CREATE OR REPLACE FUNCTION postern.is_used(p_realm uuid, p_key text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.rate_bucket AS b
                    WHERE b.realm_id = p_realm AND b.key = p_key AND b.tat > now())
$$;
COMMENT ON FUNCTION postern.is_used IS 'Whether permits of a bucket are taken';
GRANT EXECUTE ON FUNCTION postern.is_used TO postern_app;

RESET ROLE;
