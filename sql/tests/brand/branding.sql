\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.put_app('a', 'shop') \g /dev/null

SELECT is(round(postern.contrast('#000000', '#ffffff')::numeric, 2), 21.00, 'black on white');
SELECT is(round(postern.contrast('#777777', '#ffffff')::numeric, 2), 4.48, 'grey on white, as WCAG tools say');
SELECT lives_ok($$SELECT admin.set_branding('a', 'Acme', accent => '#777777', logo => '\x89504e470d0a1a0a00',
    terms_uri => 'https://acme.example/terms', support_uri => 'mailto:help@acme.example',
    mail_from => 'Acme <login@acme.example>')$$, 'a look is set');
SELECT lives_ok($$SELECT admin.set_branding('a', 'Acme')$$, 'and again');
SELECT is(accent, '#777777', 'what is not named stays') FROM admin.branding WHERE realm = 'a';
SELECT lives_ok($$SELECT admin.set_branding('a', accent => '', app => 'shop', product_name => 'Shop')$$, 'an App has one');
SELECT is(postern.realm_config(pg_temp.realm()) #>> '{brands,0,logo}',
          encode(sha256('\x89504e470d0a1a0a00'), 'hex'), 'servers read the hash of a logo');
SELECT is((SELECT count(*) FROM jsonb_array_elements(postern.realm_config(pg_temp.realm()) -> 'brands')), 2::bigint,
          'and the look of each App');
SELECT admin.set_branding('a', logo => '') \g /dev/null
SELECT is(logo, NULL, 'an empty value removes a logo') FROM admin.branding WHERE realm = 'a' AND app IS NULL;
SELECT matches(pg_temp.refusal(v.call), '^22023 ' || v.reason, v.reason) FROM (VALUES
    ($$SELECT admin.set_branding('a', accent => '#ffff00')$$, 'accent "#ffff00" has a contrast of 1.0:1'),
    ($$SELECT admin.set_branding('a', accent_dark => '#1f2933')$$, 'accent_dark "#1f2933" has a contrast of 1.0:1'),
    ($$SELECT admin.set_branding('a', accent => 'red')$$, 'accent "red" is not a colour'),
    ($$SELECT admin.set_branding('a', accent => '#1F5FBF')$$, 'accent "#1F5FBF" is not a colour'),
    ($$SELECT admin.set_branding('a', logo => 'GIF89a')$$, 'logo is not an image'),
    ($$SELECT admin.set_branding('a', favicon => decode(repeat('00', 65537), 'hex'))$$, 'favicon has 65537 bytes'),
    ($$SELECT admin.set_branding('a', terms_uri => 'http://acme.example/')$$, 'terms_uri "http://acme.example/" is not'),
    ($$SELECT admin.set_branding('a', privacy_uri => 'javascript:alert(1)')$$, 'privacy_uri "javascript'),
    ($$SELECT admin.set_branding('a', support_uri => 'https://a.example/"x')$$, 'support_uri'),
    ($$SELECT admin.set_branding('a', mail_from => E'a@b.example\nBcc: x@y.example')$$, 'mail_from'),
    ($$SELECT admin.set_branding('a', mail_from => 'a@b.example, x@y.example')$$, 'mail_from'),
    ($$SELECT admin.set_branding('a', E'Ac\u202eme')$$, 'product_name'),
    ($$SELECT admin.set_branding('a', app => 'none')$$, 'app "none" is not an App'),
    ($$SELECT admin.put_text('a', 'de', 'none', 'x')$$, 'key "none" is not a text'),
    ($$SELECT admin.put_text('a', 'deutsch1', 'cancel', 'x')$$, 'locale "deutsch1"'),
    ($$SELECT admin.put_text('a', 'de', 'cancel', NULL)$$, 'value NULL'),
    ($$SELECT admin.put_text('a', 'de', 'address-lead', 'weiter')$$, 'value of key "address-lead" has the placeholders none'),
    ($$SELECT admin.put_text('a', 'de', 'cancel', 'Zu {client}')$$, 'value of key "cancel" has the placeholders client'),
    ($$SELECT admin.put_text('a', 'de', 'cancel', E'a\nb')$$, 'value "a')) AS v (call, reason);
SELECT lives_ok($$SELECT admin.put_text('a', 'de', 'address-lead', 'um {client} zu <b>nutzen</b>')$$, 'a text is put');
SELECT lives_ok($$SELECT admin.put_text('a', 'de', 'address-lead', 'für {client}')$$, 'and put again');
SELECT lives_ok($$SELECT admin.put_text('a', 'nl', 'cancel', 'Stop', app => 'shop')$$, 'in any language');
SELECT is(postern.realm_config(pg_temp.realm()) -> 'texts', (SELECT jsonb_agg(t ORDER BY t ->> 'app' NULLS FIRST) FROM (VALUES
    ('{"locale":"de","key":"address-lead","value":"für {client}"}'::jsonb),
    ('{"app":"shop","locale":"nl","key":"cancel","value":"Stop"}')) AS v (t)), 'servers read them');
SELECT lives_ok($$SELECT admin.delete_text('a', 'de', 'address-lead')$$, 'the product''s text comes back');
SELECT is((SELECT count(*) FROM admin.texts WHERE app IS NULL), 0::bigint, 'and no row is left');
SELECT admin.delete_app('a', 'shop') \g /dev/null
SELECT is((SELECT count(*) FROM admin.texts) + (SELECT count(*) FROM admin.branding WHERE app IS NOT NULL), 0::bigint,
          'an App takes its look and its texts along');
SELECT is((SELECT count(*) FROM admin.text_keys WHERE placeholders @> '{client}' AND default_text NOT LIKE '%{client}%'),
          0::bigint, 'placeholders are those of the text');
SET LOCAL ROLE app_login;
SELECT is((SELECT media_type FROM postern.brand_image(pg_temp.realm(), sha256('\x89504e470d0a1a0a00'))), 'image/png',
          'a logo is found by its hash');
SELECT is((SELECT count(*) FROM postern.brand_image(pg_temp.other(), sha256('\x89504e470d0a1a0a00'))), 0::bigint,
          'in its realm only');
RESET ROLE;
UPDATE postern.brand_image SET created_at = now() - interval '2 days';
SELECT postern.sweep(1000) \g /dev/null
SELECT is((SELECT count(*) FROM postern.brand_image), 0::bigint, 'a logo that is not used is swept after a day');
SELECT * FROM finish();
ROLLBACK;
