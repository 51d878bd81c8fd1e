-- Roles, schemas, what constraints and policies stand on, and the tables without tenant data.
-- Runs as a superuser, or as the owner of the database with CREATEROLE.

DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('postern_owner', 'Postern: owns every object; no login'),
            ('postern_app', 'Postern: what the server uses; no DDL, no BYPASSRLS'),
            ('postern_admin',
             'Postern: may call admin.* and read its views; sees no secret, code or mail body')) AS v (name, purpose)
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
    -- The role that migrates must be able to act as the owner. A superuser already is.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       AND NOT EXISTS (SELECT FROM pg_auth_members
                        WHERE roleid = 'postern_owner'::regrole
                          AND member = (SELECT oid FROM pg_roles WHERE rolname = current_user)) THEN
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
REVOKE ALL ON SCHEMA postern, admin FROM PUBLIC;
GRANT USAGE ON SCHEMA postern TO postern_app;
GRANT USAGE ON SCHEMA admin TO postern_admin;

-- A function that is not granted cannot be called. Administrators may call every function of schema admin and read
-- every view of it.
ALTER DEFAULT PRIVILEGES FOR ROLE postern_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT EXECUTE ON FUNCTIONS TO postern_admin;
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT SELECT ON TABLES TO postern_admin;

-- The tenant of this transaction. Unset, or emptied by the end of an earlier SET LOCAL: NULL, and every policy says no.
CREATE FUNCTION postern.current_realm() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('postern.realm', true), '')::uuid;
COMMENT ON FUNCTION postern.current_realm IS
    'The realm of this transaction, or NULL; read by every row-security policy';
GRANT EXECUTE ON FUNCTION postern.current_realm TO postern_app;

