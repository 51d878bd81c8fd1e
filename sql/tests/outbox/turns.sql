\ir ../helpers/fixture.psql
SELECT plan(56);
CREATE FUNCTION pg_temp.mail(name text, address text, template text DEFAULT 'otp', age interval DEFAULT '0',
                             r uuid DEFAULT pg_temp.realm())
RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose, payload, created_at)
    VALUES (r, pg_temp.uu(name), address, template,
            CASE WHEN template NOT IN ('otp', 'magic-link') THEN 'notice'
                 WHEN address IN ('ada@example.com', 'ADA@example.com', 'bob@example.com') THEN 'sign-in'
                 ELSE 'register' END, '\x01', now() - age) $$;
CREATE FUNCTION pg_temp.state(name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT concat_ws(' ', state, last_error, num_nonnulls(payload, detail)) FROM postern.message_outbox
     WHERE id = pg_temp.uu(name) $$;
-- The recipients in the order in which they are taken, without their domain.
CREATE FUNCTION pg_temp.take(
    wanted integer, after uuid DEFAULT pg_temp.other(), share integer DEFAULT 4, in_hand uuid[] DEFAULT '{}',
        registering uuid[] DEFAULT '{}')
RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(split_part(recipient, '@', 1), ' ')
      FROM pg_temp.take_mail(wanted, after, share, in_hand, registering) $$;
CREATE FUNCTION pg_temp.copies(r uuid, count integer) RETURNS uuid[]
    LANGUAGE sql AS $$ SELECT array_fill(r, ARRAY[count]) $$;
CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    DELETE FROM postern.message_outbox; SELECT set_config('postern.mail_queued', '', true); $$;
SELECT set_config('test.third', admin.put_realm('c', 'c.example')::text, true) \g /dev/null
CREATE FUNCTION pg_temp.third() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT current_setting('test.third')::uuid $$;
SELECT admin.put_user('a', 'cleo@example.com', email_verified => false),
       admin.put_user('a', 'dora@example.com', enabled => false) \g /dev/null
CREATE FUNCTION pg_temp.who(address text) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT id FROM postern.user_account WHERE realm_id = pg_temp.realm() AND address_key = address $$;
SET LOCAL ROLE app_login;

-- Realms take turns.
SELECT pg_temp.mail('a' || n, 'a' || n || '@x.example', 'otp', make_interval(secs => 100 - n))
  FROM generate_series(1, 40) AS n \g /dev/null
SELECT pg_temp.mail('b' || n, 'b' || n || '@x.example', 'otp', '0', pg_temp.other())
  FROM generate_series(1, 2) AS n \g /dev/null
SELECT pg_temp.mail('c1', 'c1@x.example', 'otp', '0', pg_temp.third()) \g /dev/null
SELECT is((SELECT string_agg(DISTINCT split_part(recipient, '@', 1), ' ')
           FROM pg_temp.take_mail(3, pg_temp.realm(), 4)),
    'a1 b1 c1', 'H4: each realm with ready mail gets a turn, however much another one has queued');
SELECT is(pg_temp.take(6, pg_temp.realm()), 'b2 a2 a3 a4',
    'the realm after the last one begins; without other mail a realm gets what it may have');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox WHERE state = 'queued' AND is_waiting
                      AND not_before = now() + interval '1 minute' AND attempts = 1$$),
    '7', 'what is taken is leased');
SELECT pg_temp.mail('b3', 'b3@x.example', 'otp', '0', pg_temp.other()) \g /dev/null
SELECT is(pg_temp.take(1, pg_temp.other()), 'a5', 'a cursor is obeyed');
SELECT is(pg_temp.take(1, pg_temp.realm()), 'b3', 'in both directions');
SELECT is(pg_temp.take(1, gen_random_uuid()), 'a6', 'a cursor of no realm is as good');
SELECT is(pg_temp.take(1, NULL), 'a7', 'and none too');

-- A share of the senders.
SELECT is(pg_temp.take(6, pg_temp.other(), 4, pg_temp.copies(pg_temp.realm(), 4)), NULL,
          'a realm at its share is left out');
