-- Provisioning: clients.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_client(
    realm text, client_id text, client_type text DEFAULT NULL, display_name text DEFAULT NULL,
    access_token_type text DEFAULT NULL, rp_id text DEFAULT NULL, access_token_lifetime interval DEFAULT NULL,
    refresh_token_lifetime interval DEFAULT NULL, require_dpop boolean DEFAULT NULL, enabled boolean DEFAULT NULL,
    signing_alg text DEFAULT NULL, consent text DEFAULT NULL, require_pkce boolean DEFAULT NULL,
    require_par boolean DEFAULT NULL, home_uri text DEFAULT NULL, end_sessions boolean DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_old record;
    v_access interval := postern.checked_interval('access_token_lifetime', access_token_lifetime, '1 minute',
                                                  '60 minutes');
    v_refresh interval := postern.checked_interval('refresh_token_lifetime', refresh_token_lifetime, '1 day',
                                                   '365 days');
BEGIN
    IF client_id IS NULL OR client_id COLLATE "C" !~ '\A[A-Za-z0-9][A-Za-z0-9._~-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('client_id %s is not a client name', postern.shown(client_id)),
            'Allowed are 1 to 100 letters, digits and . _ ~ -, beginning with a letter or digit.');
    END IF;
    PERFORM postern.check_choice('client_type', client_type, 'public', 'confidential');
    PERFORM postern.check_choice('access_token_type', access_token_type, 'reference', 'jwt');
    PERFORM postern.check_choice('signing_alg', signing_alg, 'ES256', 'RS256', 'EdDSA', 'realm');
    PERFORM postern.check_choice('consent', consent, 'implicit', 'explicit', 'systematic');
    PERFORM postern.check_text('display_name', display_name, 100);
    IF home_uri COLLATE "C" !~ '\A(https://[!-~]+|http://(localhost|127\.0\.0\.1|\[::1\])([:/][!-~]*)?)\Z'
       OR octet_length(home_uri) > 2000 THEN
        PERFORM postern.refuse(format('home_uri %s is not a web address', postern.shown(home_uri)),
            'Allowed is https://…, or http:// to localhost, of 2,000 bytes at most.');
    END IF;
    IF NOT postern.is_rp_id(rp_id) THEN
        PERFORM postern.refuse(format('rp_id %s is not a bare DNS host', postern.shown(rp_id)),
            'Allowed is a lower-case host of your own such as example.com or login.example.com, or localhost: no '
            'scheme, port, path, wildcard or IP address, and no public suffix such as com or co.uk.');
    END IF;
    SELECT c.id, c.client_type, c.permissions, c.require_pkce INTO v_old
      FROM postern.client AS c WHERE c.realm_id = v_realm AND c.client_id = client_id;
    IF NOT coalesce(require_pkce, v_old.require_pkce, true)
       AND coalesce(client_type, v_old.client_type, 'public') = 'public' THEN
        PERFORM postern.refuse(format('require_pkce false is not possible: client_id "%s" is public', client_id),
            'A client without a secret needs PKCE (RFC 7636). Leave require_pkce true, or make it confidential.');
    END IF;
    IF client_type = 'confidential' AND v_old.client_type = 'public' AND EXISTS (
           SELECT FROM postern.redirect_uri AS x
            WHERE x.realm_id = v_realm AND x.client = v_old.id AND x.uri COLLATE "C" !~ '\Ahttps?:') THEN
        PERFORM postern.refuse(format('client_type "confidential" is not possible: client_id "%s" has a redirect URI '
                                      'of a private-use scheme', client_id),
            'Delete it first: admin.delete_redirect_uri(realm, client_id, uri).');
    END IF;
    IF v_old.id IS NOT NULL THEN
        IF client_type = 'confidential' AND v_old.client_type = 'public'
           AND 'cap:cotter' = ANY (v_old.permissions) THEN
            PERFORM postern.refuse(format('client_type "confidential" is not possible: the public client_id "%s" holds '
                                          '"cap:cotter"', client_id),
                'Revoke the permission first: admin.revoke_permission(realm, client_id, ''cap:cotter'').');
        END IF;
        IF client_type = 'public' AND 'gt:client_credentials' = ANY (v_old.permissions) THEN
            PERFORM postern.refuse(format('client_type "public" is not possible: client_id "%s" holds '
                                          '"gt:client_credentials"', client_id),
                'Revoke the permission first: admin.revoke_permission(realm, client_id, ''gt:client_credentials'').');
        END IF;
        IF client_type = 'public' AND 'cap:trusted-forwarder' = ANY (v_old.permissions) THEN
            PERFORM postern.refuse(format('client_type "public" is not possible: client_id "%s" holds '
                                          '"cap:trusted-forwarder"', client_id),
                'Revoke the permission first: admin.revoke_permission(realm, client_id, ''cap:trusted-forwarder'').');
        END IF;
        IF client_type <> v_old.client_type THEN
            PERFORM postern.end_sessions_of_client(v_realm, v_old.id, end_sessions, 'client_type_changed');
        END IF;
        UPDATE postern.client AS c
           SET client_type = coalesce(client_type, c.client_type),
               display_name = coalesce(display_name, c.display_name),
               access_token_type = coalesce(access_token_type, c.access_token_type), rp_id = coalesce(rp_id, c.rp_id),
               access_token_lifetime = coalesce(v_access, c.access_token_lifetime),
                   refresh_token_lifetime = coalesce(v_refresh, c.refresh_token_lifetime),
               require_dpop = coalesce(require_dpop, c.require_dpop), enabled = coalesce(enabled, c.enabled),
               signing_alg = NULLIF(coalesce(signing_alg, c.signing_alg), 'realm'),
               consent = coalesce(consent, c.consent), require_pkce = coalesce(require_pkce, c.require_pkce),
               require_par = coalesce(require_par, c.require_par), home_uri = coalesce(home_uri, c.home_uri),
               -- A client that becomes public loses its secrets and keys.
               jwks = CASE WHEN client_type = 'public' THEN NULL ELSE c.jwks END,
               secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.secret_hash END,
               previous_secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.previous_secret_hash END,
               previous_secret_expires_at = CASE WHEN client_type = 'public' THEN NULL
                   ELSE c.previous_secret_expires_at END
         WHERE c.realm_id = v_realm AND c.id = v_old.id;
        v_id := v_old.id;
    ELSE
        INSERT INTO postern.client (realm_id, client_id, client_type, display_name, access_token_type, rp_id,
                                    access_token_lifetime, refresh_token_lifetime, require_dpop, enabled, signing_alg,
                                    consent, require_pkce, require_par, home_uri)
        VALUES (v_realm, client_id, coalesce(client_type, 'public'), coalesce(display_name, client_id),
                coalesce(access_token_type, 'reference'), rp_id,
                v_access, v_refresh, coalesce(require_dpop, false), coalesce(enabled, true),
                    NULLIF(signing_alg, 'realm'), coalesce(consent, 'implicit'), coalesce(require_pkce, true),
                coalesce(require_par, false), home_uri)
        RETURNING id INTO v_id;
    END IF;
    IF signing_alg <> 'realm' AND NOT EXISTS (SELECT FROM postern.signing_key AS k
                                               WHERE k.realm_id = v_realm AND k.alg = signing_alg
                                                 AND k.retires_at IS NULL) THEN
        PERFORM postern.request_signing_key(v_realm, signing_alg, false);
    END IF;
    IF signing_alg <> 'realm' THEN
        PERFORM postern.tell_when_signing(v_realm, signing_alg, format('client_id "%s"', client_id));
    END IF;
    PERFORM postern.check_cotter(v_realm, v_id);
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_old.id IS NULL THEN 'client_created' ELSE 'client_updated' END,
                                client => v_id,
        detail => jsonb_build_object('client_id', client_id, 'client_type', client_type,
                                     'access_token_type', access_token_type, 'rp_id', rp_id,
            'access_token_lifetime', v_access, 'refresh_token_lifetime', v_refresh, 'require_dpop', require_dpop,
                'enabled', enabled,
            'signing_alg', signing_alg, 'consent', consent, 'require_pkce', require_pkce, 'require_par', require_par,
                'home_uri', home_uri));
    RETURN v_id;
