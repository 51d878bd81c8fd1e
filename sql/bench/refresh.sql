\set c 1 + :client_id % 20
\set j :i
\set i :i + 1
select outcome, reason, user_id, scope, resource, amr, acr, auth_time, token_salt, current_hash, db_now, limit_ord,
       retry_after, granted, expires_at
  from postern.rotate_session(
       bench.uid('realm',1), bench.uid('client',:c), bench.uid('chain'||:run||':', :client_id), :j,
       sha256(int4send(:run)||int4send(:client_id)||int4send(:j)),
       array[sha256(int4send(:run)||int4send(:client_id)||int4send(:i))], 1209600, '192.0.2.1', '\x00000000', :i,
       null, NULL, null, null, null, null);
