-- Three roles without login, two schemas, and the helpers that constraints and policies stand on.
-- Runs as a superuser, or as the owner of the database with CREATEROLE.

DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('postern_owner', 'Postern: owns every object; no login'),
            ('postern_app', 'Postern: what the server uses; no DDL, no BYPASSRLS'),
            ('postern_admin', 'Postern: may call admin.* and read its views; sees no secret, code or mail body')) AS v (name, purpose)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.name) THEN
            -- Roles belong to the cluster: another database of it may be migrated at the same moment.
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted.name);
                EXECUTE format('COMMENT ON ROLE %I IS %L', wanted.name, wanted.purpose);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    -- Whoever migrates must be able to act as the owner. A superuser already is.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       AND NOT EXISTS (SELECT FROM pg_auth_members
                        WHERE roleid = 'postern_owner'::regrole AND member = (SELECT oid FROM pg_roles WHERE rolname = current_user)) THEN
        EXECUTE format('GRANT postern_owner TO %I', current_user);
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS postern;
CREATE SCHEMA IF NOT EXISTS admin;
ALTER SCHEMA postern OWNER TO postern_owner;
ALTER SCHEMA admin OWNER TO postern_owner;

-- The runner may have made this table before the first migration.
CREATE TABLE IF NOT EXISTS postern.schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   bytea NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE postern.schema_migration OWNER TO postern_owner;

SET LOCAL ROLE postern_owner;

COMMENT ON SCHEMA postern IS 'Tables of Postern and the functions its server calls';
COMMENT ON SCHEMA admin IS 'Provisioning: SELECT name, summary FROM admin.help is the manual';
COMMENT ON TABLE postern.schema_migration IS 'Migrations applied to this database, with the checksum of each; no tenant data';

REVOKE ALL ON SCHEMA postern, admin FROM PUBLIC;
GRANT USAGE ON SCHEMA postern TO postern_app;
GRANT USAGE ON SCHEMA admin TO postern_admin;
REVOKE ALL ON TABLE postern.schema_migration FROM PUBLIC;
GRANT SELECT ON TABLE postern.schema_migration TO postern_app;
ALTER DEFAULT PRIVILEGES FOR ROLE postern_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- The tenant of this transaction. Unset, or emptied by the end of an earlier SET LOCAL: NULL, and every policy says no.
CREATE FUNCTION postern.current_realm() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('postern.realm', true), '')::uuid;
COMMENT ON FUNCTION postern.current_realm() IS 'The realm of this transaction, or NULL; read by every row-security policy';
GRANT EXECUTE ON FUNCTION postern.current_realm() TO postern_app;

