#!/usr/bin/env bash
# No statement of a function that a request calls reads more than 200 rows, whatever strangers have left: the tests of
# the other folders run again in a database that is full of another people's rows (sql/bench/crowd.sql), without
# statistics, and auto_explain logs each plan. Whether a test passes there does not matter. reads_many.txt names the
# functions that may read more, and those that no SQL test calls, each with the reason.
set -uo pipefail
here=sql/tests/plans
limit=200 rows=${PLAN_ROWS:-1000}
log=$PGHOST/log
psql -X -q -d postgres -c "DROP DATABASE IF EXISTS crowd" -c "CREATE DATABASE crowd TEMPLATE by_migrator" || exit 1
export PGDATABASE=crowd
psql -X -q -c "CREATE EXTENSION pgtap" || exit 1
psql -X -q -v ON_ERROR_STOP=1 -v rows="$rows" -f sql/bench/crowd.sql || exit 1
names=$(psql -X -A -t -F ' ' \
    -c "SELECT DISTINCT 'function', proname FROM pg_proc WHERE pronamespace = 'postern'::regnamespace" \
    -c "SELECT 'index', i.indexrelid::regclass::name, string_agg(a.attname, ',' ORDER BY a.attnum)
          FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indexrelid
          JOIN pg_class AS c ON c.oid = i.indrelid AND c.relnamespace = 'postern'::regnamespace GROUP BY 2")
explain=$PGOPTIONS
for setting in session_preload_libraries=auto_explain log_min_messages=log auto_explain.log_min_duration=0 \
    auto_explain.log_analyze=on auto_explain.log_buffers=on auto_explain.log_timing=off \
    auto_explain.log_nested_statements=on auto_explain.log_format=json; do
    explain="$explain -c $setting"
done
before=$(stat -c %s "$log")
# Without tests that read the whole catalogue or whole tables by themselves, and those of operators' functions.
find sql/tests -mindepth 2 -name '*.sql' ! -name '*growth.sql' ! -path 'sql/tests/0_base/*' \
    ! -path 'sql/tests/placement/*' \
    ! -path 'sql/tests/realm/*' ! -path 'sql/tests/upgrade/*' ! -path 'sql/tests/outbox/turns.sql' | LC_ALL=C sort |
    PGOPTIONS=$explain xargs -P 2 -n 1 psql -X -q -o /dev/null -f >/dev/null 2>&1
tail -c +$((before + 1)) "$log" >"$PGHOST/plans"
found=$(python3 sql/bench/read_plans.py "$PGHOST/plans" $limit <<<"$names") || exit 1
[ -z "${PLANS_OUT:-}" ] || printf '%s\n' "$found" >"$PLANS_OUT"
status=0
allowed() { grep -q "^$1 $2 " "$here/reads_many.txt"; }
while IFS=$'\t' read -r _ function many pages node statement; do
    allowed reads "$function" && continue
    echo "not ok - $function reads $many rows in $pages pages: $node: $statement"
    status=1
# Without cascades of a realm or a client that is deleted.
done < <(grep '^reads' <<<"$found" | grep -v $'^reads\ta trigger\t')
# What the server calls, from its sources.
while read -r function; do
    grep -qx "called	$function" <<<"$found" || allowed uncalled "$function" ||
        { echo "not ok - the server calls postern.$function, and no test of sql/tests does"; status=1; }
done < <(grep -rhozP 'FunctionCall(<[^{}]*?>)?\(\s*"\K[a-z0-9_]+(?=")' Sources | tr '\0' '\n' | LC_ALL=C sort -u)
psql -X -q -d postgres -c "DROP DATABASE crowd"
[ $status != 0 ] || echo "ok - no function of a request reads more than $limit rows among $rows of strangers"
exit $status
