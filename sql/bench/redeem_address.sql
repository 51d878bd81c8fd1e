\set c 1 + :client_id % 20
\set i :i + 1
select outcome, page_outcome, reason, user_id, db_now, session_expires_at, auth_time, repeated, limit_ord, retry_after,
       granted, factor, sealed_seed, last_step_at, compared
  from postern.redeem_code(
       ROW(bench.uid('realm',1), bench.uid('client',:c), bench.grant_otp(), '192.0.2.1', NULL, NULL,
           NULL)::postern.caller,
       NULL,
       ROW(bench.uid(:run::int||'f'||:client_id::int||':', :i), '\x00000000000000000000000000000000',
           sha256(int4send(:run)||int4send(:client_id) ||int4send(:i)), '{profile,offline_access}', '{}',
           '{otp}', 900, 1209600, '\x01020304', NULL, NULL, NULL, NULL)::postern.new_session,
       'user'||(1+(:i::bigint*:clients+:client_id::int)%:users)::text ||'@example.org', null,
       array[sha256('123456')], ROW(5, 600, 5), ROW(3000, 3600, 1000), NULL);
