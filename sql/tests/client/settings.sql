\ir ../helpers/fixture.psql
-- A setting of a client is a row of client_setting: put_client, views and servers follow from it.
SELECT no_plan();
CREATE FUNCTION pg_temp.served(client text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT c -> 'settings' FROM jsonb_array_elements(postern.realm_config(pg_temp.realm()) -> 'clients') AS c
     WHERE c ->> 'client_id' = client $$;
CREATE FUNCTION pg_temp.set(settings text, client text DEFAULT 'app') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT admin.put_client(%L, %L, settings => %L)', 'a', client, settings)) $$;
CREATE FUNCTION pg_temp.audited() RETURNS jsonb LANGUAGE sql AS $$
    SELECT detail FROM postern.audit_event WHERE event = 'client_updated' ORDER BY id DESC LIMIT 1 $$;

-- Settings of the product.
SELECT results_eq($$SELECT setting FROM admin.known_client_settings ORDER BY setting COLLATE "C"$$,
    ARRAY['access_token_lifetime', 'access_token_type', 'consent', 'home_uri', 'refresh_token_lifetime', 'require_dpop',
          'require_par', 'require_pkce', 'rp_id', 'signing_alg'], 'administrators see which there are');
SELECT is(pg_temp.served('app'), '{"access_token_type": "reference", "consent": "implicit", "require_dpop": false,
    "require_par": false, "require_pkce": true, "signing_alg": "realm"}', 'a client has the defaults');
SELECT is((SELECT settings FROM postern.client WHERE client_id = 'app' AND realm_id = pg_temp.realm()), '{}',
          'which are not copied into it');
SELECT is(pg_temp.set('{"access_token_type": "jwt", "access_token_lifetime": "5 minutes", "require_par": true}'),
          'accepted', 'several are set by one object');
SELECT is(pg_temp.served('app') - '{consent,require_dpop,require_pkce,signing_alg}'::text[],
          '{"access_token_type": "jwt", "access_token_lifetime": 300, "require_par": true}',
          'servers read them, spans in seconds');
SELECT is(pg_temp.audited(), '{"client_id": "app", "access_token_type": "jwt", "access_token_lifetime": 300,
    "require_par": true}', 'the audit log has what was given');
SELECT results_eq($$SELECT access_token_type, access_token_lifetime, refresh_token_lifetime, require_par, signing_alg,
                           settings ->> 'require_pkce'
                      FROM admin.clients WHERE realm = 'a' AND client_id = 'app'$$,
    $$VALUES ('jwt', interval '5 minutes', interval '14 days', true, NULL::text, 'true')$$, 'and so has the view');
SELECT lives_ok($$SELECT admin.put_client('a', 'app', access_token_lifetime => '6 minutes', require_dpop => true)$$,
                'arguments set the same');
SELECT is(pg_temp.served('app') - '{consent,require_pkce,signing_alg}'::text[],
          '{"access_token_type": "jwt", "access_token_lifetime": 360, "require_par": true, "require_dpop": true}',
          'and leave the others');
SELECT lives_ok($$SELECT admin.put_client('a', 'app', access_token_lifetime => '7 minutes',
                                          settings => '{"access_token_lifetime": 480}')$$, 'a number is of seconds');
SELECT is(pg_temp.served('app') ->> 'access_token_lifetime', '480', 'the object goes before arguments');
SELECT is(pg_temp.set('{"access_token_lifetime": null, "access_token_type": null, "require_par": null,
                        "require_dpop": null}'), 'accepted', 'null gives the default back');
SELECT is((SELECT settings FROM postern.client WHERE client_id = 'app' AND realm_id = pg_temp.realm()), '{}',
          'and leaves nothing');
SELECT is(pg_temp.audited() -> 'to_default',
          '["require_par", "require_dpop", "access_token_type", "access_token_lifetime"]', 'which is audited too');

-- What is refused, and in which words.
SELECT is(pg_temp.set(v.settings), '22023 ' || v.refusal, v.settings) FROM (VALUES
    ('[]', 'settings is not a JSON object | Allowed is an object such as {"access_token_type": "jwt"}.'),
    ('"x"', 'settings is not a JSON object | Allowed is an object such as {"access_token_type": "jwt"}.'),
    ('{"colour": "red"}', 'setting "colour" is unknown | Allowed: access_token_lifetime, access_token_type, consent, '
     'home_uri, refresh_token_lifetime, require_dpop, require_par, require_pkce, rp_id, signing_alg.'),
    ('{"consent": "Explicit"}', 'consent "Explicit" is unknown | Allowed (spelled exactly so): implicit, explicit, '
     'systematic.'),
    ('{"consent": ["explicit"]}', 'consent "["explicit"]" is of another type | Allowed is a text.'),
    ('{"consent": 1}', 'consent "1" is of another type | Allowed is a text.'),
    ('{"require_par": "yes"}', 'require_par "yes" is of another type | Allowed: true, false.'),
    ('{"access_token_lifetime": "soon"}', 'access_token_lifetime "soon" is not an interval | Allowed is one from '
     '1 minute to 60 minutes.'),
    ('{"access_token_lifetime": "2 hours"}', 'access_token_lifetime "02:00:00" is out of range | Allowed is an '
     'interval of whole seconds from 1 minute to 60 minutes.'),
    ('{"access_token_lifetime": 1e30}', 'access_token_lifetime "1000000000000000000000000000000" is not an interval | '
     'Allowed is one from 1 minute to 60 minutes.'),
    ('{"access_token_lifetime": true}', 'access_token_lifetime "true" is of another type | Allowed is a text.'),
    ('{"rp_id": "co.uk"}', 'rp_id "co.uk" is not a bare DNS host | Allowed is a lower-case host of your own such as '
     'example.com or login.example.com, or localhost: no scheme, port, path, wildcard or IP address, and no public '
     'suffix such as com or co.uk.'),
    ('{"home_uri": "http://acme.example/"}', 'home_uri "http://acme.example/" is not a web address | Allowed is '
     'https://…, or http:// to localhost or a host below it, of 2,000 bytes at most.'),
    ('{"require_pkce": false}', 'require_pkce false is not possible: client_id "app" is public | A client without a '
     'secret needs PKCE (RFC 7636). Leave require_pkce true, or make it confidential.')
    ) AS v (settings, refusal);
SELECT is((SELECT settings FROM postern.client WHERE client_id = 'app' AND realm_id = pg_temp.realm()), '{}',
          'nothing of it was stored');
SELECT is(pg_temp.refusal(format($$SELECT admin.put_client('a', 'app', home_uri => %L)$$,
                                 'https://a.example/' || repeat('a', 1983))) ~ '^22023 home_uri', true,
          'a long address is refused');

-- Another setting is a row.
SELECT lives_ok($$SET LOCAL ROLE postern_owner;
    INSERT INTO postern.client_setting (setting, type, default_value, longest, purpose)
    VALUES ('motto', 'text', '"Ad astra"', 10, 'Sample')$$, 'a capability announces a setting');
RESET ROLE;
SELECT is(pg_temp.served('app') ->> 'motto', 'Ad astra', 'every client has its default');
SELECT is(pg_temp.set('{"motto": "Per aspera"}'), 'accepted', 'administrators set it');
SELECT is(pg_temp.served('app') ->> 'motto', 'Per aspera', 'servers read it');
SELECT is(pg_temp.audited(), '{"client_id": "app", "motto": "Per aspera"}', 'the audit log has it');
SELECT is((SELECT settings ->> 'motto' FROM admin.clients WHERE realm = 'a' AND client_id = 'app'), 'Per aspera',
          'the view has it');
SELECT matches(pg_temp.set('{"motto": "Per aspera ad astra"}'), '^22023 motto .* is not a line of text \| .* 10 ',
               'and its bound holds');
SELECT is(postern.client_setting_of('{"motto": "x"}', 'motto') || postern.client_setting_of('{}', 'motto'), 'xAd astra',
          'rules in SQL read it by name');
SELECT is(postern.client_setting_of('{"other": "x"}', 'other'), NULL, 'and nothing that is not announced');
SELECT throws_ok($$INSERT INTO postern.client_setting (setting, type, purpose) VALUES ('x', 'interval', '')$$, '23514',
                 NULL, 'a span needs its bounds');
SELECT * FROM finish();
ROLLBACK;