SELECT is(pg_temp.take(6, pg_temp.other(), 4, pg_temp.copies(pg_temp.realm(), 2)), 'a8 a9', 'what is in hand counts');
SELECT is(pg_temp.take(6, pg_temp.other(), 4), 'a10 a11 a12', 'registrations get one sender less');
SELECT pg_temp.mail('ada', 'ADA@example.com') \g /dev/null
SELECT is(pg_temp.take(6, pg_temp.other(), 4, pg_temp.copies(pg_temp.realm(), 3), pg_temp.copies(pg_temp.realm(), 3)),
          'ADA',
    'which is there for somebody who signs in');
SELECT is(pg_temp.take(6, pg_temp.other(), 1), 'a13', 'a share of one is one');

-- Priority.
SELECT pg_temp.mail('bob', 'bob@example.com', 'otp', '1 second'),
       pg_temp.mail('link', 'ada@example.com', 'magic-link', '2 seconds'),
    pg_temp.mail('unverified', 'cleo@example.com', 'otp', '9 minutes'),
        pg_temp.mail('disabled', 'dora@example.com', 'otp', '8 minutes'),
    pg_temp.mail('told', 'told@example.com', 'passkey-added', '1 hour') \g /dev/null
SELECT is(pg_temp.take(6, pg_temp.other(), 6), 'ada bob told cleo dora a14',
          'sign-ins before notices before registrations, each by age');

SELECT pg_temp.empty() \g /dev/null
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT postern.queue_message(pg_temp.realm(), gen_random_uuid(), 'email', purpose || '@x.example', 'otp', purpose, '\x01')
  FROM unnest('{register,verify,identifier,possession,sign-in,approval}'::text[]) AS purpose \g /dev/null
SELECT is(pg_temp.sql($$SELECT string_agg(priority || ' ' || purpose, ', ' ORDER BY priority, purpose COLLATE "C")
                      FROM postern.message_outbox$$),
    '0 approval, 0 sign-in, 2 identifier, 2 possession, 2 register, 2 verify',
    'a purpose says it: to an address that is not proven after all others');
SELECT pg_temp.empty() \g /dev/null
SELECT postern.queue_message(pg_temp.realm(), gen_random_uuid(), 'email', 'i' || n || '@x.example', 'otp', 'identifier',
                             '\x01') FROM generate_series(1, 8001) AS n \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '8000',
          'whoever has an account fills four fifths of the queue with addresses to add');
SELECT pg_temp.mail('ada', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.take(1), 'ada', 'a member''s code is queued, and leaves first');
SELECT pg_temp.sql($$DELETE FROM postern.audit_event WHERE event = 'mail_queue_full';
                   DELETE FROM postern.rate_bucket WHERE key = 'mail-queue-full' RETURNING 1$$) \g /dev/null

-- What is over is dropped before a sender sees it.
SELECT pg_temp.empty() \g /dev/null
SELECT pg_temp.mail('stale' || n, 'stale' || n || '@x.example', 'otp', '10 minutes')
  FROM generate_series(1, 600) AS n \g /dev/null
SELECT pg_temp.mail('fresh', 'fresh@x.example', 'otp', '599 seconds'),
       pg_temp.mail('old link', 'bob@example.com', 'magic-link', '16 minutes'),
    pg_temp.mail('old notice', 'bob@example.com', 'totp-added', '23 hours') \g /dev/null
SELECT is(pg_temp.take(6), 'bob fresh', 'codes and links have the time of their realm, notices a day');
SELECT is(pg_temp.state('stale1') || ', ' || pg_temp.state('old link'), 'dead expired 0, dead expired 0',
          'the others are dead without a lease');
SELECT is(pg_temp.sql($$SELECT sum(attempts) FROM postern.message_outbox WHERE state = 'dead'$$), '0',
          'and without an attempt');
SELECT is(pg_temp.take(6), NULL, 'then there is nothing to take');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox WHERE last_error = 'expired'$$), '601',
          'and all of it is dropped');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'mail_dead'
                      AND detail ->> 'error' = 'expired'$$), '601', 'and audited');
SELECT is(postern.outbox_failed(pg_temp.realm(), pg_temp.uu('fresh'), '4xx', '30 seconds', false), true,
          'a try after the end of the code would be none');

