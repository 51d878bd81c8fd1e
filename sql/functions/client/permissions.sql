-- Provisioning: what a client may do.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('ept:token', 'The token endpoint; every grant implies it'),
    ('cap:trusted-forwarder', 'Name the address of each user in Postern-Forwarded-For')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

CREATE OR REPLACE FUNCTION postern.is_known_permission(p_permission text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(p_permission LIKE 'scp:%' AND postern.is_permission(p_permission)
                    OR EXISTS (SELECT FROM postern.known_permission AS k WHERE k.permission = p_permission), false)
$$;
COMMENT ON FUNCTION postern.is_known_permission IS 'Whether a client may be given this permission';

CREATE OR REPLACE FUNCTION admin.grant_permission(realm text, client_id text, VARIADIC permissions text[])
RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_permission text;
    v_held record;
    v_all text[];
    v_others text[];
BEGIN
    FOREACH v_permission IN ARRAY coalesce(permissions, '{NULL}') LOOP
        IF NOT postern.is_known_permission(v_permission) THEN
            PERFORM postern.refuse(format('permission %s is unknown', postern.shown(v_permission)),
                (SELECT format('Allowed: %s, scp:<scope>.', string_agg(k.permission, ', '
                                                                     ORDER BY k.permission COLLATE "C" DESC))
                   FROM postern.known_permission AS k));
        END IF;
        IF v_permission LIKE 'scp:%'
           AND NOT EXISTS (SELECT FROM postern.scope AS s
                            WHERE s.realm_id = v_realm AND s.name = substr(v_permission, 5)) THEN
            RAISE WARNING 'scope "%" does not exist in this realm yet', substr(v_permission, 5)
                USING HINT = 'admin.put_scope makes it.';
        END IF;
    END LOOP;
    SELECT c.client_type, c.permissions INTO v_held
      FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client FOR NO KEY UPDATE;
    SELECT array_agg(DISTINCT p COLLATE "C" ORDER BY p COLLATE "C") INTO v_all
      FROM unnest(v_held.permissions || permissions) AS p;
    IF 'gt:client_credentials' = ANY (v_all) THEN
        SELECT array_agg(p) INTO v_others FROM unnest(v_all) AS p WHERE p LIKE 'gt:%' AND p <> 'gt:client_credentials';
        IF v_others IS NOT NULL THEN
            PERFORM postern.refuse(format('permission "gt:client_credentials" excludes %s for client_id "%s"',
                                          array_to_string(v_others, ', '), client_id),
                'A client signs in users or acts for itself, never both: use two clients.');
        END IF;
        IF v_held.client_type <> 'confidential' THEN
            PERFORM postern.refuse(format('permission "gt:client_credentials" needs a confidential client, and '
                                          'client_id "%s" is public', client_id),
                'Call admin.put_client(realm, client_id, client_type => ''confidential'') first.');
        END IF;
    END IF;
    IF 'cap:trusted-forwarder' = ANY (v_all) AND v_held.client_type <> 'confidential' THEN
        PERFORM postern.refuse(format('permission "cap:trusted-forwarder" needs a confidential client, and client_id '
                                      '"%s" is public', client_id),
            'A public client cannot prove who it is. Call admin.put_client(realm, client_id, client_type => '
            '''confidential'') first.');
    END IF;
    UPDATE postern.client AS c SET permissions = v_all
     WHERE c.realm_id = v_realm AND c.id = v_client AND c.permissions <> v_all;
    IF FOUND THEN
        PERFORM postern.check_cotter(v_realm, v_client), postern.check_possession_permissions(v_realm, v_client);
        PERFORM postern.admin_audit(v_realm, 'permission_granted', client => v_client,
                                    detail => jsonb_build_object('permissions', permissions));
    END IF;
    RETURN v_all;
END
$$;
COMMENT ON FUNCTION admin.grant_permission(text, text, text[]) IS
'Gives permissions to a client and returns all it then holds. SELECT * FROM admin.known_permissions lists them: gt: for
grants, ept: for endpoints, cap: for capabilities; and scp:<scope> for scopes (openid and offline_access need none).
gt:client_credentials stands alone among the grants (confidential client with a service account).
cap:trusted-forwarder (confidential clients): a backend that calls for its users may name each one''s address in
Postern-Forwarded-For.
ept:possession (beside gt:client_credentials): prove phone numbers as a backend; cap:assert-possession (beside it): say
that one is proven.
cap:cotter (public clients with gt:authorization_code, gt:refresh_token and access_token_type jwt): Cotter''s web wire.
A person who proves an address at such a client gets an account, even where the App''s registration is Off.
Example: SELECT admin.grant_permission(''acme'', ''acme-ios'', ''gt:urn:cocoar:otp'', ''gt:refresh_token'',
    ''scp:profile'');';

-- A list in one argument is the first that people try. A type of its own tells the functions from those with VARIADIC.
DO $do$ BEGIN
    IF to_regtype('postern.text_list') IS NULL THEN
        CREATE DOMAIN postern.text_list AS text[];
        COMMENT ON DOMAIN postern.text_list IS
            'A list in one argument, where the same function takes one after the other';
    END IF;
END $do$;

CREATE OR REPLACE FUNCTION admin.grant_permission(realm text, client_id text, permissions postern.text_list)
RETURNS text[]
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
RETURN admin.grant_permission(realm, client_id, VARIADIC permissions::text[]);
COMMENT ON FUNCTION admin.grant_permission(text, text, postern.text_list) IS
'Gives permissions to a client, as the function of the same name that takes them one after the other.
Example: SELECT admin.grant_permission(''acme'', ''acme-ios'', ARRAY[''gt:urn:cocoar:otp'', ''gt:refresh_token'']);';

CREATE OR REPLACE FUNCTION admin.revoke_permission(realm text, client_id text, VARIADIC permissions text[])
RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_permission text;
    v_rest text[];
BEGIN
    FOREACH v_permission IN ARRAY coalesce(permissions, '{NULL}') LOOP
        IF NOT postern.is_known_permission(v_permission) THEN
            PERFORM postern.refuse(format('permission %s is unknown', postern.shown(v_permission)),
                                   'SELECT permission FROM admin.permissions shows what each client holds.');
        END IF;
    END LOOP;
    UPDATE postern.client AS c
       SET permissions = ARRAY(SELECT p FROM unnest(c.permissions) WITH ORDINALITY AS x (p, i)
                               WHERE p <> ALL (permissions) ORDER BY i)
     WHERE c.realm_id = v_realm AND c.id = v_client AND c.permissions && permissions
    RETURNING c.permissions INTO v_rest;
    IF FOUND THEN
        PERFORM postern.check_cotter(v_realm, v_client), postern.check_possession_permissions(v_realm, v_client);
        PERFORM postern.admin_audit(v_realm, 'permission_revoked', client => v_client,
                                    detail => jsonb_build_object('permissions', permissions));
        IF 'cap:cotter' = ANY (permissions) THEN
            PERFORM postern.drop_dotless_uris(v_realm, v_client);
        END IF;
    ELSE
        SELECT c.permissions INTO v_rest FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    END IF;
    RETURN v_rest;
END
$$;
COMMENT ON FUNCTION admin.revoke_permission(text, text, text[]) IS
'Takes permissions from a client and returns what it still holds; what it does not hold is no error.
With cap:cotter its redirect URIs go whose scheme has no dot: no other client may have such.
Example: SELECT admin.revoke_permission(''acme'', ''acme-ios'', ''gt:urn:cocoar:magic'');';

CREATE OR REPLACE FUNCTION admin.revoke_permission(realm text, client_id text, permissions postern.text_list)
RETURNS text[]
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
RETURN admin.revoke_permission(realm, client_id, VARIADIC permissions::text[]);
COMMENT ON FUNCTION admin.revoke_permission(text, text, postern.text_list) IS
'Takes permissions away from a client, as the function of the same name that takes them one after the other.
Example: SELECT admin.revoke_permission(''acme'', ''acme-ios'', ARRAY[''gt:urn:cocoar:otp'']);';

CREATE OR REPLACE VIEW admin.known_permissions AS
SELECT k.permission, k.purpose FROM postern.known_permission AS k;
COMMENT ON VIEW admin.known_permissions IS 'Permissions that a client may be given, besides scp:<scope>';

CREATE OR REPLACE VIEW admin.permissions AS
SELECT r.slug AS realm, c.client_id, p.permission
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id, unnest(c.permissions) AS p (permission);
COMMENT ON VIEW admin.permissions IS 'Permissions of clients, one per row';

RESET ROLE;
