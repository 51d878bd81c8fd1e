\ir ../helpers/fixture.psql
SELECT no_plan();
-- Sign-in and refresh write the same rows with ten webhooks as with none: the audit row is the event.
CREATE FUNCTION pg_temp.written() RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS $$
    SELECT jsonb_object_agg(relname, jsonb_build_array(n_tup_ins, n_tup_upd, n_tup_del))
      FROM pg_stat_xact_user_tables WHERE schemaname = 'postern' $$;
CREATE FUNCTION pg_temp.since(before jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS $$
    SELECT jsonb_object_agg(n.key, jsonb_build_array((n.value -> 0)::int - (before -> n.key -> 0)::int,
        (n.value -> 1)::int - (before -> n.key -> 1)::int, (n.value -> 2)::int - (before -> n.key -> 2)::int))
      FROM jsonb_each(pg_temp.written()) AS n
     WHERE n.value <> before -> n.key $$;
CREATE FUNCTION pg_temp.day(name text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
BEGIN
    PERFORM pg_temp.ask(name, 'ada@example.com', 'code' || name, source => '192.0.2.1', client => pg_temp.client());
    before := pg_temp.written();
    ASSERT pg_temp.redeem('ada@example.com', name, 'code' || name) = 'ok';
    RETURN pg_temp.since(before);
END
$$;
CREATE FUNCTION pg_temp.refreshed(name text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
BEGIN
    PERFORM pg_temp.sign_in(name);
    before := pg_temp.written();
    ASSERT pg_temp.rotate(name, 0) = 'rotated t';
    RETURN pg_temp.since(before);
END
$$;
SET LOCAL ROLE app_login;
SELECT pg_temp.day('warm'), pg_temp.refreshed('warm') \g /dev/null
SELECT pg_temp.day('none') AS signed_in, pg_temp.refreshed('refresh') AS refreshed \gset
RESET ROLE;
SELECT admin.put_webhook('a', 'hook-' || n, 'https://crm.example/x') FROM generate_series(1, 10) AS n \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.day('ten'), :'signed_in'::jsonb, 'a sign-in writes the same rows');
SELECT is(pg_temp.refreshed('more'), :'refreshed'::jsonb, 'and a refresh');
SELECT is(:'signed_in'::jsonb -> 'audit_event', '[1, 0, 0]', 'one row of the audit log among them');
SELECT is(:'refreshed'::jsonb -> 'audit_event', NULL, 'a refresh writes none');
RESET ROLE;
SELECT triggers_are('postern', 'audit_event', '{}'::name[], 'nothing else hangs on the audit log');
SELECT * FROM finish();
ROLLBACK;
