-- Provisioning: where authorization responses and sign-outs of a client may lead (RFC 8252, RFC 9700 section 2.1).
SET LOCAL ROLE postern_owner;

-- Why a URI cannot be registered; NULL when it can. p_kind: redirect, post-logout, backchannel.
CREATE OR REPLACE FUNCTION postern.client_uri_refusal(
    p_uri text, p_kind text, p_is_public boolean, p_permissions text[]) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE
        WHEN p_uri IS NULL OR p_uri = '' THEN 'is empty'
        WHEN octet_length(p_uri) > 2000 THEN 'is longer than 2,000 bytes'
        WHEN p_uri COLLATE "C" !~ '\A[!-~]+\Z' THEN 'holds a blank, a control character or no ASCII character'
        WHEN p_uri COLLATE "C" ~ '[\\<>"^`{|}*]' THEN 'holds a wildcard, a backslash or a character that no URI holds'
        WHEN p_uri LIKE '%#%' THEN 'has a fragment'
        WHEN p_uri COLLATE "C" ~ '%(?![0-9A-Fa-f]{2})' THEN 'holds a broken escape'
        WHEN p_uri COLLATE "C" !~ '\A[A-Za-z][A-Za-z0-9+.-]*:.' THEN 'has no scheme'
        WHEN p_uri COLLATE "C" !~ '\A[a-z0-9+.-]+:' THEN 'has upper-case letters in its scheme'
        WHEN regexp_replace(replace(split_part(p_uri, '?', 1), '%2e', '.'), '%2E', '.', 'g')
                 COLLATE "C" ~ '[:/]\.\.?(/|\Z)' THEN 'has dot segments'
        WHEN u.scheme IN ('https', 'http') THEN CASE
            WHEN p_uri COLLATE "C" !~ '\Ahttps?://[^/?]+(/|\Z)' THEN 'has no path after its host'
            WHEN u.authority LIKE '%@%' THEN 'holds user information'
            WHEN u.port IS NOT NULL AND (u.port COLLATE "C" !~ '\A[1-9][0-9]{0,4}\Z' OR u.port::integer > 65535)
                THEN 'has an impossible port'
            -- The server itself calls a back-channel URI: a name below localhost is nothing it can rely on.
            WHEN u.scheme = 'http' AND u.host NOT IN ('127.0.0.1', '[::1]', 'localhost')
                 AND (p_kind = 'backchannel' OR NOT postern.is_localhost(u.host))
                THEN 'is http to another host than this machine'
            WHEN u.scheme = 'https' AND NOT coalesce(postern.is_host(u.host), false)
                THEN 'has no bare lower-case host' END
        WHEN p_kind = 'backchannel' THEN 'is neither https nor http to a loopback host'
        WHEN NOT p_is_public THEN 'has a private-use scheme, and the client is confidential'
        WHEN p_uri COLLATE "C" ~* '\A[^:]+:[/\s]*(view-source|javascript|vbscript|data|file)(:|%3a)'
             OR u.scheme COLLATE "C" ~ '(\A|[.+-])(javascript|vbscript|livescript)([.+-]|\Z)'
            THEN 'has a scheme that runs what follows it'
        WHEN u.scheme LIKE '%.%' THEN NULL
        WHEN 'cap:cotter' = ANY (p_permissions) AND u.scheme <> ALL (ARRAY[
                 'about', 'android-app', 'app-settings', 'blob', 'callto', 'cid', 'chrome', 'content', 'data', 'dict',
                 'dns', 'edge', 'facetime', 'feed', 'feeds', 'file', 'filesystem', 'ftp', 'ftps', 'geo', 'git',
                 'gopher', 'hcp', 'help', 'imap', 'intent', 'irc', 'its', 'jar', 'ldap', 'ldaps', 'local', 'magnet',
                 'mailto', 'maps', 'market', 'mhtml', 'mk', 'mms', 'news', 'nfs', 'nntp', 'opera', 'pcast', 'podcast',
                 'pop', 'prefs', 'rdp', 'res', 'resource', 'rlogin', 'rtsp', 'search', 'search-ms', 'sftp', 'shell',
                 'shortcuts', 'sip', 'sips', 'skype', 'sms', 'smb', 'ssh', 'tel', 'telnet', 'tftp', 'tn3270', 'urn',
                 'vnc', 'webcal', 'ws', 'wss'])
             AND u.scheme COLLATE "C" !~ '\A(view-source|ms-|microsoft-|itms|x-apple|com-apple|vnd-|moz-)|extension\Z'
            THEN NULL
        ELSE 'has a scheme without a dot' END
      FROM (SELECT split_part(p_uri, ':', 1) AS scheme, a.authority,
                   regexp_replace(a.authority, ':[^:\]]*\Z', '') AS host,
                   substring(a.authority FROM ':([^:\]]*)\Z') AS port
              FROM (SELECT coalesce(substring(p_uri FROM '\A[^:]+://([^/?#]*)'), '') AS authority) AS a) AS u
