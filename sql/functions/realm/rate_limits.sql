-- Provisioning: rate limits.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.set_rate_limit(
    realm text, policy text, dimension text, permits integer DEFAULT NULL, per interval DEFAULT NULL,
    burst integer DEFAULT NULL, mode text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_now record;
    v_permits integer;
    v_per interval := postern.checked_interval('per', per, '1 second', '1 day');
    v_burst integer;
BEGIN
    IF policy IS NULL OR dimension IS NULL THEN
        PERFORM postern.refuse('policy and dimension must be given',
                               'SELECT * FROM admin.rate_limits shows what there is.');
    END IF;
    PERFORM postern.check_choice('policy', policy, VARIADIC ARRAY(
        SELECT DISTINCT p.policy FROM postern.rate_limit_policy AS p ORDER BY 1));
    PERFORM postern.check_choice('dimension', dimension, VARIADIC ARRAY(
        SELECT DISTINCT p.dimension FROM postern.rate_limit_policy AS p ORDER BY 1));
    PERFORM postern.check_choice('mode', mode, 'enforce', 'log-only');
    IF NOT EXISTS (SELECT FROM postern.rate_limit_policy AS p WHERE p.policy = policy AND p.dimension = dimension) THEN
        PERFORM postern.refuse(format('dimension "%s" does not exist for policy "%s"', dimension, policy),
            (SELECT format('Policies with this dimension: %s.', regexp_replace(
                        string_agg(p.policy, ', ' ORDER BY p.policy), ', ([^ ]*)$', ' and \1'))
               FROM postern.rate_limit_policy AS p WHERE p.dimension = dimension));
    END IF;
    SELECT l.permits, l.per, l.burst, l.mode, l.is_default INTO v_now
      FROM postern.effective_rate_limits(v_realm) AS l WHERE l.policy = policy AND l.dimension = dimension;
    v_permits := coalesce(permits, v_now.permits);
    v_per := coalesce(v_per, v_now.per);
    IF v_permits IS NULL OR v_per IS NULL THEN
        PERFORM postern.refuse(format('permits and per must be given: policy "%s" has no limit by "%s" yet', policy,
                                      dimension), 'For example permits => 100, per => ''1 minute''.');
    END IF;
    IF v_permits < 1 OR v_permits > 1000000 * extract(epoch FROM v_per) / 60 THEN
        PERFORM postern.refuse(format('permits "%s" per "%s" is out of range', v_permits, v_per),
                               'Allowed is 1 or more, up to 1,000,000 per minute.');
    END IF;
    -- By default as many at once as per span; a burst set earlier stays unless permits change.
    v_burst := coalesce(burst, CASE WHEN permits IS NULL THEN v_now.burst END, least(v_permits, 1000000));
    IF v_burst NOT BETWEEN 1 AND 1000000 THEN
        PERFORM postern.refuse(format('burst "%s" is out of range', v_burst), 'Allowed is 1 to 1,000,000.');
    END IF;
    INSERT INTO postern.rate_limit (realm_id, policy, dimension, permits, per, burst, mode)
    VALUES (v_realm, policy, dimension, v_permits, v_per, v_burst, coalesce(mode, v_now.mode, 'enforce'))
        ON CONFLICT ON CONSTRAINT rate_limit_pkey DO UPDATE
       SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;
    PERFORM postern.admin_audit(v_realm, 'rate_limit_set',
                                detail => jsonb_build_object('policy', policy, 'dimension', dimension,
        'permits', v_permits, 'per', v_per, 'burst', v_burst, 'mode', coalesce(mode, v_now.mode, 'enforce')));
END
$$;
COMMENT ON FUNCTION admin.set_rate_limit IS
'Overrides a rate limit of a realm (GCRA: permits per span sustained, burst at once; burst defaults to permits). NULL
leaves a setting as it is.
policy: native-otp (codes by mail), magic-link (links by mail, and their pages), phone-otp (all messages to phones),
passkey-begin, token, authorize (pages, counted in each process), par (pushed and long authorization requests),
approval, trusted-device, possession (transactions of a backend), refused (calls of other endpoints that were refused).
dimension: target (address or user, and source), target-total (address or user), source, client, app, failures
(account; policy token only), registrations (unknown addresses of a source; policy native-otp only), wrong-codes
(compared and wrong codes of the realm; policy token only); of policy phone-otp only: prefix (numbers without their last
four digits), country, spend (cost of messages a day). Not each policy has each dimension.
mode: enforce (default) or log-only. At most 1,000,000 per minute. SELECT * FROM admin.rate_limits shows what is in
force.
Example: SELECT admin.set_rate_limit(''acme'', ''native-otp'', ''source'', 600, ''10 minutes'', burst => 100);';

CREATE OR REPLACE FUNCTION admin.reset_rate_limit(realm text, policy text, dimension text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.rate_limit AS l WHERE l.realm_id = v_realm AND l.policy = policy AND l.dimension = dimension;
    PERFORM postern.admin_audit(v_realm, 'rate_limit_reset',
                                detail => jsonb_build_object('policy', policy, 'dimension', dimension));
END
$$;
COMMENT ON FUNCTION admin.reset_rate_limit IS
'Takes an override back: the default rate limit is in force again.
Example: SELECT admin.reset_rate_limit(''acme'', ''native-otp'', ''source'');';

CREATE OR REPLACE VIEW admin.rate_limits AS
SELECT r.slug AS realm, l.policy, l.dimension, l.permits, l.per, l.burst, l.mode, false AS is_default
  FROM postern.rate_limit AS l JOIN postern.realm AS r ON r.id = l.realm_id
UNION ALL
SELECT r.slug, d.policy, d.dimension, d.permits, d.per, d.burst, d.mode, true
  FROM postern.realm AS r, postern.default_rate_limits() AS d
 WHERE NOT EXISTS (SELECT FROM postern.rate_limit AS l WHERE l.realm_id = r.id AND l.policy = d.policy
                   AND l.dimension = d.dimension);
COMMENT ON VIEW admin.rate_limits IS 'Rate limits in force; is_default: not overridden';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.rate_limits_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                            'policy', l.policy, 'dimension', l.dimension, 'permits', l.permits,
                            'per', postern.seconds(l.per), 'burst', l.burst, 'mode', l.mode)
                            ORDER BY l.policy, l.dimension), '[]')
          FROM postern.effective_rate_limits(p_realm) AS l);
COMMENT ON FUNCTION postern.rate_limits_config IS 'The rate limits in force in a realm, for realm_config';
GRANT EXECUTE ON FUNCTION postern.rate_limits_config TO postern_app;

RESET ROLE;
