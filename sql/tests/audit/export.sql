\ir ../helpers/fixture.psql
SELECT no_plan();
-- Three rows of an earlier transaction, with ids among those of a later one.
CREATE FUNCTION pg_temp.put(name text, first boolean, at timestamptz DEFAULT now()) RETURNS void LANGUAGE sql
    SECURITY DEFINER AS $$
    INSERT INTO postern.audit_event (realm_id, event, at, xid, client, detail)
    SELECT r.id, name, at, CASE WHEN first THEN '4' ELSE '5' END::xid8,
           (SELECT c.id FROM postern.client AS c WHERE c.realm_id = r.id AND c.client_id = 'app'), '{"k": "v\n"}'
      FROM postern.realm AS r $$;
DELETE FROM postern.audit_event;
SELECT pg_temp.put('o1', true), pg_temp.put('n1', false), pg_temp.put('o2', true), pg_temp.put('n2', false, now() - interval '2 days'),
       pg_temp.put('o3', true, now() - interval '2 days'), pg_temp.put('n3', false) \g /dev/null
SET LOCAL ROLE app_login;
-- Reads page after page, as the command does; n: pages.
CREATE FUNCTION pg_temp.export(
    batch integer, place text DEFAULT '0:0', since timestamptz DEFAULT '-infinity', OUT events text, OUT n integer)
LANGUAGE plpgsql AS $$
DECLARE
    page record;
BEGIN
    events := '';
    n := 0;
    LOOP
        n := n + 1;
        SELECT e.* INTO page FROM postern.export_audit(
            pg_temp.realm(), place, coalesce(NULLIF(date_part('epoch', since), '-infinity'), 0), batch) AS e;
        events := events || coalesce((SELECT string_agg(l::jsonb ->> 'event', ',' ORDER BY o) || ','
                                        FROM unnest(string_to_array(page.lines, E'\n')) WITH ORDINALITY AS u (l, o)), '');
        place := page.place;
        EXIT WHEN page.is_end OR n > 20;
    END LOOP;
END
$$;
SELECT is((pg_temp.export(100)).events, 'o1,o2,o3,n1,n2,n3,', 'in the order of transactions, then of ids');
SELECT is((pg_temp.export(b)).events, 'o1,o2,o3,n1,n2,n3,', format('in batches of %s', b)) FROM unnest(ARRAY[2, 3, 6, 7]) AS b;
SELECT is((pg_temp.export(100, since => now() - interval '1 day')).events, 'o1,o2,n1,n3,', 'only those since a moment');
SELECT is((pg_temp.export(100, postern.audit_place(pg_temp.realm(), id))).events, rest, 'resumed behind ' || event)
  FROM (VALUES ('o2', 'o3,n1,n2,n3,'), ('o3', 'n1,n2,n3,'), ('n2', 'n3,'), ('n3', '')) AS v (event, rest),
       LATERAL (SELECT pg_temp.sql(format('SELECT id FROM postern.audit_event WHERE event = %L AND realm_id = %L',
                                          event, pg_temp.realm()))::bigint AS id) AS i;
SELECT is(postern.audit_place(pg_temp.realm(), pg_temp.sql(format(
    'SELECT max(id) FROM postern.audit_event WHERE realm_id = %L', pg_temp.other()))::bigint), NULL,
    'an event of another realm is none');
RESET ROLE;
SELECT is((SELECT l::jsonb - 'at' FROM postern.export_audit(pg_temp.realm(), '0:0', 0, 1) AS e, LATERAL (SELECT e.lines AS l) AS x),
          (SELECT to_jsonb(v) - 'at' FROM admin.audit_log AS v WHERE v.realm = 'a' AND v.event = 'o1'),
          'a line has the members of admin.audit_log');
SELECT is((SELECT (l::jsonb ->> 'at')::timestamptz FROM postern.export_audit(pg_temp.realm(), '0:0', 0, 1) AS e,
           LATERAL (SELECT e.lines AS l) AS x), now(), 'with the same time');

SELECT * FROM finish();
ROLLBACK;
