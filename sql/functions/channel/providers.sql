-- Who carries messages: what the configuration snapshot and the sender read.
SET LOCAL ROLE postern_owner;

-- The channels that a realm can send by.
CREATE OR REPLACE FUNCTION postern.channels_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(DISTINCT c.channel ORDER BY c.channel), '[]') FROM postern.channel AS c
     WHERE c.realm_id = p_realm AND c.enabled
$$;
COMMENT ON FUNCTION postern.channels_config IS 'The channels of a realm with an enabled provider';
GRANT EXECUTE ON FUNCTION postern.channels_config TO postern_app;

CREATE OR REPLACE FUNCTION postern.address_rules_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object('app', a.app, 'domain', a.domain, 'action', a.action)), '[]')
      FROM postern.address_rule AS a WHERE a.realm_id = p_realm
$$;
COMMENT ON FUNCTION postern.address_rules_config IS 'The address rules of a realm and its Apps';
GRANT EXECUTE ON FUNCTION postern.address_rules_config TO postern_app;

-- NULL for mail, which has one server for all realms.
CREATE OR REPLACE FUNCTION postern.providers(p_realm uuid, p_channel text) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN p_channel <> 'email' THEN coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'name', c.name, 'provider', c.provider, 'url', c.url, 'sender', c.sender, 'secret_name', c.secret_name,
               'auth', c.auth, 'body', c.body)) || jsonb_build_object('fields', c.fields)
               ORDER BY c.priority, c.name), '[]') END
      FROM postern.channel AS c WHERE c.realm_id = p_realm AND c.channel = p_channel AND c.enabled
$$;
COMMENT ON FUNCTION postern.providers IS 'The enabled providers of a channel in their order, as one document';

-- What `postern doctor` examines: every enabled provider of every enabled realm. SECURITY DEFINER, since the app role
-- sees one realm at a time.
CREATE OR REPLACE FUNCTION postern.all_providers()
RETURNS TABLE (realm_id uuid, realm text, realm_name text, channel text, page_host text, providers jsonb)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.id, r.slug, r.display_name, c.channel,
           postern.origin_host(postern.issuer(r.public_origin, r.primary_domain)), postern.providers(r.id, c.channel)
      FROM postern.realm AS r JOIN postern.channel AS c ON c.realm_id = r.id AND c.enabled
     WHERE r.enabled GROUP BY r.id, c.channel ORDER BY r.slug, c.channel
$$;
COMMENT ON FUNCTION postern.all_providers IS 'The enabled providers of all realms, per channel';
GRANT EXECUTE ON FUNCTION postern.all_providers TO postern_app;

RESET ROLE;
