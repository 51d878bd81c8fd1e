-- Provisioning: clients, secrets, permissions, service accounts.
SET LOCAL ROLE postern_owner;

DROP FUNCTION IF EXISTS admin.put_client(text, text, text, text, text, text, interval, interval, boolean, boolean);
CREATE OR REPLACE FUNCTION admin.put_client(realm text, client_id text, client_type text DEFAULT NULL, display_name text DEFAULT NULL,
    access_token_type text DEFAULT NULL, rp_id text DEFAULT NULL, access_token_lifetime interval DEFAULT NULL,
    refresh_token_lifetime interval DEFAULT NULL, require_dpop boolean DEFAULT NULL, enabled boolean DEFAULT NULL, signing_alg text DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_old record;
    v_access interval := postern.checked_interval('access_token_lifetime', access_token_lifetime, '1 minute', '60 minutes');
    v_refresh interval := postern.checked_interval('refresh_token_lifetime', refresh_token_lifetime, '1 day', '365 days');
BEGIN
    IF client_id IS NULL OR client_id COLLATE "C" !~ '\A[A-Za-z0-9][A-Za-z0-9._~-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('client_id %s is not a client name', postern.shown(client_id)),
            'Allowed are 1 to 100 letters, digits and . _ ~ -, beginning with a letter or digit.');
    END IF;
    PERFORM postern.check_choice('client_type', client_type, 'public', 'confidential');
    PERFORM postern.check_choice('access_token_type', access_token_type, 'reference', 'jwt');
    PERFORM postern.check_choice('signing_alg', signing_alg, 'ES256', 'RS256', 'EdDSA', 'realm');
    PERFORM postern.check_text('display_name', display_name, 100);
    IF NOT postern.is_rp_id(rp_id) THEN
        PERFORM postern.refuse(format('rp_id %s is not a bare DNS host', postern.shown(rp_id)),
            'Allowed is a lower-case host of your own such as example.com or login.example.com, or localhost: no scheme, port, path, wildcard or IP address, and no public suffix such as com or co.uk.');
    END IF;
    SELECT c.id, c.client_type, c.permissions INTO v_old FROM postern.client AS c WHERE c.realm_id = v_realm AND c.client_id = client_id;
    IF FOUND THEN
        IF client_type = 'public' AND 'gt:client_credentials' = ANY (v_old.permissions) THEN
            PERFORM postern.refuse(format('client_type "public" is not possible: client_id "%s" holds "gt:client_credentials"', client_id),
                'Revoke the permission first: admin.revoke_permission(realm, client_id, ''gt:client_credentials'').');
        END IF;
        IF client_type = 'public' AND 'cap:trusted-forwarder' = ANY (v_old.permissions) THEN
            PERFORM postern.refuse(format('client_type "public" is not possible: client_id "%s" holds "cap:trusted-forwarder"', client_id),
                'Revoke the permission first: admin.revoke_permission(realm, client_id, ''cap:trusted-forwarder'').');
        END IF;
        UPDATE postern.client AS c
           SET client_type = coalesce(client_type, c.client_type), display_name = coalesce(display_name, c.display_name),
               access_token_type = coalesce(access_token_type, c.access_token_type), rp_id = coalesce(rp_id, c.rp_id),
               access_token_lifetime = coalesce(v_access, c.access_token_lifetime), refresh_token_lifetime = coalesce(v_refresh, c.refresh_token_lifetime),
               require_dpop = coalesce(require_dpop, c.require_dpop), enabled = coalesce(enabled, c.enabled),
               signing_alg = NULLIF(coalesce(signing_alg, c.signing_alg), 'realm'),
               -- A client that becomes public loses its secrets and keys.
               jwks = CASE WHEN client_type = 'public' THEN NULL ELSE c.jwks END,
               secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.secret_hash END,
               previous_secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.previous_secret_hash END,
               previous_secret_expires_at = CASE WHEN client_type = 'public' THEN NULL ELSE c.previous_secret_expires_at END
         WHERE c.realm_id = v_realm AND c.id = v_old.id;
        v_id := v_old.id;
    ELSE
        INSERT INTO postern.client (realm_id, client_id, client_type, display_name, access_token_type, rp_id, access_token_lifetime,
                                    refresh_token_lifetime, require_dpop, enabled, signing_alg)
        VALUES (v_realm, client_id, coalesce(client_type, 'public'), coalesce(display_name, client_id), coalesce(access_token_type, 'reference'), rp_id,
                v_access, v_refresh, coalesce(require_dpop, false), coalesce(enabled, true), NULLIF(signing_alg, 'realm'))
        RETURNING id INTO v_id;
    END IF;
    IF signing_alg <> 'realm' AND NOT EXISTS (SELECT FROM postern.signing_key AS k
                                               WHERE k.realm_id = v_realm AND k.alg = signing_alg AND k.retires_at IS NULL) THEN
        PERFORM postern.request_signing_key(v_realm, signing_alg, false);
    END IF;
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_old.id IS NULL THEN 'client_created' ELSE 'client_updated' END, client => v_id,
        detail => jsonb_build_object('client_id', client_id, 'client_type', client_type, 'access_token_type', access_token_type, 'rp_id', rp_id,
            'access_token_lifetime', v_access, 'refresh_token_lifetime', v_refresh, 'require_dpop', require_dpop, 'enabled', enabled,
            'signing_alg', signing_alg));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_client(text, text, text, text, text, text, interval, interval, boolean, boolean, text) IS
