\ir ../helpers/fixture.psql
SELECT no_plan();
-- Postures, as the worker's function decides them.
SELECT admin.put_app('a', 'jit', 'Jit', 'jit.a.example'), admin.put_app('a', 'off', 'Off', 'off.a.example', 'Off'),
       admin.put_app('a', 'explicit', 'Explicit', 'explicit.a.example', 'ExplicitEndpoint') \g /dev/null
SELECT admin.put_user('a', 'confirmed@example.com'),
       admin.put_user('a', 'unconfirmed@example.com', 'Una', email_verified => false),
       admin.put_user('a', 'disabled@example.com', enabled => false),
           admin.put_user('a', 'neither@example.com', email_verified => false, enabled => false) \g /dev/null
CREATE FUNCTION pg_temp.request(handle text, kind text, app text, address text, code text, first_name text DEFAULT NULL,
                                client uuid DEFAULT NULL, source text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.ask(handle, address, code, client, kind => request.kind, app => request.app,
                       first_name => request.first_name, source => request.source) $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.request(concat(kind, posture, state), kind, posture, state || '@example.com', '1'),
    CASE WHEN state = 'confirmed' AND kind = 'otp' THEN 'sent'
         WHEN state IN ('unknown', 'unconfirmed') AND (kind, posture) IN (('otp', 'jit'), ('register', 'explicit'))
             THEN 'sent'
         ELSE 'ignored' END, format('%s at %s: %s', state, coalesce(posture, 'the realm'), kind))
  FROM (VALUES ('otp'), ('register')) AS k (kind),
       (VALUES (NULL), ('off'), ('jit'), ('explicit'), ('deleted')) AS p (posture),
           (VALUES ('unknown'), ('confirmed'), ('unconfirmed'), ('disabled'), ('neither')) AS s (state)
 WHERE NOT (state = 'confirmed' AND kind = 'otp') ORDER BY kind, posture, state;
SELECT is(pg_temp.request('first', 'otp', 'off', 'confirmed@example.com', '1'), 'sent',
          'a confirmed user is sent a code, whatever the posture');
SELECT is(pg_temp.request('gone', 'otp', 'deleted', 'confirmed@example.com', '1'), 'ignored',
          'but not for the host of an App that is gone');
SELECT is(pg_temp.sql($$SELECT string_agg(DISTINCT address_key || ' ' || (user_id IS NULL) || ' ' || app, ', ')
                      FROM postern.login_code WHERE email IS NOT NULL$$),
    'unconfirmed@example.com true explicit, unconfirmed@example.com true jit, unknown@example.com true explicit, '
    'unknown@example.com true jit', 'a pending registration is a code of nobody');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.user_account WHERE address_key = 'unknown@example.com'$$), '0',
          'no user before the mailbox is proven');
SELECT is(pg_temp.request('again', 'otp', 'jit', 'unknown@example.com', '2'), 'sent', 'each request has its own code');
SELECT is(pg_temp.sql($$SELECT string_agg(DISTINCT event, ',') FROM postern.audit_event WHERE user_id IS NULL
                      AND event LIKE 'regis%'$$), 'registration_requested', 'it is in the audit log');

-- Redemption: the user comes into being with the session, or not at all.
CREATE FUNCTION pg_temp.users(address text) RETURNS text
    LANGUAGE sql AS $$ SELECT pg_temp.sql(format($q$
                                                 SELECT coalesce(string_agg(email || ' ' || coalesce(first_name, '-')
                                                     || ' ' || email_verified, ','), 'none') FROM postern.user_account
                                                         WHERE realm_id = pg_temp.realm() AND address_key = %L$q$,
                                                             address)) $$;
