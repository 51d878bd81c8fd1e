\ir ../helpers/fixture.psql
SELECT no_plan();
\ir ../helpers/approvals.psql
-- What strangers' requests for approval may cost the person they mean.
SELECT pg_temp.device('t1'), admin.put_identifier('a', pg_temp.sub('ada@example.com'), 'phone', '+4366412345678', true),
       admin.put_client('a', 'shop', client_type => 'confidential'),
       admin.grant_permission('a', 'shop', 'gt:urn:openid:params:grant-type:ciba') \g /dev/null
RESET ROLE;
CREATE FUNCTION pg_temp.fates(prefix text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(count || ' ' || reason, ', ' ORDER BY reason)
      FROM (SELECT coalesce(h.detail ->> 'reason', 'shown') AS reason, count(*) AS count
              FROM generate_series(1, 40) AS n
              JOIN postern.transaction AS t ON t.id = pg_temp.rid(prefix || n)
              LEFT JOIN postern.audit_event AS h
                ON h.event = 'approval_hidden' AND h.detail ->> 'approval_id' = t.id::text
             GROUP BY 1) AS f $$;
CREATE FUNCTION pg_temp.hides() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE postern.transaction SET is_shown = false $$;
-- Each of a source and spelling of its own, and answered at once so that places are no matter.
CREATE FUNCTION pg_temp.flood(prefix text, clients text[], hints text[]) RETURNS text LANGUAGE plpgsql AS $flood$
BEGIN
    FOR n IN 1 .. 12 LOOP
        PERFORM pg_temp.asks(prefix || n, hints[1 + n % cardinality(hints)], clients[1 + n % cardinality(clients)],
                             '198.51.100.' || n);
        PERFORM pg_temp.hides();
    END LOOP;
    RETURN pg_temp.fates(prefix);
END
$flood$;
SET ROLE app_login;
SELECT is(pg_temp.flood('f', '{app,second,shop}', ARRAY['ada@example.com', '+4366412345678',
                                                        pg_temp.sub('ada@example.com')::text]),
          '2 limited, 10 shown', 'all clients, addresses and numbers of one account have one budget of strangers');
SELECT is(pg_temp.polls('f12', 'app'), 'pending', 'which shows to no asker');
SELECT pg_temp.asks('r1', pg_temp.sub('ada@example.com')::text, sid => 'phone') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r1', 'a request with an ID token is shown all the same');
RESET ROLE;
SELECT pg_temp.sign_in('s'), pg_temp.sql($$UPDATE postern.session SET client = pg_temp.client('shop') RETURNING ''$$)
    \g /dev/null
SET ROLE app_login;
SELECT pg_temp.asks('r2', client => 'shop', source => '192.0.2.2') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r1,r2', 'so is one of a confidential client that has a session of the person');
SELECT is(pg_temp.flood('g', '{shop}', '{ada@example.com}'), '3 limited, 9 shown', 'which has a budget of its own');
RESET ROLE;
SELECT pg_temp.sql($$UPDATE postern.session SET client = pg_temp.client('app') RETURNING ''$$) \g /dev/null
SET ROLE app_login;
SELECT pg_temp.asks('r3', client => 'app', source => '192.0.2.3') \g /dev/null
SELECT is(pg_temp.audited('r3'), 'approval_requested approval_hidden:limited',
          'in the name of a public client anybody can ask');
RESET ROLE;
SELECT admin.resume_approvals('a', pg_temp.sub('ada@example.com')) \g /dev/null
SET ROLE app_login;
SELECT pg_temp.asks('r3', client => 'app', source => '192.0.2.3') \g /dev/null
SELECT is(pg_temp.audited('r3'), 'approval_requested', 'an administrator gives the account its budget back');

-- Places.
SELECT pg_temp.passes('2 hours') \g /dev/null
SELECT pg_temp.asks('r' || n, source => '192.0.2.' || n) FROM generate_series(1, 3) AS n \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r1,r2,r3', 'strangers fill three places');
SELECT pg_temp.asks('r4', pg_temp.sub('ada@example.com')::text, source => '192.0.2.4', sid => 'phone') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3,r4', 'a request with an ID token takes the oldest of theirs');
SELECT is(pg_temp.polls('r1'), 'pending', 'which shows to no asker');
SELECT pg_temp.asks('r5', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3,r4', 'strangers find it full');
SELECT pg_temp.asks('r6', pg_temp.sub('ada@example.com')::text, source => '192.0.2.4') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3,r4', 'a stranger behind the same source replaces nothing of it');
SELECT pg_temp.asks('r1', pg_temp.sub('ada@example.com')::text, source => '192.0.2.4', sid => 'phone') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r2,r3,r1', 'its like does');

-- A web shop asks for all its users from one source. Strangers type the person's address there.
RESET ROLE;
SELECT pg_temp.sql($$UPDATE postern.session SET client = pg_temp.client('shop') RETURNING ''$$) \g /dev/null
SET ROLE app_login;
SELECT pg_temp.passes('2 hours') \g /dev/null
SELECT pg_temp.asks('r1', pg_temp.sub('ada@example.com')::text, 'shop', sid => 'browser') \g /dev/null
SELECT pg_temp.asks('r2', client => 'shop') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r1,r2', 'where the person has a session, a stranger replaces no request with an ID token');
SELECT pg_temp.answers('t1', 'r2', 'deny', client => 'shop') \g /dev/null
SELECT pg_temp.asks('r3', client => 'shop'),
       pg_temp.asks('r4', pg_temp.sub('ada@example.com')::text, 'shop', sid => 'browser') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r4', 'a stranger''s request that is denied hides none with an ID token');
SELECT pg_temp.asks('r5', source => '192.0.2.5'), pg_temp.answers('t1', 'r5', 'deny') \g /dev/null
SELECT pg_temp.asks('r6', pg_temp.sub('ada@example.com')::text, 'shop', '192.0.2.6', sid => 'browser'),
       pg_temp.asks('r3', client => 'shop', source => '192.0.2.3') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r4,r6,r3 quiet for 900', 'nor do two; one of them was elsewhere, which hides none at the shop');
SELECT pg_temp.asks('r2', source => '192.0.2.9') \g /dev/null
SELECT is(pg_temp.audited('r2'), 'approval_requested approval_hidden:quiet', 'both together hide those of strangers elsewhere');
SELECT pg_temp.answers('t1', 'r3', 'deny', client => 'shop'),
       pg_temp.asks('r5', client => 'shop', source => '192.0.2.5') \g /dev/null
SELECT is(pg_temp.inbox('t1'), 'r4,r6 quiet for 900', 'a second one at the shop those at the shop');
SELECT pg_temp.answers('t1', 'r6', 'deny', client => 'shop'), pg_temp.answers('t1', 'r4', number => '11', client => 'shop')
    \g /dev/null
SELECT pg_temp.asks('r1', pg_temp.sub('ada@example.com')::text, 'shop', '192.0.2.7', sid => 'browser'),
       pg_temp.asks('r2', client => 'shop', source => '192.0.2.8') \g /dev/null
SELECT is(pg_temp.audited('r1') || ', ' || pg_temp.audited('r2'),
          'approval_requested approval_hidden:quiet, approval_requested approval_hidden:quiet',
          'two denials of requests with an ID token end all');
SELECT pg_temp.passes('2 hours'), pg_temp.asks('r1'), pg_temp.answers('t1', 'r1', 'report') \g /dev/null
SELECT pg_temp.asks('r2', pg_temp.sub('ada@example.com')::text, 'shop', sid => 'browser') \g /dev/null
SELECT is(pg_temp.audited('r2'), 'approval_requested approval_hidden:quiet', 'as does a report');
SELECT * FROM finish();
ROLLBACK;
