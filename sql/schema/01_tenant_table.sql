-- What every table of tenants needs.
SET LOCAL ROLE postern_owner;

-- The sequence, and the trigger of tables whose rows servers keep in memory: a new version for the realm and a
-- notification to every server, sent at commit.
CREATE SEQUENCE postern.config_version;
COMMENT ON SEQUENCE postern.config_version IS 'Numbers configuration changes: a new value is higher than any in use';

CREATE FUNCTION postern.config_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
DECLARE
    v_realm uuid;
BEGIN
    FOR v_realm IN SELECT DISTINCT c.realm_id FROM changed AS c LOOP
        UPDATE postern.realm AS r SET config_version = nextval('postern.config_version') WHERE r.id = v_realm;
        PERFORM pg_notify('postern_config', v_realm::text);
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.config_changed IS
    'Trigger: numbers and announces changes of what belongs to a realm''s configuration';

CREATE FUNCTION postern.realm_rows_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp AS $$
BEGIN
    EXECUTE format('DELETE FROM postern.%I AS t WHERE t.realm_id = $1', TG_ARGV[0]) USING OLD.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION postern.realm_rows_deleted IS 'Trigger: the rows of a realm in the table named go with it';

-- What every table of tenants needs, in one call of the migration that creates it.
--   p_app_rights: what postern_app may do, as in GRANT: 'SELECT, INSERT'. NULL: nothing.
--   p_on_realm_delete: 'delete': a trigger deletes the rows, for tables without a foreign key to realm (with one, each
--     insert would lock the realm's one row); 'cascade': a foreign key of the table does; 'keep': the rows stay.
--   p_sweep: the condition under which the sweeper deletes a row (t). NULL: never.
--   p_is_configuration: servers reload the realm when a row changes.
CREATE PROCEDURE postern.tenant_table(
    p_table text, p_app_rights text, p_on_realm_delete text, p_sweep text DEFAULT NULL,
    p_is_configuration boolean DEFAULT false)
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
COMMENT ON PROCEDURE postern.tenant_table IS
    'Row security, policies, rights, the end with the realm and the sweep of a new table; for migrations';

RESET ROLE;
