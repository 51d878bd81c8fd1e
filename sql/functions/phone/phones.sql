-- What servers do with phone numbers.
SET LOCAL ROLE postern_owner;

-- For the configuration snapshot; NULL: the realm has no phone policy.
CREATE OR REPLACE FUNCTION postern.configured_phones(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object(
               'regions', p.regions, 'default_region', p.default_region, 'sends', p.sends,
               'prefixes', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                       'prefix', x.prefix, 'denied', x.action = 'deny', 'cost', x.cost)), '[]')
                              FROM postern.phone_prefix AS x WHERE x.realm_id = p_realm))
      FROM postern.phone_policy AS p WHERE p.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.configured_phones IS 'The phone policy of a realm with its prefixes, as one document';
GRANT EXECUTE ON FUNCTION postern.configured_phones TO postern_app;

-- The earliest proof of a phone number that still signs in by itself.
CREATE OR REPLACE FUNCTION postern.stale_before(p_realm uuid) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT now() - coalesce((SELECT p.stale_after FROM postern.phone_policy AS p WHERE p.realm_id = p_realm),
                            interval '90 days')
$$;
COMMENT ON FUNCTION postern.stale_before IS 'Phone numbers proven before this time may have passed to other people';
GRANT EXECUTE ON FUNCTION postern.stale_before TO postern_app;

-- A redeemed code gives back the permits that its message took of source, prefix and country: traffic that converts is
-- not limited. What it cost stays spent. Waits for other transactions at the buckets, which hold them for a moment, in
-- the order in which requests take permits, so that two never wait for each other. After a lock timeout the permit
-- stays taken: a sign-in does not fail for it.
CREATE OR REPLACE FUNCTION postern.give_back(p_realm uuid, p_phone text, p_region text, p_source text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_bucket record;
BEGIN
    FOR v_bucket IN
        SELECT 'phone-otp|' || l.dimension || '|' || k.subject AS key,
               make_interval(secs => extract(epoch FROM l.per)::float8 / l.permits) AS step
          FROM (VALUES (1, 'source', p_source), (2, 'prefix', left(p_phone, -4)),
                       (3, 'country', p_region)) AS k (place, dimension, subject)
          JOIN postern.effective_rate_limits(p_realm) AS l
            ON l.policy = 'phone-otp' AND l.dimension = k.dimension
         WHERE k.subject IS NOT NULL
         ORDER BY k.place
    LOOP
        BEGIN
            UPDATE postern.rate_bucket AS b SET tat = b.tat - v_bucket.step
             WHERE b.realm_id = p_realm AND b.key = v_bucket.key;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            RETURN;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.give_back IS 'Gives back the permits of a message to a phone whose code was redeemed';
GRANT EXECUTE ON FUNCTION postern.give_back TO postern_app;

RESET ROLE;
