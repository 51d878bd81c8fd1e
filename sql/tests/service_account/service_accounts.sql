\ir ../helpers/fixture.psql
SELECT no_plan();
SELECT admin.put_client('a', 'robot', 'confidential') \g /dev/null
SELECT set_config('test.account', admin.put_service_account('a', 'robot', 'robot')::text, true) \g /dev/null
SELECT admin.grant_permission('a', 'robot', 'gt:client_credentials') \g /dev/null
CREATE FUNCTION pg_temp.ask(client text DEFAULT 'robot', source text DEFAULT '192.0.2.1',
                            r uuid DEFAULT pg_temp.realm()) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, account = current_setting('test.account')::uuid, octet_length(token_salt), limit_ord)
      FROM postern.client_credentials(pg_temp.caller('gt:client_credentials', source, pg_temp.client(client), r), NULL) $$;
CREATE FUNCTION pg_temp.seen(jti text DEFAULT 'j', r uuid DEFAULT pg_temp.realm()) RETURNS bytea LANGUAGE sql AS $$
    SELECT token_salt FROM postern.live_service_account(r, current_setting('test.account')::uuid, pg_temp.b16(jti)) $$;
CREATE FUNCTION pg_temp.revoked(jti text, client text DEFAULT 'robot', until interval DEFAULT '1 hour') RETURNS boolean
    LANGUAGE sql AS $$
    SELECT postern.revoke_service_token(pg_temp.realm(), pg_temp.client(client), current_setting('test.account')::uuid,
                                        pg_temp.b16(jti), extract(epoch FROM now() + until)) $$;
CREATE FUNCTION pg_temp.audited() RETURNS text
    LANGUAGE sql AS $$
    SELECT pg_temp.sql('SELECT count(*) FROM postern.audit_event WHERE event = ''service_account_used''') $$;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.ask(), 'ok t 16', 'a client acts as its service account');
SELECT is(pg_temp.ask(), 'ok t 16', 'again');
SELECT is(pg_temp.audited(), '1', 'audited once');
SELECT is(pg_temp.ask(source => '192.0.2.2'), 'ok t 16', 'from another place');
SELECT is(pg_temp.audited(), '2', 'once more');
SELECT is(pg_temp.sql($$UPDATE postern.service_account_use SET at = now() - interval '61 minutes'
                      WHERE source = '192.0.2.1' RETURNING 1$$), '1', 'an hour later');
SELECT is(pg_temp.ask(), 'ok t 16', 'from the first');
SELECT is(pg_temp.audited(), '3', 'once more');
SELECT is(pg_temp.tried($$pg_temp.ask('app')$$), 'PC002', 'a login client may not');
SELECT is(pg_temp.tried($$pg_temp.ask(r => pg_temp.other())$$), 'PC001', 'nor one of another realm');
SELECT isnt(pg_temp.seen(), NULL, 'the account is seen behind its tokens');
SELECT is(pg_temp.seen(r => pg_temp.other()), NULL, 'not in another realm');
SELECT ok(NOT pg_temp.revoked('j', 'app'), 'another client revokes nothing');
SELECT ok(NOT pg_temp.revoked('j', until => '-1 s'), 'what has expired need not be remembered');
SELECT isnt(pg_temp.seen(), NULL, 'the token lives');
SELECT ok(pg_temp.revoked('j'), 'its own client does');
SELECT is(pg_temp.seen(), NULL, 'the token is dead');
SELECT isnt(pg_temp.seen('k'), NULL, 'and no other');
SELECT ok(NOT pg_temp.revoked('j'), 'once');
SELECT results_eq($$SELECT outcome, limit_ord, granted
                  FROM postern.client_credentials(pg_temp.caller('gt:client_credentials', 's', pg_temp.client('robot')),
                                                  ROW('{a,b}', '{1,2}', '{1,1}', '{60,60}', '{1,1}'))$$,
    $$VALUES ('ok', NULL::int, '{1,1}'::int[])$$, 'permits are taken');
SELECT results_eq($$SELECT outcome, limit_ord, granted
                  FROM postern.client_credentials(pg_temp.caller('gt:client_credentials', 's', pg_temp.client('robot')),
                                                  ROW('{a,b}', '{1,2}', '{1,1}', '{60,60}', '{1,1}'))$$,
    $$VALUES ('rate_limited', 1, '{0}'::int[])$$, 'while there are some');
RESET ROLE;
SELECT set_config('test.salt', encode(token_salt, 'hex'), true) FROM postern.service_account \g /dev/null
SELECT admin.put_client('a', 'robot', enabled => false) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried('pg_temp.ask()'), 'PC001', 'a disabled client may not');
SELECT is(pg_temp.seen('k'), NULL, 'and its tokens are dead');
RESET ROLE;
SELECT admin.put_client('a', 'robot', enabled => true) \g /dev/null
SELECT isnt(encode(token_salt, 'hex'), current_setting('test.salt'), 'for good: the salt is another')
  FROM postern.service_account;