-- Bare lower-case DNS host (or IPv4 literal): labels of letters, digits and inner hyphens; no port, path, wildcard or trailing dot.
CREATE FUNCTION postern.is_host(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 253
    AND candidate COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\Z';
COMMENT ON FUNCTION postern.is_host(text) IS 'Bare lower-case host name without port, scheme, wildcard or trailing dot';

-- RP-ID: a registrable host, so at least two labels (or localhost), no address. The list names the commonest public suffixes
-- of two labels; browsers hold the whole list and refuse the rest.
CREATE FUNCTION postern.is_rp_id(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate = 'localhost'
    OR (postern.is_host(candidate)
        AND candidate COLLATE "C" ~ '\.'
        AND candidate COLLATE "C" !~ '(\A|\.)[0-9]+\Z'
        AND candidate COLLATE "C" !~ '(\A|\.)0x[0-9a-f]*\Z'
        AND candidate <> ALL (ARRAY[
            'co.uk', 'org.uk', 'gov.uk', 'ac.uk', 'com.au', 'net.au', 'org.au', 'co.nz', 'co.jp', 'ne.jp', 'or.jp', 'co.kr',
            'com.br', 'com.cn', 'com.tw', 'com.hk', 'com.sg', 'com.mx', 'com.ar', 'com.tr', 'co.in', 'co.za', 'co.il', 'co.at',
            'or.at', 'com.pl', 'com.ua', 'github.io', 'gitlab.io', 'pages.dev', 'workers.dev', 'vercel.app', 'netlify.app',
            'herokuapp.com', 'web.app', 'firebaseapp.com', 'azurewebsites.net', 'cloudfront.net', 'appspot.com', 'fly.dev']));
COMMENT ON FUNCTION postern.is_rp_id(text) IS 'WebAuthn RP-ID: bare lower-case registrable DNS host, or localhost';

-- https://host[:port], or http for localhost, without a trailing slash.
CREATE FUNCTION postern.is_origin(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\Ahttp://localhost(:[1-9][0-9]{0,4})?\Z'
    OR (candidate COLLATE "C" ~ '\Ahttps://[a-z0-9.-]+(:[1-9][0-9]{0,4})?\Z'
        AND postern.is_host(substring(candidate FROM '\Ahttps://([a-z0-9.-]+)'))
        AND coalesce(substring(candidate FROM ':([0-9]+)\Z')::integer, 443) <= 65535);
COMMENT ON FUNCTION postern.is_origin(text) IS 'Web origin: https://host[:port], http only for localhost, no trailing slash';

-- Apps in a web view of their own: Capacitor and Ionic serve their pages from these. Every such app has the same
-- origin, so that it is one for CORS only.
CREATE FUNCTION postern.is_web_view_origin(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate IN ('capacitor://localhost', 'ionic://localhost');
COMMENT ON FUNCTION postern.is_web_view_origin(text) IS 'Origin of pages that an app serves to its own web view';

-- RFC 6749 section 3.3: scope-token, here without the characters that need quoting in shells and URLs.
CREATE FUNCTION postern.is_scope(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 128 AND candidate COLLATE "C" ~ '\A[A-Za-z0-9!#$%&''()*+,./:;<=>?@\[\]^_`{|}~-]+\Z';
COMMENT ON FUNCTION postern.is_scope(text) IS 'RFC 6749 scope-token of at most 128 characters';

CREATE FUNCTION postern.is_permission(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate = ANY (ARRAY[
        'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic', 'gt:urn:cocoar:passkey', 'gt:refresh_token', 'gt:client_credentials',
        'gt:authorization_code', 'gt:urn:ietf:params:oauth:grant-type:device_code',
        'ept:token', 'ept:introspection', 'ept:revocation'])
    OR (candidate LIKE 'scp:%' AND postern.is_scope(substr(candidate, 5)));
COMMENT ON FUNCTION postern.is_permission(text) IS 'A permission string a client may hold';

-- Valid, sorted, distinct, and user grants apart from client_credentials.
CREATE FUNCTION postern.are_permissions(candidates text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(bool_and(postern.is_permission(p)), true)
              AND candidates = coalesce(array_agg(DISTINCT p COLLATE "C" ORDER BY p COLLATE "C"), '{}')
              AND NOT ('gt:client_credentials' = ANY (candidates)
                       AND coalesce(bool_or(p LIKE 'gt:%' AND p <> 'gt:client_credentials'), false))
          FROM unnest(candidates) AS p);
COMMENT ON FUNCTION postern.are_permissions(text[]) IS 'Known, sorted, distinct; client_credentials alone among the grants';

CREATE FUNCTION postern.is_plain_text(candidate text, longest integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN char_length(candidate) BETWEEN 1 AND longest AND candidate !~ '[\x01-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]'
    AND candidate = btrim(candidate);
COMMENT ON FUNCTION postern.is_plain_text(text, integer) IS 'One line of text for people: no control or bidirectional override characters, no blanks around';

-- One addressee, no comment, list, quoting or literal; the domain is a DNS host of two labels or more.
CREATE FUNCTION postern.is_email(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 254
    -- The same grammar as the server's: dot-atoms of RFC 5321, ASCII only, so that nobody is put who could never sign in.
    AND candidate ~ '\A[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@[A-Za-z0-9.-]+\Z'
    AND candidate !~ '\A-'
    AND octet_length(split_part(candidate, '@', 1)) <= 64
    AND postern.is_host(lower(split_part(candidate, '@', 2) COLLATE "C"))
    AND candidate ~ '\.[A-Za-z0-9-]*[A-Za-z-][A-Za-z0-9-]*\Z';
COMMENT ON FUNCTION postern.is_email(text) IS 'A single mailbox that mail can be sent to';

-- Constraints call these as whoever writes the row.
GRANT EXECUTE ON FUNCTION postern.is_host(text), postern.is_rp_id(text), postern.is_origin(text),
    postern.is_web_view_origin(text), postern.is_scope(text),
    postern.is_permission(text), postern.are_permissions(text[]), postern.is_plain_text(text, integer), postern.is_email(text)
    TO postern_app;

RESET ROLE;