'Creates or updates a client and returns its id. NULL leaves a setting as it is.
client_type: public (default: native and browser apps, no secret) or confidential (see admin.rotate_client_secret).
access_token_type: reference (default, opaque) or jwt. rp_id: WebAuthn RP-ID, a bare host; default is the realm''s primary domain.
access_token_lifetime: 1 to 60 minutes, refresh_token_lifetime: 1 to 365 days; default are the realm''s.
signing_alg: ES256, RS256 or EdDSA for the JWTs of this client, or realm (default). An algorithm the realm has no key of is published within 5
seconds and used from 10 minutes later; until then the realm''s own signs.
A new client may do nothing: see admin.grant_permission.
Example: SELECT admin.put_client(''acme'', ''acme-ios'', rp_id => ''acme.example'');';

CREATE OR REPLACE FUNCTION admin.delete_client(realm text, client_id text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    DELETE FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'client_deleted', client => v_client, detail => jsonb_build_object('client_id', client_id));
END
$$;
COMMENT ON FUNCTION admin.delete_client(text, text) IS
'Deletes a client with its sessions, service account, apps and origins. admin.put_client(realm, client_id, enabled => false) only closes it.
Example: SELECT admin.delete_client(''acme'', ''acme-ios'');';

CREATE OR REPLACE FUNCTION admin.rotate_client_secret(realm text, client_id text, overlap interval DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_overlap interval := coalesce(postern.checked_interval('overlap', overlap, '0 seconds', '7 days'), interval '0');
    v_secret text;
BEGIN
    IF (SELECT c.client_type FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client) <> 'confidential' THEN
        PERFORM postern.refuse(format('client_id "%s" is a public client and has no secret', client_id),
            'Make it confidential first: admin.put_client(realm, client_id, client_type => ''confidential''). A secret inside an app is no secret.');
    END IF;
    -- 256 bits: three random UUIDs (366 random bits from the server's strong generator) through SHA-256.
    v_secret := 'pcs_' || rtrim(translate(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
                                                 'base64'), '+/', '-_'), '=');
    UPDATE postern.client AS c
       SET previous_secret_hash = CASE WHEN v_overlap > interval '0' THEN c.secret_hash END,
           previous_secret_expires_at = CASE WHEN v_overlap > interval '0' AND c.secret_hash IS NOT NULL THEN now() + v_overlap END,
           secret_hash = sha256(convert_to(v_secret, 'UTF8'))
     WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'client_secret_rotated', client => v_client, detail => jsonb_build_object('overlap', v_overlap));
    RETURN v_secret;
END
$$;
COMMENT ON FUNCTION admin.rotate_client_secret(text, text, interval) IS
'Makes a new secret for a confidential client and returns it, this once: only its SHA-256 is stored.
The former secret dies at once, or after overlap (up to 7 days).
Example: SELECT admin.rotate_client_secret(''acme'', ''acme-api'');';

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
        IF v_permission IS NULL OR NOT postern.is_permission(v_permission) THEN
            PERFORM postern.refuse(format('permission %s is unknown', postern.shown(v_permission)),
                'Allowed: gt:urn:cocoar:otp, gt:urn:cocoar:magic, gt:urn:cocoar:passkey, gt:refresh_token, gt:client_credentials, gt:authorization_code, '
                'gt:urn:ietf:params:oauth:grant-type:device_code, ept:token, ept:introspection, ept:revocation, cap:trusted-forwarder, scp:<scope>.');
        END IF;
        IF v_permission LIKE 'scp:%' AND NOT EXISTS (SELECT FROM postern.scope AS s WHERE s.realm_id = v_realm AND s.name = substr(v_permission, 5)) THEN
            RAISE WARNING 'scope "%" does not exist in this realm yet', substr(v_permission, 5) USING HINT = 'admin.put_scope makes it.';
        END IF;
    END LOOP;
    SELECT c.client_type, c.permissions INTO v_held FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client FOR NO KEY UPDATE;
    SELECT array_agg(DISTINCT p COLLATE "C" ORDER BY p COLLATE "C") INTO v_all FROM unnest(v_held.permissions || permissions) AS p;
    IF 'gt:client_credentials' = ANY (v_all) THEN
        SELECT array_agg(p) INTO v_others FROM unnest(v_all) AS p WHERE p LIKE 'gt:%' AND p <> 'gt:client_credentials';
        IF v_others IS NOT NULL THEN
            PERFORM postern.refuse(format('permission "gt:client_credentials" excludes %s for client_id "%s"', array_to_string(v_others, ', '), client_id),
                'A client signs in users or acts for itself, never both: use two clients.');
        END IF;
        IF v_held.client_type <> 'confidential' THEN
            PERFORM postern.refuse(format('permission "gt:client_credentials" needs a confidential client, and client_id "%s" is public', client_id),
                'Call admin.put_client(realm, client_id, client_type => ''confidential'') first.');
        END IF;
    END IF;
    IF 'cap:trusted-forwarder' = ANY (v_all) AND v_held.client_type <> 'confidential' THEN
        PERFORM postern.refuse(format('permission "cap:trusted-forwarder" needs a confidential client, and client_id "%s" is public', client_id),
            'Only who authenticates is believed. Call admin.put_client(realm, client_id, client_type => ''confidential'') first.');
    END IF;
    UPDATE postern.client AS c SET permissions = v_all WHERE c.realm_id = v_realm AND c.id = v_client AND c.permissions <> v_all;
    IF FOUND THEN
        PERFORM postern.admin_audit(v_realm, 'permission_granted', client => v_client, detail => jsonb_build_object('permissions', permissions));
    END IF;
    RETURN v_all;
