\set c 1 + :client_id % 20
\set i :i + 1
\set p 1 + (:i * 64 + :client_id) % least(20000, :users)
select outcome, passkey, user_handle, public_key, sign_count, backup_eligible, limit_ord, retry_after, granted
  from postern.begin_assertion(
       ROW(bench.uid('realm',1), bench.uid('client',:c), bench.grant_passkey(), NULL, NULL, NULL, NULL)::postern.caller,
       NULL,
       uuid_send(bench.uid('ceremony'||:run||':'||:client_id||':', :i)), extract(epoch from now())::float8 + 300,
       bench.uid(:run::int||'p'||:client_id::int||':', :i), 'bench.example.com', sha256(int4send(:p)));
select outcome, page_outcome, reason, user_id, db_now, session_expires_at, auth_time, repeated, factor, sealed_seed,
       last_step_at
  from postern.redeem_passkey(
       ROW(bench.uid('realm',1), bench.uid('client',:c), bench.grant_passkey(), '192.0.2.1', NULL, NULL,
           NULL)::postern.caller,
       ROW(bench.uid(:run::int||'p'||:client_id::int||':', :i), '\x00000000000000000000000000000000',
           sha256(int4send(:run)||int4send(:client_id)||int4send(:i)||'p'), '{profile,offline_access}', '{}',
           '{swk,user,mfa}', 900, 1209600, '\x00000001', NULL, NULL, true, NULL)::postern.new_session,
       bench.uid('passkey', :p), 0, true);
