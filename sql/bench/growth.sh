#!/usr/bin/env bash
# What a statement costs as tables grow: sql/bench/growth.sh [SECONDS] [ROUNDS]. Connection by PGHOST (a superuser); makes the databases
# growth_N (N live refresh families, at most a million users; ten million take minutes) when they are missing. Sizes take turns, so
# that noise falls on all; prints per second and how much more a request costs than at the first size, medians of the rounds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-4} rounds=${2:-3} sizes=(${SIZES:-10000 1000000 10000000})
export PGUSER=${PGUSER:-postgres} PGOPTIONS='-c client_min_messages=warning'
psql -Xq -d postgres -c "DO \$\$ BEGIN IF to_regrole('postern_app') IS NULL THEN CREATE ROLE postern_app NOLOGIN; END IF; IF to_regrole('bench_app') IS NULL THEN CREATE ROLE bench_app LOGIN; END IF; END \$\$"
for size in "${sizes[@]}"; do
    [ "$(psql -XAtq -d postgres -c "SELECT count(*) FROM pg_database WHERE datname = 'growth_$size'")" = 1 ] && continue
    echo "seeding growth_$size …" >&2
    psql -Xq -d postgres -c "CREATE DATABASE growth_$size"
    for file in "$here"/../schema/*.sql $("$here/../../scripts/sql-functions"); do psql -Xq -1 -d "growth_$size" -v ON_ERROR_STOP=1 -f "$file"; done
    psql -Xq -d "growth_$size" -v ON_ERROR_STOP=1 -v users=$((size < 1000000 ? size : 1000000)) -v sessions="$size" -f "$here/seed.sql"
    psql -Xq -d "growth_$size" -c 'VACUUM ANALYZE'
done
psql -Xq -d postgres -c 'GRANT postern_app TO bench_app'
run=$(psql -XAtq -d postgres -c 'SELECT extract(epoch FROM now())::int % 10000000')
for round in $(seq "$rounds"); do
    for what in ${WHAT:-refresh redeem_handle introspect}; do
        for size in "${sizes[@]}"; do
            run=$((run + 1)) db=growth_$size
            case $what in
                refresh) psql -Xq -d "$db" -c "SELECT bench.seed_chains($run, 16)" >/dev/null ;;
                redeem*) psql -Xq -d "$db" -c "SELECT bench.seed_otps($run, 16, $((seconds * 9000 / 16)))" >/dev/null ;;
            esac
            psql -Xq -d "$db" -c CHECKPOINT
            out=$(pgbench -U bench_app -M prepared -n -c 16 -j 2 -T "$seconds" -f "$here/$what.sql" -D run=$run -D i=0 -D sessions="$size" "$db" 2>&1) || { echo "$out" >&2; exit 1; }
            echo "$what $size $(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")"
        done
    done
done | tee /dev/stderr | sort -k1,1 -k2,2n -k3,3n | awk '
    { key = $1 " " $2; if (key != last) { order[++keys] = key; last = key } n[key]++; v[key, n[key]] = $3 }
    END { for (i = 1; i <= keys; i++) { key = order[i]; split(key, part, " "); m = v[key, int((n[key] + 1) / 2)]
        if (part[1] != what) { what = part[1]; first = m }
        printf "%-14s families=%-9s %8.0f/s  cost %.2f\n", part[1], part[2], m, first / m } }'
