#!/usr/bin/env bash
# Compares our statements with a floor: sql/bench/run.sh FLOOR_DIR [SECONDS] [ROUNDS]. Connection by PGHOST (a superuser); creates the
# databases bench_floor and bench_ours (schema of Postern applied) when they are missing. Prints tps and ratio, medians of the rounds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
floor=$1 seconds=${2:-5} rounds=${3:-3}
export PGUSER=${PGUSER:-postgres} PGOPTIONS='-c client_min_messages=warning'
exists() { [ "$(psql -XAtq -d postgres -c "SELECT count(*) FROM pg_database WHERE datname = '$1'")" = 1 ]; }
if ! exists bench_floor; then
    psql -Xq -d postgres -c 'CREATE DATABASE bench_floor'
    psql -Xq -d bench_floor -v ON_ERROR_STOP=1 -f "$floor/schema.sql"
fi
if ! exists bench_ours; then
    psql -Xq -d postgres -c 'CREATE DATABASE bench_ours'
    for file in "$here"/../schema/*.sql $("$here/../../scripts/sql-functions"); do psql -Xq -1 -d bench_ours -v ON_ERROR_STOP=1 -f "$file"; done
    psql -Xq -d bench_ours -v ON_ERROR_STOP=1 -f "$here/seed.sql"
    psql -Xq -d bench_ours -c 'VACUUM ANALYZE'
fi
psql -Xq -d postgres -c "DO \$\$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'bench_app') THEN CREATE ROLE bench_app LOGIN IN ROLE postern_app; END IF; END \$\$"
run=$(psql -XAtq -d postgres -c 'SELECT extract(epoch FROM now())::int % 10000000')
for round in $(seq "$rounds"); do
    for clients in ${CLIENTS:-1 4 16}; do
        for what in ${WHAT:-refresh redeem_handle redeem_address introspect}; do
            for side in floor ours; do
                run=$((run + 1))
                case $side:$what in
                    floor:refresh) script=$floor/rotate_func.sql ;;
                    floor:introspect) script=$floor/introspect.sql ;;
                    floor:*) script=$floor/otp_redeem.sql ;;
                    *) script=$here/$what.sql ;;
                esac
                if [ $side = floor ]; then db=bench_floor user=postgres schema=public; else db=bench_ours user=bench_app schema=bench; fi
                case $what in
                    refresh) psql -Xq -d $db -c "SELECT $schema.seed_chains($run, $clients)" >/dev/null ;;
                    redeem*) psql -Xq -d $db -c "SELECT $schema.seed_otps($run, $clients, $((seconds * 9000 / clients)))" >/dev/null ;;
                esac
                psql -Xq -d $db -c CHECKPOINT
                out=$(pgbench -U $user -M prepared -n -c "$clients" -j 2 -T "$seconds" -f "$script" -D run=$run -D i=0 -D clients=$clients -D users=100000 -D sessions=500000 $db 2>&1) || { echo "$out" >&2; exit 1; }
                tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")
                echo "$what $clients $side $tps"
            done
        done
    done
done | tee /dev/stderr | awk '
    { n[$1" "$2" "$3]++; v[$1" "$2" "$3, n[$1" "$2" "$3]] = $4; k[$1" "$2] = 1 }
    function median(key,   i, j, m, t, a) { m = n[key]; for (i = 1; i <= m; i++) a[i] = v[key, i];
        for (i = 1; i <= m; i++) for (j = i + 1; j <= m; j++) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t } return a[int((m + 1) / 2)] }
    END { for (key in k) printf "%-18s clients=%-3s floor %8.0f  ours %8.0f  ratio %.2f\n", substr(key, 1, index(key, " ") - 1), substr(key, index(key, " ") + 1), median(key " floor"), median(key " ours"), median(key " ours") / median(key " floor") }' | sort
