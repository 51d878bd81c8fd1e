-- Registries: what a capability announces in its own files instead of editing a list in another one. They hold no
-- tenant data. Files of functions insert the rows, so that a row changes when its file is applied again.
SET LOCAL ROLE postern_owner;

CREATE TABLE postern.sweep_rule (
    table_name text PRIMARY KEY,
    condition  text NOT NULL
);
COMMENT ON TABLE postern.sweep_rule IS 'Which rows of a table (t) the sweeper deletes; no tenant data';

CREATE TABLE postern.known_permission (
    permission text PRIMARY KEY,
    purpose    text NOT NULL
);
COMMENT ON TABLE postern.known_permission IS 'Permissions that a client may be given besides scopes; no tenant data';

-- A limit that has no default (permits NULL) exists, but is off until a realm sets it.
CREATE TABLE postern.rate_limit_policy (
    policy    text NOT NULL CHECK (policy COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    dimension text NOT NULL CHECK (dimension COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    permits   integer CHECK (permits >= 1),
    per       interval CHECK (per BETWEEN '1 second' AND '1 day'),
    burst     integer CHECK (burst BETWEEN 1 AND 1000000),
    mode      text CHECK (mode IN ('enforce', 'log-only')),
    place     integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (policy, dimension),
    CHECK (num_nonnulls(permits, per, burst, mode) IN (0, 4))
);
COMMENT ON TABLE postern.rate_limit_policy IS
    'What a realm may limit: policies, the dimensions of each, and their defaults; no tenant data';
COMMENT ON SEQUENCE postern.rate_limit_policy_place_seq IS 'Numbers the rows of rate_limit_policy';
COMMENT ON COLUMN postern.rate_limit_policy.place IS 'Order in messages: that in which the rows came';

-- The pairs that the constraints below allowed.
INSERT INTO postern.rate_limit_policy (policy, dimension) VALUES
    ('native-otp', 'target'), ('native-otp', 'target-total'), ('native-otp', 'source'), ('native-otp', 'client'),
    ('native-otp', 'app'), ('magic-link', 'target'), ('magic-link', 'target-total'), ('magic-link', 'source'),
    ('magic-link', 'client'), ('magic-link', 'app'), ('passkey-begin', 'source'), ('passkey-begin', 'client'),
    ('passkey-begin', 'app'), ('token', 'source'), ('token', 'client'), ('token', 'app'), ('token', 'failures'),
    ('native-otp', 'registrations'), ('token', 'wrong-codes'), ('refused', 'source');

-- From here on admin.set_rate_limit and admin.grant_permission read the registries; constraints keep the shape only.
ALTER TABLE postern.rate_limit
    DROP CONSTRAINT rate_limit_policy_check,
    DROP CONSTRAINT rate_limit_dimension_check,
    DROP CONSTRAINT rate_limit_failures,
    DROP CONSTRAINT rate_limit_target,
    DROP CONSTRAINT rate_limit_registrations,
    DROP CONSTRAINT rate_limit_wrong_codes,
    DROP CONSTRAINT rate_limit_refused,
    ADD CONSTRAINT rate_limit_policy_check CHECK (policy COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z'),
    ADD CONSTRAINT rate_limit_dimension_check CHECK (dimension COLLATE "C" ~ '\A[a-z][a-z-]{0,39}\Z');

CREATE OR REPLACE FUNCTION postern.is_permission(candidate text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN candidate COLLATE "C" ~ '\A(gt|ept|cap):[A-Za-z0-9._:-]{1,120}\Z'
    OR (candidate LIKE 'scp:%' AND postern.is_scope(substr(candidate, 5)));
COMMENT ON FUNCTION postern.is_permission IS
    'A permission string by its shape; which ones there are, known_permission says';
COMMENT ON FUNCTION postern.are_permissions IS
    'Well-formed, sorted, distinct; client_credentials alone among the grants';
ALTER TABLE postern.known_permission
    ADD CHECK (permission NOT LIKE 'scp:%' AND postern.is_permission(permission));

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['sweep_rule', 'known_permission', 'rate_limit_policy'] LOOP
        EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', t);
    END LOOP;
END
$$;

-- What every table of tenants needs, in one call of the migration that creates it.
--   p_app_rights: what postern_app may do, as in GRANT: 'SELECT, INSERT'. NULL: nothing.
--   p_on_realm_delete: 'delete': a trigger deletes the rows, for tables without a foreign key to realm (with one, each
--     insert would lock the realm's one row); 'cascade': a foreign key of the table does; 'keep': the rows stay.
--   p_sweep: the condition under which the sweeper deletes a row (t). NULL: never.
--   p_is_configuration: servers reload the realm when a row changes.
CREATE FUNCTION postern.tenant_table(
    p_table text, p_app_rights text, p_on_realm_delete text, p_sweep text DEFAULT NULL,
    p_is_configuration boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_change record;
BEGIN
    EXECUTE format('ALTER TABLE postern.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', p_table);
    EXECUTE format('CREATE POLICY realm ON postern.%I USING (realm_id = postern.current_realm())'
                   ' WITH CHECK (realm_id = postern.current_realm())', p_table);
    EXECUTE format('CREATE POLICY owner ON postern.%I TO postern_owner USING (true) WITH CHECK (true)', p_table);
    EXECUTE format('REVOKE ALL ON postern.%I FROM PUBLIC', p_table);
    IF p_app_rights IS NOT NULL THEN
        EXECUTE format('GRANT %s ON postern.%I TO postern_app', p_app_rights, p_table);
    END IF;
    IF p_on_realm_delete = 'delete' THEN
        EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON postern.realm FOR EACH ROW'
                       ' EXECUTE FUNCTION postern.realm_rows_deleted(%L)', 'realm_deleted_' || p_table, p_table);
    ELSIF p_on_realm_delete = 'cascade' THEN
        IF NOT EXISTS (SELECT FROM pg_constraint AS x
                        WHERE x.conrelid = format('postern.%I', p_table)::regclass AND x.contype = 'f'
                          AND x.confdeltype = 'c') THEN
            RAISE EXCEPTION 'no foreign key of table % deletes its rows with their realm', p_table;
        END IF;
    ELSIF p_on_realm_delete IS DISTINCT FROM 'keep' THEN
        RAISE EXCEPTION 'p_on_realm_delete is %: give delete, cascade or keep', p_on_realm_delete;
    END IF;
    IF p_sweep IS NOT NULL THEN
        INSERT INTO postern.sweep_rule (table_name, condition) VALUES (p_table, p_sweep);
    END IF;
    IF p_is_configuration THEN
        FOR v_change IN SELECT * FROM (VALUES ('INSERT', 'config_inserted', 'NEW'), ('UPDATE', 'config_updated', 'NEW'),
                                              ('DELETE', 'config_deleted', 'OLD')) AS c (event, name, rows) LOOP
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON postern.%I REFERENCING %s TABLE AS changed'
                           ' FOR EACH STATEMENT EXECUTE FUNCTION postern.config_changed()',
                           v_change.name, v_change.event, p_table, v_change.rows);
        END LOOP;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.tenant_table IS
    'Row security, policies, rights, the end with the realm and the sweep of a new table; for migrations';

CREATE FUNCTION postern.realm_rows_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    EXECUTE format('DELETE FROM postern.%I AS t WHERE t.realm_id = $1', TG_ARGV[0]) USING OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_rows_deleted IS 'Trigger: the rows of a realm in the table named go with it';

-- What a grant knows about the session that it opens.
CREATE TYPE postern.new_session AS (
    id               uuid,
    token_salt       bytea,
    refresh_hash     bytea,
    scope            text[],
    resource         text[],
    amr              text[],
    access_lifetime  integer,
    refresh_lifetime integer,
    source           text,
    server_key       bytea
);
COMMENT ON TYPE postern.new_session IS
    'A session to be opened: lifetimes in seconds; refresh_hash NULL: no refresh token; see open_session';

-- Administrators may call every function of schema admin and read every view of it.
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT EXECUTE ON FUNCTIONS TO postern_admin;
ALTER DEFAULT PRIVILEGES IN SCHEMA admin GRANT SELECT ON TABLES TO postern_admin;

-- Earlier forms of functions: a call by some of their arguments would be ambiguous. No binary calls one of them.
DROP FUNCTION IF EXISTS admin.put_realm(text, text, text, text, text[], boolean);
DROP FUNCTION IF EXISTS admin.put_client(text, text, text, text, text, text, interval, interval, boolean, boolean);
DROP FUNCTION IF EXISTS admin.put_user(text, text, text, text, boolean, boolean);
DROP FUNCTION IF EXISTS admin.set_code_policy(text, interval, integer, interval, interval, interval);
DROP FUNCTION IF EXISTS postern.add_signing_key(uuid, text, text, jsonb, bytea);
DROP FUNCTION IF EXISTS postern.adopt_registration(uuid, uuid, text, text, bytea, uuid[], bytea[], text);
DROP FUNCTION IF EXISTS postern.open_link_session(uuid, uuid, text, uuid, uuid, text, timestamptz, uuid, bytea, bytea,
    text[], text[], text[], integer, integer, text, text);

RESET ROLE;
