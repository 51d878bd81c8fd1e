-- Which binaries and schemas go together.
SET LOCAL ROLE postern_owner;

-- One row. A database whose functions have no number has set 0.
CREATE OR REPLACE FUNCTION postern.schema_range()
RETURNS TABLE (version integer, function_set integer, oldest_binary integer)
LANGUAGE sql STABLE
AS $$
    SELECT postern.schema_version(), coalesce(max(r.function_set), 0), coalesce(max(r.oldest_binary), 0)
      FROM postern.schema_range AS r
$$;
COMMENT ON FUNCTION postern.schema_range IS
    'Last migration, number of the set of functions, and the oldest binary that works on this schema';
GRANT EXECUTE ON FUNCTION postern.schema_range TO postern_app;

RESET ROLE;
