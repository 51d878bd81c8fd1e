\ir ../helpers/fixture.psql
\ir ../helpers/proofs.psql
SELECT no_plan();
-- Sessions that are bound to a key, and proofs that serve once.
CREATE FUNCTION pg_temp.key_of_proof(id text) RETURNS bigint LANGUAGE sql AS $$
    SELECT ('x' || encode(substr(pg_temp.h('proof ' || id), 1, 8), 'hex'))::bit(64)::bigint $$;
-- Families in a batch, each at generation 0 and with a proof named after it of the key k, which all have one slot.
CREATE FUNCTION pg_temp.batch(names text[], marks int[], before interval DEFAULT '0') RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(r.number || ' ' || r.outcome, ', ' ORDER BY r.number), 'none')
      FROM (SELECT array_agg(pg_temp.client()) AS client, array_agg(pg_temp.uu(n)) AS session,
                   array_agg(0) AS generation, array_agg(pg_temp.h(n || '0')) AS hash,
                   array_agg(pg_temp.h(n || '1')) AS successor, array_agg(1209600) AS lifetime,
                   array_agg('192.0.2.1'::text) AS source, array_agg('\x01020304'::bytea) AS server_key,
                   array_agg((random() * 1e15)::bigint) AS mark, array_agg(pg_temp.h('key k') || '\x03') AS proof,
                   array_agg(pg_temp.key_of_proof(n) ORDER BY pg_temp.key_of_proof(n)) AS keys,
                   array_agg(m::bigint ORDER BY pg_temp.key_of_proof(n)) AS used_by,
                   (date_part('epoch', clock_timestamp() - before) * 1000)::bigint AS ms
              FROM unnest(names, marks) AS x (n, m)) AS b,
           LATERAL postern.rotate_sessions(
               pg_temp.realm(), b.client, b.session, b.generation, b.hash, b.successor, b.lifetime, b.source,
               b.server_key, b.mark, b.proof, (b.ms / 300000 % 10)::integer, b.ms, b.keys, b.used_by) AS r $$;
SELECT pg_temp.sign_in(n) FROM unnest('{a,b,c,d,e,g,h,i,j,u,v,w,x,y,z}'::text[]) AS n \g /dev/null
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null

-- A proof serves once, per realm, key and id.
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', '1', mark => 7)), 'fresh', 'a new proof');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', '1', mark => 8)), 'used', 'is used up');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', '1', mark => 7)), 'fresh',
          'but its own request may run its statement again');
