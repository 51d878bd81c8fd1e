\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.ed(kid text) RETURNS jsonb
    LANGUAGE sql AS $$ SELECT jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519',
                                                 'x', '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', 'kid', kid) $$;
CREATE FUNCTION pg_temp.put(VARIADIC keys jsonb[]) RETURNS int
    LANGUAGE sql AS $$ SELECT admin.put_client_jwks('a', 'robot', jsonb_build_object('keys', to_jsonb(keys))) $$;
SELECT admin.put_client('a', 'robot', 'confidential') \g /dev/null
SELECT is(pg_temp.put(pg_temp.ed('1') || '{"note":"mine","use":"sig"}', pg_temp.ed('2')), 2, 'two keys');
SELECT is(postern.realm_config(pg_temp.realm()) -> 'clients' -> 1 -> 'jwks',
          jsonb_build_object('keys', jsonb_build_array(pg_temp.ed('1'), pg_temp.ed('2'))),
              'reach the servers, without members nobody needs');
SELECT is(detail, '{"kids": ["1", "2"]}', 'are audited by name') FROM postern.audit_event
 WHERE event = 'client_jwks_put';
SELECT is(pg_temp.refusal($$SELECT admin.put_client_jwks('a', 'app', '{"keys":[]}')$$),
    '22023 client_id "app" is a public client and has no keys | Make it confidential first: admin.put_client(realm, '
    'client_id, client_type => ''confidential'').', 'a public client has none');
SELECT matches(pg_temp.refusal($$SELECT pg_temp.put(pg_temp.ed('1') || '{"d":"x"}')$$),
               '^22023 jwks: key 1 has a private member', 'no private keys');
SELECT matches(pg_temp.refusal($$SELECT pg_temp.put(pg_temp.ed('1'), '{"kty":"XX","d":"x"}')$$),
               '^22023 jwks: key 2 has a private member', 'not beside a good one, and of whatever kind');
SELECT is(pg_temp.put('{"kty":"RSA","use":"enc"}', pg_temp.ed('1'), '{"kty":"EC","crv":"P-384"}', '7'), 1,
          'a set is kept without the keys that are not understood');
SELECT is(jwks, jsonb_build_object('keys', jsonb_build_array(pg_temp.ed('1'))), 'the other one stays')
  FROM admin.clients WHERE client_id = 'robot';
SELECT matches(pg_temp.refusal($$SELECT pg_temp.put('{"kty":"EC","crv":"P-384"}', '{"kty":"XX"}')$$),
               '^22023 jwks: key 1 is on another curve than P-256 \| Allowed are', 'a set of these alone is refused');
SELECT matches(pg_temp.refusal($$SELECT pg_temp.put(pg_temp.ed('1'), pg_temp.ed('1'))$$),
               '^22023 jwks has several keys, and not each a kid of its own', 'no name twice');
SELECT is(postern.jwk_refusal(v.k::jsonb), v.reason, 'a JWK that ' || coalesce(v.reason, 'is one')) FROM (VALUES
    ('7', 'is no object'), ('{"kty":7}', 'has a member that is no string'),
        ('{"kty":"XX"}', 'has another kty than EC, OKP or RSA'), ('{}', 'has another kty than EC, OKP or RSA'),
    ('{"kty":"EC","crv":"P-384"}', 'is on another curve than P-256'),
        ('{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}', 'has no x and y of 32 bytes in base64url'),
    ('{"kty":"RSA","n":"AQAB","e":"AQAB"}', 'has no modulus of 2048 to 4096 bits'),
        ('{"kty":"RSA","alg":"RS512"}', 'has another alg than RS256 or PS256'),
    (format('{"kty":"RSA","n":"%s","e":"AQAB"}', repeat('A', 342)), 'has no modulus of 2048 to 4096 bits'),
        (format('{"kty":"RSA","n":"%s","e":"AQAB"}', repeat('z', 342)), NULL),
    (format('{"kty":"RSA","n":"%s"}', repeat('z', 683)), 'has no exponent'),
        (format('{"kty":"RSA","n":"%s","e":"AQAB"}', repeat('z', 684)), 'has no modulus of 2048 to 4096 bits')) AS v (k,
            reason);
SELECT is(admin.put_client_jwks('a', 'robot', '{"keys":[]}'), 0, 'no keys');
SELECT is(jwks, NULL, 'take them away') FROM admin.clients WHERE client_id = 'robot';
SELECT pg_temp.put(pg_temp.ed('1')), admin.put_client('a', 'robot', 'public') \g /dev/null
SELECT is(jwks, NULL, 'and so does becoming public') FROM admin.clients WHERE client_id = 'robot';
SET LOCAL ROLE app_login;
SELECT ok(postern.spend_assertion(pg_temp.realm(), pg_temp.h('a'), extract(epoch FROM now() + interval '1 minute')),
          'an assertion is used');
SELECT ok(NOT postern.spend_assertion(pg_temp.realm(), pg_temp.h('a'),
                                      extract(epoch FROM now() + interval '2 minutes')), 'once');
SELECT ok(postern.spend_assertion(pg_temp.other(), pg_temp.h('a'), extract(epoch FROM now() + interval '1 minute')),
          'in each realm');
SELECT postern.give_back_assertion(pg_temp.realm(), pg_temp.h('a')) \g /dev/null
SELECT ok(NOT postern.spend_assertion(pg_temp.other(), pg_temp.h('a'), extract(epoch FROM now() + interval '1 minute'))
          AND postern.spend_assertion(pg_temp.realm(), pg_temp.h('a'), extract(epoch FROM now() + interval '1 minute')),
          'one that is given back can be used, in its realm');
SELECT is(pg_temp.sql($$UPDATE postern.spent_assertion SET expires_at = now() - interval '1 s'
                      WHERE realm_id = pg_temp.realm() RETURNING 1$$), '1', 'after its time');
SELECT ok(postern.sweep(100000) + postern.sweep(100000) >= 1, 'it is forgotten');
SELECT is(pg_temp.sql('SELECT count(*) FROM postern.spent_assertion'), '1', 'and no other');
SELECT * FROM finish();
ROLLBACK;
