-- Provisioning: resource servers.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_resource_server(realm text, client_id text, resources text[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_resource text;
BEGIN
    IF resources IS NULL THEN
        SELECT nullif(c.resources, '{}') INTO resources
          FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    END IF;
    IF resources IS NULL OR cardinality(resources) > 100 THEN
        PERFORM postern.refuse('resources is no list of at most 100 resources',
            'An empty list lets the client introspect every token of the realm.');
    END IF;
    PERFORM postern.check_resources(resources);
    IF NOT EXISTS (SELECT FROM postern.client AS c
                    WHERE c.realm_id = v_realm AND c.id = v_client AND 'ept:introspection' = ANY (c.permissions)) THEN
        PERFORM postern.refuse(format('client_id "%s" does not hold "ept:introspection"', client_id),
            'Grant it first: admin.grant_permission(realm, client_id, ''ept:introspection'').');
    END IF;
    FOREACH v_resource IN ARRAY resources LOOP
        IF NOT EXISTS (SELECT FROM postern.scope AS s
                        WHERE s.realm_id = v_realm AND postern.resource_key(v_resource) IN (
                            SELECT postern.resource_key(x) FROM unnest(s.resources) AS x)) THEN
            RAISE WARNING 'no scope of this realm has the resource "%" yet: no token is for it', v_resource
                USING HINT = 'admin.put_scope(realm, scope, resources => …) gives a scope its resources.';
        END IF;
    END LOOP;
    UPDATE postern.client AS c
       SET resources = ARRAY(SELECT DISTINCT x COLLATE "C" FROM unnest(put_resource_server.resources) AS x ORDER BY 1)
     WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'resource_server_put', client => v_client,
                                detail => jsonb_build_object('client_id', client_id, 'resources', resources));
END
$$;
COMMENT ON FUNCTION admin.put_resource_server IS
'Says which resources a client with ept:introspection serves. It then sees only tokens whose aud names one of them, and
of aud only its own part. {} lets it see every token of the realm, as before. NULL leaves them as they are.
Example: SELECT admin.put_resource_server(''acme'', ''orders-api'', ARRAY[''https://orders.acme.example'']);';

CREATE OR REPLACE VIEW admin.resource_servers AS
SELECT r.slug AS realm, c.client_id, c.resources
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id
 WHERE 'ept:introspection' = ANY (c.permissions);
COMMENT ON VIEW admin.resource_servers IS
    'Clients that may introspect tokens which are not their own; resources {}: every token of the realm';

RESET ROLE;
