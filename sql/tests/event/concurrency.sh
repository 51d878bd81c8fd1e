#!/usr/bin/env bash
# Two servers at one webhook: an event is queued by one of them, and none is left without a subject.
# Uses the database in PGDATABASE.
set -euo pipefail
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
failures=0
check() { # what expected got
    if [ "$2" = "$3" ]; then echo "ok - $1: $3"; else echo "not ok - $1: expected $2, got $3"; failures=$((failures + 1)); fi
}
audit="INSERT INTO postern.audit_event (realm_id, event, user_id) SELECT id, 'sign_in', md5('u')::uuid FROM postern.realm WHERE slug = 'hooks'"

q -o /dev/null -c "SELECT admin.put_realm('hooks', 'hooks.example'), admin.put_webhook('hooks', 'crm', 'https://crm.example/x')"
q -c "$audit"

# Another server, whose transaction is open.
coproc other { psql -XAtq; }
other_says() { echo "$1; \\echo said" >&"${other[1]}"; said=; while read -r line <&"${other[0]}" && [ "$line" != said ]; do said=$line; done; }
# Reads the audit log in a transaction that stays open. Other databases of the server may have transactions that hold it back.
other_collects() {
    while other_says "BEGIN; SELECT postern.collect_events(500); SELECT count(*) FROM admin.webhook_deliveries WHERE realm = 'hooks'" && [ "$said" != "$1" ]; do
        other_says "ROLLBACK"
    done
}

other_collects 1
check "while one server reads the audit log the other passes over it" "f" \
    "$(q -c "SET lock_timeout = '2s'" -c "SELECT is_full FROM postern.collect_events(500)" 2>&1)"
other_says "COMMIT"
check "the event is queued once" 1 "$(q -c "SELECT count(*) FROM admin.webhook_deliveries WHERE realm = 'hooks'")"

# The last event of a subject is delivered while the next one is queued.
q -c "CREATE TABLE taken_event AS SELECT * FROM postern.take_events(10, 10, '{}') WHERE name = 'crm'"
q -c "$audit"
other_collects 2
PGAPPNAME=settles q -o /dev/null -c "SELECT postern.settle_delivered(array_agg(realm_id), array_agg(webhook), array_agg(subject), array_agg(lease), array_agg(event_id)) FROM taken_event" &
settles=$!
while kill -0 "$settles" 2>/dev/null && [ "$(q -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'settles' AND wait_event_type = 'Lock'")" = 0 ]; do :; done
other_says "COMMIT"
wait "$settles"
check "the next event has its subject, so it is sent" "1 1" \
    "$(q -c "SELECT (SELECT count(*) FROM admin.webhook_deliveries WHERE realm = 'hooks') || ' ' || count(*) FROM postern.take_events(10, 10, '{}')")"

q -o /dev/null -c "DROP TABLE taken_event" -c "SELECT admin.delete_webhook('hooks', 'crm')"
exit $((failures > 0))
