\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_message text;
    v_hint text;
BEGIN
    EXECUTE statement;
    RETURN NULL;
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS v_message = MESSAGE_TEXT, v_hint = PG_EXCEPTION_HINT;
    RETURN v_message || CASE WHEN v_hint = '' THEN ' WITHOUT A HINT' ELSE '' END;
END
$$;
CREATE FUNCTION pg_temp.put(arguments text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refused(format('SELECT admin.put_channel(%L, %s)', 'a', arguments)) $$;

-- Providers.
SELECT is(pg_temp.put($$'sms', 'own', 'webhook', 'https://hooks.example/sms'$$), NULL, 'a webhook');
SELECT is(pg_temp.put($$'sms', 'twilio', 'http', 'https://api.example/2010/Messages.json', '+15005550006',
    'twilio.secret', 'basic', 'form', '{"To": "{to}", "From": "{from}", "Body": "{text}"}', 10$$), NULL,
    'a template');
SELECT is(pg_temp.put($$'whatsapp', 'cloud', 'http', 'http://127.0.0.1:8080/v19/messages', body => 'json',
    fields => '{"to": "{to_digits}", "n": 1, "template": {"parameters": [{"text": "{code}"}]}}'$$), NULL,
    'a template of JSON, to this machine, without a credential');
SELECT results_eq($$SELECT channel, name, provider, priority, enabled, auth, body FROM admin.channels ORDER BY 1, 2$$,
    $$VALUES ('sms', 'own', 'webhook', 100, true, NULL, NULL), ('sms', 'twilio', 'http', 10, true, 'basic', 'form'),
             ('whatsapp', 'cloud', 'http', 100, true, NULL, 'json')$$, 'what there is');
SELECT is(jsonb_path_query_array(postern.providers(pg_temp.realm(), 'sms'), '$.name'), '["twilio", "own"]',
    'in the order of priority');
SELECT is(postern.realm_config(pg_temp.realm()) -> 'channels', '["sms", "whatsapp"]',
    'the configuration says by what the realm can send');
SELECT is(postern.realm_config(pg_temp.other()) -> 'channels', '[]', 'another realm by nothing');
SELECT is(pg_temp.put($$'sms', 'own', enabled => false$$), NULL, 'a provider can be paused');
SELECT is(pg_temp.put($$'sms', 'twilio', url => 'https://api.example/x'$$), NULL, 'and one setting changed');
SELECT results_eq($$SELECT p ->> 'url', p ->> 'auth', p -> 'fields' ->> 'To'
                      FROM jsonb_array_elements(postern.providers(pg_temp.realm(), 'sms')) AS p$$,
    $$VALUES ('https://api.example/x', 'basic', '{to}')$$, 'the others stay; the paused one is not asked');
SELECT is(pg_temp.put($$'sms', 'twilio', 'webhook', 'https://hooks.example/'$$), NULL, 'it becomes a webhook');
SELECT results_eq($$SELECT auth, secret_name, fields, sender FROM admin.channels WHERE name = 'twilio'$$,
    $$VALUES (NULL::text, NULL::text, NULL::jsonb, '+15005550006')$$, 'and keeps nothing of the template');

-- What a channel may not be.
SELECT is(pg_temp.put(v.arguments), v.message, replace(v.message, E'\n', ' ')) FROM (VALUES
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"To": "{phone}"}'$$,
     'fields has the unknown placeholder {phone}'),
    ($$'sms', 'x', 'http', 'https://a.example', body => 'json', fields => '{"a": [{"b": "{text} {{x}"}]}'$$,
     'fields has the unknown placeholder {x}'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"{to}": "x"}'$$,
     'fields has a placeholder in the name "{to}"'),
    ($$'sms', 'x', 'http', 'https://a.example', body => 'json', fields => '{"a": [{"b{text}": "{text}"}]}'$$,
     'fields has a placeholder in the name "b{text}"'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": {"b": "c"}}'$$,
     'fields holds a value that is not text'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{}'$$, 'fields is not an object of 1 to 8,192 bytes'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '[]'$$, 'fields is not an object of 1 to 8,192 bytes'),
    ($$'sms', 'x', 'http', 'https://a.example'$$, 'fields is missing'),
    ($$'sms', 'x', 'webhook', 'http://a.example'$$, 'url "http://a.example" is not a URL that may be called'),
    ($$'sms', 'x', 'webhook', 'file:///etc/passwd'$$, 'url "file:///etc/passwd" is not a URL that may be called'),
    ($$'sms', 'x', 'webhook', 'http://localhost.evil.example/'$$,
     'url "http://localhost.evil.example/" is not a URL that may be called'),
    ($$'sms', 'x', 'webhook', 'http://127.0.0.1@evil.example/'$$,
     'url "http://127.0.0.1@evil.example/" is not a URL that may be called'),
    ($$'sms', 'x', 'webhook', 'https://user@a.example/'$$,
     'url "https://user@a.example/" is not a URL that may be called'),
    ($$'sms', 'x', 'webhook', E'https://a.example/\nx'$$,
     E'url "https://a.example/\nx" is not a URL that may be called'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": "b"}', auth => 'basic', secret_name => '../x'$$,
     'secret_name "../x" is not the name of a file'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": "b"}', auth => 'basic', secret_name => '..'$$,
     'secret_name ".." is not the name of a file'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": "b"}', auth => 'basic'$$,
     'secret_name and auth belong together'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": "b"}', auth => 'digest', secret_name => 'x'$$,
     'auth "digest" is unknown'),
    ($$'sms', 'x', 'http', 'https://a.example', fields => '{"a": "b"}', auth => 'header Host', secret_name => 'x'$$,
     'auth "header Host" is unknown'),
    ($$'sms', 'x', 'webhook', 'https://a.example', secret_name => 'x'$$,
     'secret_name, auth, body and fields are for provider http'),
    ($$'sms', 'x', 'webhook', 'https://a.example', fields => '{"a": "b"}'$$,
     'secret_name, auth, body and fields are for provider http'),
    ($$'push', 'x', 'http', 'https://a.example', fields => '{"a": "b"}'$$,
     'provider "http" cannot carry channel "push"'),
    ($$'sms', 'x', 'outbox'$$, 'provider "outbox" is unknown'),
    ($$'sms', 'x'$$, 'provider of channel "sms" named "x" is missing'),
    ($$'sms', 'x', 'webhook'$$, 'url is missing'),
    ($$'email', 'x', 'webhook', 'https://a.example'$$, 'channel "email" is unknown'),
    ($$NULL, 'x', 'webhook', 'https://a.example'$$, 'channel is NULL'),
    ($$'sms', 'X', 'webhook', 'https://a.example'$$, 'name "X" is not the name of a provider'),
    ($$'sms', 'x', 'webhook', 'https://a.example', priority => -1$$, 'priority -1 is out of range'))
    AS v (arguments, message);
