\ir ../helpers/fixture.psql
SELECT no_plan();
-- One of each thing that lets somebody in, each event, and what becomes of the thing: as postern.credential_life says.
\ir ../helpers/approvals.psql
\ir ../helpers/links.psql
\ir ../helpers/browsers.psql
\ir ../helpers/possession.psql
SELECT set_config('test.who', admin.put_user('a', 'eve@example.com', phone => '+4366412345678')::text, true) \g /dev/null
SELECT admin.put_identifier('a', current_setting('test.who')::uuid, 'email', 'keep@example.com') \g /dev/null
CREATE FUNCTION pg_temp.who() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.who')::uuid $$;
CREATE FUNCTION pg_temp.since() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() - interval '1 hour' $$;
-- One address is older than the incident: else the account could not be secured.
UPDATE postern.user_identifier SET added_at = now() - interval '1 day', proved_at = now() - interval '1 day'
 WHERE user_id = pg_temp.who() AND key IN ('keep@example.com', '+4366412345678');
SELECT pg_temp.link('confirmed', 'eve@example.com', 'confirmed'), pg_temp.answer('eve@example.com', 'confirmed', 'confirmed') \g /dev/null
SELECT pg_temp.sign_in('session', 'eve@example.com'), pg_temp.ask('code', 'eve@example.com', '1'),
       pg_temp.link('link', 'eve@example.com', 'link'), pg_temp.ask('handle', 'eve@example.com', '2'),
       pg_temp.browse('jar', 'eve@example.com', request => pg_temp.wanted('authorization code')),
       pg_temp.device('device', 'eve@example.com'), pg_temp.asks('approved', 'eve@example.com'),
       pg_temp.answers(device => 'device', request => 'approved'), pg_temp.asks('approval', 'eve@example.com'),
       admin.put_webhook('a', 'crm', 'https://crm.example/'), admin.rotate_client_secret('a', 'bff') \g /dev/null
INSERT INTO postern.test_number (realm_id, phone, client, expires_at, outcome)
VALUES (pg_temp.realm(), '+12001004014', pg_temp.client('bff'), now() + interval '1 day', 'pass');
INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, expires_at, ends_at, sealed)
VALUES (pg_temp.realm(), pg_temp.h('par'), pg_temp.client(), '192.0.2.1', now() + interval '1 minute',
        now() + interval '1 minute', '\x00');
INSERT INTO postern.sent_form (realm_id, requester, mark, answered_at, is_kept, form, cookie_hash, host, sealed)
VALUES (pg_temp.realm(), pg_temp.h('form'), pg_temp.uu('form'), now(), true, pg_temp.h('form'), pg_temp.h('jar'), 'a.example', '\x00');
INSERT INTO postern.passkey (realm_id, id, user_id, rp_id, credential_id, public_key, backup_eligible, backup_state)
VALUES (pg_temp.realm(), pg_temp.uu('passkey'), pg_temp.who(), 'a.example', '\x01', '\x01', false, false);
INSERT INTO postern.totp_factor (realm_id, user_id, id, enrolled_by, last_step_at, sealed_seed)
VALUES (pg_temp.realm(), pg_temp.who(), pg_temp.uu('totp'), pg_temp.uu('session'), now(), '\x00');
INSERT INTO postern.consent (realm_id, user_id, client, scope, resource)
VALUES (pg_temp.realm(), pg_temp.who(), pg_temp.client(), '{openid}', '{}');
INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, phone, phone_at, phone_by, phone_client)
VALUES (pg_temp.realm(), pg_temp.uu('phone key'), pg_temp.h('phone key'), pg_temp.h('p') || pg_temp.h('p'), '+4366412345678',
        clock_timestamp(), 'code', pg_temp.client('bff'));
