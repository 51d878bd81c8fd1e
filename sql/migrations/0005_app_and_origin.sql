-- Apps of a realm, and the native apps and web origins that belong to a client.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.app (
    realm_id               uuid NOT NULL REFERENCES postern.realm ON DELETE CASCADE,
    slug                   text NOT NULL CHECK (slug COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z'),
    display_name           text NOT NULL CHECK (postern.is_plain_text(display_name, 100)),
    subdomain              text CHECK (postern.is_host(subdomain)),
    registration           text NOT NULL DEFAULT 'JitOnOtp' CHECK (registration IN ('Off', 'JitOnOtp', 'ExplicitEndpoint')),
    native_grants_enabled  boolean NOT NULL DEFAULT true,
    registration_firstname text CHECK (registration_firstname IN ('Off', 'Optional', 'Required')),
    registration_lastname  text CHECK (registration_lastname IN ('Off', 'Optional', 'Required')),
    created_at             timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (realm_id, slug)
);
COMMENT ON TABLE postern.app IS 'An App of a realm: its host, registration posture and required names';

CREATE TABLE postern.app_client (
    realm_id uuid NOT NULL,
    app      text NOT NULL,
    client   uuid NOT NULL,
    PRIMARY KEY (realm_id, app, client),
    FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE,
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.app_client IS 'Which clients an App has';

ALTER TABLE postern.realm_domain
    ADD CONSTRAINT realm_domain_app FOREIGN KEY (realm_id, app) REFERENCES postern.app ON DELETE CASCADE;

CREATE TABLE postern.client_ios_app (
    realm_id  uuid NOT NULL,
    client    uuid NOT NULL,
    team_id   text NOT NULL CHECK (team_id COLLATE "C" ~ '\A[A-Z0-9]{10}\Z'),
    bundle_id text NOT NULL CHECK (bundle_id COLLATE "C" ~ '\A[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+\Z' AND octet_length(bundle_id) <= 155),
    PRIMARY KEY (realm_id, client, team_id, bundle_id),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_ios_app IS 'iOS apps of a client (apple-app-site-association)';

CREATE TABLE postern.client_android_app (
    realm_id     uuid NOT NULL,
    client       uuid NOT NULL,
    package_name text NOT NULL CHECK (package_name COLLATE "C" ~ '\A[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+\Z' AND octet_length(package_name) <= 255),
    fingerprints text[] NOT NULL CHECK (cardinality(fingerprints) BETWEEN 1 AND 20),
    PRIMARY KEY (realm_id, client, package_name),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_android_app IS 'Android apps of a client with the SHA-256 fingerprints of their signing certificates, colon-separated upper-case hex';

CREATE TABLE postern.client_web_origin (
    realm_id uuid NOT NULL,
    client   uuid NOT NULL,
    origin   text NOT NULL CHECK (postern.is_origin(origin) OR postern.is_web_view_origin(origin)
                                  OR origin = 'http://localhost:*'),
    PRIMARY KEY (realm_id, client, origin),
    FOREIGN KEY (realm_id, client) REFERENCES postern.client ON DELETE CASCADE
);
COMMENT ON TABLE postern.client_web_origin IS 'Web origins of a client besides https:// and its RP-ID';

-- What the browser calls the origin of an Android app: the base64url of the certificate's SHA-256.
CREATE FUNCTION postern.android_origin(fingerprint text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'android:apk-key-hash:' || translate(encode(decode(replace(fingerprint, ':', ''), 'hex'), 'base64'), E'+/=\n', '-_');
COMMENT ON FUNCTION postern.android_origin(text) IS 'android:apk-key-hash:… for a colon-separated SHA-256 fingerprint';
GRANT EXECUTE ON FUNCTION postern.android_origin(text) TO postern_app;

CREATE FUNCTION postern.are_fingerprints(candidates text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT bool_and(f COLLATE "C" ~ '\A([0-9A-F]{2}:){31}[0-9A-F]{2}\Z') FROM unnest(candidates) AS f);
COMMENT ON FUNCTION postern.are_fingerprints(text[]) IS 'Each is 32 upper-case hex bytes separated by colons';
ALTER TABLE postern.client_android_app ADD CHECK (postern.are_fingerprints(fingerprints));

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['app', 'app_client', 'client_ios_app', 'client_android_app', 'client_web_origin'] LOOP
        EXECUTE format('CREATE TRIGGER config_inserted AFTER INSERT ON postern.%I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('CREATE TRIGGER config_updated AFTER UPDATE ON postern.%I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('CREATE TRIGGER config_deleted AFTER DELETE ON postern.%I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()', t);
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm()) WITH CHECK (realm_id = postern.current_realm())', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
        EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', t);
        EXECUTE format('GRANT SELECT ON postern.%I TO postern_app', t);
    END LOOP;
END
$$;

RESET ROLE;
