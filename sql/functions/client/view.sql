-- Clients as administrators see them.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE VIEW admin.clients AS
SELECT r.slug AS realm, c.client_id, c.id, c.client_type, c.display_name, s.access_token_type,
       coalesce(s.rp_id, r.primary_domain) AS rp_id,
       coalesce(make_interval(secs => s.access_token_lifetime), r.access_token_lifetime) AS access_token_lifetime,
       coalesce(make_interval(secs => s.refresh_token_lifetime), r.refresh_token_lifetime) AS refresh_token_lifetime,
       s.require_dpop, c.enabled, c.secret_hash IS NOT NULL AS has_secret, c.previous_secret_expires_at,
       (SELECT a.name FROM postern.service_account AS a WHERE a.realm_id = c.realm_id
        AND a.client = c.id) AS service_account,
       ARRAY(SELECT i.team_id || '.' || i.bundle_id FROM postern.client_ios_app AS i WHERE i.realm_id = c.realm_id
             AND i.client = c.id ORDER BY 1) AS ios_apps,
       ARRAY(SELECT n.package_name FROM postern.client_android_app AS n WHERE n.realm_id = c.realm_id
             AND n.client = c.id ORDER BY 1) AS android_apps,
       ARRAY(SELECT o.origin FROM postern.client_web_origin AS o WHERE o.realm_id = c.realm_id AND o.client = c.id
             UNION SELECT postern.android_origin(f) FROM postern.client_android_app AS n, unnest(n.fingerprints) AS f
                 WHERE n.realm_id = c.realm_id AND n.client = c.id
             ORDER BY 1) AS origins,
       c.created_at, NULLIF(s.signing_alg, 'realm') AS signing_alg, c.jwks, s.consent, s.require_pkce, s.require_par,
       s.home_uri, c.permissions,
       ARRAY(SELECT u.uri FROM postern.redirect_uri AS u WHERE u.realm_id = c.realm_id AND u.client = c.id
             ORDER BY u.uri COLLATE "C") AS redirect_uris,
       d.settings || c.settings AS settings
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id
 CROSS JOIN (SELECT coalesce(jsonb_object_agg(k.setting, k.default_value)
                                 FILTER (WHERE k.default_value IS NOT NULL), '{}') AS settings
               FROM postern.client_setting AS k) AS d
 CROSS JOIN LATERAL jsonb_to_record(d.settings || c.settings) AS s (
     access_token_type text, rp_id text, access_token_lifetime double precision,
     refresh_token_lifetime double precision, require_dpop boolean, signing_alg text, consent text,
     require_pkce boolean, require_par boolean, home_uri text);
COMMENT ON VIEW admin.clients IS 'Clients, with what they inherit from their realm filled in';
-- A function in a view runs with the rights of the view's reader.
GRANT EXECUTE ON FUNCTION postern.android_origin TO postern_admin;

RESET ROLE;