SELECT set_config('postern.realm', pg_temp.other()::text, true) \g /dev/null
SELECT is(postern.mark_proof(pg_temp.other(), pg_temp.proof('k', '1')), 'fresh', 'another realm knows nothing of it');
SELECT is(postern.mark_proof(pg_temp.other(), pg_temp.proof('k', '1', mark => 7)), 'used', 'nor of its requests');
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', '2')), 'fresh', 'another proof of the key is another one');
CREATE FUNCTION pg_temp.uses(proof bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM postern.use_proof(pg_temp.realm(), pg_temp.handed(proof));
    RETURN 'used up';
EXCEPTION WHEN SQLSTATE 'PD001' OR SQLSTATE 'PD002' THEN
    RETURN SQLSTATE;
END
$$;
SELECT is(pg_temp.uses(NULL), 'used up', 'a statement without a proof uses none up');
SELECT is(pg_temp.uses(pg_temp.proof('k', '3', mark => 31)), 'used up', 'a statement with one uses it up');
SELECT is(pg_temp.uses(pg_temp.proof('k', '3', mark => 31)), 'used up', 'its request may do so again');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', '3')), 'used', 'for every other statement it is used');
SELECT is(pg_temp.uses(pg_temp.proof('k', '3', binds => false)), 'PD001',
          'and one with the same proof fails as a whole');
-- A session is bound to the key of a proof that binds.
CREATE FUNCTION pg_temp.opened_by(name text, binds boolean) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    caller postern.caller := pg_temp.caller(NULL, proof => pg_temp.handed(pg_temp.proof('k', name, binds => binds)));
    person postern.candidate;
BEGIN
    SELECT u.id, u.security_stamp, 'app', now() + interval '1 day'
      INTO person.user_id, person.security_stamp, person.client_id, person.session_end
      FROM postern.user_account AS u WHERE u.realm_id = pg_temp.realm() AND u.address_key = 'ada@example.com';
    RETURN (postern.sign_in(caller, pg_temp.opens(pg_temp.uu(name)), person, postern.admit(caller, NULL))).outcome
           || coalesce(' ' || pg_temp.key_of(name), '');
END
$$;
SELECT is(pg_temp.opened_by('bound', true), 'ok k', 'a sign-in with a proof that binds is bound to its key');
SELECT is(pg_temp.opened_by('loose', false), 'ok', 'with one that does not it is not');
-- By its time a proof is in one of ten slots. name: of the proofs, one in each slot, used by a request of that mark.
CREATE FUNCTION pg_temp.in_all_slots(name text, used_by int, packed boolean, step interval DEFAULT '-5 minutes')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    proof bytea;
    said text := '';
BEGIN
    FOR slot IN 0..9 LOOP
        proof := pg_temp.proof('k', name || slot, (slot + 1) * step, used_by);
        IF packed THEN
            said := said || left(postern.mark_proof(pg_temp.realm(), proof), 1);
        ELSE
            said := said || CASE pg_temp.uses(proof) WHEN 'PD001' THEN 'u' WHEN 'PD002' THEN 'o' ELSE 'f' END;
        END IF;
    END LOOP;
    RETURN said;
END
$$;
SELECT is(pg_temp.in_all_slots('s', 1, false), 'ffffffffff', 'a proof in each slot');
SELECT is(pg_temp.in_all_slots('s', 2, true), 'uuuuuuuuuu', 'is found where a packed one is');
SELECT is(pg_temp.in_all_slots('t', 1, true), 'ffffffffff', 'a packed one in each slot');
SELECT is(pg_temp.in_all_slots('t', 2, false), 'uuuuuuuuuu', 'is found where a statement''s is');
SELECT is(pg_temp.sql($$SELECT count(DISTINCT tableoid)::text FROM postern.used_proof$$), '10', 'ten tables');
SELECT throws_ok($$SELECT postern.use_proof(pg_temp.realm(), ROW(pg_temp.h('k'), true, 3, NULL, NULL, NULL))$$, 'PD002', NULL,
                 'what is no proof is never taken for none');

-- An unbound family is bound by the first proof.
SELECT is(pg_temp.refreshes('a', 0, NULL), 'rotated t', 'no proof, as ever');
SELECT is(pg_temp.key_of('a'), NULL, 'bound to nothing');
SELECT is(pg_temp.refreshes('a', 1, pg_temp.proof('k', 'a1')), 'rotated t', 'with a proof');
SELECT is(pg_temp.key_of('a'), 'k', 'bound to its key');
SELECT is(pg_temp.refreshes('a', 1, NULL), 'refused key', 'its predecessor without a proof');
SELECT is(pg_temp.refreshes('a', 1, pg_temp.proof('l', 'a2')), 'refused key', 'or with another key');
SELECT is(pg_temp.refreshes('a', 1, pg_temp.proof('k', 'a3')), 'retried t', 'with the key gets the same successor');
SELECT is(pg_temp.refreshes('a', 2, NULL), 'refused key', 'the successor without a proof');
SELECT is(pg_temp.refreshes('a', 2, pg_temp.proof('l', 'a4')), 'refused key', 'or with another key');
SELECT is(pg_temp.audited('refresh_key_mismatch'), 4, 'each of them is in the audit log');
SELECT ok(pg_temp.alive('a'), 'the family lives');

-- A token from before the binding is a bearer token: whoever binds the family does not escape the judgement of reuse.
SELECT is(pg_temp.refreshes('u', 0, pg_temp.proof('k', 'u1')), 'rotated t', 'a thief binds the family to a key of his own');
SELECT pg_temp.since_rotation('u', 121) \g /dev/null
SELECT is(pg_temp.refreshes('u', 0, NULL), 'reuse', 'the owner''s token after the window is reuse');
SELECT ok(NOT pg_temp.alive('u'), 'which ends the family');
SELECT is(pg_temp.refreshes('v', 0, pg_temp.proof('k', 'v1')), 'rotated t', 'a thief binds another one');
SELECT is(pg_temp.refreshes('v', 0, pg_temp.proof('l', 'v2')), 'refused key', 'within the window nothing ends');
SELECT is(pg_temp.refreshes('v', 1, pg_temp.proof('k', 'v3')), 'rotated t', 'until he uses the successor');
SELECT is(pg_temp.refreshes('v', 0, pg_temp.proof('l', 'v4')), 'reuse', 'then the owner''s token is reuse at once');
SELECT ok(NOT pg_temp.alive('v'), 'and the family ends');
SELECT is(pg_temp.refreshes('w', 0, NULL) || ', ' || pg_temp.refreshes('w', 1, pg_temp.proof('k', 'w1')), 'rotated t, rotated t',
          'a family that is bound later');
SELECT is(pg_temp.refreshes('w', 0, NULL), 'reuse', 'an unbound token from long before is reuse');
SELECT is(pg_temp.refreshes('x', 0, pg_temp.proof('k', 'x1')) || ', ' || pg_temp.refreshes('x', 1, pg_temp.proof('k', 'x2'))
          || ', ' || pg_temp.refreshes('x', 2, pg_temp.proof('k', 'x3')), 'rotated t, rotated t, rotated t', 'a chain');
SELECT is(pg_temp.refreshes('x', 1, NULL) || ', ' || pg_temp.refreshes('x', 2, pg_temp.proof('l', 'x4')), 'refused key, refused key',
          'bound tokens of it end nothing without the key');
SELECT is(pg_temp.refreshes('y', 0, pg_temp.proof('k', 'y1')) || ', ' || pg_temp.refreshes('y', 1, pg_temp.proof('k', 'y2')),
          'rotated t, rotated t', 'another chain');
SELECT is(pg_temp.refreshes('y', 0, pg_temp.proof('l', 'v4')), 'proof_used', 'a used proof ends nothing here either');
SELECT ok(pg_temp.alive('x') AND pg_temp.alive('y'), 'both live');
SELECT pg_temp.sql($$UPDATE postern.realm SET refresh_retry_window = '0'; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.refreshes('z', 0, pg_temp.proof('k', 'z1')), 'rotated t', 'where nothing is repeated');
SELECT is(pg_temp.refreshes('z', 0, NULL), 'reuse', 'the unbound predecessor is reuse at once');
SELECT pg_temp.sql($$UPDATE postern.realm SET refresh_retry_window = '120 seconds'; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.audited('refresh_token_reuse'), 4, 'each reuse is in the audit log');

-- A used proof moves nothing and ends nothing.
SELECT is(pg_temp.refreshes('a', 2, pg_temp.proof('k', 'a1')), 'proof_used', 'a used proof with the live token');
SELECT is(pg_temp.refreshes('a', 1, pg_temp.proof('k', 'a1')), 'retried t', 'with its own token: the same successor');
SELECT is(pg_temp.refreshes('a', 0, pg_temp.proof('k', 'a1')), 'proof_used', 'with an old one: nothing');
SELECT is(pg_temp.refreshes('nobody', 0, pg_temp.proof('k', 'a1')), 'proof_used', 'and with one that there is not');
SELECT is(pg_temp.audited('refresh_token_reuse'), 4, 'no reuse');
SELECT is(pg_temp.refreshes('a', 2, pg_temp.proof('k', 'a6')), 'rotated t', 'the live token is as it was');
SELECT pg_temp.since_rotation('a', 121) \g /dev/null
SELECT is(pg_temp.refreshes('a', 0, pg_temp.proof('k', 'a7')), 'reuse', 'an old one by the owner of the key is reuse, once the window is over');
SELECT ok(NOT pg_temp.alive('a'), 'which ends the family');

-- What asks for more than the session is, rotates nothing.
SELECT is(pg_temp.refreshes('b', 0, NULL, level => 2), 'unmet', 'one factor is not two');
SELECT is(pg_temp.refreshes('b', 0, NULL, age => 60), 'rotated t', 'a sign-in of this minute');
SELECT pg_temp.sql($$UPDATE postern.session SET auth_time = now() - interval '61 seconds'; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.refreshes('b', 1, NULL, age => 60), 'unmet', 'is not there a minute later');
SELECT is(pg_temp.refreshes('b', 1, NULL, level => 1), 'rotated t', 'one factor is one');

-- A client that is bound by its own credentials binds no family.
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c1', binds => false)), 'rotated t', 'the proof is used');
SELECT is(pg_temp.key_of('c'), NULL, 'and the family stays free');
SELECT is(pg_temp.refreshes('c', 1, pg_temp.proof('l', 'c2', binds => false)), 'rotated t', 'for another key');

-- A batch uses up its proofs together.
SELECT is(pg_temp.batch('{g,h}', '{1,2}'), '1 rotated, 2 rotated', 'two families with their proofs');
SELECT is(pg_temp.key_of('h'), 'k', 'are bound to the key');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'g', mark => 1)), 'fresh', 'its request');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'g', mark => 9)), 'used', 'has used up its proof');
SELECT is(pg_temp.batch('{h,i}', '{2,3}'), 'none', 'no row when one of them was used');
SELECT is(pg_temp.refreshes('i', 0, pg_temp.proof('k', 'i', mark => 30)), 'rotated t', 'the other is not used up');
SELECT is(pg_temp.refreshes('h', 0, pg_temp.proof('k', 'h', mark => 4)), 'retried t', 'and the used one is used');
SELECT is(pg_temp.refreshes('h', 1, pg_temp.proof('k', 'h', mark => 5)), 'proof_used', 'as ever');
SELECT is(pg_temp.batch('{j,j}', '{6,7}'), 'none', 'one proof of two requests');
SELECT is(pg_temp.key_of('j'), NULL, 'rotates nothing');
SELECT is(pg_temp.batch('{j}', '{8}', '100 years'), 'none', 'nor does one from before the store began');

