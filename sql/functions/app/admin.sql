-- Provisioning: Apps.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_app(
    realm text, slug text, display_name text DEFAULT NULL, subdomain text DEFAULT NULL, registration text DEFAULT NULL,
    client_ids text[] DEFAULT NULL, native_grants_enabled boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_primary text;
    v_taken record;
    v_clients uuid[];
    v_unknown text;
BEGIN
    IF slug IS NULL OR slug COLLATE "C" !~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z' THEN
        PERFORM postern.refuse(format('slug %s is not an App name', postern.shown(slug)),
                               'Allowed are 1 to 63 lower-case letters, digits and inner hyphens.');
    END IF;
    PERFORM postern.check_text('display_name', display_name, 100);
    PERFORM postern.check_choice('registration', registration, 'Off', 'JitOnOtp', 'ExplicitEndpoint');
    PERFORM postern.check_host('subdomain', subdomain);
    IF subdomain IS NOT NULL THEN
        SELECT r.primary_domain INTO v_primary FROM postern.realm AS r WHERE r.id = v_realm;
        IF v_primary IS NULL OR right(subdomain, length(v_primary) + 1) <> '.' || v_primary THEN
            PERFORM postern.refuse(format('subdomain "%s" is not below the primary domain %s', subdomain,
                                          postern.shown(v_primary)),
                coalesce('Allowed is a full host such as ' || slug || '.' || v_primary || '.',
                         'Give the realm a primary domain first: admin.put_realm(slug, primary_domain).'));
        END IF;
        SELECT r.slug AS owner, d.app, d.realm_id INTO v_taken
          FROM postern.realm_domain AS d JOIN postern.realm AS r ON r.id = d.realm_id
         WHERE d.domain = subdomain AND (d.realm_id <> v_realm OR d.app IS DISTINCT FROM slug);
        IF FOUND THEN
            PERFORM postern.refuse(format('subdomain "%s" belongs to %s', subdomain,
                                          CASE WHEN v_taken.realm_id <> v_realm THEN 'realm "' || v_taken.owner || '"'
                    WHEN v_taken.app IS NULL THEN 'the realm itself' ELSE 'App "' || v_taken.app || '"' END),
                'A host belongs to one realm or App: choose another.');
        END IF;
    END IF;
    SELECT postern.shown(x) INTO v_unknown FROM unnest(client_ids) AS x
     WHERE NOT EXISTS (SELECT FROM postern.client AS c WHERE c.realm_id = v_realm AND c.client_id = x) LIMIT 1;
    IF FOUND THEN
        PERFORM postern.refuse(format('client_ids has %s, which does not exist in this realm', v_unknown),
                               'SELECT client_id FROM admin.clients WHERE realm = … lists them.');
    END IF;
    SELECT array_agg(c.id) INTO v_clients
      FROM postern.client AS c WHERE c.realm_id = v_realm AND c.client_id = ANY (client_ids);

    UPDATE postern.app AS a
       SET display_name = coalesce(display_name, a.display_name), subdomain = coalesce(subdomain, a.subdomain),
           registration = coalesce(registration, a.registration),
               native_grants_enabled = coalesce(native_grants_enabled, a.native_grants_enabled)
     WHERE a.realm_id = v_realm AND a.slug = slug;
    IF NOT FOUND THEN
        INSERT INTO postern.app (realm_id, slug, display_name, subdomain, registration, native_grants_enabled)
        VALUES (v_realm, slug, coalesce(display_name, slug), subdomain, coalesce(registration, 'JitOnOtp'),
                coalesce(native_grants_enabled, true));
    END IF;
    IF subdomain IS NOT NULL THEN
        DELETE FROM postern.realm_domain AS d WHERE d.realm_id = v_realm AND d.app = slug AND d.domain <> subdomain;
        INSERT INTO postern.realm_domain (realm_id, domain, app)
        VALUES (v_realm, subdomain, slug) ON CONFLICT ON CONSTRAINT realm_domain_pkey DO NOTHING;
    END IF;
    IF client_ids IS NOT NULL THEN
        DELETE FROM postern.app_client AS k
         WHERE k.realm_id = v_realm AND k.app = slug AND k.client <> ALL (coalesce(v_clients, '{}'));
        INSERT INTO postern.app_client (realm_id, app, client) SELECT DISTINCT v_realm, slug, x
            FROM unnest(v_clients) AS x
            ON CONFLICT ON CONSTRAINT app_client_pkey DO NOTHING;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'app_put',
                                detail => jsonb_build_object('app', slug, 'subdomain', subdomain,
                                                             'registration', registration,
        'client_ids', client_ids, 'native_grants_enabled', native_grants_enabled));
