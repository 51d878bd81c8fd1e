\set n random(1, 50000)
\set i :i + 1
select outcome, session, user_id, email, first_name, last_name, amr, auth_time, email_proved_at, phone_proved_at, db_now,
       expires_at, cookie_due
  from postern.continue_browser_session(
       bench.uid('realm',1), bench.hash(bench.random_text('pss_', :n)), 'bench.example.com',
       ROW(bench.web(), 'https://app.example.com/cb', '{openid,profile}', '{bench-web}', NULL, 'n', repeat('x', 43),
           NULL, NULL, NULL, false, false, false, false, false, NULL,
           sha256(int4send(:run)||int4send(:client_id)||int4send(:i)), NULL)::postern.code_request);
