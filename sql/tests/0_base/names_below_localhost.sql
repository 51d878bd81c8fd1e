\ir ../helpers/fixture.psql
SELECT no_plan();
-- Names below localhost are this machine (RFC 6761 section 6.3): http is taken there wherever a browser is sent to it.
CREATE FUNCTION pg_temp.taken(call text, value text) RETURNS boolean LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT ' || call, value)) = 'accepted' $$;
CREATE TEMPORARY TABLE place (what text, call text, value text);
INSERT INTO place VALUES
    ('the origin of a realm', $$admin.put_realm('acme', public_origin => %L)$$, 'http://%s'),
    ('a web origin', $$admin.put_web_origin('a', 'app', %L)$$, 'http://%s'),
    ('a redirect URI', $$admin.put_redirect_uri('a', 'app', %L)$$, 'http://%s'),
    ('a redirect URI with a path', $$admin.put_redirect_uri('a', 'app', %L)$$, 'http://%s/cb'),
    ('a post-logout URI', $$admin.put_logout_uri('a', 'app', %L, 'post-logout')$$, 'http://%s/bye'),
    ('a home URI', $$admin.put_client('a', 'app', home_uri => %L)$$, 'http://%s'),
    ('a home URI with a path', $$admin.put_client('a', 'app', home_uri => %L)$$, 'http://%s/welcome?from=here');
SELECT is(pg_temp.taken(p.call, format(p.value, h.host)), h.is_taken, p.what || ' at ' || h.host)
  FROM place AS p, (VALUES
    ('localhost', true), ('localhost:8080', true), ('app.localhost', true), ('app.localhost:8080', true),
    ('a.b-c.localhost:65535', true), ('app.localhost.example', false), ('app.localhost.example:8080', false),
    ('xlocalhost', false), ('x-localhost:80', false), ('app.localhost.', false), ('.localhost', false),
    ('a..localhost', false), ('-a.localhost', false), ('a_b.localhost', false), ('app.localhost:0', false),
    ('app.localhost:65536', false), ('app.localhost:x', false), ('app.localhost:1@evil.example', false),
    ('x@app.localhost', false), ('APP.localhost', false), ('localhost.app.example', false))
    AS h (host, is_taken)
 WHERE (p.what, h.host) NOT IN (('a home URI', 'app.localhost:0'), ('a home URI', 'app.localhost:65536'),
                                ('a home URI with a path', 'app.localhost:0'),
                                ('a home URI with a path', 'app.localhost:65536'));
SELECT matches(pg_temp.refusal(format('SELECT ' || p.call, format(p.value, 'app.localhost.example'))),
               '^22023 .*app\.localhost\.example.* \| .*below (it|localhost)', p.what || ': the hint names what is allowed')
  FROM place AS p;

-- RP-IDs have no scheme.
SELECT is(pg_temp.taken($$admin.put_client('a', 'app', rp_id => %L)$$, id), is_taken, 'the RP-ID ' || id)
  FROM (VALUES ('localhost', true), ('app.localhost', true), ('http://app.localhost:8080', false),
               ('app.localhost:8080', false), ('app.localhost.', false), ('xlocalhost', false)) AS v (id, is_taken);

-- What the server itself calls is this machine's three hosts, as ever.
SELECT is(pg_temp.taken($$admin.put_webhook('a', 'audit', %L)$$, 'http://' || host || '/x'), is_taken, 'a webhook at ' || host)
  FROM (VALUES ('localhost:1', true), ('app.localhost:1', false), ('app.localhost', false)) AS h (host, is_taken);
SELECT matches(pg_temp.refusal($$SELECT admin.put_logout_uri('a', 'app', 'http://app.localhost:1/x', 'backchannel')$$),
               'is http to another host than this machine \| Allowed is https:.*, or http to 127', 'a back-channel URI');
SELECT is(pg_temp.taken($$admin.put_logout_uri('a', 'app', %L, 'backchannel')$$, 'http://localhost:1/x'), true,
          'at localhost is taken');
SELECT ok(pg_temp.taken($$admin.put_client('a', 'app', home_uri => %L)$$, 'http://' || host || ':80/x'),
          'a home URI at ' || host || ' is taken as ever') FROM unnest('{127.0.0.1,[::1],localhost}'::text[]) AS host;
SELECT matches(obj_description('admin.put_web_origin(text,text,text)'::regprocedure), '(?s)CORS.*passkeys',
               'what a web origin may do is said of it');
SELECT * FROM finish();
ROLLBACK;