INSERT INTO postern.undo_link (realm_id, id, user_id, target, kind, label, sent_to, proven_at)
VALUES (pg_temp.realm(), pg_temp.uu('undo'), pg_temp.who(), pg_temp.uu('passkey'), 'passkey', '', 'eve@example.com', now());
INSERT INTO postern.removed_identifier (realm_id, id, user_id, added_at, proved_at, was_primary, kind, value)
VALUES (pg_temp.realm(), pg_temp.uu('removed'), pg_temp.who(), now(), now(), false, 'email', 'former@example.com');
-- Proofs of the number: under way, with a link that was opened, and passed.
SELECT admin.put_client('a', c, client_type => 'confidential', display_name => 'Server') FROM unnest('{srv,robot}'::text[]) AS c \g /dev/null
SELECT admin.put_service_account('a', c, c), admin.grant_permission('a', c, 'gt:client_credentials')
  FROM unnest('{srv,robot}'::text[]) AS c \g /dev/null
SELECT admin.grant_permission('a', 'srv', 'ept:possession'), admin.grant_permission('a', 'app', 'gt:urn:postern:possession'),
       admin.grant_permission('a', 'app', 'gt:urn:cocoar:passkey'),
       admin.put_possession_client('a', 'srv', login_client => 'app', link_match => false),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'), admin.set_phone_policy('a', regions => '{AT}'),
       postern.begin_proof_store('-infinity'), pg_sleep(0.01) \g /dev/null
SELECT pg_temp.starts(t, '+4366412345678'), pg_temp.opens(t, 'key of ' || t), pg_temp.sends(t, '+4366412345678', t,
       CASE t WHEN 'linked' THEN 'link' ELSE 'otp' END, 'key of ' || t) FROM unnest('{sent,linked,passed}'::text[]) AS t \g /dev/null
SELECT pg_temp.answers(link => 'linked'), pg_temp.checks('passed', 'passed', 'key of passed') \g /dev/null
UPDATE postern.client SET jwks = '{"keys":[]}' WHERE client_id = 'robot';
INSERT INTO postern.signing_key (realm_id, kid, alg, public_jwk, sealed_private)
VALUES (pg_temp.realm(), 'kid', 'ES256', '{}', '\x00');
INSERT INTO postern.address_verification (realm_id, id, client, browser_session, session, subject, expires_at, kind, sealed_address)
VALUES (pg_temp.realm(), gen_random_uuid(), pg_temp.client(), pg_temp.uu('jar'), pg_temp.uu('proven address'), gen_random_uuid(),
        now() + interval '10 minutes', 'email', '\x00');
SELECT admin.put_test_identity('a', 'review@example.com', 'app', '72946153') \g /dev/null
SELECT postern.store_test_code(realm_id, user_id, code, pg_temp.b16('salt'), pg_temp.h(code), NULL)
  FROM postern.pending_test_codes() \g /dev/null
-- Of a registration that waits for names.
SELECT pg_temp.ask('proven handle', 'eve@example.com', '3', pg_temp.client()) \g /dev/null
UPDATE postern.sign_in_request SET proved_at = now() WHERE id = pg_temp.b16('proven handle');
CREATE TEMP TABLE service AS SELECT s.id, s.token_salt FROM postern.service_account AS s
  JOIN postern.client AS c ON c.id = s.client WHERE c.client_id = 'robot';
CREATE TEMP TABLE permitted AS SELECT c.id, c.permissions FROM postern.client AS c;
-- The second factor is not asked for at the other things: it has a probe of its own.
UPDATE postern.user_account SET has_totp = false WHERE id = pg_temp.who();

CREATE FUNCTION pg_temp.open_account() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT EXISTS (SELECT FROM postern.user_account AS u JOIN postern.realm AS r ON r.id = u.realm_id AND r.enabled
                    WHERE u.id = pg_temp.who() AND u.enabled) $$;
-- When the ceremonies were made.
CREATE FUNCTION pg_temp.made() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() $$;
-- What a node asks its configuration of a request at all: the realm, and the client of an access token.
CREATE FUNCTION pg_temp.serves(client text DEFAULT NULL) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT EXISTS (SELECT FROM postern.directory() WHERE domain = 'a.example' AND is_served)
       AND (client IS NULL OR EXISTS (SELECT FROM postern.client AS c WHERE c.id = pg_temp.client(client) AND c.enabled)) $$;
