\ir ../helpers/fixture.psql
\ir ../helpers/proofs.psql
SELECT no_plan();
-- What the holder of a family's key gets for tokens that were replaced: the same successor at any time, and no end of the
-- family within the window of its last rotation.
SELECT pg_temp.sign_in(n) FROM unnest('{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r}'::text[]) AS n \g /dev/null
-- A family that was bound from its sign-in, and was rotated so often since.
CREATE FUNCTION pg_temp.bind(name text, rotations int DEFAULT 1) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE postern.session SET jkt = pg_temp.h('key k') WHERE realm_id = pg_temp.realm() AND id = pg_temp.uu(name);
    FOR generation IN 0..rotations - 1 LOOP
        ASSERT pg_temp.refreshes(name, generation, pg_temp.proof('k', name || ' ' || generation)) = 'rotated t';
    END LOOP;
    RETURN 'generation ' || rotations;
END
$$;
CREATE FUNCTION pg_temp.refreshes_after(seconds int, name text, generation int, proof bytea) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.since_rotation(name, seconds);
    RETURN pg_temp.refreshes(name, generation, proof);
END
$$;
CREATE FUNCTION pg_temp.window(span text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.realm SET refresh_retry_window = span::interval WHERE id = pg_temp.realm() $$;
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null

-- The predecessor.
SELECT is(pg_temp.bind('a'), 'generation 1', 'a bound family, whose answer is lost');
SELECT is(pg_temp.refreshes_after(s, 'a', 0, pg_temp.proof('k', 'a' || s)), 'retried t',
          'its predecessor gets the same successor ' || s || ' s later')
  FROM unnest('{0,121,3600,1123200}'::int[]) AS s;
SELECT is(pg_temp.key_of('a'), 'k', 'the key stays');
SELECT is(pg_temp.refreshes('a', 1, pg_temp.proof('k', 'a2')), 'rotated t', 'and the successor is good');
SELECT is(pg_temp.audited('refresh_superseded') + pg_temp.audited('refresh_token_reuse'), 0, 'nothing is audited');

SELECT is(pg_temp.bind('b'), 'generation 1', 'another one');
SELECT pg_temp.since_rotation('b', 3600) \g /dev/null
SELECT is(pg_temp.refreshes('b', 0, pg_temp.proof('k', 'b1')), 'retried t', 'an hour later with a new proof');
SELECT is(pg_temp.refreshes('b', 0, pg_temp.proof('k', 'b1')), 'retried t', 'and with the same proof again');
SELECT is(pg_temp.refreshes('b', 0, pg_temp.proof('l', 'b2')), 'refused key', 'with another key it is refused');
SELECT is(pg_temp.refreshes('b', 0, NULL), 'refused key', 'and without a proof');
SELECT is(pg_temp.refreshes('b', 0, pg_temp.proof('k', 'b3'), scope => '{openid,wide}'), 'invalid_scope',
          'with a wider scope it gets nothing');
SELECT ok(pg_temp.alive('b'), 'and the family lives');

-- What is older.
SELECT is(pg_temp.bind('c', 2), 'generation 2', 'a family whose successor was used');
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c3')), 'refused superseded', 'an older token is refused at once');
SELECT is(pg_temp.audited('refresh_superseded'), 1, 'which is audited once');
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c3')), 'proof_used', 'with a used proof it is told so');
SELECT is(pg_temp.audited('refresh_superseded'), 1, 'and nothing is audited');
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c4'), scope => '{openid,wide}'), 'refused superseded',
          'a wider scope does not hide it');
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c5'), level => 9, age => 0), 'refused superseded',
          'nor does a wish for a stronger or newer sign-in');
SELECT is(pg_temp.refreshes('c', 2, pg_temp.proof('k', 'c6')), 'rotated t', 'the family lives');
SELECT is(pg_temp.refreshes('c', 1, pg_temp.proof('k', 'c7')), 'refused superseded',
          'a predecessor whose successor was used is older, too');
SELECT pg_temp.since_rotation('c', 119) \g /dev/null
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c8')), 'refused superseded', 'until the window is over');
SELECT is(pg_temp.refreshes('c', 2, pg_temp.proof('k', 'c9')), 'retried t',
          'and the predecessor gets its successor meanwhile');
SELECT pg_temp.since_rotation('c', 238) \g /dev/null
SELECT is(pg_temp.refreshes('c', 0, pg_temp.proof('k', 'c10')), 'reuse',
          'which no refusal and no repetition prolongs: then it is reuse');
SELECT ok(NOT pg_temp.alive('c'), 'and ends the family');
SELECT is(pg_temp.audited('refresh_token_reuse'), 1, 'as the audit log says');
SELECT is(pg_temp.bind('d', 2), 'generation 2', 'another one');
SELECT pg_temp.since_rotation('d', 121) \g /dev/null
SELECT is(pg_temp.refreshes('d', 0, pg_temp.proof('k', 'd3')), 'reuse', 'after the window an older token is reuse');