END
$$;
COMMENT ON FUNCTION admin.put_app IS
'Creates or updates an App of a realm. NULL leaves a setting as it is.
subdomain: a full host below the realm''s primary domain. registration: Off, JitOnOtp (default of an App) or
ExplicitEndpoint.
client_ids: the clients of the App (replaces the list). native_grants_enabled: default true; the realm''s switch counts
as well.
Example: SELECT admin.put_app(''acme'', ''shop'', ''Acme Shop'', ''shop.id.acme.example'', ''JitOnOtp'',
    ARRAY[''acme-ios'']);';

CREATE OR REPLACE FUNCTION admin.delete_app(realm text, slug text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.app AS a WHERE a.realm_id = v_realm AND a.slug = slug;
    PERFORM postern.admin_removed(v_realm, FOUND, 'app_deleted', detail => jsonb_build_object('app', slug),
        p_missing => format('slug %s is not an App of this realm', postern.shown(slug)),
        p_hint => 'admin.put_app makes one.');
END
$$;
COMMENT ON FUNCTION admin.delete_app IS
'Deletes an App and its subdomain; its clients stay.
Example: SELECT admin.delete_app(''acme'', ''shop'');';

CREATE OR REPLACE FUNCTION admin.set_registration_fields(
    realm text, firstname text DEFAULT NULL, lastname text DEFAULT NULL, app text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    PERFORM postern.check_choice('firstname', firstname, 'Off', 'Optional', 'Required');
    PERFORM postern.check_choice('lastname', lastname, 'Off', 'Optional', 'Required');
    IF app IS NULL THEN
        UPDATE postern.realm AS r
           SET registration_firstname = coalesce(firstname, r.registration_firstname),
               registration_lastname = coalesce(lastname, r.registration_lastname)
         WHERE r.id = v_realm;
    ELSE
        UPDATE postern.app AS a
           SET registration_firstname = coalesce(firstname, a.registration_firstname),
               registration_lastname = coalesce(lastname, a.registration_lastname)
         WHERE a.realm_id = v_realm AND a.slug = app;
        IF NOT FOUND THEN
            PERFORM postern.refuse(format('app %s is not an App of this realm', postern.shown(app)),
                                   'admin.put_app makes one.');
        END IF;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'registration_fields_set',
                                detail => jsonb_build_object('app', app, 'firstname', firstname, 'lastname', lastname));
END
$$;
COMMENT ON FUNCTION admin.set_registration_fields IS
'Which names a registration asks for: Off, Optional (default) or Required; for the realm, or for one App (which
otherwise does as the realm). NULL leaves a setting as it is.
Example: SELECT admin.set_registration_fields(''acme'', firstname => ''Required'');';

CREATE OR REPLACE VIEW admin.apps AS
SELECT r.slug AS realm, a.slug AS app, a.display_name, a.subdomain, a.registration, a.native_grants_enabled,
       coalesce(a.registration_firstname, r.registration_firstname) AS registration_firstname,
       coalesce(a.registration_lastname, r.registration_lastname) AS registration_lastname,
       ARRAY(SELECT c.client_id FROM postern.app_client AS k JOIN postern.client AS c ON c.realm_id = k.realm_id
             AND c.id = k.client
              WHERE k.realm_id = a.realm_id AND k.app = a.slug ORDER BY 1) AS client_ids, a.created_at,
       a.hosted_enabled, coalesce(a.hosted_methods, r.hosted_methods) AS hosted_methods,
       coalesce(a.default_locale, r.default_locale) AS default_locale,
       coalesce(a.offer_passkey, r.offer_passkey) AS offer_passkey
  FROM postern.app AS a JOIN postern.realm AS r ON r.id = a.realm_id;
COMMENT ON VIEW admin.apps IS 'Apps and their clients';

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.apps_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'slug', a.slug, 'display_name', a.display_name, 'subdomain', a.subdomain,
                   'registration', a.registration, 'native_grants_enabled', a.native_grants_enabled,
                   'hosted_enabled', a.hosted_enabled, 'hosted_methods', coalesce(a.hosted_methods, r.hosted_methods),
                   'default_locale', coalesce(a.default_locale, r.default_locale),
                   'offer_passkey', coalesce(a.offer_passkey, r.offer_passkey),
                   'registration_firstname', coalesce(a.registration_firstname, r.registration_firstname),
                   'registration_lastname', coalesce(a.registration_lastname, r.registration_lastname),
                   'clients', (SELECT coalesce(jsonb_agg(k.client ORDER BY k.client), '[]')
                                 FROM postern.app_client AS k WHERE k.realm_id = a.realm_id AND k.app = a.slug))
                   ORDER BY a.slug), '[]')
          FROM postern.app AS a JOIN postern.realm AS r ON r.id = a.realm_id WHERE a.realm_id = p_realm);
COMMENT ON FUNCTION postern.apps_config IS
    'The Apps of a realm, with what they inherit from it filled in, for realm_config';
GRANT EXECUTE ON FUNCTION postern.apps_config TO postern_app;

RESET ROLE;