SELECT is((SELECT count(*) FROM admin.channels WHERE name = 'x'), 0::bigint, 'what is refused is not stored');
SELECT lives_ok($$SELECT admin.delete_channel('a', 'sms', 'own')$$, 'a provider can be deleted');
SELECT is(pg_temp.refused($$SELECT admin.delete_channel('a', 'sms', 'own')$$),
    'name "own" is not a provider of channel "sms" in this realm', 'once');

-- Rules for addresses, and the hook.
SELECT admin.put_app('a', 'shop', 'The Shop', 'shop.a.example', client_ids => '{app}') \g /dev/null
SELECT lives_ok($$SELECT admin.put_address_rule('a', '*.example.com', 'deny'),
                         admin.put_address_rule('a', 'example.com', 'allow', 'shop'),
                         admin.put_address_rule('a', 'example.com', 'deny', 'shop')$$, 'rules');
SELECT results_eq('SELECT app, domain, action FROM admin.address_rules ORDER BY 2',
    $$VALUES (NULL, '*.example.com', 'deny'), ('shop', 'example.com', 'deny')$$, 'the last word of a domain counts');
SELECT is(jsonb_array_length(postern.realm_config(pg_temp.realm()) -> 'address_rules'), 2, 'servers know them');
SELECT is(pg_temp.refused(v.statement), v.message, v.message) FROM (VALUES
    ($$SELECT admin.put_address_rule('a', 'Example.com', 'deny')$$, 'domain "Example.com" is not a domain'),
    ($$SELECT admin.put_address_rule('a', '*.*.com', 'deny')$$, 'domain "*.*.com" is not a domain'),
    ($$SELECT admin.put_address_rule('a', 'a@b.example', 'deny')$$, 'domain "a@b.example" is not a domain'),
    ($$SELECT admin.put_address_rule('a', 'b.example', 'drop')$$, 'action "drop" is unknown'),
    ($$SELECT admin.put_address_rule('a', 'b.example', 'deny', 'nope')$$, 'app "nope" is not an App of this realm'),
    ($$SELECT admin.delete_address_rule('a', 'b.example')$$, 'domain "b.example" has no rule here'),
    ($$SELECT admin.set_pre_send_hook('a', 'http://a.example/')$$,
     'url "http://a.example/" is not a URL that may be called'),
    ($$SELECT admin.set_pre_send_hook('a', 'https://a.example/', 'ignore')$$, 'on_failure "ignore" is unknown'),
    ($$SELECT admin.delete_pre_send_hook('a')$$, 'this realm has no pre-send hook')) AS v (statement, message);
