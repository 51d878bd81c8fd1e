-- What servers read to build their configuration snapshot.
SET LOCAL ROLE postern_owner;

-- A realm that is disabled, or deleted and not erased, keeps its hosts: no realm of another cluster is served there.
-- One that has left for another cluster has none.
CREATE OR REPLACE FUNCTION postern.directory()
RETURNS TABLE (domain text, realm_id uuid, claimed_at double precision, is_served boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT d.domain, d.realm_id, date_part('epoch', d.claimed_at), r.enabled
      FROM postern.realm_domain AS d JOIN postern.realm AS r ON r.id = d.realm_id
     WHERE r.enabled OR NOT EXISTS (SELECT FROM postern.realm_move AS m WHERE m.realm_id = r.id AND m.state = 'left')
$$;
COMMENT ON FUNCTION postern.directory IS
    'Host to realm, Apps'' subdomains included; of disabled realms too, which are not served';
GRANT EXECUTE ON FUNCTION postern.directory TO postern_app;

-- SECURITY DEFINER: which realm it is has to be known before row security can let any of its rows be seen.
CREATE OR REPLACE FUNCTION postern.realm_id(p_slug text)
RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.id FROM postern.realm AS r WHERE r.slug = p_slug
$$;
COMMENT ON FUNCTION postern.realm_id IS 'Realm by slug, enabled or not; NULL when there is none';
GRANT EXECUTE ON FUNCTION postern.realm_id TO postern_app;

CREATE OR REPLACE FUNCTION postern.config_stamp()
RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT count(*) || ':' || coalesce(sum(r.config_version), 0) FROM postern.realm AS r
$$;
COMMENT ON FUNCTION postern.config_stamp IS 'Differs after every change of any configuration';
GRANT EXECUTE ON FUNCTION postern.config_stamp TO postern_app;

CREATE OR REPLACE FUNCTION postern.realm_versions()
RETURNS TABLE (realm_id uuid, config_version bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.id, r.config_version FROM postern.realm AS r
$$;
COMMENT ON FUNCTION postern.realm_versions IS 'Which realms have changed: config_stamp is made of these';
GRANT EXECUTE ON FUNCTION postern.realm_versions TO postern_app;

CREATE OR REPLACE FUNCTION postern.seconds(span interval) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN extract(epoch FROM span)::integer;
COMMENT ON FUNCTION postern.seconds IS 'Whole seconds of an interval';
GRANT EXECUTE ON FUNCTION postern.seconds TO postern_app;

-- One document with everything a server needs to know about a realm. SECURITY INVOKER: row security applies.
CREATE OR REPLACE FUNCTION postern.realm_config(p_realm uuid)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    v_result jsonb;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT jsonb_build_object(
        'id', r.id,
        'slug', r.slug,
        'display_name', r.display_name,
        'primary_domain', r.primary_domain,
        'public_origin', coalesce(r.public_origin, 'https://' || r.primary_domain),
        'enabled', r.enabled,
        'config_version', r.config_version,
        'left', postern.placement(r.id) = 'left',
        'native_grants_enabled', r.native_grants_enabled,
        'access_token_lifetime', postern.seconds(r.access_token_lifetime),
        'refresh_token_lifetime', postern.seconds(r.refresh_token_lifetime),
        'refresh_retry_window', postern.seconds(r.refresh_retry_window),
        'session_lifetime', postern.seconds(r.session_lifetime),
        'otp_lifetime', postern.seconds(r.otp_lifetime),
        'otp_attempts', r.otp_attempts,
        'otp_digits', r.otp_digits,
        'phones', postern.configured_phones(r.id),
        'magic_link_lifetime', postern.seconds(r.magic_link_lifetime),
        'resend_cooldown', postern.seconds(r.resend_cooldown),
        'ceremony_lifetime', postern.seconds(r.ceremony_lifetime),
        'registration_firstname', r.registration_firstname,
        'registration_lastname', r.registration_lastname,
        'hosted', jsonb_build_object(
            'enabled', r.hosted_enabled, 'methods', r.hosted_methods, 'default_locale', r.default_locale,
            'sso_idle', postern.seconds(r.sso_idle), 'sign_in_lifetime', postern.seconds(r.sign_in_lifetime),
            'code_lifetime', postern.seconds(r.code_lifetime), 'offer_passkey', r.offer_passkey),
        'dpop', postern.dpop_config(r.id),
        'possession', postern.possession_config(r.id),
        'approvals', postern.approvals_config(r.id),
        'channels', postern.configured_channels(r.id),
        'address_rules', postern.configured_address_rules(r.id),
        'scopes', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                              'name', s.name, 'description', s.description, 'resources', s.resources,
                              'in_discovery', s.in_discovery, 'enabled', s.enabled) ORDER BY s.name), '[]')
                     FROM postern.scope AS s WHERE s.realm_id = r.id),
        'clients', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                               'key', c.id, 'client_id', c.client_id, 'type', c.client_type,
                                   'display_name', c.display_name,
                               'access_token_type', c.access_token_type, 'rp_id', c.rp_id,
                               'access_token_lifetime', postern.seconds(c.access_token_lifetime),
                               'refresh_token_lifetime', postern.seconds(c.refresh_token_lifetime),
                               'require_dpop', c.require_dpop, 'match_number', c.match_number,
                               'enabled', c.enabled, 'signing_alg', c.signing_alg,
                                   'jwks', c.jwks,
                               'secret_hash', encode(c.secret_hash, 'hex'),
                               'previous_secret_hash', CASE WHEN c.previous_secret_expires_at > now()
                                   THEN encode(c.previous_secret_hash, 'hex') END,
                               'permissions', c.permissions, 'resources', c.resources,
                               'consent', c.consent, 'require_pkce', c.require_pkce, 'require_par', c.require_par,
                               'home_uri', c.home_uri,
                               'redirect_uris', (SELECT coalesce(jsonb_agg(x.uri ORDER BY x.uri), '[]')
                                                   FROM postern.redirect_uri AS x
                                                  WHERE x.realm_id = c.realm_id AND x.client = c.id),
                               'logout_uris', (SELECT coalesce(jsonb_agg(x.uri ORDER BY x.uri), '[]')
                                                 FROM postern.logout_uri AS x
                                                WHERE x.realm_id = c.realm_id AND x.client = c.id
                                                  AND x.kind = 'post-logout'),
                               'origins', (SELECT coalesce(jsonb_agg(o.origin ORDER BY o.origin), '[]') FROM (
                                               SELECT w.origin FROM postern.client_web_origin AS w
                                                WHERE w.realm_id = c.realm_id AND w.client = c.id
                                               UNION
                                               SELECT postern.android_origin(f) FROM postern.client_android_app AS a,
                                                      unnest(a.fingerprints) AS f
                                                WHERE a.realm_id = c.realm_id AND a.client = c.id) AS o),
                               'ios_apps', (SELECT coalesce(jsonb_agg(i.team_id || '.' || i.bundle_id
                                   ORDER BY i.team_id, i.bundle_id), '[]')
                                              FROM postern.client_ios_app AS i WHERE i.realm_id = c.realm_id
                                                   AND i.client = c.id),
                               'android_apps', (SELECT coalesce(jsonb_agg(jsonb_build_object('package_name',
                                   a.package_name,
                                                           'sha256_cert_fingerprints', a.fingerprints)
                                                               ORDER BY a.package_name), '[]')
                                                  FROM postern.client_android_app AS a WHERE a.realm_id = c.realm_id
                                                       AND a.client = c.id)
                           ) ORDER BY c.client_id), '[]')
                      FROM postern.client AS c WHERE c.realm_id = r.id),
        'apps', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                            'slug', a.slug, 'display_name', a.display_name, 'subdomain', a.subdomain,
                                'registration', a.registration,
                            'native_grants_enabled', a.native_grants_enabled,
                            'hosted_enabled', a.hosted_enabled,
                            'hosted_methods', coalesce(a.hosted_methods, r.hosted_methods),
                            'default_locale', coalesce(a.default_locale, r.default_locale),
                            'offer_passkey', coalesce(a.offer_passkey, r.offer_passkey),
                            'registration_firstname', coalesce(a.registration_firstname, r.registration_firstname),
                            'registration_lastname', coalesce(a.registration_lastname, r.registration_lastname),
                            'clients', (SELECT coalesce(jsonb_agg(k.client ORDER BY k.client), '[]')
                                          FROM postern.app_client AS k WHERE k.realm_id = a.realm_id
                                               AND k.app = a.slug)) ORDER BY a.slug), '[]')
                   FROM postern.app AS a WHERE a.realm_id = r.id),
        'brands', postern.brands_config(r.id),
        'texts', postern.texts_config(r.id),
        -- What the codes of test identities are compared under.
        'test_code_keys', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'sealed', encode(d.sealed, 'hex'))),
                                           '[]')
                             FROM postern.data_key AS d WHERE d.realm_id = r.id AND d.purpose = 'test-code'),
        'rate_limits', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                   'policy', l.policy, 'dimension', l.dimension, 'permits', l.permits,
                                   'per', postern.seconds(l.per), 'burst', l.burst, 'mode', l.mode) ORDER BY l.policy,
                                       l.dimension), '[]')
                          FROM postern.effective_rate_limits(r.id) AS l),
        'signing_keys', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                    'kid', k.kid, 'alg', k.alg, 'public_jwk', k.public_jwk,
                                        'sealed_private', encode(k.sealed_private, 'hex'), 'for_realm', k.for_realm,
                                    'sealed_data_key', (SELECT encode(d.sealed, 'hex') FROM postern.data_key AS d
                                                         WHERE d.realm_id = k.realm_id AND d.id = k.data_key),
                                    'activates_at', extract(epoch FROM k.activates_at),
                                        'retires_at', extract(epoch FROM k.retires_at))
                                    ORDER BY k.activates_at, k.kid), '[]')
                           FROM postern.signing_key AS k
                          WHERE k.realm_id = r.id AND (k.retires_at IS NULL OR k.retires_at > now())),
        -- Public halves only: what ID tokens that are sent as hints may have been signed with, retired keys too.
        'hint_keys', (SELECT coalesce(jsonb_agg(jsonb_build_object('kid', k.kid, 'alg', k.alg,
            'public_jwk', k.public_jwk)
                                                ORDER BY k.activates_at DESC, k.kid), '[]')
                        FROM postern.signing_key AS k WHERE k.realm_id = r.id AND NOT k.withdrawn))
      INTO v_result
      FROM postern.realm AS r
     WHERE r.id = p_realm AND r.enabled;
    RETURN v_result;
