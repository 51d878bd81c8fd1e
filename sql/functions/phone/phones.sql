-- What servers do with phone numbers.
SET LOCAL ROLE postern_owner;

-- For the configuration snapshot; NULL: the realm has no phone policy.
CREATE OR REPLACE FUNCTION postern.phones_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object(
               'regions', p.regions, 'default_region', p.default_region, 'sends', p.sends,
               'prefixes', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                       'prefix', x.prefix, 'denied', x.action = 'deny', 'cost', x.cost)), '[]')
                              FROM postern.phone_prefix AS x WHERE x.realm_id = p_realm))
      FROM postern.phone_policy AS p WHERE p.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.phones_config IS 'The phone policy of a realm with its prefixes, as one document';
GRANT EXECUTE ON FUNCTION postern.phones_config TO postern_app;

-- The earliest proof of a phone number that still signs in by itself.
CREATE OR REPLACE FUNCTION postern.stale_before(p_realm uuid) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$
    SELECT now() - coalesce((SELECT p.stale_after FROM postern.phone_policy AS p WHERE p.realm_id = p_realm),
                            interval '90 days')
$$;
COMMENT ON FUNCTION postern.stale_before IS 'Phone numbers proven before this time may have passed to other people';
GRANT EXECUTE ON FUNCTION postern.stale_before TO postern_app;

RESET ROLE;
