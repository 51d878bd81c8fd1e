-- Which realms this cluster serves (docs/decisions/0047). SECURITY DEFINER, since the app role sees one realm at a
-- time.
SET LOCAL ROLE postern_owner;

-- here; left: it was served here and is not any more; absent: never, or it has not arrived yet.
CREATE OR REPLACE FUNCTION postern.placement(p_realm uuid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT CASE WHEN NOT EXISTS (SELECT FROM postern.realm AS r WHERE r.id = p_realm) THEN 'absent'
                WHEN EXISTS (SELECT FROM postern.realm_move AS m WHERE m.realm_id = p_realm AND m.state = 'left')
                THEN 'left' ELSE 'here' END
$$;
COMMENT ON FUNCTION postern.placement IS 'Whether this cluster serves a realm: here, left or absent';
GRANT EXECUTE ON FUNCTION postern.placement TO postern_app;

-- What goes through all realms leaves these out: their rows here are not written any more. The table has a row for each
-- realm that moves. Callers that forbid scans of their own tables would have this one compiled at each call.
CREATE OR REPLACE FUNCTION postern.unserved_realms() RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp SET enable_seqscan = on
AS $$ SELECT coalesce(array_agg(m.realm_id), '{}') FROM postern.realm_move AS m WHERE m.state <> 'leaving' $$;
COMMENT ON FUNCTION postern.unserved_realms IS 'Realms that have rows here and are served by another cluster';
GRANT EXECUTE ON FUNCTION postern.unserved_realms TO postern_app;

RESET ROLE;
