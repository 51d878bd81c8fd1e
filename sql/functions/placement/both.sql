-- What both clusters of a move use (docs/decisions/0047).
SET LOCAL ROLE postern_owner;

CREATE OR REPLACE FUNCTION postern.name_of_move(p_realm uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'postern_move_' || replace(p_realm::text, '-', '');
COMMENT ON FUNCTION postern.name_of_move IS
    'The name of publication, subscription and slot of a move; those of its triggers begin with it';

CREATE OR REPLACE FUNCTION postern.realm_column(p_table text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_table WHEN 'realm' THEN 'id' ELSE 'realm_id' END;
COMMENT ON FUNCTION postern.realm_column IS 'Which column of a table says the realm';

-- Called after a change of the state: nodes read the realm's configuration anew, and ask which cluster serves it.
CREATE OR REPLACE FUNCTION postern.announce_move(p_realm uuid) RETURNS void
LANGUAGE sql
AS $$
    UPDATE postern.realm AS r SET config_version = nextval('postern.config_version') WHERE r.id = p_realm;
    SELECT pg_notify('postern_config', p_realm::text);
$$;
COMMENT ON FUNCTION postern.announce_move IS 'Tells the nodes that a realm is served otherwise than before';

-- Waits until no sweeper runs, which locks many tables for long, and then for tables less long than a refresh waits for
-- a lock: what queues behind us meanwhile does not fail.
CREATE OR REPLACE FUNCTION postern.lock_tables_shortly() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM set_config('lock_timeout', '10s', true);
    PERFORM pg_advisory_xact_lock(postern.lock_of_sweep());
    PERFORM set_config('lock_timeout', '80ms', true);
END
$$;
COMMENT ON FUNCTION postern.lock_tables_shortly IS 'Before a transaction that makes or removes triggers of a move';

-- p_row: NEW or OLD, the row that must be the realm's. p_call: the trigger's function with its argument.
CREATE OR REPLACE FUNCTION postern.put_move_trigger(
    p_realm uuid, p_table text, p_suffix text, p_events text, p_row text, p_call text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE %s ON postern.%I FOR EACH ROW WHEN (%s.%I = %L)'
                   ' EXECUTE FUNCTION %s', postern.name_of_move(p_realm) || p_suffix, p_events, p_table, p_row,
                   postern.realm_column(p_table), p_realm, p_call);
END
$$;
COMMENT ON FUNCTION postern.put_move_trigger IS 'Makes a trigger of a move, for the rows of its realm';

CREATE OR REPLACE FUNCTION postern.unguard_table(p_realm uuid, p_table text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_suffix text;
BEGIN
    PERFORM postern.lock_tables_shortly();
    FOREACH v_suffix IN ARRAY ARRAY['_new', '_old', '_xid'] LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS %I ON postern.%I', postern.name_of_move(p_realm) || v_suffix, p_table);
    END LOOP;
END
$$;
COMMENT ON FUNCTION postern.unguard_table IS 'Removes the triggers of a move';

RESET ROLE;
