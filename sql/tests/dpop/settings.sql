\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.dpop(realm uuid DEFAULT pg_temp.realm()) RETURNS jsonb LANGUAGE sql AS $$
    SELECT postern.realm_config(realm) -> 'dpop' $$;
CREATE FUNCTION pg_temp.set_dpop(nonce text DEFAULT NULL, lifetime interval DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM admin.set_dpop('a', nonce, lifetime);
    RETURN pg_temp.dpop();
END
$$;
SELECT is(pg_temp.dpop(), '{"nonce": "auto", "nonce_lifetime": 300}',
          'a realm asks for nonces where clocks are wrong, and accepts them for five minutes');
SELECT is(pg_temp.set_dpop('required'), '{"nonce": "required", "nonce_lifetime": 300}',
          'it may ask for one in each proof');
SELECT is(pg_temp.set_dpop(lifetime => '1 minute'), '{"nonce": "required", "nonce_lifetime": 60}',
          'a lifetime leaves the rest as it is, from a minute');
SELECT is(pg_temp.set_dpop(lifetime => '30 minutes'), '{"nonce": "required", "nonce_lifetime": 1800}',
          'to half an hour');
SELECT is(pg_temp.set_dpop(), '{"nonce": "required", "nonce_lifetime": 1800}', 'nothing given changes nothing');
SELECT is(pg_temp.dpop(pg_temp.other()), '{"nonce": "auto", "nonce_lifetime": 300}', 'another realm keeps its own');
SELECT results_eq($$SELECT dpop_nonce, dpop_nonce_lifetime FROM admin.realms WHERE slug = 'a'$$,
                  $$VALUES ('required', interval '30 minutes')$$, 'administrators see what is set');
SELECT matches(pg_temp.refusal(v.statement), '^22023 ' || v.message || '.* \| .*' || v.hint, v.statement) FROM (VALUES
    ($$SELECT admin.set_dpop('a', 'on')$$, 'nonce "on" is unknown', 'auto, required'),
    ($$SELECT admin.set_dpop('a', nonce_lifetime => '0')$$, 'nonce_lifetime "00:00:00" is out of range', '1 minute'),
    ($$SELECT admin.set_dpop('a', nonce_lifetime => '59 s')$$, 'nonce_lifetime "00:00:59" is out of range', '1 minute'),
    ($$SELECT admin.set_dpop('a', nonce_lifetime => '31 minutes')$$, 'nonce_lifetime "00:31:00" is out of range',
     '30 minutes'),
    ($$SELECT admin.set_dpop('none')$$, 'realm "none"', '')) AS v (statement, message, hint);
SELECT is(pg_temp.dpop(), '{"nonce": "required", "nonce_lifetime": 1800}', 'what is refused changes nothing');
SELECT results_eq($$SELECT detail - 'nonce_lifetime' FROM admin.audit_log WHERE realm = 'a' AND event = 'dpop_set'
    ORDER BY id LIMIT 1$$, $$VALUES (jsonb_build_object('nonce', 'required'))$$, 'a change is in the audit log');
SELECT * FROM finish();
ROLLBACK;
