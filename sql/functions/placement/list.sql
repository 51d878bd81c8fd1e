-- What `postern realm list` shows.
SET LOCAL ROLE postern_owner;

-- SECURITY DEFINER: of all realms. Counting reads an index of users and one of sessions.
CREATE OR REPLACE FUNCTION postern.list_realms()
RETURNS TABLE (realm_id uuid, slug text, enabled boolean, hosts text[], placement text, peer text, is_verified boolean,
               users bigint, sessions bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
    SELECT r.id, r.slug, r.enabled,
           ARRAY(SELECT d.domain FROM postern.realm_domain AS d WHERE d.realm_id = r.id ORDER BY d.domain),
           coalesce(m.state, 'here'), m.peer, m.verified_at IS NOT NULL,
           (SELECT count(*) FROM postern.user_account AS u WHERE u.realm_id = r.id),
           (SELECT count(*) FROM postern.session AS s WHERE s.realm_id = r.id)
      FROM postern.realm AS r LEFT JOIN postern.realm_move AS m ON m.realm_id = r.id
     ORDER BY r.slug
$$;
COMMENT ON FUNCTION postern.list_realms IS 'Realms of this cluster with hosts, placement and size';
GRANT EXECUTE ON FUNCTION postern.list_realms TO postern_app;

RESET ROLE;
