#!/usr/bin/env bash
# The sweeper beside refreshes: sql/bench/sweep.sh [SECONDS]. Connection by PGHOST (a superuser); wants the database growth_1000000 that
# growth.sh makes. Expires a tenth of the families (a day's churn), refreshes at half of the best rate, without and with a
# sweeper that calls as the server does, and prints both p99 and how long the churn took to sweep.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-20} db=growth_1000000
export PGUSER=${PGUSER:-postgres} PGOPTIONS='-c client_min_messages=warning'
sql() { psql -XAtq -d "$db" -c "$1"; }
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
run=$(sql 'SELECT extract(epoch FROM now())::int % 10000000')
# load NAME SECONDS [OPTION…]: prints the rate; leaves the latencies (µs from when each was due) in $logs/NAME.*
load() {
    run=$((run + 1)) name=$1
    sql "SELECT bench.seed_chains($run, 16)" >/dev/null
    pgbench -U bench_app -M prepared -n -c 16 -j 2 -T "$2" -f "$here/refresh.sql" -D run=$run -D i=0 -l --log-prefix="$logs/$name" "${@:3}" "$db" 2>/dev/null |
        sed -n 's/^tps = \([0-9]*\).*/\1/p'
}
percentile() { cat "$logs/$1".* | awk '{ print $3 }' | sort -n | awk '{ v[NR] = $1 } END { printf "%d %d", v[int(NR * 0.5)], v[int(NR * 0.99)] }'; }
best=$(load best 5)
sql "UPDATE postern.session SET expires_at = now() - interval '2 hours' WHERE id IN (SELECT bench.uid('session', i) FROM generate_series(1, 1000000, 10) AS i)"
sql 'VACUUM ANALYZE postern.session' && sql CHECKPOINT
load without "$seconds" -R $((best / 2)) >/dev/null
(
    began=$(date +%s.%N) swept=0
    while [ "$(sql "SELECT count(*) FROM (SELECT FROM postern.session WHERE expires_at < now() - interval '1 hour' LIMIT 1) AS t")" = 1 ]; do
        while n=$(psql -XAtq -U bench_app -d "$db" -c 'SELECT postern.sweep(1000)') && swept=$((swept + n)) && [ "$n" -ge 1000 ]; do :; done
    done
    echo "$swept rows in $(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }') s" >"$logs/swept"
) &
load with "$seconds" -R $((best / 2)) >/dev/null
wait
read -r p50 p99 <<<"$(percentile without)"
read -r q50 q99 <<<"$(percentile with)"
echo "refresh at $((best / 2))/s: p50 $p50, p99 $p99 µs; beside the sweeper p50 $q50, p99 $q99 µs: p99 × $(awk -v a="$q99" -v b="$p99" 'BEGIN { printf "%.2f", a / b }'); swept $(cat "$logs/swept")"
