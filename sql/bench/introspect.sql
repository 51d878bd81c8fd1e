\set n random(1, :sessions)
select active, user_id, client, client_id, scope, resource, amr, auth_time, token_salt, email, email_verified,
       first_name, last_name, db_now, expires_at, refresh_expires_at, current_hash, acr, jkt,
       cotter
  from postern.live_session(
       bench.uid('realm',1), bench.uid('session',:n), '\x00000000000000000000000000000000');