-- Whether a thing works now. Where one statement redeems it, by that statement, whose effects are undone.
CREATE TEMP TABLE probe (thing text, works text);
INSERT INTO probe VALUES
    ('session', $$pg_temp.rotate('session', 0) LIKE 'rotated%'$$),
    ('browser session', $$EXISTS (SELECT FROM postern.live_browser_session(pg_temp.realm(), pg_temp.h('jar'), 'a.example'))
                          AND pg_temp.serves()$$),
    ('code', $$pg_temp.redeem('eve@example.com', 'code', '1') LIKE 'ok%'$$),
    ('link', $$pg_temp.open('eve@example.com', 'link') LIKE 'ok%'$$),
    ('handle', $$EXISTS (SELECT FROM postern.sign_in_request WHERE id = pg_temp.b16('handle') AND expires_at > now())$$),
    ('proven handle', $$EXISTS (SELECT FROM postern.sign_in_request AS a JOIN postern.client AS k ON k.id = a.client
                                 WHERE a.id = pg_temp.b16('proven handle') AND a.proved_at IS NOT NULL AND a.expires_at > now()
                                   AND k.enabled AND 'gt:authorization_code' = ANY (k.permissions)) AND pg_temp.serves()$$),
    ('authorization code', $$pg_temp.exchange('authorization code', 'exchanged') LIKE 'ok%'$$),
    ('answered form', $$(SELECT outcome FROM postern.begin_form(
                            pg_temp.realm(), pg_temp.h('form'), pg_temp.h('form'), pg_temp.uu('again'), 'a.example', false)) = 'answered'
                        AND pg_temp.serves()$$),
    ('pushed request', $$EXISTS (SELECT FROM postern.pushed_request WHERE id_hash = pg_temp.h('par'))$$),
    ('address', $$(SELECT proven FROM postern.account_of(pg_temp.realm(), 'eve@example.com')
                    WHERE user_id = pg_temp.who()) AND pg_temp.open_account()$$),
    ('removed address', $$EXISTS (SELECT FROM postern.removed_identifier WHERE id = pg_temp.uu('removed'))$$),
    ('passkey', $$EXISTS (SELECT FROM postern.passkey WHERE id = pg_temp.uu('passkey')) AND pg_temp.open_account()$$),
    ('second factor', $$EXISTS (SELECT FROM postern.totp_factor WHERE id = pg_temp.uu('totp')) AND pg_temp.open_account()$$),
    ('trusted device', $$EXISTS (SELECT FROM postern.device_by_key(pg_temp.realm(), pg_temp.h('device')))
                         AND pg_temp.open_account()$$),
    ('phone key', $$EXISTS (SELECT FROM postern.device_key WHERE id = pg_temp.uu('phone key') AND phone IS NOT NULL)$$),
    ('undo link', $$(SELECT outcome FROM postern.undo_page(pg_temp.realm(), pg_temp.uu('undo'), NULL))
                    = 'shown' AND pg_temp.serves()$$),
    ('approval', $$EXISTS (SELECT FROM postern.device_request WHERE id = pg_temp.rid('approval') AND is_shown AND state = 'open')
                   AND pg_temp.open_account()$$),
    ('consent', $$EXISTS (SELECT FROM postern.consent WHERE user_id = pg_temp.who()) AND pg_temp.open_account()$$),
    ('client secret', $$EXISTS (SELECT FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id AND r.enabled
                                 WHERE c.client_id = 'bff' AND c.enabled AND c.secret_hash IS NOT NULL)$$),
    ('webhook', $$EXISTS (SELECT FROM postern.webhook WHERE name = 'crm')$$),
    ('confirmed link', $$pg_temp.poll('confirmed') LIKE 'ok%'$$),
    ('passkey ceremony', $$(SELECT outcome FROM postern.begin_assertion(
        pg_temp.caller('gt:urn:cocoar:passkey'), pg_temp.no_permits(), pg_temp.b16('ceremony'),
        date_part('epoch', pg_temp.made()) + 200, NULL, 'a.example', '\x01')) = 'spent'$$),
    ('passkey enrolment', $$postern.spend_ceremony(pg_temp.realm(), pg_temp.b16('ceremony'), date_part('epoch', pg_temp.made()) + 200)
                            AND postern.add_passkey(pg_temp.realm(), pg_temp.uu('session'), 'a.example', '\x02', '\x01', 0, NULL,
                                false, false, true, '{}', 'none', NULL, '192.0.2.1', gen_random_uuid(), '\x01') IS NOT NULL
                            AND pg_temp.serves('app')$$),
    ('second factor enrolment', $$postern.enrol_totp(pg_temp.realm(), pg_temp.uu('session'), pg_temp.b16('ceremony'),
                                      date_part('epoch', pg_temp.made()) + 200, gen_random_uuid(), '\x00', 1, '{}', '192.0.2.1')
                                  IN ('enrolled', 'added', 'replaced')
                                  AND pg_temp.serves('app')$$),
    ('approved request', $$pg_temp.polls('approved') LIKE 'ok%'$$),
    ('number proof', $$pg_temp.serves() AND (SELECT e.outcome = 'ok' FROM postern.enter_possession(pg_temp.realm(), pg_temp.proven_by('key of sent'),
                                                                   pg_temp.uu('auth sent'), NULL) AS e)
                       AND pg_temp.checks('sent', 'sent', 'key of sent') LIKE 'passed%'$$),
    ('return code', $$pg_temp.serves() AND pg_temp.finishes_at_door('linked', 'linked', 'key of linked') LIKE 'passed%'$$),
    ('proven number', $$pg_temp.signs_in('passed', 'by number', 'key of passed') LIKE 'ok%'$$),
    ('proven address', $$EXISTS (SELECT FROM postern.introspect_address(pg_temp.realm(), pg_temp.uu('proven address')))
                         AND pg_temp.serves('app')$$),
    ('client key', $$EXISTS (SELECT FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id AND r.enabled
                              WHERE c.client_id = 'robot' AND c.enabled AND c.jwks IS NOT NULL)$$),
    ('service account token', $$EXISTS (SELECT FROM service AS s, postern.live_service_account(pg_temp.realm(), s.id, pg_temp.b16('j')) AS l
                                         WHERE l.token_salt = s.token_salt)
                                AND pg_temp.serves()$$),
    ('signing key', $$EXISTS (SELECT FROM postern.signing_key AS k JOIN postern.realm AS r ON r.id = k.realm_id AND r.enabled
                               WHERE k.kid = 'kid' AND NOT k.withdrawn AND coalesce(k.retires_at > now(), true))$$),
    ('test identity', $$pg_temp.redeem('review@example.com', NULL, '72946153') LIKE 'ok%'$$),
    ('test number', $$EXISTS (SELECT FROM postern.test_number WHERE phone = '+12001004014')$$);
