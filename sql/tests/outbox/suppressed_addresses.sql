\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.mail(name text, recipient text, age interval DEFAULT '0', r uuid DEFAULT pg_temp.realm())
    RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose, payload, created_at, not_before)
    VALUES (r, pg_temp.uu(name), recipient, 'otp', 'register', '\x00', now() - age, now() - age) $$;
CREATE FUNCTION pg_temp.state(name text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format('SELECT concat_ws('' '', state, last_error, payload IS NULL) FROM postern.message_outbox'
                              ' WHERE id = %L', pg_temp.uu(name))) $$;
CREATE FUNCTION pg_temp.refuse(name text, address text) RETURNS boolean LANGUAGE sql AS $$
    SELECT pg_temp.mail(name, address);
    SELECT postern.outbox_refused(pg_temp.realm(), pg_temp.uu(name), '5xx') $$;
CREATE FUNCTION pg_temp.events(name text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format(
        'SELECT string_agg(concat_ws('' '', source LIKE ''sql:%%'', user_id IS NOT NULL, detail ->> ''reason''), '','''
        ' ORDER BY id)'
        ' FROM postern.audit_event WHERE event = %L', name)) $$;

-- By the administrator.
SELECT throws_ok($$SELECT admin.suppress_address('a', 'ada')$$, '22023', 'email "ada" is not an address',
                 'an address is wanted');
SELECT throws_ok($$SELECT admin.suppress_address('a', NULL)$$, '22023', NULL, 'really');
SELECT throws_ok($$SELECT admin.suppress_address('z', 'ada@example.com')$$, '22023', NULL, 'in a realm');
SELECT throws_ok($$SELECT admin.suppress_address('a', 'ada@example.com', E'two\nlines')$$, '22023', NULL,
                 'and one line of reason');
SELECT throws_ok($$SELECT admin.unsuppress_address('z', 'ada@example.com')$$, '22023', NULL,
                 'a realm is also wanted to take it back');
SELECT lives_ok($$SELECT admin.suppress_address('a', 'ADA@example.com', 'complained')$$, 'a user is suppressed');
SELECT lives_ok($$SELECT admin.suppress_address('a', 'nobody@example.com')$$, 'and an address of nobody');
SELECT results_eq($$SELECT realm, email, reason, is_automatic, expires_at FROM admin.suppressed_addresses
                  ORDER BY email$$,
    $$VALUES ('a', 'ADA@example.com', 'complained', false, NULL::timestamptz),
        ('a', 'nobody@example.com', NULL, false, NULL)$$, 'the administrator sees them');
SELECT lives_ok($$SELECT admin.suppress_address('a', 'ada@example.com')$$, 'once more changes nothing');
SELECT is((SELECT string_agg(email || ' ' || reason, ',') FROM admin.suppressed_addresses),
          'ADA@example.com complained', 'a reason given stays');
SELECT is(pg_temp.events('address_suppressed'), 't t complained,t f,t t', 'audited, with the user where there is one');

-- What waits is dropped, what is another's is not.
SELECT pg_temp.mail('ada', 'Ada@example.com', '3 s'), pg_temp.mail('nobody', 'nobody@example.com', '2 s'),
       pg_temp.mail('bob', 'bob@example.com', '1 s'),
       pg_temp.mail('there', 'ada@example.com', '0', pg_temp.other()) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(1, pg_temp.other(), 1)),
          'bob@example.com', 'dropped mail costs no other its turn');
SELECT is((SELECT string_agg(realm_id::text, ',') FROM pg_temp.take_mail(4)), pg_temp.other()::text,
          'another realm sends to the same address');
SELECT is(pg_temp.state('ada') || ', ' || pg_temp.state('nobody'), 'dead suppressed t, dead suppressed t',
          'what was dropped is dead and empty');
SELECT is(pg_temp.sql($$SELECT string_agg(detail ->> 'mail', ',' ORDER BY id) FROM postern.audit_event
                      WHERE event = 'mail_suppressed'$$), pg_temp.uu('ada') || ',' || pg_temp.uu('nobody'),
                          'and audited, by the id of the mail');
SELECT is(pg_temp.sql($$SELECT attempts FROM postern.message_outbox WHERE last_error = 'suppressed'
                      AND recipient = 'Ada@example.com'$$), '0', 'it was no attempt');
SELECT is(pg_temp.ask('h', 'ada@example.com', '111111'), 'sent', 'a request is decided as ever');
SELECT is((SELECT count(*)::int FROM pg_temp.take_mail(4)), 0, 'its mail is dropped too');
SELECT pg_temp.mail('flood' || n, 'nobody@example.com', '1 minute') FROM generate_series(1, 60) AS n \g /dev/null
SELECT pg_temp.mail('behind', 'bob@example.com') \g /dev/null
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(1)), 'bob@example.com',
          'a flood of it holds nothing up');
RESET ROLE;
SELECT is(admin.unsuppress_address('a', 'aDa@example.com'), true, 'taken back');
SELECT is(admin.unsuppress_address('a', 'ada@example.com'), false, 'which needs no second time');
SELECT is(admin.unsuppress_address('a', NULL), false, 'nor a NULL');
SELECT is(pg_temp.events('address_unsuppressed'), 't t', 'is audited');
SET LOCAL ROLE app_login;
SELECT pg_temp.mail('again', 'ada@example.com') \g /dev/null
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(4)), 'ada@example.com',
          'and mail leaves again');

