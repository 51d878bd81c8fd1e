\set n random(1, 50000)
\set i :i + 1
select outcome, session, user_id, email, first_name, last_name, amr, auth_time, email_proved_at, phone_proved_at, db_now,
       expires_at, cookie_due
  from postern.continue_browser_session(
       bench.uid('realm',1), bench.hash(bench.random_text('pss_', :n)), 'bench.example.com',
       format('{"client":"%s","redirect_uri":"https://app.example.com/cb","scope":["openid","profile"],'
              '"resource":["bench-web"],"nonce":"n","challenge":"%s","code":"%s"}', bench.web(), repeat('x', 43),
              encode(sha256(int4send(:run)||int4send(:client_id)||int4send(:i)), 'hex'))::jsonb);