SELECT is(pg_temp.redeem('unknown@example.com', 'again', '9'), 'refused wrong', 'a wrong code');
SELECT is(pg_temp.users('unknown@example.com'), 'none', 'registers nobody');
SELECT is(pg_temp.redeem('unknown@example.com', 'again', '2'), 'ok', 'the right one signs in');
SELECT is(pg_temp.users('unknown@example.com'), 'unknown@example.com - true', 'a user who is there now');
SELECT is(pg_temp.redeem('unknown@example.com', 'again', '2'), 'refused unknown', 'a code works once');
SELECT is(pg_temp.sql($$SELECT string_agg(event || (detail IS NULL), ',' ORDER BY id) FROM postern.audit_event AS e
                      WHERE user_id = (SELECT id FROM postern.user_account WHERE address_key = 'unknown@example.com')
                        AND realm_id = pg_temp.realm()$$), 'user_registeredfalse,sign_infalse',
                            'both are in the audit log');
SELECT is(pg_temp.redeem('unconfirmed@example.com', NULL, '1'), 'ok', 'an unconfirmed user signs in by address');
SELECT is(pg_temp.users('unconfirmed@example.com'), 'unconfirmed@example.com Una true', 'and is confirmed');
SELECT is(pg_temp.request('n1', 'otp', 'jit', 'New@Example.com', '1', 'Eve'), 'sent', 'a registration with a name');
SELECT is(pg_temp.request('n2', 'otp', 'jit', 'new@example.com', '2'), 'sent', 'and another of the same address');
SELECT is(pg_temp.redeem('new@example.com', 'n2', '2'), 'ok', 'redeemed by its handle');
SELECT is(pg_temp.users('new@example.com'), 'new@example.com - true', 'has nothing of the first');
SELECT is(pg_temp.request('p1', 'otp', 'jit', 'poisoned@example.com', '1', E' \u0301x'), 'sent',
          'a name that nobody can have');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET first_name = E'\u202etxt', last_name = E'\u0301x'
                      WHERE address_key = 'poisoned@example.com' RETURNING 1$$), '1',
                          'or one that was stored before names were looked at');
SELECT is(pg_temp.redeem('poisoned@example.com', 'p1', '1'), 'ok', 'does not make the right code fail');
SELECT is(pg_temp.users('poisoned@example.com'), 'poisoned@example.com - true', 'it is dropped');
SELECT is(pg_temp.request('c1', 'otp', 'jit', 'client@example.com', '1', NULL, pg_temp.client('second')), 'sent',
          'a registration for one client');
SELECT matches(pg_temp.redeem('client@example.com', 'c1', '1'), '^refused', 'is not another''s');
SELECT is(pg_temp.users('client@example.com'), 'none', 'which registers nobody');
SELECT is(pg_temp.request('m1', 'otp', 'jit', 'made@example.com', '1', 'Eve'), 'sent', 'a registration');
RESET ROLE;
SELECT admin.put_user('a', 'made@example.com', 'Mike') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('made@example.com', 'm1', '1'), 'ok', 'of a user made meanwhile');
SELECT is(pg_temp.users('made@example.com'), 'made@example.com Mike true', 'changes nothing of that user');
-- What ends registration ends pending ones.
SELECT is(pg_temp.request('e' || n, 'otp', 'jit', 'end' || n || '@example.com', '1'), 'sent', 'a registration')
  FROM generate_series(1, 4) AS n;
RESET ROLE;
SELECT admin.put_app('a', 'jit', registration => 'Off') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('end1@example.com', 'e1', '1'), 'refused disabled', 'the posture is asked again');
RESET ROLE;
SELECT admin.put_app('a', 'jit', registration => 'JitOnOtp', native_grants_enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('end1@example.com', 'e1', '1'), 'refused disabled', 'and the App''s switch');
SELECT is(pg_temp.request('off', 'otp', 'jit', 'confirmed@example.com', '1'), 'ignored',
          'which also ends codes on its host');
RESET ROLE;
SELECT admin.put_app('a', 'jit', native_grants_enabled => true),
       admin.revoke_permission('a', 'app', 'gt:urn:cocoar:otp') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried($$pg_temp.redeem('end1@example.com', 'e1', '1')$$), 'PC002', 'and the client''s permission');
RESET ROLE;
SELECT admin.grant_permission('a', 'app', 'gt:urn:cocoar:otp'),
       admin.put_user('a', 'end2@example.com', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.redeem('end2@example.com', 'e2', '1'), 'refused unknown',
          'an administrator who disables the address');