-- An event, and what takes it back. The number leaves with the address; grants are withdrawn from both clients.
CREATE TEMP TABLE event (name text, happens text, is_taken_back text);
INSERT INTO event VALUES
    ('address', $$SELECT admin.delete_identifier('a', pg_temp.who(), 'email', 'eve@example.com'),
                         admin.delete_identifier('a', pg_temp.who(), 'phone', '+4366412345678')$$, NULL),
    ('disabled', $$SELECT admin.set_user_enabled('a', pg_temp.who()::text, false)$$,
                 $$SELECT admin.set_user_enabled('a', pg_temp.who()::text, true)$$),
    ('signed_out', $$SELECT admin.sign_out_everywhere('a', pg_temp.who()::text)$$, NULL),
    ('secured', $$SELECT admin.secure_user('a', pg_temp.who()::text, pg_temp.since())$$, NULL),
    ('deleted', $$SELECT admin.delete_user('a', pg_temp.who()::text)$$, NULL),
    ('client_disabled', $$SELECT admin.put_client('a', c, enabled => false) FROM unnest('{app,bff,srv,robot}'::text[]) AS c$$,
                        $$SELECT admin.put_client('a', c, enabled => true) FROM unnest('{app,bff,srv,robot}'::text[]) AS c$$),
    ('client_deleted', $$SELECT admin.delete_client('a', c, true) FROM unnest('{app,bff,srv,robot}'::text[]) AS c$$, NULL),
    ('permission', $$UPDATE postern.client SET permissions = ARRAY(SELECT p FROM unnest(permissions) AS p WHERE p NOT LIKE 'gt:%'
                                                                      AND p NOT LIKE 'ept:%')$$,
                   $$UPDATE postern.client AS c SET permissions = p.permissions FROM permitted AS p WHERE p.id = c.id$$),
    ('realm_disabled', $$SELECT admin.put_realm('a', enabled => false)$$, $$SELECT admin.put_realm('a', enabled => true)$$),
    ('restored', $$SELECT admin.after_restore(now())$$, NULL);