-- Leases and pauses end.
SELECT pg_temp.empty() \g /dev/null
SELECT pg_temp.mail('x', 'x@x.example') \g /dev/null
SELECT is(pg_temp.take(6), 'x', 'taken');
SELECT is(pg_temp.take(6), NULL, 'on lease');
SELECT pg_temp.sql($$UPDATE postern.message_outbox SET not_before = now() - interval '1 second' RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.take(6), 'x', 'a sender that died loses nothing');
SELECT is(postern.outbox_failed(pg_temp.realm(), pg_temp.uu('x'), '4xx', '10 seconds', false), false, 'a failure');
SELECT is(pg_temp.take(6), NULL, 'pauses it');
SELECT pg_temp.sql($$UPDATE postern.message_outbox SET not_before = now() RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.take(6), 'x', 'for a while');

-- The bound of a realm's queue.
SELECT pg_temp.empty() \g /dev/null
SELECT pg_temp.mail('f' || n, 'f' || n || '@x.example') FROM generate_series(1, 8005) AS n \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '8000',
          'registrations fill four fifths of a queue of 10,000');
SELECT is(pg_temp.sql($$SELECT string_agg(concat_ws(' ', realm_id = pg_temp.realm(), detail ->> 'queued'), ',')
                      FROM postern.audit_event WHERE event = 'mail_queue_full'$$),
    't 8000', 'which is audited once, not per mail');
SELECT lives_ok($$SELECT pg_temp.mail('f', 'f@x.example')$$, 'and no error');
SELECT pg_temp.mail('g' || n, 'ada@example.com') FROM generate_series(1, 2005) AS n \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '10000', 'sign-ins fill the rest');
SELECT set_config('postern.mail_queued', '', true) \g /dev/null
SELECT pg_temp.mail('h', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox$$), '10000', 'also when it is counted anew');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'mail_queue_full'$$), '1',
          'still one event a minute');
SELECT pg_temp.sql($$UPDATE postern.rate_bucket SET tat = now() - interval '1 second' WHERE key = 'mail-queue-full'
                   RETURNING 1$$) \g /dev/null
SELECT pg_temp.mail('h', 'ada@example.com') \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.audit_event WHERE event = 'mail_queue_full'$$), '2',
          'and one after it');
SELECT pg_temp.mail('b', 'b@x.example', 'otp', '0', pg_temp.other()) \g /dev/null
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.message_outbox WHERE realm_id = pg_temp.other()$$), '1',
          'another realm has a queue of its own');
SELECT is(pg_temp.take(1, pg_temp.realm()), 'b', 'and its turn');

-- Figures.
SELECT results_eq($$SELECT queue, realm, queued, oldest > 0 FROM postern.queue_figures(1) ORDER BY 1, 2$$,
    $$VALUES ('approvals', NULL::text, 0::bigint, false), ('logout-tokens', NULL, 0, false),
             ('mail', 'a', 10000, false), ('mail', NULL, 10001, false), ('push', NULL, 0, false),
             ('requests', NULL, 0, false), ('sms', NULL, 0, false), ('voice', NULL, 0, false),
             ('whatsapp', NULL, 0, false)$$,
        'the worst realms by name, all in one figure');
SELECT pg_temp.empty() \g /dev/null
SELECT pg_temp.mail('o', 'o@x.example', 'totp-added', '90 seconds'),
       pg_temp.mail('p', 'p@x.example', 'totp-added', '30 seconds', pg_temp.other()) \g /dev/null
SELECT results_eq($$SELECT realm, oldest FROM postern.queue_figures(20) WHERE queue = 'mail' ORDER BY 2, 1$$,
    $$VALUES ('b', 30::float8), ('a', 90), (NULL, 90)$$, 'with the age of what is due');

-- Notices.
SELECT pg_temp.empty() \g /dev/null
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('ada@example.com'), 'totp-added') \g /dev/null
SELECT results_eq($$SELECT recipient, template, payload, detail, realm_name
                  FROM pg_temp.take_mail(4)$$,
    $$VALUES ('Ada@example.com', 'totp-added', NULL::bytea, '{}'::jsonb, 'a')$$,
        'a notice goes to the account''s address');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('ada@example.com'), 'address-changed', '{"x": 1}',
                            'before@example.com') \g /dev/null
SELECT results_eq($$SELECT recipient, detail FROM pg_temp.take_mail(4)$$,
                  $$VALUES ('before@example.com', '{"x": 1}'::jsonb)$$,
    'a notice to another mailbox, with its facts');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('cleo@example.com'), t)
  FROM unnest('{totp-added,totp-removed,account-deleted}'::text[]) AS t \g /dev/null
