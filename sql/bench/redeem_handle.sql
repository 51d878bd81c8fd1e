\set c 1 + :client_id % 20
\set i :i + 1
select outcome as st, user_id as u from postern.redeem_otp(bench.uid('realm',1), bench.uid('client',:c), bench.grant_otp(), 'user'||(1+(:i::int*64+:client_id::int)%100000)::text||'@example.org', uuid_send(bench.uid('handle'||:run||':'||:client_id||':', :i)), array[sha256('123456')], bench.uid(:run::int||'f'||:client_id::int||':', :i), '\x00000000000000000000000000000000', sha256(int4send(:run)||int4send(:client_id)||int4send(:i)), '{openid,profile,offline_access}', '{}', '{otp}', 900, 1209600, '192.0.2.1', '{}', '{}', '{}', '{}', '{}', 5, 600, 5) \gset