-- By age: a mail that was tried before goes before those queued after it.
SELECT pg_temp.mail('old', 'old@example.com', '2 minutes'),
       pg_temp.mail('young', 'young@example.com', '1 minute') \g /dev/null
SELECT pg_temp.sql(format($$UPDATE postern.message_outbox SET not_before = now(), attempts = 3 WHERE id = %L RETURNING 1$$,
                          pg_temp.uu('old'))) \g /dev/null
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(1)), 'old@example.com',
          'the oldest of what is due first');

-- By the mail server.
SELECT is(pg_temp.refuse('r1', 'bob@example.com'), false, 'no such mailbox, once');
SELECT is(pg_temp.state('r1'), 'dead 5xx t', 'the mail is dead');
SELECT is(postern.outbox_refused(pg_temp.realm(), pg_temp.uu('r1'), '5xx'), NULL, 'said twice it counts once');
SELECT is(pg_temp.refuse('r2', 'Bob@example.com'), false, 'two mails');
SELECT ok(postern.outbox_sent(pg_temp.realm(), pg_temp.uu('bob')), 'a mail that is accepted');
SELECT is(pg_temp.refuse('r3', 'bob@example.com') OR pg_temp.refuse('r4', 'bob@example.com'), false, 'ends the row');
SELECT is(pg_temp.sql($$SELECT count(*) FROM admin.suppressed_addresses WHERE is_automatic$$), '0',
          'so far nobody is suppressed');
SELECT is(pg_temp.refuse('r5', 'bob@example.com'), true, 'three in a row are enough');
SELECT is(pg_temp.sql($$SELECT concat_ws(' ', email, is_automatic, expires_at - now(), reason)
                      FROM admin.suppressed_addresses WHERE is_automatic$$),
                          'bob@example.com t 7 days the mail server knows no such mailbox', 'for a week');
SELECT is(pg_temp.events('address_suppressed'), 't t complained,t f,t t,t the mail server knows no such mailbox',
          'audited as nobody''s doing');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE detail::text ~ '@'$$), '0',
          'no address is in the audit log');
SELECT pg_temp.mail('silent', 'bob@example.com') \g /dev/null
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(1)), 'young@example.com',
          'nothing is sent there');
SELECT pg_temp.sql($$UPDATE postern.suppressed_address SET expires_at = now() WHERE is_automatic
                   RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM admin.suppressed_addresses WHERE is_automatic$$), '0',
          'after the week it is no longer shown');
SELECT pg_temp.mail('loud', 'bob@example.com') \g /dev/null
SELECT is((SELECT string_agg(recipient, ',') FROM pg_temp.take_mail(1)), 'bob@example.com',
          'and sent to again');
SELECT is(pg_temp.refuse('r6', 'bob@example.com') OR pg_temp.refuse('r7', 'bob@example.com'), false,
          'with two refusals to spare');
SELECT is(pg_temp.refuse('r8', 'bob@example.com'), true, 'not three');
SELECT is(pg_temp.refuse('n' || n, 'nobody@example.com'), false, 'what an administrator put stays')
  FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.suppressed_address WHERE expires_at IS NULL
                      AND NOT is_automatic$$), '1', 'for ever');
SELECT pg_temp.sql($$UPDATE postern.suppressed_address SET expires_at = now() - interval '1 s' WHERE is_automatic
                   RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.refuse('r9', 'bob@example.com'), false, 'the next row begins at one');
SELECT cmp_ok(postern.sweep(1000), '>=', 1::bigint, 'the sweeper');
SELECT is(pg_temp.sql($$SELECT string_agg(address_key, ',') FROM postern.suppressed_address$$), 'nobody@example.com',
          'forgets what is over, not what an administrator put');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.mail_refusal$$), '1', 'nor a recent refusal');
SELECT pg_temp.sql($$UPDATE postern.mail_refusal SET last_at = now() - interval '31 days' RETURNING 1$$),
       postern.sweep(1000) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.mail_refusal$$), '0', 'but an old one');

-- What goes with whom.
SELECT pg_temp.refuse('d' || n, 'bob@example.com') FROM generate_series(1, 4) AS n \g /dev/null
RESET ROLE;
SELECT admin.suppress_address('a', 'ada@example.com') \g /dev/null
SELECT admin.delete_user('a', 'bob@example.com'), admin.delete_user('a', 'ada@example.com') \g /dev/null
SELECT is((SELECT string_agg(address_key, ',' ORDER BY address_key) FROM postern.suppressed_address),
          'ada@example.com,nobody@example.com', 'a deleted user takes along what the server put');
SELECT is((SELECT count(*)::int FROM postern.mail_refusal), 0, 'and the refusals');
SELECT admin.put_realm('a', enabled => false), admin.delete_realm('a', 'a', '0'), postern.sweep(10000) \g /dev/null
SELECT is((SELECT count(*)::int FROM postern.suppressed_address), 0, 'a deleted realm takes everything');

SET LOCAL SESSION AUTHORIZATION admin_login;
SELECT lives_ok($$SELECT * FROM admin.suppressed_addresses$$, 'the admin role may look');
SELECT throws_ok($$SELECT * FROM postern.suppressed_address$$, '42501', NULL, 'in the view alone');
SELECT * FROM finish();
ROLLBACK;
