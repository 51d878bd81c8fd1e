#!/usr/bin/env bash
# Races on a real server: of any number of redemptions of one code one wins; refresh hands out one successor; two workers send one mail.
# Uses the database in PGDATABASE; ROUNDS (default 20) times 48 connections.
set -euo pipefail
rounds=${ROUNDS:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
failures=0
check() { # what expected got
    if [ "$2" = "$3" ]; then echo "ok - $1: $3"; else echo "not ok - $1: expected $2, got $3"; failures=$((failures + 1)); fi
}

q >/dev/null <<'SQL'
SELECT admin.put_realm('race', 'race.example');
SELECT admin.set_native_grants('race', true);
SELECT admin.put_client('race', 'app'), admin.grant_permission('race', 'app', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic', 'gt:refresh_token');
SELECT admin.put_user('race', 'u' || n || '@example.com') FROM generate_series(1, 1000) AS n;
CREATE SCHEMA race;
CREATE TABLE race.result (what text, round int, outcome text, hash bytea);
CREATE TABLE race.fixed AS SELECT r.id AS realm, c.id AS client FROM postern.realm AS r JOIN postern.client AS c ON c.realm_id = r.id WHERE r.slug = 'race';
GRANT USAGE ON SCHEMA race TO app_login;
GRANT SELECT, INSERT ON race.result, race.fixed TO app_login;
-- pgbench connects all of its clients before the first of them starts.
CREATE FUNCTION race.redeem(n int, handle boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    answer record;
BEGIN
    SELECT * INTO f FROM race.fixed;
    -- The server waits for its turn in the process; here the database keeps the order.
    PERFORM pg_advisory_xact_lock(postern.lock_of_codes(f.realm, 'u' || n || '@example.com', NULL));
    SELECT * INTO answer FROM postern.redeem_code(
        ROW(f.realm, f.client, 'gt:urn:cocoar:otp', NULL, NULL, NULL, NULL)::postern.caller,
        NULL,
        ROW(gen_random_uuid(), decode(md5('s'), 'hex'), sha256('t'), '{}', '{}', '{}', 900, 1209600, NULL, NULL, NULL, NULL, NULL)::postern.new_session,
        'u' || n || '@example.com', CASE WHEN handle THEN decode(md5('h' || n), 'hex') END, ARRAY[sha256('1')],
        ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL);
    INSERT INTO race.result VALUES (CASE WHEN handle THEN 'handle' ELSE 'address' END, n, answer.outcome);
    RETURN answer.outcome;
END $$;
CREATE FUNCTION race.refresh(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    answer record;
BEGIN
    SELECT * INTO f FROM race.fixed;
    PERFORM set_config('postern.realm', f.realm::text, true);
    PERFORM FROM postern.session AS s WHERE s.realm_id = f.realm AND s.id = md5('session' || n)::uuid FOR NO KEY UPDATE;
    SELECT * INTO answer FROM postern.rotate_session(f.realm, f.client, md5('session' || n)::uuid, 0, sha256('t0'), ARRAY[sha256('t1')], 1209600, NULL, NULL, NULL, NULL, NULL);
    INSERT INTO race.result VALUES ('refresh', n, answer.outcome, answer.current_hash);
    RETURN answer.outcome;
END $$;
-- Opens a link, or polls for it.
CREATE FUNCTION race.magic(n int, open boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    answer record;
BEGIN
    SELECT * INTO f FROM race.fixed;
    IF open THEN
        SELECT * INTO answer FROM postern.redeem_link(
            ROW(f.realm, f.client, 'gt:urn:cocoar:magic', NULL, NULL, NULL, NULL)::postern.caller,
            NULL,
            ROW(gen_random_uuid(), decode(md5('s'), 'hex'), sha256('t'), '{}', '{}', '{}', 900, 1209600, '\x01020304', NULL, NULL, NULL, NULL)::postern.new_session,
            (SELECT l.u FROM race.link AS l WHERE l.n = magic.n), sha256(('l' || n)::bytea), NULL, NULL);
    ELSE
        SELECT * INTO answer FROM postern.poll_link(
            ROW(f.realm, f.client, 'gt:urn:cocoar:magic', NULL, NULL, NULL, NULL)::postern.caller,
            NULL,
            ROW(gen_random_uuid(), decode(md5('s'), 'hex'), sha256('t'), '{}', '{}', '{}', 900, 1209600, '\x01020304', NULL, NULL, NULL, NULL)::postern.new_session,
            decode(md5('lh' || n), 'hex'), NULL);
    END IF;
    INSERT INTO race.result VALUES ('magic', n, answer.outcome);
    RETURN answer.outcome;
END $$;
-- One client in sixteen confirms, one in two opens the link, the others poll: whoever ends the link, one is signed in.
CREATE FUNCTION race.mixed(n int, c int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
BEGIN
    IF c % 16 = 1 THEN
        SELECT * INTO f FROM race.fixed;
        RETURN (SELECT outcome FROM postern.confirm_link(f.realm, (SELECT l.u FROM race.link AS l WHERE l.n = mixed.n), sha256(('l' || n)::bytea), postern.match_number(decode(md5('lh' || n), 'hex')), NULL, NULL));
    END IF;
    RETURN race.magic(n, c % 2 = 0);
END $$;
CREATE FUNCTION race.take(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_granted int;
BEGIN
    PERFORM set_config('postern.realm', (SELECT realm FROM race.fixed)::text, true);
    SELECT granted INTO v_granted FROM postern.take_permits(ROW(ARRAY['race' || n], '{1}', '{10}', '{3600}', '{10}'));
    INSERT INTO race.result VALUES ('permit', n, v_granted::text);
    RETURN v_granted;
END $$;
CREATE FUNCTION race.decide(n int, h int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_outcome text;
BEGIN
    v_outcome := postern.decide_code((SELECT realm FROM race.fixed), decode(md5('d' || n || ':' || h), 'hex'), gen_random_uuid(), decode(md5('x'), 'hex'), sha256('x'), gen_random_uuid(), '\x01', 'otp');
    INSERT INTO race.result VALUES ('decide', n, v_outcome);
    RETURN v_outcome;
END $$;
-- An ordinary user's id is of version 4.
CREATE FUNCTION race.account(n int) RETURNS uuid LANGUAGE sql AS $$ SELECT overlay(md5('u' || n) PLACING '4' FROM 13 FOR 1)::uuid $$;
-- The right code of a step, and wrong ones: what the account of that number makes of 48 of them at once.
CREATE FUNCTION race.second(n int, wrong boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    v_good boolean;
BEGIN
    SELECT * INTO f FROM race.fixed;
    v_good := postern.use_second_factor(f.realm, race.account(n), ROW(md5('f')::uuid, CASE WHEN NOT wrong THEN floor(date_part('epoch', now()) / 30)::bigint END, NULL), f.client, NULL, NULL);
    INSERT INTO race.result VALUES (CASE WHEN wrong THEN 'wrong' ELSE 'totp' END, n, v_good::text);
    RETURN v_good;
END $$;
CREATE FUNCTION race.recover(n int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    v_good boolean;
BEGIN
    SELECT * INTO f FROM race.fixed;
    v_good := postern.use_second_factor(f.realm, race.account(n), ROW(md5('f')::uuid, NULL, ARRAY[sha256('r')]), f.client, NULL, NULL);
    INSERT INTO race.result VALUES ('recovery', n, v_good::text);
    RETURN v_good;
END $$;
INSERT INTO postern.user_account (realm_id, id, email) SELECT f.realm, race.account(n), 'second' || n || '@example.com' FROM race.fixed AS f, generate_series(1, 1000) AS n;
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed) SELECT f.realm, race.account(n), md5('f')::uuid, md5('s')::uuid, '-infinity', '\x00' FROM race.fixed AS f, generate_series(1, 1000) AS n;
INSERT INTO postern.recovery_code (realm_id, user_id, mac) SELECT t.realm_id, t.user_id, sha256('r') FROM postern.totp_factor AS t;
INSERT INTO postern.login_code (realm_id, address_key, id, user_id, expires_at, salt, mac)
SELECT f.realm, u.address_key, md5('c' || u.address_key)::uuid, u.id, now() + interval '1 day', decode(md5('x'), 'hex'), sha256(decode(md5('x'), 'hex') || sha256('1')) FROM postern.user_account AS u, race.fixed AS f WHERE u.realm_id = f.realm;
INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at, pending, code_ids)
SELECT f.realm, decode(md5('h' || n), 'hex'), 'otp', e.email, e.email, now() + interval '1 day', false, ARRAY[md5('c' || e.email)::uuid]
  FROM race.fixed AS f, generate_series(1, 1000) AS n, LATERAL (SELECT 'u' || n || '@example.com' AS email) AS e;
INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at)
SELECT f.realm, decode(md5('d' || n || ':' || h), 'hex'), 'otp', e.email, e.email, now() + interval '1 day'
  FROM race.fixed AS f, generate_series(501, 501 + 100) AS n, generate_series(1, 48) AS h, LATERAL (SELECT 'u' || n || '@example.com' AS email) AS e;
DELETE FROM postern.login_code AS c USING race.fixed AS f WHERE c.address_key IN (SELECT 'u' || n || '@example.com' FROM generate_series(501, 601) AS n);
INSERT INTO postern.session (realm_id, id, user_id, client, client_id, security_stamp, auth_time, expires_at, refresh_expires_at, token_salt, current_hash, scope, resource, amr)
SELECT f.realm, md5('session' || n)::uuid, u.id, f.client, 'app', u.security_stamp, now(), now() + interval '1 day', now() + interval '1 day', decode(md5('s'), 'hex'), sha256('t0'), '{}', '{}', '{}'
  FROM race.fixed AS f, generate_series(1, 1000) AS n JOIN postern.user_account AS u ON u.email = 'u' || n || '@example.com';
CREATE TABLE race.link AS SELECT n, u.id AS u FROM generate_series(1, 400) AS n JOIN postern.user_account AS u ON u.email = 'u' || n || '@example.com';
GRANT SELECT ON race.link TO app_login;
INSERT INTO postern.sign_in_request (realm_id, id, kind, email, address_key, expires_at, pending)
SELECT f.realm, decode(md5('lh' || l.n), 'hex'), 'magic', 'u' || l.n || '@example.com', 'u' || l.n || '@example.com', now() + interval '1 day', false FROM race.fixed AS f, race.link AS l;
INSERT INTO postern.login_link (realm_id, user_id, token_hash, handle, address_key, source, security_stamp, expires_at)
SELECT f.realm, l.u, sha256(('l' || l.n)::bytea), decode(md5('lh' || l.n), 'hex'), 'u' || l.n || '@example.com', 'x', u.security_stamp, now() + interval '1 day'
  FROM race.fixed AS f, race.link AS l JOIN postern.user_account AS u ON u.id = l.u;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA race TO app_login;
SQL

for round in $(seq "$rounds"); do
    other=$((round + rounds)) decided=$((500 + round))
    cat >"$work/handle.sql" <<<"SELECT race.redeem($round, true);"
    cat >"$work/address.sql" <<<"SELECT race.redeem($other, false);"
    cat >"$work/refresh.sql" <<<"SELECT race.refresh($round);"
    cat >"$work/permit.sql" <<<"SELECT race.take($round);"
    cat >"$work/decide.sql" <<<"SELECT race.decide($decided, :client_id + 1);"
    cat >"$work/open.sql" <<<"SELECT race.magic($round, true);"
    cat >"$work/poll.sql" <<<"SELECT race.magic($((100 + round)), false);"
    cat >"$work/mixed.sql" <<<"SELECT race.mixed($((200 + round)), :client_id);"
    q -c "SELECT postern.confirm_link(f.realm, l.u, sha256(('l' || l.n)::bytea), postern.match_number(decode(md5('lh' || l.n), 'hex')), NULL, NULL) FROM race.fixed AS f, race.link AS l WHERE l.n = $((100 + round))" >/dev/null
    cat >"$work/totp.sql" <<<"SELECT race.second($round, false);"
    cat >"$work/wrong.sql" <<<"SELECT race.second($other, true);"
    cat >"$work/recovery.sql" <<<"SELECT race.recover($decided);"
    for what in handle address refresh permit decide open poll mixed totp wrong recovery; do
        pgbench -U app_login -n -c 48 -j 2 -t 1 -f "$work/$what.sql" >"$work/out" 2>&1 || { cat "$work/out"; failures=$((failures + 1)); }
    done
done

count() { q -c "SELECT coalesce(string_agg(DISTINCT n::text, ','), 'none') FROM (SELECT count(*) FILTER (WHERE outcome = '$2') AS n FROM race.result WHERE what = '$1' GROUP BY round) AS x"; }
check "$rounds rounds of 48 redemptions by handle: ok per round" 1 "$(count handle ok)"
check "of them refused" 47 "$(count handle refused)"
check "tries counted on the handle, never more than five" 5 "$(q -c "SELECT max(attempts) FROM postern.sign_in_request")"
check "$rounds rounds of 48 redemptions by address: ok per round" 1 "$(count address ok)"
check "of them refused" 47 "$(count address refused)"
won() { q -c "SELECT string_agg(DISTINCT n::text, ',') FROM (SELECT count(*) FILTER (WHERE outcome = 'ok') AS n FROM race.result WHERE what = 'magic' AND round BETWEEN $1 + 1 AND $1 + $rounds GROUP BY round) AS x"; }
check "$rounds rounds of 48 redemptions of one link: ok per round" 1 "$(won 0)"
check "$rounds rounds of 48 polls of one confirmed link: ok per round" 1 "$(won 100)"
mixed=$(q -c "SELECT max(n) FROM (SELECT count(*) FILTER (WHERE outcome = 'ok') AS n FROM race.result WHERE what = 'magic' AND round > 200 GROUP BY round) AS x")
check "$rounds rounds of confirmations, redemptions and polls of one link: ok per round, at most" 1 "$mixed"
linked=$(q -c "SELECT count(*) FROM race.result WHERE what = 'magic' AND outcome = 'ok'")
check "sessions made, one per success" $((2 * rounds + linked)) "$(q -c "SELECT count(*) FROM postern.session WHERE id NOT IN (SELECT md5('session' || n)::uuid FROM generate_series(1, 1000) AS n)")"
check "$rounds rounds of 48 refreshes of one token: rotated per round" 1 "$(count refresh rotated)"
check "of them the same successor again" 47 "$(count refresh retried)"
check "different successors handed out" 1 "$(q -c "SELECT count(DISTINCT hash) FROM race.result WHERE what = 'refresh'")"
check "families still alive" 0 "$(q -c "SELECT count(*) FROM postern.session WHERE revoked_at IS NOT NULL")"
check "permits granted of a bucket of ten" 10 "$(count permit 1)"
check "48 requests for one address decided at once: sent without a mail or a code of its own" 0 "$(q -c "
    SELECT count(*) FROM (SELECT r.round, count(*) AS sent, (SELECT count(*) FROM postern.message_outbox AS m WHERE m.recipient = 'u' || r.round || '@example.com') AS mails,
                                 (SELECT count(*) FROM postern.login_code AS c WHERE c.address_key = 'u' || r.round || '@example.com') AS codes
                            FROM race.result AS r WHERE r.what = 'decide' AND r.outcome = 'sent' GROUP BY r.round) AS x WHERE x.sent <> x.mails OR x.sent <> x.codes")"
check "48 times one TOTP code at once: good per round" 1 "$(count totp true)"
check "48 times one recovery code at once: good per round" 1 "$(count recovery true)"
check "48 wrong TOTP codes at once: counted, never more than five" "5,5" "$(q -c "SELECT min(wrong_in_a_row) || ',' || max(wrong_in_a_row) FROM postern.totp_factor WHERE user_id IN (SELECT race.account(n) FROM generate_series($rounds + 1, 2 * $rounds) AS n)")"
check "and of the others, good" 0 "$(count wrong true)"

# One request that is sent many times at once, as a client does that lost the answer, gets one session. That of a code
# is found by those who come later; passkeys that count nothing all spend their passkey, and meet at the row of the
# session.
q >/dev/null <<'SQL'
SELECT admin.grant_permission('race', 'app', 'gt:urn:cocoar:passkey');
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
SELECT f.realm, md5('p' || l.n)::uuid, l.u, 'race.example', ('k' || l.n)::bytea, '\x02', false, false FROM race.fixed AS f, race.link AS l;
CREATE FUNCTION race.same(n int, passkey boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    f race.fixed;
    opens postern.new_session;
    answer postern.sign_in_result;
BEGIN
    SELECT * INTO f FROM race.fixed;
    opens := ROW(md5('same' || n || passkey)::uuid, decode(md5('s'), 'hex'), sha256('t'), '{}', '{}', '{otp}', 900, 1209600, '\x01020304', NULL, NULL, true, NULL);
    IF passkey THEN
        answer := postern.redeem_passkey(ROW(f.realm, f.client, 'gt:urn:cocoar:passkey', NULL, NULL, NULL, NULL), opens, md5('p' || n)::uuid, 0, false);
    ELSE
        PERFORM pg_advisory_xact_lock(postern.lock_of_codes(f.realm, 'u' || n || '@example.com', NULL));
        answer := postern.redeem_code(
            ROW(f.realm, f.client, 'gt:urn:cocoar:otp', NULL, NULL, NULL, NULL), NULL, opens, 'u' || n || '@example.com',
            decode(md5('h' || n), 'hex'), ARRAY[sha256('1')], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL);
    END IF;
    INSERT INTO race.result VALUES (CASE WHEN passkey THEN 'same passkey' ELSE 'same code' END, n,
                                    concat_ws(' ', answer.outcome, answer.reason, 'again ' || answer.repeated::text));
END $$;
SQL
for round in $(seq "$rounds"); do
    for passkey in false true; do
        cat >"$work/same.sql" <<<"SELECT race.same($((300 + round)), $passkey);"
        pgbench -U app_login -n -c 48 -j 2 -t 1 -f "$work/same.sql" >"$work/out" 2>&1 || { cat "$work/out"; failures=$((failures + 1)); }
    done
done
for what in code passkey; do
    check "$rounds rounds of one request 48 times by $what: signed in per round" 1 "$(count "same $what" ok)"
    check "of them the same session again" 47 "$(count "same $what" 'ok again {otp}')"
done
check "sessions and sign-ins of these, one per round" "$((2 * rounds)) $((2 * rounds))" "$(q -c "
    SELECT count(s.id) || ' ' || count(a.session_id) FROM race.fixed AS f CROSS JOIN generate_series(301, 300 + $rounds) AS n (n) CROSS JOIN unnest('{t,f}'::bool[]) AS p (p)
      LEFT JOIN postern.session AS s ON s.id = md5('same' || n || p)::uuid
      LEFT JOIN postern.audit_event AS a ON a.event = 'sign_in' AND a.session_id = s.id")"

# Messages to phones of one prefix: what redeemed codes give back arrives, however many take and give at once.
q >/dev/null <<'SQL'
CREATE FUNCTION race.take() RETURNS void LANGUAGE sql AS $$
    SELECT FROM race.fixed AS f, postern.take_realm_permits(
        f.realm, ROW('{phone-otp|source|192.0.2.1,phone-otp|prefix|+436641234,phone-otp|country|AT}', '{1,1,1}',
                     '{300,25,300}', '{3600,3600,3600}', '{10000,10000,10000}')) $$;
CREATE FUNCTION race.give() RETURNS void LANGUAGE sql AS $$
    SELECT set_config('postern.realm', f.realm::text, true), postern.give_back(f.realm, '+4366412345678', 'AT', '192.0.2.1')
      FROM race.fixed AS f $$;
SQL
printf 'SELECT race.take();\nSELECT race.give();\n' >"$work/give.sql"
pgbench -U app_login -n -c 48 -j 2 -t 20 -f "$work/give.sql" >"$work/out" 2>&1 || { cat "$work/out"; failures=$((failures + 1)); }
check "48 times 20 redeemed messages to one prefix: permits still taken" 0 "$(q -c "SELECT count(*) FROM postern.rate_bucket WHERE key LIKE 'phone-otp|%' AND tat > now() + interval '1 second'")"

# With no retry window losers are reuse, and the family is dead.
q -c "SELECT admin.set_native_grants('race', refresh_retry_window => '0')" >/dev/null
cat >"$work/refresh.sql" <<<"SELECT race.refresh(900);"
pgbench -U app_login -n -c 48 -j 2 -t 1 -f "$work/refresh.sql" >"$work/out" 2>&1 || { cat "$work/out"; failures=$((failures + 1)); }
check "48 at once with retry window 0" "refused 46,reuse 1,rotated 1" "$(q -c "SELECT string_agg(outcome || ' ' || n, ',' ORDER BY outcome) FROM (SELECT outcome, count(*) AS n FROM race.result WHERE what = 'refresh' AND round = 900 GROUP BY 1) AS x")"
check "4.3 (d): after all that no connection keeps a realm" "none" "$(psql -XAtq -U app_login -c "SELECT 1 FROM postern.realm_config((SELECT realm FROM race.fixed))" -c "SELECT coalesce(postern.current_realm()::text, 'none')" | tail -1)"
check "configuration changes are announced" "1" "$(q -c "LISTEN postern_config" -c "SELECT admin.put_scope('race', 'announced')" | grep -c 'Asynchronous notification "postern_config" with payload "'"$(q -c "SELECT realm FROM race.fixed")"'"')"
q -c "DELETE FROM postern.realm WHERE slug = 'race'" -c "DROP SCHEMA race CASCADE" >/dev/null 2>&1
[ "$failures" = 0 ] && echo "All races as they should be." || { echo "$failures failed"; exit 1; }