SELECT lives_ok($$SELECT admin.delete_address_rule('a', 'example.com', 'shop')$$, 'a rule can be deleted');
SELECT lives_ok($$SELECT admin.put_address_rule('a', 'example.com', 'allow', 'shop'), admin.delete_app('a', 'shop')$$,
    'an App takes its rules with it');
SELECT results_eq('SELECT domain FROM admin.address_rules', ARRAY['*.example.com'], 'and no others');
SELECT lives_ok($$SELECT admin.set_pre_send_hook('a', 'https://a.example/', 'allow'),
                         admin.set_pre_send_hook('a', 'https://b.example/')$$, 'a hook');
SELECT results_eq('SELECT url, on_failure FROM admin.pre_send_hooks', $$VALUES ('https://b.example/', 'allow')$$,
    'NULL leaves what it does on a failure');
SELECT ok('channel_put' = ANY (array_agg(event)) AND 'address_rule_put' = ANY (array_agg(event))
          AND 'pre_send_hook_set' = ANY (array_agg(event)), 'all of it is audited') FROM admin.audit_log;

-- The queue.
CREATE FUNCTION pg_temp.state(name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT concat_ws(' ', state, last_error, num_nonnulls(payload, detail)) FROM postern.message_outbox
     WHERE id = pg_temp.uu(name) $$;
CREATE FUNCTION pg_temp.lapse(name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.message_outbox SET not_before = now() - interval '1 second' WHERE id = pg_temp.uu(name)
    RETURNING 'due again' $$;
SET LOCAL ROLE app_login;
CREATE FUNCTION pg_temp.queue(name text, channel text DEFAULT 'sms', recipient text DEFAULT '+4915112345678',
                              purpose text DEFAULT 'sign-in', template text DEFAULT 'otp')
RETURNS void LANGUAGE sql AS $$
    SELECT set_config('postern.realm', pg_temp.realm()::text, true);
    SELECT postern.queue_message(pg_temp.realm(), pg_temp.uu(name), channel, recipient, template, purpose,
        CASE WHEN template IN ('otp', 'magic-link') THEN '\x01'::bytea END, p_client => pg_temp.client(),
        p_locale => 'de', p_detail => CASE WHEN template NOT IN ('otp', 'magic-link') THEN '{}'::jsonb END) $$;
-- What is taken: name by which it was queued is md5, so its recipient.
CREATE FUNCTION pg_temp.take(channels text[], limits integer[], share integer DEFAULT 4) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(channel || ' ' || recipient, ',') FROM postern.take_messages(
        channels, limits, array_fill(pg_temp.other(), ARRAY[cardinality(channels)]), '1 minute', share,
        '{}', '{}', '{}') $$;
SELECT pg_temp.queue('one'), pg_temp.queue('two', 'voice', '+4915112345679'),
       pg_temp.queue('three', 'email', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.take('{sms,voice,email}', '{0,4,4}'), 'voice +4915112345679,email ada@example.com',
    'a call takes of several channels, and of none that it does not want');
SELECT results_eq($$SELECT recipient, kind, purpose, locale, realm, realm_name, client_id, page_host, attempts,
                           jsonb_array_length(providers), hook ->> 'url'
                      FROM postern.take_messages('{sms}', '{1}', ARRAY[pg_temp.other()], '1 minute', 4, '{}', '{}',
                                                 '{}')$$,
    $$VALUES ('+4915112345678', 'otp', 'sign-in', 'de', 'a', 'a', 'app', 'a.example', 1, 1, 'https://b.example/')$$,
    'with all that is needed to send them');
SELECT pg_temp.queue('four', 'sms', '+4915112345670', 'register'), pg_temp.queue('five', 'sms', '+4915112345671')
    \g /dev/null
SELECT is(pg_temp.take('{sms}', '{9}'), 'sms +4915112345671,sms +4915112345670',
    'sign-ins go before registrations');
SELECT is((SELECT string_agg(recipient, ',') FROM postern.take_messages(
              '{sms}', '{9}', ARRAY[pg_temp.other()], '1 minute', 1, '{sms}', ARRAY[pg_temp.realm()], '{0}')), NULL,
    'what is in hand counts towards a realm''s share');

-- Outcomes.
SELECT is(postern.message_failed(pg_temp.realm(), pg_temp.uu('one'), '5xx', '1 second', false, 'twilio', false, true,
                                 true), false, 'a failure');
SELECT pg_temp.lapse('one') \g /dev/null
SELECT results_eq($$SELECT provider, provider_failures::int, refused_by, hook, last_error FROM postern.take_messages(
                        '{sms}', '{1}', ARRAY[pg_temp.other()], '1 minute', 4, '{}', '{}', '{}')$$,
    $$VALUES ('twilio', 1, '{}'::text[], NULL::jsonb, '5xx')$$,
    'is remembered with the provider; a hook that allowed is not asked again');
SELECT is(postern.message_failed(pg_temp.realm(), pg_temp.uu('one'), '4xx', '0', false, 'own', true, true, false),
    false, 'another provider refuses');
SELECT pg_temp.lapse('one') \g /dev/null
SELECT results_eq($$SELECT provider, provider_failures::int, refused_by FROM postern.take_messages(
                        '{sms}', '{1}', ARRAY[pg_temp.other()], '1 minute', 4, '{}', '{}', '{}')$$,
    $$VALUES ('own', 1, '{own}'::text[])$$, 'which is remembered too');
SELECT is(postern.message_failed(pg_temp.realm(), pg_temp.uu('one'), '5xx', '1 hour', false, 'twilio', false, true,
                                 false), true, 'a try after the end of the code would be none');
SELECT is(pg_temp.state('one'), 'dead expired 0', 'it is dead, expired, and its content is gone');
SELECT is(postern.message_failed(pg_temp.realm(), pg_temp.uu('one'), '5xx', '0', false, 'twilio', false, true, false),
    NULL, 'what is dead does not fail again');
SELECT is(postern.message_sent(pg_temp.realm(), pg_temp.uu('two'), 'twilio', repeat('S', 300)), true, 'sent');
SELECT is(postern.message_sent(pg_temp.realm(), pg_temp.uu('two'), 'twilio', 'SM1'), false, 'once');
SELECT is(pg_temp.state('two'), 'sent 0', 'the content is gone');
SELECT is(postern.message_failed(pg_temp.realm(), pg_temp.uu('four'), 'denied', '0', true, NULL, false, false, false),
    true, 'a hook denies');
SELECT is(pg_temp.sql($$SELECT detail ->> 'channel' FROM postern.audit_event WHERE event = 'message_denied'$$), 'sms',
    'which is audited');
SELECT is(pg_temp.state('four'), 'dead denied 0', 'and final');

-- A sender that dies without a report may have sent the message.
SELECT pg_temp.queue('lost', 'sms', '+4915112345600') \g /dev/null
SELECT is(pg_temp.take('{sms}', '{9}'), 'sms +4915112345600', 'taken');
SELECT pg_temp.lapse('lost') \g /dev/null
SELECT is(pg_temp.take('{sms}', '{9}'), 'sms +4915112345600', 'taken again when the lease ends without a report');
SELECT is(pg_temp.state('lost'), 'queued in-doubt 1', 'as one in doubt');
SELECT pg_temp.lapse('lost') \g /dev/null
SELECT is(pg_temp.take('{sms}', '{9}'), NULL, 'and not a third time');
SELECT is(pg_temp.state('lost'), 'dead in-doubt 0', 'it is dead');
SELECT pg_temp.queue('mail', 'email', 'bob@example.com') \g /dev/null
SELECT is(pg_temp.take('{email}', '{9}'), 'email bob@example.com', 'a mail is taken');
SELECT pg_temp.lapse('mail') \g /dev/null
SELECT is(pg_temp.take('{email}', '{9}'), 'email bob@example.com', 'again when its lease ends');
SELECT pg_temp.lapse('mail') \g /dev/null
SELECT is(pg_temp.take('{email}', '{9}'), 'email bob@example.com', 'and again: a copy of a mail costs nothing');

-- Codes and links end with the realm's lifetimes, a notice after a day.
RESET ROLE;
SELECT results_eq($$SELECT expires_at - created_at FROM postern.message_outbox WHERE id = pg_temp.uu('five')$$,
    ARRAY[interval '10 minutes'], 'a code by SMS lives as long as the code');
SELECT is((SELECT channel || ' ' || kind || ' ' || purpose || ' ' || client_id FROM admin.messages
            WHERE id = pg_temp.uu('five')), 'sms otp sign-in app', 'administrators see what was sent');
SELECT is((SELECT count(*) FROM admin.outbox WHERE id = pg_temp.uu('five')), 0::bigint, 'the mail outbox holds mail');
SELECT set_config('postern.realm', pg_temp.realm()::text, true),
       postern.queue_message(pg_temp.realm(), pg_temp.uu('push'), 'push', 'handle-of-a-device', 'approval', 'approval',
                             NULL, p_detail => '{"sub": "x"}', p_expires_at => now() + interval '2 minutes')
    \g /dev/null
SELECT results_eq($$SELECT recipient, kind, expires_at - created_at FROM admin.messages WHERE channel = 'push'$$,
    $$VALUES (NULL::text, 'approval', interval '2 minutes')$$, 'the handle of a device is not shown');

-- The language of a request is that of its message.
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('h', 'ada@example.com', '123456', locale => 'tr'), 'sent', 'a code is asked for');
RESET ROLE;
SELECT results_eq($$SELECT a.locale::text, m.locale::text, m.purpose::text FROM postern.sign_in_request AS a
                      JOIN postern.message_outbox AS m ON m.recipient = 'Ada@example.com'
                     WHERE a.id = pg_temp.b16('h')$$,
    $$VALUES ('tr', 'tr', 'sign-in')$$, 'and its mail is in that language');
SELECT is((SELECT string_agg(realm || ' ' || channel || ' ' || jsonb_array_length(providers), ',')
             FROM postern.all_providers()), 'a sms 1,a whatsapp 1', 'what the doctor examines');
SET LOCAL ROLE admin_login;
SELECT isnt_empty(format('SELECT * FROM admin.%I', v.name), 'an administrator can read ' || v.name)
  FROM (VALUES ('messages'), ('channels'), ('address_rules'), ('pre_send_hooks')) AS v (name);
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
