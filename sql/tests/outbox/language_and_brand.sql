\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
SELECT no_plan();
SELECT admin.set_hosted('a', true, default_locale => 'fr') \g /dev/null
UPDATE postern.user_identifier SET proved_at = now() WHERE proved_at IS NULL;
CREATE FUNCTION pg_temp.language(address text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT u.locale FROM postern.user_account AS u WHERE u.realm_id = pg_temp.realm() AND u.id = pg_temp.sub(address) $$;
-- The language and brand of the newest message to an address, as a sender takes it.
CREATE FUNCTION pg_temp.taken(address text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    UPDATE postern.message_outbox SET not_before = now() WHERE recipient = address;
    RETURN QUERY SELECT m.locale, m.realm_name, m.accent, m.logo
      FROM postern.take_messages('{email}', '{100}', ARRAY[gen_random_uuid()], '0 s', 100, '{}', '{}', '{}') AS m
     WHERE m.recipient = address ORDER BY m.created_at DESC, m.attempts LIMIT 1;
END $$;

-- The language of an account.
SELECT is(pg_temp.language('ada@example.com'), NULL, 'an account that an administrator made has no language');
SELECT pg_temp.browse('c1', locale => 'de') \g /dev/null
SELECT is(pg_temp.language('ada@example.com'), 'de', 'its first sign-in on a page gives it one');
SELECT pg_temp.browse('c2', locale => 'ar') \g /dev/null
SELECT is(pg_temp.language('ada@example.com'), 'de', 'a later one in another language does not');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.sub('ada@example.com'), 'totp-added') \g /dev/null
SELECT is((SELECT locale FROM pg_temp.taken('Ada@example.com') AS t (locale text, name text, accent text, logo text)),
          'de', 'a notice is in the language of the account');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.sub('bob@example.com'), 'totp-added') \g /dev/null
SELECT is((SELECT locale FROM pg_temp.taken('bob@example.com') AS t (locale text, name text, accent text, logo text)),
          'fr', 'without one, in that of the realm');
SELECT is(postern.create_user(pg_temp.realm(), 'email', 'new@example.com', NULL, NULL, 'ja') IS NOT NULL, true,
          'an account that is made by a proof');
SELECT is((SELECT u.locale FROM postern.user_account AS u JOIN postern.user_identifier AS i ON i.user_id = u.id
            WHERE i.value = 'new@example.com'), 'ja', 'has the language of the request for it');

-- The brand of a message.
SELECT admin.put_app('a', 'shop', 'The Shop') \g /dev/null
CREATE FUNCTION pg_temp.branded(app text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postern.message_outbox;
    PERFORM postern.queue_notice(pg_temp.realm(), pg_temp.sub('bob@example.com'), 'totp-added',
                                 jsonb_strip_nulls(jsonb_build_object('app', app)));
    RETURN (SELECT concat_ws(' ', t.name, t.accent, t.logo)
              FROM pg_temp.taken('bob@example.com') AS t (locale text, name text, accent text, logo text));
END $$;
SELECT is(pg_temp.branded(NULL), 'a', 'without a brand a message has the name of the realm');
SELECT is(pg_temp.branded('shop'), 'The Shop', 'or of the App');
SELECT admin.set_branding('a', 'Acme Blumen', accent => '#1f5fbf', logo => '\x89504e470d0a1a0a00') \g /dev/null
SELECT is(pg_temp.branded(NULL), 'Acme Blumen #1f5fbf https://a.example/brand/'
              || encode(sha256('\x89504e470d0a1a0a00'), 'hex'), 'product name, colour and logo are those of the pages');
SELECT is(pg_temp.branded('shop'), 'Acme Blumen #1f5fbf https://a.example/brand/'
              || encode(sha256('\x89504e470d0a1a0a00'), 'hex'), 'for an App without its own, too');
SELECT admin.set_branding('a', 'Blumenladen', app => 'shop', accent => '#b0246b',
                          logo => convert_to('<svg xmlns="http://www.w3.org/2000/svg"/>', 'UTF8')) \g /dev/null
SELECT is(pg_temp.branded('shop'), 'Blumenladen #b0246b https://a.example/brand/'
              || encode(sha256('\x89504e470d0a1a0a00'), 'hex'), 'an App has its own; SVG is no logo for mails');
SELECT * FROM finish();
ROLLBACK;
