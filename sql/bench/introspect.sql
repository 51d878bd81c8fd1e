\set n random(1, 500000)
select active, scope, auth_time, created_at, user_id, client_id, email from postern.introspect(bench.uid('realm',1), bench.uid('session',:n), '\x00000000000000000000000000000000')
