-- Provisioning: scopes.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.check_resources(resources text[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_resource text;
BEGIN
    FOREACH v_resource IN ARRAY coalesce(resources, '{}') LOOP
        IF v_resource IS NULL OR octet_length(v_resource) > 500
           OR v_resource COLLATE "C" !~ '\A[A-Za-z][A-Za-z0-9+.-]*:[!-~]+\Z' OR v_resource ~ '[#"\\]' THEN
            PERFORM postern.refuse(format('resources %s is not a resource', postern.shown(v_resource)),
                'Allowed are absolute URIs without fragment (RFC 8707), for example https://api.example.com.');
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.check_resources IS 'Refuses what is not a list of resources (RFC 8707)';

-- As the server compares resources: an empty path is / (RFC 3986 section 6.2.3).
CREATE OR REPLACE FUNCTION postern.resource_key(p_resource text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(p_resource, '\A([^:]+://[^/?#]+)(?=[?#]|\Z)', '\1/');
COMMENT ON FUNCTION postern.resource_key IS 'The key of a resource: two spellings of one have the same';

CREATE OR REPLACE FUNCTION admin.put_scope(
    realm text, scope text, description text DEFAULT NULL, resources text[] DEFAULT NULL,
    in_discovery boolean DEFAULT NULL, enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    IF scope IS NULL OR NOT postern.is_scope(scope) THEN
        PERFORM postern.refuse(format('scope %s is not a scope name', postern.shown(scope)),
            'Allowed are 1 to 128 printable ASCII characters without blank, " or \ (RFC 6749 section 3.3), for example '
            'orders:read.');
    END IF;
    IF description <> '' THEN
        PERFORM postern.check_text('description', description, 500);
    END IF;
    PERFORM postern.check_resources(resources);
    UPDATE postern.scope AS s
       SET description = CASE WHEN description = '' THEN NULL ELSE coalesce(description, s.description) END,
           resources = coalesce(resources, s.resources),
           in_discovery = coalesce(in_discovery, s.in_discovery), enabled = coalesce(enabled, s.enabled)
     WHERE s.realm_id = v_realm AND s.name = scope;
    IF NOT FOUND THEN
        INSERT INTO postern.scope (realm_id, name, description, resources, in_discovery, enabled)
        VALUES (v_realm, scope, NULLIF(description, ''), coalesce(resources, '{}'), coalesce(in_discovery, true),
                coalesce(enabled, true));
    END IF;
    PERFORM postern.admin_audit(v_realm, 'scope_put',
                                detail => jsonb_build_object('scope', scope, 'resources', resources,
                                                             'in_discovery', in_discovery, 'enabled', enabled));
END
$$;
COMMENT ON FUNCTION admin.put_scope IS
'Creates or updates a scope. NULL leaves a setting as it is; description '''' removes it.
resources: absolute URIs that become the audience of tokens with this scope (replaces the list). in_discovery: listed in
the discovery document (default true).
Clients need the permission scp:<scope> to be granted it.
Example: SELECT admin.put_scope(''acme'', ''orders:read'', ''Read orders'', ARRAY[''https://api.acme.example'']);';

CREATE OR REPLACE FUNCTION admin.delete_scope(realm text, scope text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.scope AS s WHERE s.realm_id = v_realm AND s.name = scope;
    PERFORM postern.admin_removed(v_realm, FOUND, 'scope_deleted', detail => jsonb_build_object('scope', scope),
        p_missing => format('scope %s does not exist in this realm', postern.shown(scope)),
        p_hint => 'admin.put_scope makes one.');
END
$$;
COMMENT ON FUNCTION admin.delete_scope IS
'Deletes a scope; requests for it are then refused.
Example: SELECT admin.delete_scope(''acme'', ''orders:read'');';

CREATE OR REPLACE VIEW admin.scopes AS
SELECT r.slug AS realm, s.name AS scope, s.description, s.resources, s.in_discovery, s.enabled
  FROM postern.scope AS s JOIN postern.realm AS r ON r.id = s.realm_id;
COMMENT ON VIEW admin.scopes IS 'Scopes of each realm, with their resources';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.scopes_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                            'name', s.name, 'description', s.description, 'resources', s.resources,
                            'in_discovery', s.in_discovery, 'enabled', s.enabled) ORDER BY s.name), '[]')
          FROM postern.scope AS s WHERE s.realm_id = p_realm);
COMMENT ON FUNCTION postern.scopes_config IS 'The scopes of a realm, for realm_config';
GRANT EXECUTE ON FUNCTION postern.scopes_config TO postern_app;

RESET ROLE;
