#!/usr/bin/env bash
# Carries the data of version 0 (migration 12, a row in every table) through every later migration, one transaction each, and
# compares what each migration does with sql/facts/migrations.tsv. `scripts/migration-facts` writes that file by this script.
#   PGHOST and PGUSER name a PostgreSQL 15 with a superuser; a database upgrade is made and dropped.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export PGDATABASE=upgrade
export PGOPTIONS='-c client_min_messages=warning'
run() { psql -X -q -v ON_ERROR_STOP=1 "$@"; }
psql -X -q -d postgres -c "DROP DATABASE IF EXISTS upgrade" -c "CREATE DATABASE upgrade"
work=$(mktemp -d)
trap 'psql -X -q -d postgres -c "DROP DATABASE IF EXISTS upgrade"; rm -rf "$work"' EXIT

counts() { # of the tables of version 0
    run -At -c "SELECT format('SELECT %L, count(*) FROM postern.%I;', relname, relname) FROM pg_class
        WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r' AND relname NOT LIKE 'schema\_%' ORDER BY relname" >"$work/counts.sql"
}
fail() { echo "not ok: $*" >&2; exit 1; }

files=(sql/migrations/*.sql)
for file in "${files[@]}"; do
    [[ $(basename "$file") < 0013 ]] || break
    run -1 -f "$file"
done
run -1 -f sql/tests/upgrade/version_0.psql
counts
run -At -f "$work/counts.sql" >"$work/before"
! grep '|0$' "$work/before" || fail "tables of version 0 without a row"

{
    echo "# What migrations do to tables that are there before; written by scripts/migration-facts."
    for file in "${files[@]}"; do
        [[ $(basename "$file") < 0013 ]] || run -v file="$PWD/$file" -v name="$(basename "$file")" -f sql/tests/upgrade/migrate.psql
    done
} >"$work/facts"
if [ "${1:-}" = --write ]; then cp "$work/facts" sql/facts/migrations.tsv; fi
diff -u sql/facts/migrations.tsv "$work/facts" || fail "sql/facts/migrations.tsv is not what the migrations do: run scripts/migration-facts"
scripts/sql-functions | while read -r file; do run -1 -f "$file" >/dev/null; done

run -At -f "$work/counts.sql" >"$work/after"
# Every row of version 0 is there, and none is there twice.
diff "$work/before" "$work/after" || fail "row counts differ"
# Constraints that were added without a look at the rows hold for all of them.
run -At -c "SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I;', conrelid::regclass, conname)
    FROM pg_constraint WHERE NOT convalidated" | run -f -
run -f sql/tests/upgrade/checks.psql
echo "ok: data of version 0 went through every later migration"
