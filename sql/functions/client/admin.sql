-- Provisioning: clients.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_client(
    realm text, client_id text, client_type text DEFAULT NULL, display_name text DEFAULT NULL,
    access_token_type text DEFAULT NULL, rp_id text DEFAULT NULL, access_token_lifetime interval DEFAULT NULL,
    refresh_token_lifetime interval DEFAULT NULL, require_dpop boolean DEFAULT NULL, enabled boolean DEFAULT NULL,
    signing_alg text DEFAULT NULL, consent text DEFAULT NULL, require_pkce boolean DEFAULT NULL,
    require_par boolean DEFAULT NULL, home_uri text DEFAULT NULL, end_sessions boolean DEFAULT NULL,
    settings jsonb DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_id uuid;
    v_old record;
    v_given jsonb := postern.checked_client_settings(jsonb_strip_nulls(jsonb_build_object(
        'access_token_type', access_token_type, 'rp_id', rp_id, 'access_token_lifetime', access_token_lifetime,
        'refresh_token_lifetime', refresh_token_lifetime, 'require_dpop', require_dpop, 'signing_alg', signing_alg,
        'consent', consent, 'require_pkce', require_pkce, 'require_par', require_par, 'home_uri', home_uri))
        || coalesce(settings, '{}'));
    v_alg text := v_given ->> 'signing_alg';
    v_settings jsonb;
BEGIN
    IF client_id IS NULL OR client_id COLLATE "C" !~ '\A[A-Za-z0-9][A-Za-z0-9._~-]{0,99}\Z' THEN
        PERFORM postern.refuse(format('client_id %s is not a client name', postern.shown(client_id)),
            'Allowed are 1 to 100 letters, digits and . _ ~ -, beginning with a letter or digit.');
    END IF;
    PERFORM postern.check_choice('client_type', client_type, 'public', 'confidential');
    PERFORM postern.check_text('display_name', display_name, 100);
    SELECT c.id, c.client_type, c.permissions, c.settings INTO v_old
      FROM postern.client AS c WHERE c.realm_id = v_realm AND c.client_id = client_id;
    v_settings := jsonb_strip_nulls(coalesce(v_old.settings, '{}') || v_given);
    IF NOT postern.client_setting_of(v_settings, 'require_pkce')::boolean
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
               display_name = coalesce(display_name, c.display_name), enabled = coalesce(enabled, c.enabled),
               settings = v_settings,
               -- A client that becomes public loses its secrets and keys.
               jwks = CASE WHEN client_type = 'public' THEN NULL ELSE c.jwks END,
               secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.secret_hash END,
               previous_secret_hash = CASE WHEN client_type = 'public' THEN NULL ELSE c.previous_secret_hash END,
               previous_secret_expires_at = CASE WHEN client_type = 'public' THEN NULL
                   ELSE c.previous_secret_expires_at END
         WHERE c.realm_id = v_realm AND c.id = v_old.id;
        v_id := v_old.id;
    ELSE
        INSERT INTO postern.client (realm_id, client_id, client_type, display_name, enabled, settings)
        VALUES (v_realm, client_id, coalesce(client_type, 'public'), coalesce(display_name, client_id),
                coalesce(enabled, true), v_settings)
        RETURNING id INTO v_id;
    END IF;
    IF v_alg <> 'realm' THEN
        IF NOT EXISTS (SELECT FROM postern.signing_key AS k
                        WHERE k.realm_id = v_realm AND k.alg = v_alg AND k.retires_at IS NULL) THEN
            PERFORM postern.request_signing_key(v_realm, v_alg, false);
        END IF;
        PERFORM postern.tell_when_signing(v_realm, v_alg, format('client_id "%s"', client_id));
    END IF;
    PERFORM postern.check_cotter(v_realm, v_id);
    PERFORM postern.admin_audit(v_realm, CASE WHEN v_old.id IS NULL THEN 'client_created' ELSE 'client_updated' END,
                                client => v_id,
        detail => jsonb_build_object(
            'client_id', client_id, 'client_type', client_type, 'enabled', enabled,
            'to_default', (SELECT jsonb_agg(g.key) FROM jsonb_each(v_given) AS g WHERE g.value = 'null')) || v_given);
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
settings: the same and all other settings as one JSON object, by name; null gives a setting its default back.
SELECT * FROM admin.known_client_settings lists them with their bounds.
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

RESET ROLE;