SELECT is(pg_temp.redeem('end1@example.com', 'e1', '1'), 'ok', 'otherwise it is good');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() WHERE address_key = 'end3@example.com'
                      RETURNING 1$$), '1', 'a pending registration that ran out');
SELECT is(pg_temp.redeem('end3@example.com', 'e3', '1'), 'refused expired', 'registers nobody');
SELECT is(pg_temp.sql($$UPDATE postern.login_code SET expires_at = now() - interval '1 s' WHERE email IS NOT NULL
                      RETURNING 1$$), '1', 'all others as well');
SELECT ok(postern.sweep(1000000) > 0, 'the sweeper comes');
SELECT is(pg_temp.sql($$SELECT count(*) FROM postern.login_code WHERE email IS NOT NULL$$), '0',
          'and nothing is left of them');
SELECT is(pg_temp.users('end4@example.com'), 'none', 'no user either');
-- One source, many unknown addresses: limit registrations.
SELECT is(string_agg(pg_temp.request('many' || n, 'otp', 'jit', 'many' || n || '@example.com', '1',
                                     source => '192.0.2.9'), ',' ORDER BY n), repeat('sent,', 30) || 'limited,limited',
                                         'thirty at once')
  FROM generate_series(1, 32) AS n;
SELECT is(pg_temp.request('other', 'otp', 'jit', 'other@example.com', '1', source => '192.0.2.10'), 'sent',
          'another source is not concerned');
SELECT is(pg_temp.request('known', 'otp', 'jit', 'confirmed@example.com', '1', source => '192.0.2.9'), 'sent',
          'nor are those who have an account');
-- What the app role may write of a user.
SELECT throws_ok(v.statement, '42501', NULL, v.statement)
  FROM (VALUES ($$UPDATE postern.user_account SET enabled = true$$),
        ($$UPDATE postern.user_account SET email = 'x@example.com'$$),
    ($$UPDATE postern.user_account SET security_stamp = gen_random_uuid()$$), ($$DELETE FROM postern.user_account$$),
        ($$UPDATE postern.login_code SET mac = '\x'$$)) AS v (statement);
RESET ROLE;
-- A /48 has sixteen times the permits of a /64.
SELECT admin.set_rate_limit('a', 'native-otp', 'registrations', permits => 1, per => '1 day', burst => 1) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(string_agg(pg_temp.request('broad' || n, 'otp', 'jit', 'broad' || n || '@example.com', '1',
                                     source => '2001:db8:1:' || to_hex(n) || ':0:0:0:0/64'), ',' ORDER BY n),
          repeat('sent,', 16) || 'limited', 'seventeen /64 of one /48, one address each')
  FROM generate_series(1, 17) AS n;
SELECT is(pg_temp.request('elsewhere', 'otp', 'jit', 'elsewhere@example.com', '1', source => '2001:db8:2:1:0:0:0:0/64'), 'sent',
          'another /48 is not concerned');
SELECT is(pg_temp.request('elsewhere2', 'otp', 'jit', 'elsewhere2@example.com', '1', source => '2001:db8:2:1:0:0:0:0/64'),
          'limited', 'and each /64 has its own limit');
RESET ROLE;
-- The trusted forwarder.
SELECT admin.put_client('a', 'bff', 'confidential') \g /dev/null
SELECT is(admin.grant_permission('a', 'bff', 'cap:trusted-forwarder'), ARRAY['cap:trusted-forwarder'],
          'a confidential client may forward');
SELECT matches(pg_temp.refusal($$SELECT admin.grant_permission('a', 'app', 'cap:trusted-forwarder')$$),
               '^22023 permission "cap:trusted-forwarder" needs a confidential client', 'a public one may not');
SELECT matches(pg_temp.refusal($$SELECT admin.put_client('a', 'bff', 'public')$$),
               '^22023 client_type "public" is not possible: client_id "bff" holds "cap:trusted-forwarder"',
                   'nor become one');
SELECT throws_ok($$UPDATE postern.client SET permissions = '{cap:trusted-forwarder}' WHERE client_id = 'app'$$, '23514',
                 NULL, 'however the row is written');
SELECT * FROM finish();
ROLLBACK;