-- A lookup uses the proof too.
SELECT is((SELECT concat_ws(' ', proof, active, acr) FROM postern.live_session_by_proof(
    pg_temp.realm(), pg_temp.uu('d'), pg_temp.b16('j'), pg_temp.proof('k', 'd1'))), 'fresh t', 'a live session');
SELECT is((SELECT concat_ws(' ', proof, active) FROM postern.live_session_by_proof(
    pg_temp.realm(), pg_temp.uu('d'), pg_temp.b16('j'), pg_temp.proof('k', 'd1'))), 'used f', 'not twice by one proof');
SELECT is((SELECT concat_ws(' ', proof, active) FROM postern.live_session_by_proof(
    pg_temp.realm(), pg_temp.uu('nobody'), pg_temp.b16('j'), pg_temp.proof('k', 'd2'))), 'fresh f', 'no session');

-- A crash empties the tables of proofs.
RESET ROLE;
DELETE FROM postern.used_proof;
DELETE FROM postern.schema_proof_store;
SET LOCAL ROLE app_login;
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e1')), 'old', 'what came before');
SELECT is(pg_temp.refreshes('e', 0, pg_temp.proof('k', 'e2')), 'proof_old', 'rotates nothing');
SELECT is(pg_temp.uses(pg_temp.proof('k', 'e3')), 'PD002', 'and in a statement of its own it fails');
SELECT cmp_ok(postern.begin_proof_store(date_part('epoch', clock_timestamp()) + 30), '>',
              date_part('epoch', clock_timestamp()) + 29, 'until the store begins, after what may have been used');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e4', '-29 seconds')), 'old',
          'a standby whose clock is behind takes no proof again');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e4', '-31 seconds')), 'fresh', 'but later ones');
