#!/usr/bin/env bash
# Carries a row of every table from the schema of release 1.0.0 through every later migration, one transaction each, and
# compares what each migration does with sql/facts/migrations.tsv. `scripts/migration-facts` writes that file by this
# script. A migration of the next release that is made up (sample.psql) shows that the measuring sees what it should.
#   PGHOST and PGUSER name a PostgreSQL 15 with a superuser; two databases, upgrade and upgrade_full, are made and dropped.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export PGDATABASE=upgrade
export PGOPTIONS='-c client_min_messages=warning'
run() { psql -X -q -v ON_ERROR_STOP=1 "$@"; }
drop() { psql -X -q -d postgres -c "DROP DATABASE IF EXISTS upgrade" -c "DROP DATABASE IF EXISTS upgrade_full"; }
fail() { echo "not ok: $*" >&2; exit 1; }
drop
psql -X -q -d postgres -c "CREATE DATABASE upgrade" -c "CREATE DATABASE upgrade_full"
work=$(mktemp -d)
trap 'drop; rm -rf "$work"' EXIT
migrations=()
for file in sql/migrations/*.sql; do [ ! -e "$file" ] || migrations+=("$file"); done
functions() { scripts/sql-functions | while read -r file; do run -d "$1" -1 -f "$file" >/dev/null; done; }
measure() { run -v file="$PWD/$1" -v name="$(basename "$1")" -f sql/tests/upgrade/migrate.psql; }
counts() {
    run -At -c "SELECT format('SELECT %L, count(*) FROM postern.%I;', relname, relname) FROM pg_class
        WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r' AND relname NOT LIKE 'schema\_%' ORDER BY relname" |
        run -At -f -
}

# Rows as the functions of today make them, in the columns that release 1.0.0 has.
schema=()
for file in sql/schema/*.sql; do schema+=(-f "$file"); done
run -d upgrade -1 "${schema[@]}"
run -d upgrade_full -1 "${schema[@]}"
for file in "${migrations[@]}"; do run -d upgrade_full -1 -f "$file"; done
functions upgrade_full
run -d upgrade_full -c '\ir sql/tests/helpers/fixture.psql' -c '\ir sql/tests/helpers/rows.psql' -c 'COMMIT' >/dev/null
columns="SELECT format('%I', c.relname), string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
   WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_migration' GROUP BY c.relname"
run -At -F $'\t' -c "$columns" | while IFS=$'\t' read -r table list; do
    run -d upgrade_full -c "\copy (SELECT $list FROM postern.$table) TO '$work/rows'"
    run -c "SET session_replication_role = replica" -c "DELETE FROM postern.$table" -c "\copy postern.$table ($list) FROM '$work/rows'"
done
counts >"$work/before"
! grep '|0$' "$work/before" || fail "tables without a row"

{
    echo "# What migrations do to tables that are there before; written by scripts/migration-facts."
    for file in "${migrations[@]}"; do measure "$file"; done
} >"$work/facts"
if [ "${1:-}" = --write ]; then cp "$work/facts" sql/facts/migrations.tsv; fi
diff -u sql/facts/migrations.tsv "$work/facts" || fail "sql/facts/migrations.tsv is not what the migrations do: run scripts/migration-facts"
functions upgrade

counts >"$work/after"
# Every row is there, and none is there twice. New tables are empty.
diff <(cut -d'|' -f1 "$work/before" | grep -F -f - "$work/after") "$work/before" || fail "row counts differ"
# Constraints that were added without a look at the rows hold for all of them.
run -At -c "SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', conrelid::regclass, conname)
    FROM pg_constraint WHERE NOT convalidated" | run -f -
measure sql/tests/upgrade/sample.psql | diff -u sql/tests/upgrade/sample.tsv - || fail "the measuring does not see what sample.psql does"
echo "ok: the rows of release 1.0.0 went through every later migration, and the measuring sees what a migration does"
