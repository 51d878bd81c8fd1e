#!/usr/bin/env bash
# Calls of a thief's session that wait while the account's access ends: each finds its session ended, and changes nothing.
# Uses the database in PGDATABASE.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
failures=0
check() { # what expected got
    if [ "$2" = "$3" ]; then echo "ok - $1: $3"; else echo "not ok - $1: expected $2, got $3"; failures=$((failures + 1)); fi
}

q >/dev/null <<'SQL'
SELECT admin.put_realm('held', 'held.example');
SELECT admin.put_client('held', 'app'), admin.grant_permission('held', 'app', 'gt:authorization_code'), admin.set_hosted('held', true);
CREATE SCHEMA held;
GRANT USAGE ON SCHEMA held TO app_login;
CREATE TABLE held.fixed AS SELECT r.id AS realm, c.id AS client FROM postern.realm AS r JOIN postern.client AS c ON c.realm_id = r.id WHERE r.slug = 'held';
CREATE FUNCTION held.realm() RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT realm FROM held.fixed $$;
CREATE FUNCTION held.client() RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT client FROM held.fixed $$;
CREATE FUNCTION held.uu(n text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT md5(n)::uuid $$;
-- An ordinary user's id is of version 4.
CREATE FUNCTION held.person(s text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT overlay(md5('user ' || s) PLACING '4' FROM 13 FOR 1)::uuid $$;
CREATE FUNCTION held.h(n text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(n::bytea) $$;
-- What a session calls, and what it is told when it has ended. $s: the session, and what its account has is named after it.
CREATE TABLE held.call (name text PRIMARY KEY, refused text, call text);
INSERT INTO held.call VALUES
    ('add_passkey', '', $$postern.add_passkey(held.realm(), held.uu('$s'), 'held.example', held.h('new $s'), '\x01', 0, NULL, false, false, true,
        '{}', 'none', NULL, '192.0.2.1', NULL, NULL)$$),
    ('rename_passkey', 'false', $$postern.rename_passkey(held.realm(), held.uu('$s'), held.uu('passkey $s'), 'mine')$$),
    ('delete_passkey', 'false', $$postern.delete_passkey(held.realm(), held.uu('$s'), held.uu('passkey $s'), '192.0.2.1', NULL, NULL)$$),
    ('add_device', 'signed_out', $$(SELECT outcome FROM postern.add_device(held.realm(), ROW(held.h('new $s'), false, NULL, NULL, NULL, NULL)::postern.proof_use,
        held.uu('$s'), held.h('p') || held.h('p'), 'mine', NULL, NULL))$$),
    ('adopt_device', 'signed_out', $$(SELECT outcome FROM postern.adopt_device(held.realm(), held.uu('$s'), held.h('device $s'), true, substr(held.h('offer $s'), 1, 16),
        date_part('epoch', now()) + 60, true, held.client(), held.h('new $s'), held.h('p') || held.h('p'), 'mine', '192.0.2.1'))$$),
    ('change_own_device', '', $$(SELECT id FROM postern.change_own_device(held.realm(), held.uu('$s'), held.uu('device $s'), 'mine', NULL, false))$$),
    ('remove_own_device', 'false', $$postern.remove_own_device(held.realm(), held.uu('$s'), held.uu('device $s'), '192.0.2.1')$$),
    ('enrol_totp', 'signed_out', $$postern.enrol_totp(held.realm(), held.uu('$s'), substr(held.h('ceremony $s'), 1, 16), date_part('epoch', now()) + 60, held.uu('new $s'),
        '\x00', 1, '{}', '192.0.2.1')$$),
    ('remove_totp', 'signed_out', $$postern.remove_totp(held.realm(), held.uu('$s'), '192.0.2.1')$$),
    ('add_identifier', 'refused', $$(SELECT outcome FROM postern.add_identifier(held.realm(), held.person('$s'), held.uu('$s'), substr(held.h('handle $s'), 1, 16),
        ARRAY[held.h('1')], '192.0.2.1'))$$),
    ('set_primary_identifier', 'false', $$postern.set_primary_identifier(held.realm(), held.uu('$s'), held.uu('second $s'))$$),
    ('remove_own_identifier', 'unknown', $$postern.remove_own_identifier(held.realm(), held.uu('$s'), held.uu('second $s'), '192.0.2.1')$$),
    ('revoke_own_consent', 'false', $$postern.revoke_own_consent(held.realm(), held.uu('$s'), held.client(), '192.0.2.1')$$),
    ('answer_request', 'login', $$(SELECT postern.answer_request(held.realm(), b, jsonb_populate_record(NULL::postern.code_request,
        jsonb_build_object('client', held.client(), 'consents', true, 'scope', '[]'::jsonb, 'resource', '[]'::jsonb)))
        FROM postern.browser_session AS b WHERE b.realm_id = held.realm() AND b.id = held.uu('b$s'))$$),
    ('set_own_names', 'false', $$postern.set_own_names(held.realm(), held.person('$s'), held.uu('$s'), true, 'Eve', true, 'Eve', '192.0.2.1')$$),
    ('delete_own_account', 'signed_out', $$postern.delete_own_account(held.realm(), held.person('$s'), held.uu('$s'), 600, '192.0.2.1')$$),
    ('end_own_sessions', '', $$postern.end_own_sessions(held.realm(), held.person('$s'), held.uu('$s'), false, '192.0.2.1')$$);
-- What ends access.
CREATE TABLE held.ender (name text PRIMARY KEY, call text);
INSERT INTO held.ender VALUES
    ('secure_user', $$(SELECT count(*) FROM admin.secure_user('held', held.person('$s')::text, now() - interval '1 minute'))$$),
    ('sign_out_everywhere', $$admin.sign_out_everywhere('held', held.person('$s')::text)$$),
    ('set_user_enabled', $$admin.set_user_enabled('held', held.person('$s')::text, false)$$),
    ('delete_user', $$admin.delete_user('held', held.person('$s')::text)$$),
    ('undo_factor', $$(SELECT outcome FROM postern.undo_factor(held.realm(), held.uu('undo $s'), '192.0.2.1', NULL))$$);
CREATE FUNCTION held.asks(s text, name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    PERFORM set_config('postern.realm', held.realm()::text, true);
    EXECUTE format('SELECT (%s)::text', replace((SELECT c.call FROM held.call AS c WHERE c.name = asks.name), '$s', s)) INTO answer;
    RETURN coalesce(answer, '');
END $$;
GRANT SELECT ON held.call TO app_login;
CREATE FUNCTION held.ends(s text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT %s', replace((SELECT e.call FROM held.ender AS e WHERE e.name = ends.name), '$s', s));
END $$;
-- One account for each pair of them, old enough to stay when it is secured.
CREATE FUNCTION held.makes(s text, n bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r uuid := held.realm();
    u uuid := held.person(s);
BEGIN
    INSERT INTO postern.user_account (realm_id, id, email, email_verified) VALUES (r, u, 'u' || n || '@example.com', true);
    INSERT INTO postern.user_identifier (realm_id, id, user_id, kind, value, proved_at) VALUES (r, held.uu('second ' || s), u, 'email', 'v' || n || '@example.com', now());
    UPDATE postern.user_identifier SET added_at = now() - interval '9 days' WHERE user_id = u;
    INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, token_salt, scope, resource, amr)
    SELECT r, held.uu(s), u, held.client(), 'app', a.security_stamp, now(), now() + interval '1 day', substr(held.h('s'), 1, 16), '{}', '{}', '{otp,mfa}' FROM postern.user_account AS a WHERE a.id = u;
    INSERT INTO postern.browser_session (realm_id, id, user_id, security_stamp, cookie_hash, host, amr, idle_expires_at, expires_at)
    SELECT r, held.uu('b' || s), u, a.security_stamp, held.h('jar ' || s), 'held.example', '{otp}', now() + interval '1 day', now() + interval '1 day' FROM postern.user_account AS a WHERE a.id = u;
    INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state, created_at)
    VALUES (r, held.uu('passkey ' || s), u, 'held.example', held.h('old ' || s), '\x01', false, false, now() - interval '9 days'),
           (r, held.uu('undone ' || s), u, 'held.example', held.h('undone ' || s), '\x01', false, false, now() - interval '9 days');
    INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, user_id, client, added_at)
    VALUES (r, held.uu('device ' || s), held.h('device ' || s), held.h('p') || held.h('p'), u, held.client(), now() - interval '9 days');
    INSERT INTO postern.consent (realm_id, user_id, client, given_at, scope, resource) VALUES (r, u, held.client(), now() - interval '9 days', '{}', '{}');
    INSERT INTO postern.sign_in_request (realm_id, id, kind, pending, email, address_key, client, user_id, code_salt, code_mac, expires_at)
    VALUES (r, substr(held.h('handle ' || s), 1, 16), 'identifier', false, 'n' || n || '@example.com', 'n' || n || '@example.com', held.client(), u, substr(held.h('s'), 1, 16),
            sha256(substr(held.h('s'), 1, 16) || held.h('1')), now() + interval '1 hour');
    INSERT INTO postern.undo_link (realm_id, id, user_id, target, kind, label, sent_to, proven_at)
    VALUES (r, held.uu('undo ' || s), u, held.uu('undone ' || s), 'passkey', '', 'u' || n || '@example.com', now());
END $$;
SELECT held.makes(e.name || '-' || c.name, row_number() OVER ()) FROM (SELECT name FROM held.ender UNION ALL SELECT 'nothing') AS e, held.call AS c;
SQL

names=$(q -c "SELECT name FROM held.call ORDER BY name")
count=$(wc -w <<<"$names")
asks() { PGAPPNAME="held-$1" q -U app_login -c "SELECT held.asks('$1-$2', '$2')" 2>&1 || true; } # what ended, which call
for name in $names; do
    answer=$(asks nothing "$name")
    refused=$(q -c "SELECT refused FROM held.call WHERE name = '$name'")
    if [ "$answer" = "$refused" ] || [[ $answer == *ERROR* ]]; then check "while its session lives, $name works" yes "$answer"; fi
done
for ender in $(q -c "SELECT name FROM held.ender ORDER BY name"); do
    # One transaction ends the access of an account for each call, and stays open until all of the calls wait for it.
    mkfifo "$work/in"
    q <"$work/in" >"$work/out" 2>&1 &
    transaction=$!
    exec 3>"$work/in"
    rm "$work/in"
    echo "BEGIN; SELECT held.ends('$ender-' || c.name, '$ender') FROM held.call AS c; SELECT 'all ended';" >&3
    until grep -q 'all ended\|ERROR' "$work/out"; do sleep 0.02; done
    callers=()
    for name in $names; do
        { asks "$ender" "$name" >"$work/$name"; touch "$work/$name.done"; } 3>&- &
        callers+=($!)
    done
    for _ in $(seq 1000); do
        waiting=$(q -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'held-$ender' AND wait_event_type = 'Lock'")
        finished=$(find "$work" -name '*.done' | wc -l)
        [ $((waiting + finished)) -lt "$count" ] || break
        sleep 0.02
    done
    check "calls that wait while $ender ends their sessions" "$count" "$waiting"
    echo "COMMIT;" >&3
    exec 3>&-
    wait "$transaction" "${callers[@]}"
    rm -f "$work"/*.done
    wrong=
    for name in $names; do
        [ "$(cat "$work/$name")" = "$(q -c "SELECT refused FROM held.call WHERE name = '$name'")" ] || wrong+="$name: $(cat "$work/$name") "
    done
    check "calls that do something after $ender" "" "$wrong"
done
q -c "DROP SCHEMA held CASCADE" 2>/dev/null
exit $((failures > 0))
