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

-- One document with everything a server needs to know about a realm; each capability says its part.
-- SECURITY INVOKER: row security applies.
CREATE OR REPLACE FUNCTION postern.realm_config(p_realm uuid)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN (
        SELECT jsonb_build_object(
                   'id', r.id, 'slug', r.slug, 'display_name', r.display_name, 'primary_domain', r.primary_domain,
                   'public_origin', coalesce(r.public_origin, 'https://' || r.primary_domain),
                   'config_version', r.config_version, 'left', postern.placement(r.id) = 'left',
                   'hosted', postern.hosted_config(r.id),
                   'scopes', postern.scopes_config(r.id),
                   'clients', postern.clients_config(r.id),
                   'apps', postern.apps_config(r.id),
                   'rate_limits', postern.rate_limits_config(r.id),
                   'signing_keys', postern.signing_keys_config(r.id),
                   'hint_keys', postern.hint_keys_config(r.id),
                   'test_code_keys', postern.test_code_keys_config(r.id),
                   'channels', postern.channels_config(r.id),
                   'address_rules', postern.address_rules_config(r.id),
                   'phones', postern.phones_config(r.id),
                   'brands', postern.brands_config(r.id),
                   'texts', postern.texts_config(r.id),
                   'dpop', postern.dpop_config(r.id),
                   'possession', postern.possession_config(r.id),
                   'approvals', postern.approvals_config(r.id))
               || postern.realm_settings_config(r.id)
          FROM postern.realm AS r WHERE r.id = p_realm AND r.enabled);
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
