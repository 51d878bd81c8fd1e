-- What people try first works, and what has no effect is refused.
\ir ../helpers/fixture.psql
SELECT no_plan();
SET LOCAL ROLE admin_login;
SELECT admin.put_client('a', 'tries') \g /dev/null

SELECT is(admin.grant_permission('a', 'tries', ARRAY['gt:urn:cocoar:otp', 'gt:refresh_token']),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:otp'], 'permissions as one list');
SELECT is(admin.grant_permission('a', 'tries', 'gt:urn:cocoar:magic', 'scp:email'),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:magic', 'gt:urn:cocoar:otp', 'scp:email'], 'or one after the other');
SELECT is(admin.grant_permission('a', 'tries', VARIADIC '{scp:profile}'::text[]),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:magic', 'gt:urn:cocoar:otp', 'scp:email', 'scp:profile'],
          'or as VARIADIC');
SELECT is(admin.revoke_permission('a', 'tries', ARRAY['gt:urn:cocoar:magic', 'scp:email', 'scp:profile']),
          ARRAY['gt:refresh_token', 'gt:urn:cocoar:otp'], 'taken back as one list');
SELECT is(pg_temp.refusal($$SELECT admin.grant_permission('a', 'tries', ARRAY['gt:nothing'])$$),
          pg_temp.refusal($$SELECT admin.grant_permission('a', 'tries', 'gt:nothing')$$), 'and refused alike');
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'tries',
    'gt:urn:ietf:params:oauth:grant-type:device_code')$$), '^22023 permission "gt:urn:ietf:.*device_code" is unknown',
    'a grant that this version does not have is no permission');

SELECT admin.put_android_app('a', 'tries', 'com.acme.app', rtrim(repeat('AB:', 32), ':')) \g /dev/null
SELECT is((SELECT cardinality(origins) FROM admin.clients WHERE client_id = 'tries'), 1, 'a fingerprint as text');
SELECT lives_ok(format('SELECT admin.put_android_app(''a'', ''tries'', ''com.acme.app'', %L)',
                       rtrim(repeat('AB:', 32), ':')), 'also as a literal');
SELECT lives_ok(format('SELECT admin.put_android_app(''a'', ''tries'', ''com.acme.app'', %L)',
                       '{' || rtrim(repeat('AB:', 32), ':') || ',' || rtrim(repeat('CD:', 32), ':') || '}'),
                'and as the literal of an array');
SELECT is((SELECT cardinality(origins) FROM admin.clients WHERE client_id = 'tries'), 2, 'which has two');
SELECT lives_ok($$SELECT admin.put_android_app('a', 'tries', 'com.acme.app', sms_hash => 'abcdefghijk')$$, 'or none');
SELECT lives_ok($$SELECT admin.put_android_app('a', 'tries', 'com.acme.app', NULL, 'abcdefghijk')$$, 'or NULL');
SELECT matches(pg_temp.refusal($$SELECT admin.put_android_app('a', 'tries', 'com.acme.app', '14:6D')$$),
               'is not a SHA-256 fingerprint \| Allowed are 32 hex bytes', 'what is no fingerprint has a hint');

-- Locales.
SELECT is(pg_temp.refusal(format('SELECT admin.put_text(''a'', %L, ''address-title'', ''x'')', l)),
          format('22023 locale "%s" is not a language of the pages | Allowed: ar, de, en, es, fr, it, ja, nl, pl, pt-BR, '
                 'tr.', l), 'no text in ' || l) FROM unnest('{DE,pt,zh-CN,xx}'::text[]) AS l;
SELECT is(pg_temp.refusal($$SELECT admin.set_hosted('a', default_locale => 'pt')$$),
          '22023 default_locale "pt" is not a language of the pages | Allowed: ar, de, en, es, fr, it, ja, nl, pl, pt-BR, '
          'tr.', 'no pages in pt');
SELECT lives_ok($$SELECT admin.set_hosted('a', default_locale => 'pt-BR')$$, 'but in pt-BR');
SELECT matches(pg_temp.refusal($$SELECT admin.put_text('a', NULL, 'address-title', 'x')$$), '^22023 locale is missing', 'NULL');

-- Regions.
SELECT is(pg_temp.refusal($$SELECT admin.set_phone_policy('a', '{AT,DE}', 'US')$$),
          '22023 default_region "US" is not one of regions | No message goes there. Regions are: AT, DE.',
          'the default region is one of the regions');
SELECT lives_ok($$SELECT admin.set_phone_policy('a', '{AT,DE}', 'DE')$$, 'as here');
SELECT is(pg_temp.refusal($$SELECT admin.set_phone_policy('a', '{AT}')$$),
          '22023 default_region "DE" is not one of regions | No message goes there. Regions are: AT.', 'and stays one');

-- What support asks first.
RESET ROLE;
SELECT pg_temp.sign_in('alive'), pg_temp.sign_in('ended') \g /dev/null
UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('ended');
SET LOCAL ROLE admin_login;
SELECT is((SELECT (last_sign_in_at = now()) || ' ' || sessions || ' ' || passkeys FROM admin.users
            WHERE realm = 'a' AND id = pg_temp.sub('ada@example.com')), 'true 1 0', 'of a user: last sign-in, sessions, passkeys');
SELECT admin.put_redirect_uri('a', 'tries', 'https://app.example/cb') \g /dev/null
SELECT is((SELECT array_to_string(permissions || redirect_uris, ' ') FROM admin.clients WHERE client_id = 'tries'),
          'gt:refresh_token gt:urn:cocoar:otp https://app.example/cb', 'of a client: permissions and redirect URIs');
SELECT * FROM finish();
ROLLBACK;