SELECT set_config('test.salt', encode(token_salt, 'hex'), true) FROM postern.service_account \g /dev/null
SELECT admin.put_client('a', 'robot', display_name => 'Robot'),
       admin.grant_permission('a', 'robot', 'scp:email') \g /dev/null
SELECT is(encode(token_salt, 'hex'), current_setting('test.salt'), 'other changes leave it')
  FROM postern.service_account;
SELECT admin.rotate_client_secret('a', 'robot', '1 hour') \g /dev/null
SELECT is(encode(token_salt, 'hex'), current_setting('test.salt'), 'nor does a secret beside the former one')
  FROM postern.service_account;
SELECT admin.rotate_client_secret('a', 'robot') \g /dev/null
SELECT isnt(encode(token_salt, 'hex'), current_setting('test.salt'), 'a secret that ends the former one ends its tokens')
  FROM postern.service_account;
SELECT set_config('test.salt', encode(token_salt, 'hex'), true) FROM postern.service_account \g /dev/null
SELECT admin.revoke_permission('a', 'robot', 'gt:client_credentials') \g /dev/null
SELECT isnt(encode(token_salt, 'hex'), current_setting('test.salt'), 'a lost permission does not')
  FROM postern.service_account;
SET LOCAL ROLE app_login;
SELECT is(pg_temp.tried('pg_temp.ask()'), 'PC002', 'without it there is no token');
RESET ROLE;
-- A JWT knows no salt: it is dead by its time.
CREATE FUNCTION pg_temp.since() RETURNS double precision LANGUAGE sql AS $$
    SELECT since FROM postern.live_service_account(pg_temp.realm(), current_setting('test.account')::uuid,
                                                   pg_temp.b16('k')) $$;
UPDATE postern.service_account SET tokens_since = 'epoch' \g /dev/null
SELECT set_config('test.salt', encode(token_salt, 'hex'), true) FROM postern.service_account \g /dev/null
SELECT admin.grant_permission('a', 'robot', 'gt:client_credentials') \g /dev/null
SELECT isnt(encode(token_salt, 'hex'), current_setting('test.salt'), 'a regained permission is a new start')
  FROM postern.service_account;
SET LOCAL ROLE app_login;
SELECT ok(pg_temp.since() > extract(epoch FROM clock_timestamp()) - 1, 'what was made before is dead');
SELECT is(pg_temp.since(), floor(pg_temp.since()), 'in whole seconds, as iat has them');
SELECT ok(floor(db_now) >= pg_temp.since(), 'a token made at once is dated so that it lives')
  FROM postern.client_credentials(pg_temp.caller('gt:client_credentials', 's', pg_temp.client('robot')), NULL);
RESET ROLE;
UPDATE postern.service_account SET tokens_since = 'epoch' \g /dev/null
SELECT admin.put_client('a', 'robot', enabled => false) \g /dev/null
UPDATE postern.service_account SET tokens_since = 'epoch' \g /dev/null
SELECT admin.put_client('a', 'robot', enabled => true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT ok(pg_temp.since() > extract(epoch FROM clock_timestamp()) - 1,
          'nor does what was made while it was being closed live on');
SELECT set_config('test.since', pg_temp.since()::text, true) \g /dev/null
RESET ROLE;
SELECT admin.put_client('a', 'robot', enabled => false), admin.put_client('a', 'robot', enabled => true) \g /dev/null
SET LOCAL ROLE app_login;
SELECT ok(pg_temp.since() > current_setting('test.since')::float8,
          'nor, after a second stop in that second, what was made after the first');
RESET ROLE;
SELECT results_eq($$SELECT name, client_id, last_audited_at = now() FROM admin.service_accounts$$,
                  $$VALUES ('robot', 'robot', true)$$, 'the view');
SELECT is(pg_temp.refusal($$SELECT admin.delete_service_account('a', 'robot')$$),
    '22023 service account "robot" belongs to a client that holds "gt:client_credentials" | Revoke the permission '
    'first: admin.revoke_permission(realm, client_id, ''gt:client_credentials'').',
    'an account in use stays');
SELECT admin.revoke_permission('a', 'robot', 'gt:client_credentials') \g /dev/null
SELECT lives_ok($$SELECT admin.delete_service_account('a', 'robot')$$, 'then it goes');
SELECT is_empty('SELECT name FROM admin.service_accounts', 'with all that was its');
SELECT matches(pg_temp.refusal($$SELECT admin.delete_service_account('a', 'robot')$$),
               '^22023 name "robot" is not a service account of this realm', 'once');
SELECT * FROM finish();
ROLLBACK;