END
$$;
COMMENT ON FUNCTION admin.put_client IS
'Creates or updates a client and returns its id. NULL leaves a setting as it is.
client_type: public (default: native and browser apps, no secret) or confidential (see admin.rotate_client_secret).
access_token_type: reference (default, opaque) or jwt. rp_id: WebAuthn RP-ID, a bare host; default is the realm''s
primary domain.
access_token_lifetime: 1 to 60 minutes, refresh_token_lifetime: 1 to 365 days; default are the realm''s.
signing_alg: ES256, RS256 or EdDSA for the JWTs of this client, or realm (default). An algorithm the realm has no key of
is published within 5
seconds and used from 10 minutes later; until then the realm''s own signs.
consent: implicit (default: pages ask nothing), explicit (they ask once per set of scopes) or systematic (each time).
require_pkce: true (default); false only for a confidential client that cannot do PKCE (RFC 7636). require_par: whether
authorization requests must be pushed (RFC 9126; default false). home_uri: where pages without a way back lead.
end_sessions: another client_type is refused while the client has live sessions; true ends them.
A new client may do nothing: see admin.grant_permission.
Example: SELECT admin.put_client(''acme'', ''acme-ios'', rp_id => ''acme.example'');';

-- Sessions that are alive, by the rule of live_sessions. Refuses unless p_end says that they may end; then they do.
CREATE OR REPLACE FUNCTION postern.end_sessions_of_client(p_realm uuid, p_client uuid, p_end boolean, p_reason text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_live bigint;
BEGIN
    IF NOT coalesce(p_end, false) THEN
        SELECT count(*) INTO v_live
          FROM postern.session AS s JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = s.user_id
         WHERE s.realm_id = p_realm AND s.client = p_client AND s.revoked_at IS NULL AND s.expires_at > now()
           AND coalesce(s.refresh_expires_at > now(), true) AND u.enabled AND u.security_stamp = s.security_stamp;
        IF v_live > 0 THEN
            PERFORM postern.refuse(format('client_id %s has %s live sessions', (
                        SELECT postern.shown(c.client_id) FROM postern.client AS c
                         WHERE c.realm_id = p_realm AND c.id = p_client), v_live),
                'Their users would have to sign in again. To end them: add end_sessions => true.');
        END IF;
    END IF;
    -- Receivers of events are told of each that was alive.
    WITH ended AS (
        UPDATE postern.session AS s SET revoked_at = now()
         WHERE s.realm_id = p_realm AND s.client = p_client AND s.revoked_at IS NULL
        RETURNING s.id, s.user_id, s.expires_at > now() AND coalesce(s.refresh_expires_at > now(), true) AS was_alive)
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, session_id, source, detail)
    SELECT p_realm, 'session_revoked', p_client, e.user_id, e.id, 'sql:' || session_user,
           jsonb_build_object('reason', p_reason)
      FROM ended AS e WHERE e.was_alive;
    -- Codes that are under way may not open another one.
    DELETE FROM postern.authorization_code AS c
     WHERE c.realm_id = p_realm AND c.client = p_client AND c.used_at IS NULL;