$$;
COMMENT ON FUNCTION postern.client_uri_refusal IS 'Why a URI cannot be registered for a client; NULL when it can';

CREATE OR REPLACE FUNCTION postern.check_client_uri(argument text, p_realm uuid, p_client uuid, p_uri text, p_kind text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_client record;
    v_refusal text;
BEGIN
    SELECT c.client_type = 'public' AS is_public, c.permissions INTO v_client
      FROM postern.client AS c WHERE c.realm_id = p_realm AND c.id = p_client FOR SHARE;
    v_refusal := postern.client_uri_refusal(p_uri, p_kind, v_client.is_public, v_client.permissions);
    IF v_refusal IS NOT NULL THEN
        PERFORM postern.refuse(format('%s %s %s', argument, postern.shown(p_uri), v_refusal),
            CASE p_kind WHEN 'backchannel'
                THEN 'Allowed is https://host[:port]/path, or http to 127.0.0.1, [::1] or localhost.'
                ELSE 'Allowed are https://host[:port]/path; http://127.0.0.1, http://[::1] and http://localhost (any '
                     'port then matches for public clients); http to a host below localhost; for public clients a '
                     'private-use scheme that holds a dot, as in com.example.app:/callback. No fragment, user '
                     'information, wildcard, dot segment or upper-case scheme or host; 2,000 bytes at most.' END);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.check_client_uri IS 'Refuses a URI that cannot be registered for a client';

CREATE OR REPLACE FUNCTION admin.put_redirect_uri(realm text, client_id text, uri text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    PERFORM postern.check_client_uri('uri', v_realm, v_client, uri, 'redirect');
    IF (SELECT count(*) FROM postern.redirect_uri AS x
         WHERE x.realm_id = v_realm AND x.client = v_client AND x.uri <> uri) >= 100 THEN
        PERFORM postern.refuse('client_id ' || postern.shown(client_id) || ' has 100 redirect URIs',
                               'Delete some first: admin.delete_redirect_uri(realm, client_id, uri).');
    END IF;
    INSERT INTO postern.redirect_uri (realm_id, client, uri) VALUES (v_realm, v_client, uri)
        ON CONFLICT ON CONSTRAINT redirect_uri_pkey DO NOTHING;
    IF FOUND THEN
        PERFORM postern.admin_audit(v_realm, 'redirect_uri_put', client => v_client,
                                    detail => jsonb_build_object('uri', uri));
    END IF;
END
$$;
COMMENT ON FUNCTION admin.put_redirect_uri IS
'Registers where the authorization responses of a client may go. A request must name one of them byte for byte. For a
public client http://127.0.0.1, http://[::1] and http://localhost match with any port.
uri: https://host[:port]/path, http to those three hosts and to hosts below localhost, or for public clients a
private-use scheme that holds a dot.
Example: SELECT admin.put_redirect_uri(''acme'', ''acme-web'', ''https://app.acme.example/callback'');';

CREATE OR REPLACE FUNCTION admin.delete_redirect_uri(realm text, client_id text, uri text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    DELETE FROM postern.redirect_uri AS x WHERE x.realm_id = v_realm AND x.client = v_client AND x.uri = uri;
    PERFORM postern.admin_removed(v_realm, FOUND, 'redirect_uri_deleted', client => v_client,
                                  detail => jsonb_build_object('uri', uri));
END
$$;
COMMENT ON FUNCTION admin.delete_redirect_uri IS
'Takes a redirect URI away from a client; one that is not there is no error. Sign-ins under way for it end with an
error.
Example: SELECT admin.delete_redirect_uri(''acme'', ''acme-web'', ''https://app.acme.example/callback'');';

-- Called after cap:cotter was revoked: schemes without a dot were registrable by it alone.
CREATE OR REPLACE FUNCTION postern.drop_dotless_uris(p_realm uuid, p_client uuid) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_dropped record;
BEGIN
    FOR v_dropped IN
        WITH redirect AS (
            DELETE FROM postern.redirect_uri AS x USING postern.client AS c
             WHERE x.realm_id = p_realm AND x.client = p_client AND c.realm_id = p_realm AND c.id = p_client
               AND postern.client_uri_refusal(x.uri, 'redirect', c.client_type = 'public', c.permissions) IS NOT NULL
            RETURNING x.uri),
        logout AS (
            DELETE FROM postern.logout_uri AS x USING postern.client AS c
             WHERE x.realm_id = p_realm AND x.client = p_client AND c.realm_id = p_realm AND c.id = p_client
               AND postern.client_uri_refusal(x.uri, x.kind, c.client_type = 'public', c.permissions) IS NOT NULL
            RETURNING x.uri, x.kind)
        SELECT 'redirect_uri_deleted' AS event, jsonb_build_object('uri', r.uri) AS detail FROM redirect AS r
         UNION ALL
        SELECT 'logout_uri_deleted', jsonb_build_object('uri', l.uri, 'kind', l.kind) FROM logout AS l
    LOOP
        PERFORM postern.admin_audit(p_realm, v_dropped.event, client => p_client, detail => v_dropped.detail);
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.drop_dotless_uris IS
    'Takes away the URIs of a client that its permissions no longer let it have, and audits each';

CREATE OR REPLACE FUNCTION admin.put_logout_uri(realm text, client_id text, uri text, kind text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    PERFORM postern.check_choice('kind', coalesce(kind, ''), 'post-logout', 'backchannel');
    PERFORM postern.check_client_uri('uri', v_realm, v_client, uri, kind);
    IF (SELECT count(*) FROM postern.logout_uri AS x
         WHERE x.realm_id = v_realm AND x.client = v_client AND x.kind = kind AND x.uri <> uri)
       >= (CASE kind WHEN 'backchannel' THEN 1 ELSE 100 END) THEN
        PERFORM postern.refuse(format('client_id %s has no room for a further %s URI', postern.shown(client_id), kind),
            'A client has one backchannel URI and at most 100 post-logout URIs. Delete one first: '
            'admin.delete_logout_uri(realm, client_id, uri, kind).');
    END IF;
    INSERT INTO postern.logout_uri (realm_id, client, kind, uri) VALUES (v_realm, v_client, kind, uri)
        ON CONFLICT ON CONSTRAINT logout_uri_pkey DO NOTHING;
    IF FOUND THEN
        PERFORM postern.admin_audit(v_realm, 'logout_uri_put', client => v_client,
                                    detail => jsonb_build_object('uri', uri, 'kind', kind));
    END IF;
END
$$;
COMMENT ON FUNCTION admin.put_logout_uri IS
'Registers a URI of a client for sign-outs. kind post-logout: where the browser may go afterwards (OpenID Connect
RP-Initiated Logout 1.0); backchannel: where a logout token is sent when a session of the client ends (OpenID Connect
Back-Channel Logout 1.0), one per client.
Example: SELECT admin.put_logout_uri(''acme'', ''acme-web'', ''https://app.acme.example/goodbye'',
    ''post-logout'');';

CREATE OR REPLACE FUNCTION admin.delete_logout_uri(realm text, client_id text, uri text, kind text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    PERFORM postern.check_choice('kind', coalesce(kind, ''), 'post-logout', 'backchannel');
    DELETE FROM postern.logout_uri AS x
     WHERE x.realm_id = v_realm AND x.client = v_client AND x.kind = kind AND x.uri = uri;
    PERFORM postern.admin_removed(v_realm, FOUND, 'logout_uri_deleted', client => v_client,
                                  detail => jsonb_build_object('uri', uri, 'kind', kind));
END
$$;
COMMENT ON FUNCTION admin.delete_logout_uri IS
'Takes a URI for sign-outs away from a client; one that is not there is no error.
Example: SELECT admin.delete_logout_uri(''acme'', ''acme-web'', ''https://app.acme.example/goodbye'',
    ''post-logout'');';

CREATE OR REPLACE VIEW admin.redirect_uris AS
SELECT r.slug AS realm, c.client_id, x.uri
  FROM postern.redirect_uri AS x JOIN postern.realm AS r ON r.id = x.realm_id
  JOIN postern.client AS c ON c.realm_id = x.realm_id AND c.id = x.client;
COMMENT ON VIEW admin.redirect_uris IS 'Where authorization responses of clients may go';

CREATE OR REPLACE VIEW admin.logout_uris AS
SELECT r.slug AS realm, c.client_id, x.kind, x.uri
  FROM postern.logout_uri AS x JOIN postern.realm AS r ON r.id = x.realm_id
  JOIN postern.client AS c ON c.realm_id = x.realm_id AND c.id = x.client;
COMMENT ON VIEW admin.logout_uris IS 'URIs of clients for sign-outs';

RESET ROLE;