RESET ROLE;
DELETE FROM postern.used_proof;
DELETE FROM postern.schema_proof_store;
SET LOCAL ROLE app_login;
SELECT cmp_ok(postern.begin_proof_store(date_part('epoch', clock_timestamp()) + 1e9), '<',
              date_part('epoch', clock_timestamp()) + 121, 'two minutes ahead at most');
RESET ROLE;
DELETE FROM postern.schema_proof_store;
SET LOCAL ROLE app_login;
SELECT cmp_ok(postern.begin_proof_store('-infinity'), '>', 1e9::float8, 'or now');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e4', '1 second')), 'old', 'older nonces stay refused');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e5', '-1 second')), 'fresh', 'newer ones are taken');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e6', '-30 seconds', by_nonce => false)), 'old',
          'a clock may be a minute ahead');
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'e7', '-62 seconds', by_nonce => false)), 'fresh',
          'not more');
SELECT is(postern.begin_proof_store('-infinity'), postern.begin_proof_store('-infinity'), 'it begins once');
SELECT is(pg_temp.in_all_slots('v', 1, false, '5 minutes'), 'oooooooooo', 'older ones are refused in each slot');

-- Slots whose time is over are emptied.
SELECT is(postern.mark_proof(pg_temp.realm(), pg_temp.proof('k', 'f1', '-8 minutes')), 'fresh', 'one of another time');
RESET ROLE;
SELECT cmp_ok(postern.empty_proof_slots(), '>', 0, 'goes with its slot');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.used_proof
                         WHERE key = pg_temp.key_of_proof('f1') # postern.proof_mix(realm_id)$$), '0', 'as a whole');
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.used_proof
                         WHERE key = pg_temp.key_of_proof('e5') # postern.proof_mix(realm_id)$$), '1', 'and no other');
SELECT * FROM finish();
ROLLBACK;