END
$$;
COMMENT ON FUNCTION postern.realm_config IS
    'The configuration of a realm as one document; NULL when it is disabled or does not exist';
GRANT EXECUTE ON FUNCTION postern.realm_config TO postern_app;

CREATE OR REPLACE FUNCTION postern.schema_version() RETURNS integer
LANGUAGE sql STABLE
AS $$ SELECT coalesce(max(m.version), 0) FROM postern.schema_migration AS m $$;
COMMENT ON FUNCTION postern.schema_version IS 'Number of the last migration applied';
GRANT EXECUTE ON FUNCTION postern.schema_version TO postern_app;

CREATE OR REPLACE FUNCTION postern.server_probe()
RETURNS TABLE (db_now double precision, superuser boolean, bypassrls boolean, is_app_member boolean,
               synchronous_commit text, read_only boolean)
LANGUAGE sql STABLE
AS $$
    SELECT extract(epoch FROM clock_timestamp())::float8, r.rolsuper, r.rolbypassrls,
           pg_has_role(current_user, 'postern_app', 'USAGE'),
           current_setting('synchronous_commit'), pg_is_in_recovery()
               OR current_setting('transaction_read_only')::boolean
      FROM pg_roles AS r WHERE r.rolname = current_user
$$;
COMMENT ON FUNCTION postern.server_probe IS 'Whether this connection is fit to serve';
GRANT EXECUTE ON FUNCTION postern.server_probe TO postern_app;

RESET ROLE;