-- Bare lower-case DNS host (or IPv4 literal): labels of letters, digits and inner hyphens; no port, path, wildcard or
-- trailing dot.
CREATE FUNCTION postern.is_host(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 253
    AND candidate COLLATE "C" ~ '\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\Z';
COMMENT ON FUNCTION postern.is_host IS 'Bare lower-case host name without port, scheme, wildcard or trailing dot';

-- RFC 6761 section 6.3: localhost and every name below it are this machine, whose traffic cannot be read on the way.
-- Browsers take http there for secure. It is for what browsers are sent to; the server resolves names by other means.
CREATE FUNCTION postern.is_localhost(host text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN postern.is_host(host) AND host COLLATE "C" ~ '(\A|\.)localhost\Z';
COMMENT ON FUNCTION postern.is_localhost IS 'localhost or a host below it, where http is as good as https';

-- https://host[:port], or http for localhost and what is below it, without a trailing slash.
CREATE FUNCTION postern.is_origin(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\Ahttps?://[a-z0-9.-]+(:[1-9][0-9]{0,4})?\Z'
    AND CASE WHEN candidate LIKE 'https:%' THEN postern.is_host(substring(candidate FROM '://([a-z0-9.-]+)'))
             ELSE postern.is_localhost(substring(candidate FROM '://([a-z0-9.-]+)')) END
    AND coalesce(substring(candidate FROM ':([0-9]+)\Z')::integer, 443) <= 65535;
COMMENT ON FUNCTION postern.is_origin IS
    'Web origin: https://host[:port], http only for localhost and hosts below it, no trailing slash';

-- Apps in a web view of their own: Capacitor and Ionic serve their pages from these. Every such app has the same
-- origin, so that it is one for CORS only.
CREATE FUNCTION postern.is_web_view_origin(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate IN ('capacitor://localhost', 'ionic://localhost');
COMMENT ON FUNCTION postern.is_web_view_origin IS 'Origin of pages that an app serves to its own web view';

CREATE FUNCTION postern.is_plain_text(candidate text, longest integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN char_length(candidate) BETWEEN 1 AND longest
    AND candidate !~ '[\x01-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]' AND candidate = btrim(candidate);
COMMENT ON FUNCTION postern.is_plain_text IS
    'One line of text for people: no control or bidirectional override characters, no blanks around';

-- One addressee, no comment, list, quoting or literal; the domain is a DNS host of two labels or more.
CREATE FUNCTION postern.is_email(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 254
    -- The same grammar as the server's: dot-atoms of RFC 5321, ASCII only. With another address a user could never
    -- sign in.
    AND candidate ~ '\A[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@[A-Za-z0-9.-]+\Z'
    AND candidate !~ '\A-'
    AND octet_length(split_part(candidate, '@', 1)) <= 64
    AND postern.is_host(lower(split_part(candidate, '@', 2) COLLATE "C"))
    AND candidate ~ '\.[A-Za-z0-9-]*[A-Za-z-][A-Za-z0-9-]*\Z';
COMMENT ON FUNCTION postern.is_email IS 'A single mailbox that mail can be sent to';

-- E.164: a plus sign and 7 to 15 digits. The server judges whether a number can be dialled.
CREATE FUNCTION postern.is_phone(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A\+[1-9][0-9]{6,14}\Z';
COMMENT ON FUNCTION postern.is_phone IS 'A phone number in E.164 form: + and 7 to 15 digits';

-- http is allowed to this machine only, whose traffic cannot be read on the way.
CREATE FUNCTION postern.is_call_url(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 2000 AND candidate COLLATE "C" ~ ('\A(https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?'
    '|https://\[[0-9A-Fa-f:.]+\]|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?'
    '([/?][A-Za-z0-9._~:/?@!$&''()*+,;=%-]*)?\Z');
COMMENT ON FUNCTION postern.is_call_url IS 'A URL that the server may call: https, or http to this machine';

-- RFC 6749 section 3.3: scope-token, here without the characters that need quoting in shells and URLs.
CREATE FUNCTION postern.is_scope(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(candidate) <= 128 AND candidate COLLATE "C" ~ '\A[A-Za-z0-9!#$%&''()*+,./:;<=>?@\[\]^_`{|}~-]+\Z';
COMMENT ON FUNCTION postern.is_scope IS 'RFC 6749 scope-token of at most 128 characters';

-- gt: grants; ept: endpoints; rst: response types; cap: other rights; scp: scopes.
CREATE FUNCTION postern.is_permission(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A(gt|ept|rst|cap):[A-Za-z0-9._:-]{1,120}\Z'
    OR (candidate LIKE 'scp:%' AND postern.is_scope(substr(candidate, 5)));
COMMENT ON FUNCTION postern.is_permission IS
    'A permission string by its shape; known_permission lists those that exist';

-- Valid, sorted, distinct, and user grants apart from client_credentials.
CREATE FUNCTION postern.are_permissions(candidates text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(bool_and(postern.is_permission(p)), true)
              AND candidates = coalesce(array_agg(DISTINCT p COLLATE "C" ORDER BY p COLLATE "C"), '{}')
              AND NOT ('gt:client_credentials' = ANY (candidates)
                       AND coalesce(bool_or(p LIKE 'gt:%' AND p <> 'gt:client_credentials'), false))
          FROM unnest(candidates) AS p);
COMMENT ON FUNCTION postern.are_permissions IS
    'Well-formed, sorted, distinct; client_credentials alone among the grants';

-- RP-ID: a registrable host, so at least two labels (or localhost), no address. The list names the commonest public
-- suffixes of two labels; browsers hold the whole list and refuse the rest.
CREATE FUNCTION postern.is_rp_id(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate = 'localhost'
    OR (postern.is_host(candidate)
        AND candidate COLLATE "C" ~ '\.'
        AND candidate COLLATE "C" !~ '(\A|\.)[0-9]+\Z'
        AND candidate COLLATE "C" !~ '(\A|\.)0x[0-9a-f]*\Z'
        AND candidate <> ALL (ARRAY[
            'co.uk', 'org.uk', 'gov.uk', 'ac.uk', 'com.au', 'net.au', 'org.au', 'co.nz', 'co.jp', 'ne.jp', 'or.jp',
            'co.kr', 'com.br', 'com.cn', 'com.tw', 'com.hk', 'com.sg', 'com.mx', 'com.ar', 'com.tr', 'co.in', 'co.za',
            'co.il', 'co.at', 'or.at', 'com.pl', 'com.ua', 'github.io', 'gitlab.io', 'pages.dev', 'workers.dev',
            'vercel.app', 'netlify.app', 'herokuapp.com', 'web.app', 'firebaseapp.com', 'azurewebsites.net',
            'cloudfront.net', 'appspot.com', 'fly.dev']));
COMMENT ON FUNCTION postern.is_rp_id IS 'WebAuthn RP-ID: bare lower-case registrable DNS host, or localhost';

-- Constraints call these with the rights of the role that writes the row.
GRANT EXECUTE ON FUNCTION postern.is_host, postern.is_localhost, postern.is_origin, postern.is_web_view_origin,
    postern.is_plain_text,
    postern.is_email, postern.is_phone, postern.is_call_url, postern.is_scope, postern.is_permission,
    postern.are_permissions, postern.is_rp_id
    TO postern_app;

COMMENT ON TABLE postern.schema_migration IS
    'Migrations applied to this database, with the checksum of each; no tenant data';
REVOKE ALL ON postern.schema_migration FROM PUBLIC;
GRANT SELECT ON postern.schema_migration TO postern_app;

-- Which release the functions in force are of, and which binaries work on them. `postern migrate` writes the one row.
CREATE TABLE postern.schema_range (
    is_present    boolean PRIMARY KEY DEFAULT true CHECK (is_present),
    function_set  integer NOT NULL CHECK (function_set >= 0),
    oldest_binary integer NOT NULL CHECK (oldest_binary >= 0),
    changed_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE postern.schema_range IS
    'Number of the set of functions in force, and the oldest binary that works on this schema; one row, no tenant data';
COMMENT ON COLUMN postern.schema_range.oldest_binary IS
    'Number of a binary''s own set of functions. It is raised before a migration takes away what older binaries use';
REVOKE ALL ON postern.schema_range FROM PUBLIC;
GRANT SELECT ON postern.schema_range TO postern_app;

-- After a restore of this database to an earlier time, what was sealed before it and is in no table is void.
CREATE TABLE postern.schema_restore (
    at          timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
    restored_to timestamptz NOT NULL,
    noted_by    text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE postern.schema_restore IS
    'When this database was restored from a backup, and to which moment; no tenant data';
REVOKE ALL ON postern.schema_restore FROM PUBLIC;
GRANT SELECT ON postern.schema_restore TO postern_app;

-- Registries: what a capability announces in its own files instead of editing a list in another one. Files of functions
-- insert the rows, so that a row changes when its file is applied again.
CREATE PROCEDURE postern.registry_table(p_table text)
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', p_table);
    EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', p_table);
    EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', p_table);
END
$$;
COMMENT ON PROCEDURE postern.registry_table IS
    'Row security and policy of a new table that holds no tenant data: only its owner reads it; for migrations';

CREATE TABLE postern.sweep_rule (
    table_name text PRIMARY KEY,
    condition  text NOT NULL
);
COMMENT ON TABLE postern.sweep_rule IS 'Which rows of a table (t) the sweeper deletes; no tenant data';
CALL postern.registry_table('sweep_rule');

CREATE TABLE postern.sweep_cursor (
    table_name text PRIMARY KEY,
    block      bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE postern.sweep_cursor IS 'How far the sweeper has walked through each table; no tenant data';
CALL postern.registry_table('sweep_cursor');

CREATE TABLE postern.known_permission (
    permission text PRIMARY KEY,
    purpose    text NOT NULL,
    CHECK (permission NOT LIKE 'scp:%' AND postern.is_permission(permission))
);
COMMENT ON TABLE postern.known_permission IS 'Permissions that a client may be given besides scopes; no tenant data';
CALL postern.registry_table('known_permission');

CREATE FUNCTION postern.is_channel(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A[a-z][a-z0-9-]{0,19}\Z';
COMMENT ON FUNCTION postern.is_channel IS 'A channel by its shape; known_channel lists those that exist';
GRANT EXECUTE ON FUNCTION postern.is_channel TO postern_app;

CREATE TABLE postern.known_channel (
    channel text PRIMARY KEY CHECK (postern.is_channel(channel)),
    reaches text NOT NULL CHECK (reaches IN ('mailbox', 'phone', 'device')),
    amr     text[] NOT NULL,
    place   integer NOT NULL UNIQUE
);
COMMENT ON TABLE postern.known_channel IS 'What messages are sent by; no tenant data';
COMMENT ON COLUMN postern.known_channel.amr IS 'Authentication methods (RFC 8176) of a code that came by it';
COMMENT ON COLUMN postern.known_channel.place IS 'Their order where there is a choice';
CALL postern.registry_table('known_channel');

-- A limit that has no default (permits NULL) exists, but is off until a realm sets it.
CREATE TABLE postern.rate_limit_policy (
    policy    text NOT NULL CHECK (policy COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    dimension text NOT NULL CHECK (dimension COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    permits   integer CHECK (permits >= 1),
    per       interval CHECK (per BETWEEN '1 second' AND '1 day'),
    burst     integer CHECK (burst BETWEEN 1 AND 1000000),
    mode      text CHECK (mode IN ('enforce', 'log-only')),
    PRIMARY KEY (policy, dimension),
    CHECK (num_nonnulls(permits, per, burst, mode) IN (0, 4))
);
COMMENT ON TABLE postern.rate_limit_policy IS
    'What a realm may limit: policies, the dimensions of each, and their defaults; no tenant data';
CALL postern.registry_table('rate_limit_policy');

RESET ROLE;