END
$$;
COMMENT ON FUNCTION postern.end_sessions_of_client IS
    'Ends the sessions of a client, and what would open one; refuses when some are alive and may not end';

CREATE OR REPLACE FUNCTION admin.delete_client(realm text, client_id text, end_sessions boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    -- Sessions end first, while it is known who had which; a trigger deletes them with the client.
    PERFORM postern.end_sessions_of_client(v_realm, v_client, end_sessions, 'client_deleted');
    DELETE FROM postern.client AS c WHERE c.realm_id = v_realm AND c.id = v_client;
    PERFORM postern.admin_audit(v_realm, 'client_deleted', client => v_client,
                                detail => jsonb_build_object('client_id', client_id));
END
$$;
COMMENT ON FUNCTION admin.delete_client IS
'Deletes a client with its sessions, service account, apps and origins. admin.put_client(realm, client_id, enabled =>
false) only closes it.
end_sessions: a client with live sessions is deleted only if this is true.
Example: SELECT admin.delete_client(''acme'', ''acme-ios'', end_sessions => true);';

CREATE OR REPLACE VIEW admin.clients AS
SELECT r.slug AS realm, c.client_id, c.id, c.client_type, c.display_name, c.access_token_type,
       coalesce(c.rp_id, r.primary_domain) AS rp_id,
       coalesce(c.access_token_lifetime, r.access_token_lifetime) AS access_token_lifetime,
       coalesce(c.refresh_token_lifetime, r.refresh_token_lifetime) AS refresh_token_lifetime,
       c.require_dpop, c.enabled, c.secret_hash IS NOT NULL AS has_secret, c.previous_secret_expires_at,
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
       c.created_at, c.signing_alg, c.jwks, c.consent, c.require_pkce, c.require_par, c.home_uri, c.permissions,
       ARRAY(SELECT u.uri FROM postern.redirect_uri AS u WHERE u.realm_id = c.realm_id AND u.client = c.id
             ORDER BY u.uri COLLATE "C") AS redirect_uris
  FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id;
COMMENT ON VIEW admin.clients IS 'Clients, with what they inherit from their realm filled in';
-- A function in a view runs with the rights of the view's reader.
GRANT EXECUTE ON FUNCTION postern.android_origin TO postern_admin;

RESET ROLE;
