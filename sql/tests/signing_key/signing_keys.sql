\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.first(kid text, alg text DEFAULT 'ES256', for_realm boolean DEFAULT true) RETURNS text
    LANGUAGE sql AS $$
    SELECT postern.add_signing_key(pg_temp.realm(), kid, alg, '{"kty":"EC"}', '\x01', for_realm) ->> 'kid' $$;
CREATE FUNCTION pg_temp.next(kid text, alg text DEFAULT 'ES256', at_once boolean DEFAULT false,
                             for_realm boolean DEFAULT true, request boolean DEFAULT false) RETURNS text
                                 LANGUAGE sql AS $$
    SELECT postern.rotate_signing_key(pg_temp.realm(), kid, alg, '{"kty":"EC"}', '\x02', at_once, for_realm, request,
                                      'test') ->> 'kid' $$;
CREATE FUNCTION pg_temp.keys() RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql($q$SELECT string_agg(kid || ' ' || state
                                            || coalesce(' ' || extract(epoch FROM retires_at - now())::int / 60, ''),
                                                ', ' ORDER BY kid) FROM admin.signing_keys WHERE realm = 'a'$q$) $$;
CREATE FUNCTION pg_temp.later(minutes int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_temp.sql(format('UPDATE postern.signing_key SET activates_at = activates_at - interval ''%s min'','
                               ' retires_at = retires_at - interval ''%1$s min'' RETURNING 1', minutes)); END $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.first('k1'), 'k1', 'the first signing key');
SELECT is(pg_temp.first('k2'), 'k1', 'is the only one');
SELECT is(pg_temp.first('k3', 'RS256'), 'k1', 'of a realm, whatever the algorithm');
SELECT is(pg_temp.keys(), 'k1 active', 'and active at once');
SELECT is(pg_temp.next('n1'), 'n1', 'the next one');
SELECT is(pg_temp.keys(), 'k1 active 75, n1 published',
          'is published; the old one lasts for the overlap and its last token');
SELECT is(pg_temp.next('n2'), 'n1', 'there is one next key');
SELECT is(pg_temp.keys(), 'k1 active 75, n1 published', 'however often it is asked for');
SELECT pg_temp.later(10) \g /dev/null
SELECT is(pg_temp.keys(), 'k1 retiring 65, n1 active', 'after the overlap it signs');
SELECT pg_temp.later(65) \g /dev/null
SELECT is(pg_temp.keys(), 'k1 retired 0, n1 active', 'and the old one is withdrawn');
SELECT is(jsonb_array_length(postern.realm_config(pg_temp.realm()) -> 'signing_keys'), 1, 'servers no longer read it');
SELECT is(pg_temp.next('r1', 'RS256'), 'r1', 'another algorithm');
SELECT is(pg_temp.next('r2', 'RS256', true), 'r1', 'at once: the waiting key');
SELECT is(pg_temp.keys(), 'k1 retired 0, n1 retiring 65, r1 active', 'signs now');
SELECT is(pg_temp.next('r3', 'RS256', request => true), NULL, 'nothing was asked for');
RESET ROLE;
SELECT admin.rotate_signing_key('a') \g /dev/null
SELECT results_eq($$SELECT alg, for_realm FROM postern.signing_key_request$$, $$VALUES ('RS256', true)$$,
                  'the present algorithm is the default');
SET LOCAL ROLE app_login;
SELECT is((SELECT count(*)::int FROM postern.signing_key_requests() WHERE realm_id = pg_temp.realm()), 1,
          'servers see the request');
SELECT is(pg_temp.next('r4', 'RS256', request => true), 'r4', 'one does it');
SELECT is(pg_temp.next('r5', 'RS256', request => true), NULL, 'and no other');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'signing_key_published'$$), '3',
          'each new key is audited');
RESET ROLE;

-- A client's own algorithm.
SELECT admin.put_client('a', 'app', signing_alg => 'EdDSA') \g /dev/null
SELECT results_eq($$SELECT alg, for_realm FROM postern.signing_key_request$$, $$VALUES ('EdDSA', false)$$,
                  'is asked for beside the realm''s');
SET LOCAL ROLE app_login;
SELECT is(pg_temp.next('e1', 'EdDSA', request => true), 'e1', 'is published');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.signing_key WHERE for_realm AND kid = 'e1'$$), '0',
          'for the client only');
SELECT is(pg_temp.sql($$SELECT retires_at IS NULL FROM postern.signing_key WHERE kid = 'r4'$$), 'true',
          'and replaces nothing of the realm''s');
SELECT pg_temp.later(10) \g /dev/null
SELECT is(pg_temp.next('n9', 'ES256', true), 'n9', 'the realm goes back to another algorithm');
SELECT is(pg_temp.sql($$SELECT string_agg(kid, ',' ORDER BY kid) FROM postern.signing_key WHERE retires_at IS NULL$$),
          'e1,n9', 'the client''s key stays');
SELECT is(postern.signing_alg(pg_temp.realm()), 'ES256', 'the realm''s is the latest made for it');
RESET ROLE;
SELECT matches(pg_temp.refusal($$SELECT admin.retire_signing_key('a', 'n9')$$), 'still signs',
               'a key that signs is not withdrawn');
SELECT matches(pg_temp.refusal($$SELECT admin.retire_signing_key('a', 'e1')$$), 'still signs', 'nor a client''s');
SELECT lives_ok($$SELECT admin.retire_signing_key('a', 'r4')$$, 'a replaced one is');
SELECT is(state, 'retired', 'at once') FROM admin.signing_keys WHERE kid = 'r4';
UPDATE postern.signing_key SET retires_at = now() - interval '25 hours' WHERE kid IN ('k1', 'r4');
SELECT postern.sweep(100000), postern.sweep(100000) \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.signing_key WHERE kid IN ('k1', 'r4')), 0,
          'a day later the key itself is gone');
SELECT * FROM finish();
ROLLBACK;
