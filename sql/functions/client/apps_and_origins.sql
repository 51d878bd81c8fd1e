-- Provisioning: the native apps and web origins of clients.
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION admin.put_ios_app(realm text, client_id text, team_id text, bundle_id text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    IF team_id IS NULL OR team_id COLLATE "C" !~ '\A[A-Z0-9]{10}\Z' THEN
        PERFORM postern.refuse(format('team_id %s is not an Apple team id', postern.shown(team_id)),
            'Allowed are the ten upper-case letters and digits of Apple''s developer account (Membership details), for '
            'example A1B2C3D4E5.');
    END IF;
    IF bundle_id LIKE team_id || '.%' THEN
        PERFORM postern.refuse(format('bundle_id %s begins with the team id', postern.shown(bundle_id)),
            format('Give it without: %s.', substr(bundle_id, length(team_id) + 2)));
    END IF;
    IF bundle_id IS NULL OR octet_length(bundle_id) > 155
       OR bundle_id COLLATE "C" !~ '\A[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+\Z' THEN
        PERFORM postern.refuse(format('bundle_id %s is not a bundle id', postern.shown(bundle_id)),
            'Allowed is the bundle identifier from Xcode, for example com.example.app: letters, digits, hyphens and at '
            'least one dot.');
    END IF;
    INSERT INTO postern.client_ios_app (realm_id, client, team_id, bundle_id)
    VALUES (v_realm, v_client, team_id, bundle_id)
        ON CONFLICT ON CONSTRAINT client_ios_app_pkey DO NOTHING;
    PERFORM postern.admin_audit(v_realm, 'ios_app_put', client => v_client,
                                detail => jsonb_build_object('team_id', team_id, 'bundle_id', bundle_id));
END
$$;
COMMENT ON FUNCTION admin.put_ios_app IS
'Lets an iOS app use passkeys of this client (apple-app-site-association of its RP-ID).
Example: SELECT admin.put_ios_app(''acme'', ''acme-ios'', ''A1B2C3D4E5'', ''com.acme.app'');';

CREATE OR REPLACE FUNCTION admin.put_android_app(
    realm text, client_id text, package_name text, sha256_cert_fingerprints text[] DEFAULT NULL,
    sms_hash text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_given text;
    v_raw text;
    v_list text[];
BEGIN
    IF package_name IS NULL OR octet_length(package_name) > 255
       OR package_name COLLATE "C" !~ '\A[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+\Z' THEN
        PERFORM postern.refuse(format('package_name %s is not a package name', postern.shown(package_name)),
            'Allowed is the application id, for example com.example.app: letters, digits, underscores and at least one '
            'dot.');
    END IF;
    IF sha256_cert_fingerprints IS NULL THEN
        SELECT a.fingerprints INTO sha256_cert_fingerprints FROM postern.client_android_app AS a
         WHERE a.realm_id = v_realm AND a.client = v_client AND a.package_name = put_android_app.package_name;
    END IF;
    IF coalesce(cardinality(sha256_cert_fingerprints), 0) NOT BETWEEN 1 AND 20 THEN
        PERFORM postern.refuse('sha256_cert_fingerprints is empty or too long',
                               'Allowed are 1 to 20 fingerprints, for example ARRAY[''14:6D:E9:…''] (of the Play '
                               'signing key and, if you like, of your debug key).');
    END IF;
    FOREACH v_given IN ARRAY sha256_cert_fingerprints LOOP
        CONTINUE WHEN upper(v_given) COLLATE "C" ~ '\A([0-9A-F]{2}:){31}[0-9A-F]{2}\Z';
        v_raw := regexp_replace(v_given, '\Aandroid:apk-key-hash:', '');
        IF v_raw COLLATE "C" ~ '\A[0-9A-Fa-f]{64}\Z' THEN
            PERFORM postern.refuse(format('sha256_cert_fingerprints %s is hex without colons', postern.shown(v_given)),
                format('Give it with colons: %s', rtrim(regexp_replace(upper(v_raw), '(..)', '\1:', 'g'), ':')));
        ELSIF v_raw COLLATE "C" ~ '\A[A-Za-z0-9+/_-]{43}=?\Z' THEN
            PERFORM postern.refuse(format('sha256_cert_fingerprints %s is base64, not hex', postern.shown(v_given)),
                format('Give the fingerprint as keytool prints it: %s',
                       rtrim(regexp_replace(upper(encode(decode(translate(rtrim(v_raw, '='), '-_', '+/') || '=',
                                                                'base64'), 'hex')), '(..)', '\1:', 'g'), ':')));
        ELSIF upper(v_raw) COLLATE "C" ~ '\A([0-9A-F]{2}:?){19}[0-9A-F]{2}\Z' THEN
            PERFORM postern.refuse(format('sha256_cert_fingerprints %s is a SHA-1 fingerprint', postern.shown(v_given)),
                'Give the SHA-256 one: the line SHA256 of keytool -list -v or of the Play Console (App integrity).');
        ELSE
            PERFORM postern.refuse(format('sha256_cert_fingerprints %s is not a SHA-256 fingerprint',
                                          postern.shown(v_given)),
                'Allowed are 32 hex bytes separated by colons as keytool -list -v prints them, for example '
                '14:6D:E9:….');
        END IF;
    END LOOP;
    IF sms_hash !~ '\A[A-Za-z0-9+/]{11}\Z' THEN
        PERFORM postern.refuse(format('sms_hash %s is not a hash of the SMS Retriever', postern.shown(sms_hash)),
            'Allowed are the 11 letters, digits, + and / that AppSignatureHelper or keytool and sha256sum compute from '
            'the package name and the certificate.');
    END IF;
    SELECT array_agg(DISTINCT upper(f)) INTO v_list FROM unnest(sha256_cert_fingerprints) AS f;
    INSERT INTO postern.client_android_app AS a (realm_id, client, package_name, fingerprints, sms_hash)
    VALUES (v_realm, v_client, package_name, v_list, sms_hash)
        ON CONFLICT ON CONSTRAINT client_android_app_pkey DO UPDATE
       SET fingerprints = excluded.fingerprints, sms_hash = coalesce(excluded.sms_hash, a.sms_hash);
    PERFORM postern.admin_audit(v_realm, 'android_app_put', client => v_client,
                                detail => jsonb_build_object('package_name', package_name, 'fingerprints', v_list,
                                                             'sms_hash', sms_hash));
END
$$;
COMMENT ON FUNCTION admin.put_android_app(text, text, text, text[], text) IS
'Lets an Android app use passkeys of this client: assetlinks.json and the origin android:apk-key-hash:… follow from the
fingerprints (replaces the list).
sha256_cert_fingerprints: SHA-256 of the signing certificates, 32 hex bytes with colons, as keytool -list -v or the Play
Console print them. NULL leaves them as they are; a new app needs them.
sms_hash: the app''s hash for the SMS Retriever API, 11 characters: the last word of every SMS with a code for this
client, so that the app reads the code by itself. NULL leaves it as it is.
Example: SELECT admin.put_android_app(''acme'', ''acme-android'', ''com.acme.app'', ARRAY[''14:6D:E9:83:…'']);';

-- A single fingerprint is the first that people try; an array in quotes comes here, too.
CREATE OR REPLACE FUNCTION admin.put_android_app(
    realm text, client_id text, package_name text, sha256_cert_fingerprints text, sms_hash text DEFAULT NULL)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
RETURN admin.put_android_app(
    realm, client_id, package_name,
    CASE WHEN sha256_cert_fingerprints ~ '\A\s*\{' THEN sha256_cert_fingerprints::text[]
         WHEN sha256_cert_fingerprints IS NOT NULL THEN ARRAY[sha256_cert_fingerprints] END, sms_hash);
COMMENT ON FUNCTION admin.put_android_app(text, text, text, text, text) IS
'Lets an Android app use passkeys of this client, as the function of the same name that takes a list of fingerprints.
Example: SELECT admin.put_android_app(''acme'', ''acme-android'', ''com.acme.app'', ''14:6D:E9:83:…'');';

CREATE OR REPLACE FUNCTION admin.put_web_origin(realm text, client_id text, origin text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
    v_rp_id text;
    v_host text;
BEGIN
    IF origin LIKE 'android:%' THEN
        PERFORM postern.refuse(format('origin %s is not a web origin', postern.shown(origin)),
                               'For an Android app call admin.put_android_app with the fingerprints of its '
                               'certificates.');
    END IF;
    IF origin IS NULL OR NOT postern.is_origin(origin) AND NOT postern.is_web_view_origin(origin)
       AND origin <> 'http://localhost:*' THEN
        PERFORM postern.refuse(format('origin %s is not a web origin', postern.shown(origin)),
            CASE WHEN postern.is_origin(rtrim(lower(origin), '/'))
                      OR postern.is_web_view_origin(rtrim(lower(origin), '/'))
                THEN format('Give it as %s: lower case, without trailing slash.', rtrim(lower(origin), '/'))
                 WHEN postern.is_host(origin) THEN format('Give it as https://%s.', origin)
                 ELSE 'Allowed is https://host or https://host:port, lower case, without path or trailing slash; http '
                      'only for localhost and hosts below it; for apps in a web view capacitor://localhost and '
                      'ionic://localhost.' END);
    END IF;
    SELECT coalesce(c.settings ->> 'rp_id', r.primary_domain) INTO v_rp_id
      FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id
     WHERE c.realm_id = v_realm AND c.id = v_client;
    v_host := substring(origin FROM '://([^:]+)');
    IF v_rp_id IS NOT NULL AND NOT postern.is_web_view_origin(origin) AND origin <> 'http://localhost:*'
       AND v_host <> v_rp_id AND right(v_host, length(v_rp_id) + 1) <> '.' || v_rp_id THEN
        RAISE WARNING 'origin "%" is not at or below the RP-ID "%": passkeys cannot be used there', origin, v_rp_id
            USING HINT = 'Browsers only offer a passkey on its RP-ID and the hosts below it.';
    END IF;
    INSERT INTO postern.client_web_origin (realm_id, client, origin) VALUES (v_realm, v_client, origin)
        ON CONFLICT ON CONSTRAINT client_web_origin_pkey DO NOTHING;
    PERFORM postern.admin_audit(v_realm, 'web_origin_put', client => v_client,
                                detail => jsonb_build_object('origin', origin));
END
$$;
COMMENT ON FUNCTION admin.put_web_origin IS
'Registers a web origin of this client. Its pages may read the answers of this server to the client (CORS) and be its
finalTargetUrl, wherever its host is. At or below the client''s RP-ID it may use passkeys, too; https:// and the RP-ID
itself may without this call. origin: https://host or https://host:port; http only for localhost and hosts below it. For
CORS alone, never for passkeys, are capacitor://localhost and ionic://localhost, the origins of apps in a web view, and
''http://localhost:*'', every port of the caller''s machine, for development.
Example: SELECT admin.put_web_origin(''acme'', ''acme-web'', ''https://login.acme.example'');';

CREATE OR REPLACE FUNCTION admin.remove_ios_app(realm text, client_id text, team_id text, bundle_id text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    DELETE FROM postern.client_ios_app AS a
     WHERE a.realm_id = v_realm AND a.client = v_client AND a.team_id = team_id AND a.bundle_id = bundle_id;
    PERFORM postern.admin_removed(v_realm, FOUND, 'ios_app_removed', client => v_client,
                                  detail => jsonb_build_object('team_id', team_id, 'bundle_id', bundle_id));
END
$$;
COMMENT ON FUNCTION admin.remove_ios_app IS
'Takes an iOS app away from a client; one that is not there is no error.
Example: SELECT admin.remove_ios_app(''acme'', ''acme-ios'', ''A1B2C3D4E5'', ''com.acme.app'');';

CREATE OR REPLACE FUNCTION admin.remove_android_app(realm text, client_id text, package_name text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    DELETE FROM postern.client_android_app AS a
     WHERE a.realm_id = v_realm AND a.client = v_client AND a.package_name = package_name;
    PERFORM postern.admin_removed(v_realm, FOUND, 'android_app_removed', client => v_client,
                                  detail => jsonb_build_object('package_name', package_name));
END
$$;
COMMENT ON FUNCTION admin.remove_android_app IS
'Takes an Android app away from a client; one that is not there is no error.
Example: SELECT admin.remove_android_app(''acme'', ''acme-android'', ''com.acme.app'');';

CREATE OR REPLACE FUNCTION admin.remove_web_origin(realm text, client_id text, origin text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_client uuid := postern.admin_client(v_realm, client_id);
BEGIN
    DELETE FROM postern.client_web_origin AS o WHERE o.realm_id = v_realm AND o.client = v_client AND o.origin = origin;
    PERFORM postern.admin_removed(v_realm, FOUND, 'web_origin_removed', client => v_client,
                                  detail => jsonb_build_object('origin', origin));
END
$$;
COMMENT ON FUNCTION admin.remove_web_origin IS
'Takes a web origin away from a client; one that is not there is no error.
Example: SELECT admin.remove_web_origin(''acme'', ''acme-web'', ''https://login.acme.example'');';

RESET ROLE;
