-- What servers know about clients.
SET LOCAL ROLE postern_owner;

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.clients_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'key', c.id, 'client_id', c.client_id, 'type', c.client_type, 'display_name', c.display_name,
                   'enabled', c.enabled, 'settings', d.settings || c.settings, 'match_number', c.match_number,
                   'jwks', c.jwks, 'secret_hash', encode(c.secret_hash, 'hex'),
                   'previous_secret_hash', CASE WHEN c.previous_secret_expires_at > now()
                       THEN encode(c.previous_secret_hash, 'hex') END,
                   'permissions', c.permissions, 'resources', c.resources,
                   'redirect_uris', (SELECT coalesce(jsonb_agg(x.uri ORDER BY x.uri), '[]')
                                       FROM postern.redirect_uri AS x
                                      WHERE x.realm_id = p_realm AND x.client = c.id),
                   'logout_uris', (SELECT coalesce(jsonb_agg(x.uri ORDER BY x.uri), '[]')
                                     FROM postern.logout_uri AS x
                                    WHERE x.realm_id = p_realm AND x.client = c.id AND x.kind = 'post-logout'),
                   'origins', (SELECT coalesce(jsonb_agg(o.origin ORDER BY o.origin), '[]') FROM (
                                   SELECT w.origin FROM postern.client_web_origin AS w
                                    WHERE w.realm_id = p_realm AND w.client = c.id
                                   UNION
                                   SELECT postern.android_origin(f)
                                     FROM postern.client_android_app AS a, unnest(a.fingerprints) AS f
                                    WHERE a.realm_id = p_realm AND a.client = c.id) AS o),
                   'ios_apps', (SELECT coalesce(jsonb_agg(i.team_id || '.' || i.bundle_id
                                                          ORDER BY i.team_id, i.bundle_id), '[]')
                                  FROM postern.client_ios_app AS i WHERE i.realm_id = p_realm AND i.client = c.id),
                   'android_apps', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                               'package_name', a.package_name,
                                               'sha256_cert_fingerprints', a.fingerprints)
                                               ORDER BY a.package_name), '[]')
                                      FROM postern.client_android_app AS a
                                     WHERE a.realm_id = p_realm AND a.client = c.id))
                   ORDER BY c.client_id), '[]')
          FROM postern.client AS c, (SELECT postern.client_defaults() AS settings) AS d
         WHERE c.realm_id = p_realm);
COMMENT ON FUNCTION postern.clients_config IS 'The clients of a realm with all that they are set to, for realm_config';
GRANT EXECUTE ON FUNCTION postern.clients_config TO postern_app;

RESET ROLE;
