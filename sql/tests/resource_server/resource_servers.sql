\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.put_client('a', 'api', 'confidential'), admin.put_scope('a', 'orders', NULL, '{https://api.example}'),
       admin.put_scope('a', 'mail', NULL, '{urn:mail}') \g /dev/null
CREATE FUNCTION pg_temp.put(VARIADIC resources text[]) RETURNS void
    LANGUAGE sql AS $$ SELECT admin.put_resource_server('a', 'api', resources) $$;
CREATE FUNCTION pg_temp.served() RETURNS jsonb LANGUAGE sql AS $$
    SELECT c -> 'resources' FROM jsonb_array_elements(postern.realm_config(pg_temp.realm()) -> 'clients') AS c
     WHERE c ->> 'client_id' = 'api' $$;
SELECT is(pg_temp.refusal($$SELECT pg_temp.put('https://api.example')$$),
          '22023 client_id "api" does not hold "ept:introspection" | Grant it first: admin.grant_permission(realm, '
          'client_id, ''ept:introspection'').', 'only who may introspect is a resource server');
SELECT admin.grant_permission('a', 'api', 'ept:introspection') \g /dev/null
SELECT is(pg_temp.served(), '[]', 'which sees every token at first');
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.put(%L)', v.resource)),
               '^22023 resources .* is not a resource \| Allowed are absolute URIs without fragment',
               concat('not a resource: ', v.resource))
  FROM (VALUES ('api.example'), ('/orders'), ('https://api.example#orders'), ('https:'), ('https://api example'), (''),
               (NULL), ('https://api.example/' || repeat('a', 500))) AS v (resource);
SELECT matches(pg_temp.refusal($$SELECT admin.put_resource_server('a', 'api', NULL)$$),
               '^22023 resources is no list of at most 100 resources \|', 'a list is needed');
SELECT matches(pg_temp.refusal($$SELECT admin.put_resource_server('a', 'api',
                                     ARRAY(SELECT 'urn:' || n FROM generate_series(1, 101) AS n))$$),
               '^22023 resources is no list of at most 100 resources \|', 'which is bounded');
SELECT matches(pg_temp.refusal($$SELECT admin.put_resource_server('a', 'nobody', '{}')$$), '^22023 client_id', 'and a client');
SELECT is(pg_temp.served(), '[]', 'nothing was changed');
SELECT pg_temp.put('urn:mail', 'https://api.example', 'urn:mail') \g /dev/null
SELECT is(pg_temp.served(), '["https://api.example", "urn:mail"]', 'its resources reach the servers');
SELECT admin.put_resource_server('a', 'api'), admin.put_resource_server('a', 'api', NULL) \g /dev/null
SELECT is(pg_temp.served(), '["https://api.example", "urn:mail"]', 'NULL leaves them as they are');
SELECT is(resources, '{https://api.example,urn:mail}', 'and the view') FROM admin.resource_servers
 WHERE realm = 'a' AND client_id = 'api';
SELECT results_eq($$SELECT detail -> 'resources' FROM postern.audit_event WHERE event = 'resource_server_put' ORDER BY id LIMIT 1$$,
                  $$VALUES ('["urn:mail", "https://api.example", "urn:mail"]'::jsonb)$$, 'it is audited');
SELECT is((SELECT string_agg(c.client_id, ',') FROM postern.client AS c WHERE c.resources <> '{}'), 'api', 'no other client has them');
SELECT is((SELECT string_agg(client_id, ',') FROM admin.resource_servers), 'api', 'and the view lists who may introspect');
SELECT is(postern.resource_key(v.resource), v.key, 'the key of ' || v.resource) FROM (VALUES
    ('https://api.example', 'https://api.example/'), ('https://api.example/', 'https://api.example/'),
    ('https://api.example?x=/', 'https://api.example/?x=/'), ('https://api.example/v1', 'https://api.example/v1'),
    ('urn:mail', 'urn:mail')) AS v (resource, key);
SELECT admin.put_resource_server('a', 'api', '{}') \g /dev/null
SELECT is(pg_temp.served(), '[]', 'no resources: every token again');
SELECT admin.put_client('a', 'mails', 'confidential'), admin.grant_permission('a', 'mails', 'ept:introspection'),
       pg_temp.put('https://api.example'), admin.put_resource_server('a', 'mails', '{urn:mail}') \g /dev/null
-- Each twice, because a row that was written stands last.
SELECT admin.put_resource_server('a', v.client) FROM (VALUES ('api'), ('api'), ('mails'), ('mails')) AS v (client) \g /dev/null
SELECT is((SELECT jsonb_object_agg(client_id, resources) FROM admin.resource_servers WHERE realm = 'a'),
          '{"api": ["https://api.example"], "mails": ["urn:mail"]}', 'of two, each keeps its own');
SELECT * FROM finish();
ROLLBACK;
