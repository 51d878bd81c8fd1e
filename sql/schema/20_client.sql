-- Clients, the apps, origins and URIs that belong to them, and the assertions by which they authenticate.
SET LOCAL ROLE postern_owner;

-- What the browser calls the origin of an Android app: the base64url of the certificate's SHA-256.
CREATE FUNCTION postern.android_origin(fingerprint text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'android:apk-key-hash:'
    || translate(encode(decode(replace(fingerprint, ':', ''), 'hex'), 'base64'), E'+/=\n', '-_');
COMMENT ON FUNCTION postern.android_origin IS 'android:apk-key-hash:… for a colon-separated SHA-256 fingerprint';
GRANT EXECUTE ON FUNCTION postern.android_origin TO postern_app;

CREATE FUNCTION postern.are_fingerprints(candidates text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT bool_and(f COLLATE "C" ~ '\A([0-9A-F]{2}:){31}[0-9A-F]{2}\Z') FROM unnest(candidates) AS f);
COMMENT ON FUNCTION postern.are_fingerprints IS 'Each is 32 upper-case hex bytes separated by colons';

CREATE TABLE postern.client_setting (
    setting       text PRIMARY KEY CHECK (setting COLLATE "C" ~ '\A[a-z][a-z0-9_]{0,39}\Z'),
    type          text NOT NULL CHECK (type IN ('boolean', 'choice', 'interval', 'text', 'rp_id', 'web_address')),
    default_value jsonb,
    least         interval,
    most          interval,
    choices       text[],
    longest       integer CHECK (longest BETWEEN 1 AND 2000),
    purpose       text NOT NULL,
    CONSTRAINT client_setting_bounds
        CHECK ((type = 'interval') = (num_nonnulls(least, most) = 2) AND (type = 'choice') = (choices IS NOT NULL)
               AND (type IN ('text', 'web_address')) = (longest IS NOT NULL))
);
COMMENT ON TABLE postern.client_setting IS
    'What an administrator may set of a client: type, bounds and default of each setting; no tenant data';
COMMENT ON COLUMN postern.client_setting.default_value IS
    'What a client has that was not given another value; NULL: nothing, or what its realm has';
COMMENT ON COLUMN postern.client_setting.longest IS 'Of a text in characters, of a web address in bytes';
CALL postern.registry_table('client_setting');

-- An object of texts, numbers and Booleans. Which settings there are, and what each may be, says client_setting.
CREATE FUNCTION postern.are_client_settings(candidate jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(candidate) <> 'object' OR octet_length(candidate::text) > 16384 THEN false
            ELSE (SELECT coalesce(bool_and(s.key COLLATE "C" ~ '\A[a-z][a-z0-9_]{0,39}\Z'
                                           AND jsonb_typeof(s.value) IN ('string', 'number', 'boolean')), true)
                    FROM jsonb_each(candidate) AS s) END;
COMMENT ON FUNCTION postern.are_client_settings IS
    'Settings of a client by their shape; client_setting lists those that exist';

CREATE TABLE postern.client (
    realm_id                   uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    id                         uuid NOT NULL DEFAULT gen_random_uuid(),
    client_id                  text NOT NULL CHECK (client_id COLLATE "C" ~ '\A[A-Za-z0-9][A-Za-z0-9._~-]{0,99}\Z'),
    client_type                text NOT NULL DEFAULT 'public' CHECK (client_type IN ('public', 'confidential')),
    display_name               text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    created_at                 timestamptz NOT NULL DEFAULT now(),
    enabled                    boolean NOT NULL DEFAULT true,
    permissions                text[] NOT NULL DEFAULT '{}'
        CONSTRAINT client_permissions CHECK (postern.are_permissions(permissions)),
    resources                  text[] NOT NULL DEFAULT '{}',
    -- How it authenticates.
    secret_hash                bytea CHECK (octet_length(secret_hash) = 32),
    previous_secret_hash       bytea CHECK (octet_length(previous_secret_hash) = 32),
    previous_secret_expires_at timestamptz,
    jwks                       jsonb CHECK (jsonb_typeof(jwks -> 'keys') = 'array'),
    -- Those that were given a value; spans of time in seconds.
    settings                   jsonb NOT NULL DEFAULT '{}'
        CONSTRAINT client_settings CHECK (postern.are_client_settings(settings)),
    -- Approvals and possession.
    match_number               boolean NOT NULL DEFAULT true,
    possession_phone_change    boolean NOT NULL DEFAULT false,
    possession_link_match      boolean NOT NULL DEFAULT true,
    possession_login_client    uuid,
    PRIMARY KEY (realm_id, id),
    UNIQUE (realm_id, client_id),
    CONSTRAINT client_secret_is_confidential
        CHECK (client_type = 'confidential' OR (secret_hash IS NULL AND previous_secret_hash IS NULL)),
    CONSTRAINT client_credentials_is_confidential
        CHECK (client_type = 'confidential' OR 'gt:client_credentials' <> ALL (permissions)),
    CONSTRAINT client_previous_secret_expires
        CHECK ((previous_secret_hash IS NULL) = (previous_secret_expires_at IS NULL)),
    CONSTRAINT client_trusted_forwarder_is_confidential
        CHECK (client_type = 'confidential' OR 'cap:trusted-forwarder' <> ALL (permissions)),
    CONSTRAINT client_jwks_is_confidential CHECK (client_type = 'confidential' OR jwks IS NULL),
    CONSTRAINT client_public_needs_pkce
        CHECK (client_type = 'confidential' OR settings -> 'require_pkce' IS DISTINCT FROM 'false')
);
COMMENT ON TABLE postern.client IS 'OAuth clients; secrets only as SHA-256, permissions sorted and distinct';
COMMENT ON COLUMN postern.client.jwks IS
    'Public keys (RFC 7517) with which the client signs its assertions (private_key_jwt, RFC 7523)';
COMMENT ON COLUMN postern.client.settings IS
    'Values of the settings that client_setting lists, for those that were set; the others have their defaults';
COMMENT ON COLUMN postern.client.resources IS
    'Resources that it serves: with ept:introspection it sees the tokens for one of them only; {}: every token';
COMMENT ON COLUMN postern.client.match_number IS
    'Whether the number that the asker shows must be typed to approve; always so for a public client';
COMMENT ON COLUMN postern.client.possession_phone_change IS
    'Whether a person may name another number than the backend did';
COMMENT ON COLUMN postern.client.possession_link_match IS
    'Whether a link to a desktop asks for the number that the desktop shows';
COMMENT ON COLUMN postern.client.possession_login_client IS
    'The client that signs users in by this one''s transactions';
CALL postern.tenant_table('client', 'SELECT', 'cascade', p_is_configuration => true);

CREATE FUNCTION postern.client_id_is_fixed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('client_id "%s" cannot be renamed', OLD.client_id),
        HINT = 'Make a new client: apps and sessions hold on to the name.';
END
$$;
COMMENT ON FUNCTION postern.client_id_is_fixed IS
    'Trigger: a client keeps its client_id, of which sessions have a copy';
CREATE TRIGGER client_id_is_fixed BEFORE UPDATE OF client_id ON postern.client
    FOR EACH ROW WHEN (OLD.client_id <> NEW.client_id) EXECUTE FUNCTION postern.client_id_is_fixed();

-- The codes and requests of a client go with it.
CREATE FUNCTION postern.client_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    DELETE FROM postern.session AS s WHERE s.realm_id = OLD.realm_id AND s.client = OLD.id;
    DELETE FROM postern.authorization_code AS c WHERE c.realm_id = OLD.realm_id AND c.client = OLD.id;
    DELETE FROM postern.pushed_request AS p WHERE p.realm_id = OLD.realm_id AND p.client = OLD.id;
    DELETE FROM postern.logout_token AS t WHERE t.realm_id = OLD.realm_id AND t.client = OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.client_deleted IS 'Trigger: sessions, codes and requests of a client go with it';
CREATE TRIGGER client_deleted AFTER DELETE ON postern.client
    FOR EACH ROW EXECUTE FUNCTION postern.client_deleted();

CREATE TABLE postern.app_client (
    realm_id uuid NOT NULL,
    app      text NOT NULL,
    client   uuid NOT NULL,
    PRIMARY KEY (realm_id, app, client),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.app_client IS 'Which clients an App has';
CALL postern.tenant_table('app_client', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.client_ios_app (
    realm_id  uuid NOT NULL,
    client    uuid NOT NULL,
    team_id   text NOT NULL CHECK (team_id COLLATE "C" ~ '\A[A-Z0-9]{10}\Z'),
    bundle_id text NOT NULL
        CHECK (bundle_id COLLATE "C" ~ '\A[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+\Z' AND octet_length(bundle_id) <= 155),
    PRIMARY KEY (realm_id, client, team_id, bundle_id),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_ios_app IS 'iOS apps of a client (apple-app-site-association)';
CALL postern.tenant_table('client_ios_app', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.client_android_app (
    realm_id     uuid NOT NULL,
    client       uuid NOT NULL,
    package_name text NOT NULL
        CHECK (package_name COLLATE "C" ~ '\A[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+\Z'
               AND octet_length(package_name) <= 255),
    sms_hash     text CONSTRAINT client_android_app_sms_hash CHECK (sms_hash ~ '\A[A-Za-z0-9+/]{11}\Z'),
    fingerprints text[] NOT NULL
        CHECK (cardinality(fingerprints) BETWEEN 1 AND 20) CHECK (postern.are_fingerprints(fingerprints)),
    PRIMARY KEY (realm_id, client, package_name),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_android_app IS
    'Android apps of a client with the SHA-256 fingerprints of their signing certificates, colon-separated hexadecimal';
COMMENT ON COLUMN postern.client_android_app.sms_hash IS
    'What Google Play services recognise a message for this app by: its last word';
CALL postern.tenant_table('client_android_app', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.client_web_origin (
    realm_id uuid NOT NULL,
    client   uuid NOT NULL,
    origin   text NOT NULL
        CHECK (postern.is_origin(origin) OR postern.is_web_view_origin(origin) OR origin = 'http://localhost:*'),
    PRIMARY KEY (realm_id, client, origin),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_web_origin IS 'Web origins of a client besides https:// and its RP-ID';
CALL postern.tenant_table('client_web_origin', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.redirect_uri (
    realm_id uuid NOT NULL,
    client   uuid NOT NULL,
    uri      text NOT NULL CHECK (octet_length(uri) BETWEEN 1 AND 2000),
    PRIMARY KEY (realm_id, client, uri),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.redirect_uri IS 'Where authorization responses of a client may go';
CALL postern.tenant_table('redirect_uri', 'SELECT', 'cascade', p_is_configuration => true);

CREATE TABLE postern.spent_assertion (
    realm_id   uuid NOT NULL,
    id         bytea NOT NULL CHECK (octet_length(id) = 32),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (realm_id, id)
);
COMMENT ON TABLE postern.spent_assertion IS
    'Client assertions that were used, as SHA-256 of client and jti, until they would have expired';
CALL postern.tenant_table('spent_assertion', 'SELECT, INSERT', 'delete');

RESET ROLE;
