\set i :i + 1
\set n :run * 10000000 + :client_id * 100000 + :i
select outcome, reason, user_id, scope, resource, amr, acr, nonce, auth_time, db_now, session_expires_at,
       has_refresh_token, limit_ord, retry_after, granted
  from postern.redeem_authorization_code(
       ROW(bench.uid('realm',1), bench.web(), bench.grant_code(), '192.0.2.1', NULL, NULL, NULL)::postern.caller,
       NULL,
       ROW(bench.uid('a', :n), '\x00000000000000000000000000000000', sha256(int8send(:n)), NULL, NULL, NULL, 900,
           1209600, '\x01020304', NULL, NULL, NULL, NULL)::postern.new_session,
       bench.hash(bench.random_text('pac_', :n)), 'https://app.example.com/cb',
       rtrim(translate(encode(bench.hash(repeat('x', 64)), 'base64'), '+/', '-_'), '='), null);