END
$$;
COMMENT ON FUNCTION admin.grant_permission(text, text, text[]) IS
'Gives permissions to a client and returns all it then holds. Grants: gt:urn:cocoar:otp, gt:urn:cocoar:magic, gt:urn:cocoar:passkey, gt:refresh_token,
gt:authorization_code, gt:urn:ietf:params:oauth:grant-type:device_code, or gt:client_credentials alone (confidential client with a service account).
Endpoints: ept:token (implied), ept:introspection, ept:revocation. Scopes: scp:<scope> (openid and offline_access need none).
cap:trusted-forwarder (confidential clients): a backend that calls for its users may name each one''s address in Postern-Forwarded-For.
Example: SELECT admin.grant_permission(''acme'', ''acme-ios'', ''gt:urn:cocoar:otp'', ''gt:refresh_token'', ''scp:profile'');';

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
        IF v_permission IS NULL OR NOT postern.is_permission(v_permission) THEN
            PERFORM postern.refuse(format('permission %s is unknown', postern.shown(v_permission)), 'SELECT permission FROM admin.permissions shows what each client holds.');
        END IF;
    END LOOP;
    UPDATE postern.client AS c
       SET permissions = ARRAY(SELECT p FROM unnest(c.permissions) WITH ORDINALITY AS x (p, i) WHERE p <> ALL (permissions) ORDER BY i)
     WHERE c.realm_id = v_realm AND c.id = v_client AND c.permissions && permissions
    RETURNING c.permissions INTO v_rest;
    IF FOUND THEN
        PERFORM postern.admin_audit(v_realm, 'permission_revoked', client => v_client, detail => jsonb_build_object('permissions', permissions));
    ELSE
        SELECT c.permissions INTO v_rest FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    END IF;
    RETURN v_rest;
END
$$;
COMMENT ON FUNCTION admin.revoke_permission(text, text, text[]) IS
'Takes permissions from a client and returns what it still holds; what it does not hold is no error.
Example: SELECT admin.revoke_permission(''acme'', ''acme-ios'', ''gt:urn:cocoar:magic'');';

CREATE OR REPLACE FUNCTION admin.put_service_account(realm text, name text, client_id text)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_other text;
    v_id uuid;
BEGIN
    IF name IS NULL OR name COLLATE "C" !~ '\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('name %s is not a name', postern.shown(name)), 'Allowed are 1 to 100 letters, digits and . _ -, beginning with a letter or digit.');
    END IF;
    SELECT s.name INTO v_other FROM postern.service_account AS s WHERE s.realm_id = v_realm AND s.client = v_client AND s.name <> name;
    IF FOUND THEN
        PERFORM postern.refuse(format('client_id "%s" already has the service account "%s"', client_id, v_other), 'A client has one service account.');
    END IF;
    UPDATE postern.service_account AS s SET client = v_client WHERE s.realm_id = v_realm AND s.name = name RETURNING s.id INTO v_id;
    IF NOT FOUND THEN
        INSERT INTO postern.service_account (realm_id, name, client) VALUES (v_realm, name, v_client) RETURNING id INTO v_id;
    END IF;
    PERFORM postern.admin_audit(v_realm, 'service_account_put', client => v_client, detail => jsonb_build_object('name', name));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_service_account(text, text, text) IS
'Gives a client an account of its own to act as, and returns its id: needed before gt:client_credentials is granted.
Example: SELECT admin.put_service_account(''acme'', ''nightly-export'', ''acme-export'');';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA admin FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admin TO postern_admin;

RESET ROLE;