-- A family that is bound to no key has the window alone.
SELECT is(pg_temp.refreshes('e', 0, NULL), 'rotated t', 'a family without a key');
SELECT pg_temp.since_rotation('e', 121) \g /dev/null
SELECT is(pg_temp.refreshes('e', 0, NULL), 'reuse', 'its predecessor is reuse after the window');
SELECT is(pg_temp.refreshes('f', 0, NULL) || ', ' || pg_temp.refreshes('f', 1, NULL), 'rotated t, rotated t', 'another');
SELECT is(pg_temp.refreshes('f', 0, NULL), 'reuse', 'an older token of it within the window, too');
SELECT is(pg_temp.refreshes('g', 0, NULL) || ', ' || pg_temp.refreshes('g', 1, NULL), 'rotated t, rotated t', 'another');
SELECT is(pg_temp.refreshes('g', 0, pg_temp.proof('k', 'g1')), 'reuse', 'and a proof of some key helps nothing');
-- Confidential clients: the proof binds no family.
SELECT is(pg_temp.refreshes('h', 0, pg_temp.proof('k', 'h0', binds => false)), 'rotated t', 'a confidential client');
SELECT pg_temp.since_rotation('h', 121) \g /dev/null
SELECT is(pg_temp.refreshes('h', 0, pg_temp.proof('k', 'h1', binds => false)), 'reuse', 'has the window alone as well');

-- Bound by this rotation: the predecessor is a bearer token for all but the holder of the key.
SELECT is(pg_temp.refreshes(n, 0, pg_temp.proof('k', n || '0')), 'rotated t', 'a family that is bound by a rotation')
  FROM unnest('{i,j,k}'::text[]) AS n;
SELECT pg_temp.since_rotation(n, 3600) FROM unnest('{i,j,k}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.refreshes('i', 0, pg_temp.proof('k', 'i1')), 'retried t', 'with the key its predecessor is repeated');
SELECT is(pg_temp.refreshes('j', 0, pg_temp.proof('l', 'j1')), 'reuse', 'with another key it is reuse');
SELECT is(pg_temp.refreshes('k', 0, NULL), 'reuse', 'without a proof, too');
SELECT ok(pg_temp.alive('i') AND NOT pg_temp.alive('j') AND NOT pg_temp.alive('k'), 'and the families end');
SELECT is(pg_temp.refreshes('l', 0, NULL) || ', ' || pg_temp.refreshes('l', 1, pg_temp.proof('k', 'l1')),
          'rotated t, rotated t', 'a family that was bound later');
SELECT is(pg_temp.refreshes('l', 0, pg_temp.proof('k', 'l2')), 'refused superseded',
          'a token from before is superseded for the holder of the key');
SELECT is(pg_temp.refreshes('l', 0, pg_temp.proof('l', 'l3')), 'reuse', 'and reuse for others');

-- Where nothing is repeated.
SELECT is(pg_temp.bind('m'), 'generation 1', 'a bound family');
SELECT is(pg_temp.bind('n', 2), 'generation 2', 'and one that is older');
SELECT pg_temp.window('0') \g /dev/null
SELECT is(pg_temp.refreshes('m', 0, pg_temp.proof('k', 'm1')), 'reuse', 'with a window of 0 the predecessor is reuse');
SELECT is(pg_temp.refreshes('n', 0, pg_temp.proof('k', 'n1')), 'reuse', 'and an older token at once');
SELECT pg_temp.window('120 s') \g /dev/null

-- Nothing is repeated of a session that has ended.
SELECT is(pg_temp.bind(n), 'generation 1', 'a bound family') FROM unnest('{o,p,q,r}'::text[]) AS n;
SELECT is(pg_temp.refreshes_after(3600, n, 0, pg_temp.proof('k', n || '1')), 'retried t', 'is repeated')
  FROM unnest('{o,p,q,r}'::text[]) AS n;
SELECT pg_temp.sql($$UPDATE postern.session SET refresh_expires_at = now() WHERE id = pg_temp.uu('o') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.refreshes('o', 0, pg_temp.proof('k', 'o2')), 'refused expired', 'until its successor has run out');
SELECT pg_temp.sql($$UPDATE postern.session SET expires_at = now() WHERE id = pg_temp.uu('p') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.refreshes('p', 0, pg_temp.proof('k', 'p2')), 'refused expired', 'or the session');
SELECT pg_temp.sql($$UPDATE postern.session SET revoked_at = now() WHERE id = pg_temp.uu('q') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.refreshes('q', 0, pg_temp.proof('k', 'q2')), 'refused revoked', 'or it was ended');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'ada@example.com', false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.refreshes('r', 0, pg_temp.proof('k', 'r2')), 'refused revoked', 'or the user was disabled');
RESET ROLE;
SELECT admin.set_user_enabled('a', 'ada@example.com', true), pg_temp.sign_in('s') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.bind('s'), 'generation 1', 'a new sign-in');
SELECT is(pg_temp.refreshes_after(3600, 's', 0, pg_temp.proof('k', 's3')), 'retried t', 'is repeated');
RESET ROLE;
SELECT admin.sign_out_everywhere('a', 'ada@example.com') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.refreshes('s', 0, pg_temp.proof('k', 's4')), 'refused revoked', 'or signed out everywhere');

-- The key-file line is gone that the successor was derived from: no other one is made up, and nothing ends.
RESET ROLE;
SELECT pg_temp.sign_in(n) FROM unnest('{t,u}'::text[]) AS n \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.bind('t'), 'generation 1', 'a bound family');
SELECT pg_temp.since_rotation('t', 3600) \g /dev/null
SELECT is(pg_temp.refreshes('t', 0, pg_temp.proof('k', 't1'), successor => 'of another line'), 'refused superseded',
          'whose successor cannot be derived');
SELECT is(pg_temp.refreshes('t', 0, pg_temp.proof('k', 't')), 'retried t', 'lives, for a node that can');
SELECT is(pg_temp.refreshes('u', 0, NULL) || ', ' || pg_temp.refreshes('u', 0, NULL, successor => 'of another line'),
          'rotated t, reuse', 'without a key it is reuse as ever');
SELECT * FROM finish();
ROLLBACK;
