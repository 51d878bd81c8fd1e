\ir ../helpers/fixture.psql
-- The names of a registration go with the request, also when its handle has no tries left and the code gets a new one.
SELECT no_plan();
SELECT admin.set_code_policy('a', resend_cooldown => '0 seconds', otp_attempts => 1),
       admin.put_app('a', 'jit', 'Jit', 'jit.a.example', registration => 'JitOnOtp') \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask('h1', 'new@example.com', '111111', pg_temp.client(), app => 'jit', first_name => 'Ada'), 'sent',
          'a code that registers');
SELECT is(pg_temp.redeem('new@example.com', 'h1', '999999'), 'refused wrong', 'its only try');
SELECT is(pg_temp.ask('h1', 'new@example.com', '222222', pg_temp.client(), resend => true, app => 'jit'), 'sent',
          'another code, without the names');
SELECT is(pg_temp.redeem('new@example.com', 'h1', '222222'), 'refused attempts', 'has a handle of its own');
SELECT is(pg_temp.redeem('new@example.com', 'fresh h1', '222222'), 'ok', 'and registers');
SELECT is(pg_temp.sql($$SELECT first_name FROM postern.user_account WHERE address_key = 'new@example.com'$$), 'Ada',
          'with the names');
SELECT pg_temp.sql($$UPDATE postern.sign_in_request SET id = pg_temp.b16('h2') WHERE id = pg_temp.b16('fresh h1') RETURNING 1$$)
\g /dev/null
SELECT is(pg_temp.ask('h1', 'eve@example.com', '333333', pg_temp.client(), resend => true, app => 'jit'), 'sent',
          'a request of another address that shows the handle');
SELECT is(pg_temp.redeem('eve@example.com', 'fresh h1', '333333'), 'ok', 'registers');
SELECT is(pg_temp.sql($$SELECT first_name FROM postern.user_account WHERE address_key = 'eve@example.com'$$), NULL,
          'without the names');
SELECT * FROM finish();
ROLLBACK;
