-- For commands that take a realm's slug instead of a host.
SET LOCAL ROLE postern_owner;

-- SECURITY DEFINER: which realm it is has to be known before row security can let any of its rows be seen.
CREATE OR REPLACE FUNCTION postern.realm_id(p_slug text)
RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.id FROM postern.realm AS r WHERE r.slug = p_slug
$$;
COMMENT ON FUNCTION postern.realm_id(text) IS 'Realm by slug, enabled or not; NULL when there is none';

REVOKE ALL ON FUNCTION postern.realm_id(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postern.realm_id(text) TO postern_app;

RESET ROLE;