CREATE FUNCTION pg_temp.works(probe text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    result boolean;
BEGIN
    EXECUTE 'SELECT coalesce((' || probe || '), false)' INTO result;
    RAISE EXCEPTION USING ERRCODE = 'ZZ001';
EXCEPTION
    WHEN SQLSTATE 'ZZ001' THEN
        RETURN result;
    -- A client that is closed is refused by an error (postern.require_client).
    WHEN SQLSTATE 'PC001' OR SQLSTATE 'PC002' OR SQLSTATE 'PC003' OR SQLSTATE 'PC004' THEN
        RETURN false;
END
$$;
CREATE FUNCTION pg_temp.becomes(probe text, happens text, taken_back text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := 'stays';
BEGIN
    EXECUTE happens;
    IF NOT pg_temp.works(probe) THEN
        result := 'ends';
        IF taken_back IS NOT NULL THEN
            EXECUTE taken_back;
            result := CASE WHEN pg_temp.works(probe) THEN 'refused' ELSE 'ends' END;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZZ002';
EXCEPTION WHEN SQLSTATE 'ZZ002' THEN
    RETURN result;
END
$$;
SELECT ok(pg_temp.works(p.works), 'at first it works: ' || p.thing) FROM probe AS p;
SELECT results_eq($$SELECT thing FROM postern.credential_life() ORDER BY 1$$, $$SELECT thing FROM probe ORDER BY 1$$,
                  'each thing of the table is made here');
SELECT is(pg_temp.becomes(p.works, e.happens, e.is_taken_back), to_jsonb(l) ->> e.name, l.thing || ': ' || e.name)
  FROM postern.credential_life() AS l JOIN probe AS p USING (thing) CROSS JOIN event AS e;

-- A new table with a column named like a credential needs its row, or a reason why not.
CREATE FUNCTION pg_temp.forgotten() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT DISTINCT c.relname::text FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND a.attnum > 0 AND NOT a.attisdropped
       AND a.attname ~ '(hash|token|secret|salt|mac|key|code|seed|stamp|sealed|cookie|credential|jkt|thumbprint)'
       AND c.relname::text <> ALL (ARRAY(SELECT unnest(l.tables) FROM postern.credential_life() AS l))
       AND c.relname::text NOT IN (SELECT t.table_name FROM postern.tables_without_credentials() AS t)
       AND NOT (a.attname IN ('address_key') AND a.atttypid = 'text'::regtype) $$;
SELECT is_empty('SELECT pg_temp.forgotten()', 'every table with a column named like a credential has its row');
CREATE TABLE postern.careless (realm_id uuid, ticket_hash bytea);
SELECT results_eq('SELECT pg_temp.forgotten()', ARRAY['careless'], 'a careless addition is found');
SELECT is_empty($$SELECT t FROM (SELECT unnest(tables) FROM postern.credential_life() UNION ALL
    SELECT table_name FROM postern.tables_without_credentials()) AS x (t) WHERE to_regclass('postern.' || t) IS NULL$$, 'no row is of a table that is gone');
SELECT * FROM finish();
ROLLBACK;
