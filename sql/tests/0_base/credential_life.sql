\ir ../helpers/fixture.psql
SELECT no_plan();
-- One of each thing that lets somebody in, each event, and what becomes of the thing: as postern.credential_life says.
\ir ../helpers/approvals.psql
\ir ../helpers/links.psql
\ir ../helpers/browsers.psql
SELECT set_config('test.who', admin.put_user('a', 'eve@example.com', phone => '+4366412345678')::text, true) \g /dev/null
SELECT admin.put_identifier('a', current_setting('test.who')::uuid, 'email', 'keep@example.com') \g /dev/null
CREATE FUNCTION pg_temp.who() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.who')::uuid $$;
CREATE FUNCTION pg_temp.since() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now() - interval '1 hour' $$;
-- One address is older than the incident: else the account could not be secured.
UPDATE postern.user_identifier SET added_at = now() - interval '1 day', proved_at = now() - interval '1 day'
 WHERE user_id = pg_temp.who() AND key IN ('keep@example.com', '+4366412345678');
SELECT pg_temp.sign_in('session', 'eve@example.com'), pg_temp.ask('code', 'eve@example.com', '1'),
       pg_temp.link('link', 'eve@example.com', 'link'), pg_temp.ask('handle', 'eve@example.com', '2'),
       pg_temp.browse('jar', 'eve@example.com', request => pg_temp.wanted('authorization code')),
       pg_temp.device('device', 'eve@example.com'), pg_temp.asks('approval', 'eve@example.com'),
       admin.put_webhook('a', 'crm', 'https://crm.example/'), admin.rotate_client_secret('a', 'bff') \g /dev/null
INSERT INTO postern.test_number (realm_id, phone, client, expires_at, outcome)
VALUES (pg_temp.realm(), '+12001004014', pg_temp.client('bff'), now() + interval '1 day', 'pass');
INSERT INTO postern.pushed_request (realm_id, id_hash, client, source, expires_at, ends_at, sealed)
VALUES (pg_temp.realm(), pg_temp.h('par'), pg_temp.client(), '192.0.2.1', now() + interval '1 minute',
        now() + interval '1 minute', '\x00');
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
-- The second factor is not asked for at the other things: it has a probe of its own.
UPDATE postern.user_account SET has_totp = false WHERE id = pg_temp.who();

CREATE FUNCTION pg_temp.open_account() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT EXISTS (SELECT FROM postern.user_account AS u JOIN postern.realm AS r ON r.id = u.realm_id AND r.enabled
                    WHERE u.id = pg_temp.who() AND u.enabled) $$;
-- Whether a thing works now. Where one statement redeems it, by that statement, whose effects are undone.
CREATE TEMP TABLE probe (thing text, works text);
INSERT INTO probe VALUES
    ('session', $$pg_temp.rotate('session', 0) LIKE 'rotated%'$$),
    ('browser session', $$EXISTS (SELECT FROM postern.live_browser_session(pg_temp.realm(), pg_temp.h('jar'), 'a.example'))
                          AND EXISTS (SELECT FROM postern.directory() WHERE domain = 'a.example')$$),
    ('code', $$pg_temp.redeem('eve@example.com', 'code', '1') LIKE 'ok%'$$),
    ('link', $$pg_temp.open('eve@example.com', 'link') LIKE 'ok%'$$),
    ('handle', $$EXISTS (SELECT FROM postern.auth_session WHERE id = pg_temp.b16('handle') AND expires_at > now())$$),
    ('authorization code', $$pg_temp.exchange('authorization code', 'exchanged') LIKE 'ok%'$$),
    ('pushed request', $$EXISTS (SELECT FROM postern.pushed_request WHERE id_hash = pg_temp.h('par'))$$),
    ('address', $$(SELECT proven FROM postern.account_of(pg_temp.realm(), 'eve@example.com')
                    WHERE user_id = pg_temp.who()) AND pg_temp.open_account()$$),
    ('removed address', $$EXISTS (SELECT FROM postern.removed_identifier WHERE id = pg_temp.uu('removed'))$$),
    ('passkey', $$EXISTS (SELECT FROM postern.passkey WHERE id = pg_temp.uu('passkey')) AND pg_temp.open_account()$$),
    ('second factor', $$EXISTS (SELECT FROM postern.totp_factor WHERE id = pg_temp.uu('totp')) AND pg_temp.open_account()$$),
    ('trusted device', $$EXISTS (SELECT FROM postern.device_by_key(pg_temp.realm(), pg_temp.h('device')))
                         AND pg_temp.open_account()$$),
    ('phone key', $$EXISTS (SELECT FROM postern.device_key WHERE id = pg_temp.uu('phone key') AND phone IS NOT NULL)$$),
    ('undo link', $$(SELECT outcome FROM postern.undo_page(pg_temp.realm(), pg_temp.uu('undo'), '{}', '{}', '{}', '{}', '{}'))
                    = 'shown' AND EXISTS (SELECT FROM postern.directory() WHERE domain = 'a.example')$$),
    ('approval', $$EXISTS (SELECT FROM postern.transaction WHERE id = pg_temp.rid('approval') AND is_shown AND state = 'open')
                   AND pg_temp.open_account()$$),
    ('consent', $$EXISTS (SELECT FROM postern.consent WHERE user_id = pg_temp.who()) AND pg_temp.open_account()$$),
    ('client secret', $$EXISTS (SELECT FROM postern.client AS c JOIN postern.realm AS r ON r.id = c.realm_id AND r.enabled
                                 WHERE c.client_id = 'bff' AND c.enabled AND c.secret_hash IS NOT NULL)$$),
    ('webhook', $$EXISTS (SELECT FROM postern.webhook WHERE name = 'crm')$$),
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
    ('client_disabled', $$SELECT admin.put_client('a', c, enabled => false) FROM unnest('{app,bff}'::text[]) AS c$$,
                        $$SELECT admin.put_client('a', c, enabled => true) FROM unnest('{app,bff}'::text[]) AS c$$),
    ('client_deleted', $$SELECT admin.delete_client('a', c, true) FROM unnest('{app,bff}'::text[]) AS c$$, NULL),
    ('permission', $$UPDATE postern.client SET permissions = array_remove(array_remove(array_remove(array_remove(permissions,
                         'gt:urn:cocoar:otp'), 'gt:urn:cocoar:magic'), 'gt:authorization_code'), 'gt:refresh_token')
                      WHERE client_id = 'app'$$,
                   $$SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:otp', 'gt:urn:cocoar:magic', 'gt:authorization_code',
                                                   'gt:refresh_token')$$),
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
       AND NOT (a.attname IN ('email_key') AND a.atttypid = 'text'::regtype) $$;
SELECT is_empty('SELECT pg_temp.forgotten()', 'every table with a column named like a credential has its row');
CREATE TABLE postern.careless (realm_id uuid, ticket_hash bytea);
SELECT results_eq('SELECT pg_temp.forgotten()', ARRAY['careless'], 'a careless addition is found');
SELECT is_empty($$SELECT t FROM (SELECT unnest(tables) FROM postern.credential_life() UNION ALL
    SELECT table_name FROM postern.tables_without_credentials()) AS x (t) WHERE to_regclass('postern.' || t) IS NULL$$, 'no row is of a table that is gone');
SELECT * FROM finish();
ROLLBACK;