SELECT is(pg_temp.take(4), NULL, 'an address that was never confirmed is told nothing');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('cleo@example.com'), 'address-changed', NULL,
                            'Cleo@example.com') \g /dev/null
SELECT is(pg_temp.take(4), 'Cleo', 'but that it became the account''s');
SELECT postern.queue_notice(pg_temp.realm(), gen_random_uuid(), 'account-deleted') \g /dev/null
SELECT is(pg_temp.take(4), NULL, 'an account that is gone has no address');
SELECT postern.queue_notice(pg_temp.realm(), gen_random_uuid(), 'account-deleted', NULL,
                            'gone@example.com') \g /dev/null
SELECT is(pg_temp.take(4), 'gone', 'unless it is named');
SELECT throws_ok($$SELECT postern.queue_notice(pg_temp.realm(), gen_random_uuid(), 'otp', NULL, 'x@example.com')$$,
                 'P0001', NULL, 'a code is no notice');
SELECT throws_ok($$SELECT pg_temp.sql($q$INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose)
                                      VALUES (pg_temp.realm(), gen_random_uuid(), 'a@b', 'otp', 'sign-in') RETURNING 1$q$)$$,
    '23514', NULL, 'a mail has a content');
RESET ROLE;
SELECT admin.put_app('a', 'shop', 'The Shop', 'shop.a.example', client_ids => '{app}') \g /dev/null
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT is(postern.app_named(pg_temp.realm(), pg_temp.client()), '{"app": "shop"}', 'the App of a client');
SELECT is(postern.app_named(pg_temp.realm(), pg_temp.client('second')), '{}', 'or none');
SELECT postern.queue_notice(pg_temp.realm(), pg_temp.who('ada@example.com'), 'totp-removed',
                            postern.app_named(pg_temp.realm(), pg_temp.client())) \g /dev/null
SELECT is((SELECT realm_name FROM pg_temp.take_mail(4)), 'The Shop',
          'is what a notice names');

-- Undecided requests.
SELECT is((SELECT count(*)::int FROM generate_series(1, 100) AS n, LATERAL postern.record_sent_request(
               pg_temp.caller(NULL, NULL, NULL, CASE WHEN n <= 97 THEN pg_temp.realm() WHEN n <= 99 THEN pg_temp.other()
                                                     ELSE pg_temp.third() END), NULL,
               pg_temp.request('q' || n, 'q' || n || '@x.example'), NULL)), 100, 'a flood at one realm');
SELECT pg_temp.sql($$UPDATE postern.sign_in_request SET created_at = now() - interval '1 minute'
                   WHERE realm_id = pg_temp.realm() RETURNING 1$$) \g /dev/null
SELECT results_eq($$SELECT CASE realm_id WHEN pg_temp.realm() THEN 'a' WHEN pg_temp.other() THEN 'b' ELSE 'c' END AS r,
                  count(*)::int FROM postern.take_undecided(32, pg_temp.realm()) GROUP BY 1 ORDER BY 1$$,
    $$VALUES ('a', 29), ('b', 2), ('c', 1)$$,
        'H4: each realm''s requests are in the next batch, what they leave is the flood''s');
SELECT results_eq($$SELECT CASE realm_id WHEN pg_temp.realm() THEN 'a' ELSE 'other' END AS r, count(*)::int
                  FROM postern.take_undecided(2, pg_temp.realm()) GROUP BY 1 ORDER BY 1$$,
    $$VALUES ('other', 2)$$, 'a small batch begins after the realm that was last');
SELECT is((SELECT count(*)::int FROM (SELECT id FROM postern.take_undecided(200, NULL)) AS t), 100,
          'no request comes twice');
SELECT pg_temp.sql($$UPDATE postern.sign_in_request SET hint_user = gen_random_uuid(), hint_session = gen_random_uuid()
                      WHERE id = pg_temp.b16('q97') RETURNING 1$$),
       pg_temp.sql($$UPDATE postern.sign_in_request SET created_at = now() + interval '1 second'
                      WHERE id = pg_temp.b16('q97') RETURNING 1$$) \g /dev/null
SELECT is((SELECT id FROM postern.take_undecided(3, NULL, '-1 minute') WHERE realm_id = pg_temp.realm()), pg_temp.b16('q97'),
          'a device that may be known does not wait behind a flood');
SELECT * FROM finish();
ROLLBACK;
