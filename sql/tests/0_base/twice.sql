\ir ../helpers/fixture.psql
-- What an administrator puts or sets twice is as it was after the first time.
SELECT no_plan();
SELECT admin.put_client('a', 'srv', 'confidential'), admin.put_client('a', 'srv2', 'confidential'),
       admin.set_hosted('a', true), admin.set_phone_policy('a', '{AT}'),
       admin.put_service_account('a', 'srv', 'srv'),
       admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession', 'ept:introspection') \g /dev/null

-- Every row of every table but the audit log's, which has a row for each call; without the number of a realm's
-- configuration, which tells servers to read it again.
CREATE FUNCTION pg_temp.state() RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_object_agg(c.relname, (xpath('/row/rows/text()', query_to_xml(format(
               'SELECT md5(coalesce(string_agg(x, ''|'' ORDER BY x), '''')) AS rows FROM postern.%I AS t,'
               ' LATERAL (SELECT (to_jsonb(t) - ''config_version'')::text AS x) AS l',
               c.relname), false, true, '')))[1]::text)
      FROM pg_class AS c
     WHERE c.relnamespace = 'postern'::regnamespace AND c.relkind = 'r' AND c.relname <> 'audit_event' $$;
CREATE FUNCTION pg_temp.changed_by_repeating(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_empty jsonb := pg_temp.state();
    v_once jsonb;
BEGIN
    EXECUTE 'SELECT ' || statement;
    v_once := pg_temp.state();
    EXECUTE 'SELECT ' || statement;
    RETURN CASE WHEN v_once = v_empty THEN 'no row has changed'
        ELSE (SELECT string_agg(key, ' ' ORDER BY key) FROM jsonb_each(pg_temp.state()) AS s
               WHERE s.value IS DISTINCT FROM v_once -> s.key) END;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN SQLERRM;
END
$$;

CREATE TEMP TABLE call (name text PRIMARY KEY, arguments text NOT NULL) ON COMMIT DROP;
INSERT INTO call VALUES
    ('put_realm', $$'c', 'c.example', 'C', domains => '{d.example}'$$),
    ('put_client', $$'a', 'site', 'confidential', 'Site', require_pkce => false, home_uri => 'https://site.example/'$$),
    ('put_app', $$'a', 'shop', 'Shop', 'shop.a.example', 'JitOnOtp', '{app}'$$),
    ('put_scope', $$'a', 'orders', 'Orders', '{https://api.example}'$$),
    ('put_user', $$'a', 'cy@example.com', 'Cy', phone => '+436641234567'$$),
    ('put_identifier', $$'a', pg_temp.sub('ada@example.com'), 'email', 'ada2@example.com', true$$),
    ('set_user_enabled', $$'a', 'bob@example.com', false$$),
    ('set_native_grants', $$'a', false, '7 minutes'$$),
    ('set_code_policy', $$'a', '7 minutes', 4$$),
    ('set_registration_fields', $$'a', 'Required', 'Off'$$),
    ('set_rate_limit', $$'a', 'native-otp', 'source', 7, '7 minutes', 8$$),
    ('set_dpop', $$'a', 'required', '7 minutes'$$),
    ('set_hosted', $$'a', true, '{email-code,passkey}', 'de'$$),
    ('set_branding', $$'a', 'Acme', accent => '#003366', mail_from => 'Acme <post@a.example>'$$),
    ('put_text', $$'a', 'de', 'address-title', 'Willkommen'$$),
    ('put_redirect_uri', $$'a', 'site', 'https://site.example/cb'$$),
    ('put_logout_uri', $$'a', 'site', 'https://site.example/bye', 'post-logout'$$),
    ('put_web_origin', $$'a', 'app', 'https://web.example'$$),
    ('put_ios_app', $$'a', 'app', 'A1B2C3D4E5', 'com.example.app'$$),
    ('put_android_app', $$'a', 'app', 'com.example.app', ARRAY[repeat('AB:', 31) || 'CD']$$),
    ('put_service_account', $$'a', 'robot', 'srv2'$$),
    ('put_resource_server', $$'a', 'srv', '{https://api.example}'$$),
    ('put_client_jwks', $$'a', 'srv', '{"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}'$$),
    ('put_webhook', $$'a', 'crm', 'https://crm.example/x', '{sign_in}'$$),
    ('put_address_rule', $$'a', '*.example.net', 'deny'$$),
    ('set_phone_policy', $$'a', '{AT,DE}', 'DE', 2$$),
    ('put_phone_prefix', $$'a', '+43664', 'allow', 3$$),
    ('put_channel', $$'a', 'sms', 'vendor', 'webhook', 'https://sms.example/'$$),
    ('set_pre_send_hook', $$'a', 'https://hook.example/', 'deny'$$),
    ('put_test_identity', $$'a', 'review@example.com', 'app', '48151623'$$),
    ('set_approvals', $$'a', true, true, '2 minutes'$$),
    ('put_approval_client', $$'a', 'srv', false$$),
    ('set_possession', $$'a', true, '2 minutes', otp_digits => 5$$),
    ('put_possession_client', $$'a', 'srv', true$$),
    ('put_test_number', $$'a', '+4366400000018', 'srv', 'pass'$$),
    ('put_provider', $$'a', 'risk', 'https://risk.example/', 'observe'$$);
SELECT set_eq('SELECT name FROM call', $$SELECT DISTINCT p.proname::text FROM pg_proc AS p
    WHERE p.pronamespace = 'admin'::regnamespace AND p.proname ~ '^(put|set)_'$$, 'every function that puts or sets');
SELECT is(pg_temp.changed_by_repeating(format('admin.%s(%s)', name, arguments)), NULL, name || ' twice') FROM call;
SELECT * FROM finish();
ROLLBACK;
