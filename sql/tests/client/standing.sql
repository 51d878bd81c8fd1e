\ir ../helpers/fixture.psql
SELECT no_plan();
-- What a refused statement says of its client, which may have changed since the node read its configuration.
CREATE FUNCTION pg_temp.fault(permission text, client uuid DEFAULT pg_temp.client(), app text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
    SELECT coalesce(postern.client_fault(pg_temp.realm(), client, permission, app), 'none') $$;
CREATE FUNCTION pg_temp.raised(permission text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM postern.require_client(pg_temp.caller(permission));
    RETURN 'nothing';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
CREATE FUNCTION pg_temp.refreshed(name text, generation int, hash text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, NULLIF(reason, outcome))
      FROM postern.rotate_session(pg_temp.realm(), pg_temp.client(), pg_temp.uu(name), generation,
        pg_temp.h(coalesce(hash, name || generation)), ARRAY[pg_temp.h(name || generation + 1)], 1209600, '192.0.2.1', '\x01020304',
        (random() * 1e15)::bigint, NULL, NULL) $$;
SELECT pg_temp.sign_in('a') \g /dev/null
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.realm()::text, true) \g /dev/null
SELECT is(pg_temp.fault('gt:refresh_token'), 'none', 'nothing is in the way');
SELECT is(pg_temp.raised('gt:refresh_token'), 'nothing', 'and nothing is raised');
SELECT is(pg_temp.fault('gt:never'), 'permission', 'a permission that it lacks');
SELECT is(pg_temp.raised('gt:never'), 'PC002', 'is raised');
SELECT is(pg_temp.fault('gt:refresh_token', gen_random_uuid()), 'client', 'a client that is gone');
SELECT pg_temp.sql($$UPDATE postern.realm SET native_grants_enabled = false, hosted_enabled = false; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.fault('gt:urn:cocoar:otp'), 'switch', 'a grant that is switched off');
SELECT is(pg_temp.raised('gt:urn:cocoar:otp'), 'PC003', 'is raised');
SELECT is(pg_temp.fault('gt:refresh_token'), 'none', 'refreshing has no switch');
SELECT is(pg_temp.refreshed('a', 0, 'wrong'), 'refused mismatch', 'a wrong token of a good client');
SELECT pg_temp.sql($$UPDATE postern.client SET permissions = array_remove(permissions, 'gt:refresh_token'); SELECT 1$$) \g /dev/null
SELECT is(pg_temp.refreshed('a', 0), 'client_fault permission', 'a right one, and the permission is gone');
SELECT is(pg_temp.refreshed('a', 0, 'wrong'), 'client_fault permission', 'a wrong one: the same');
SELECT pg_temp.sql($$UPDATE postern.client SET enabled = false; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.refreshed('a', 0), 'client_fault client', 'a disabled client');
SELECT is(pg_temp.raised('gt:refresh_token'), 'PC001', 'is raised');
SELECT pg_temp.sql($$UPDATE postern.realm SET enabled = false; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.fault('gt:refresh_token'), 'realm', 'a disabled realm comes first');
SELECT is(pg_temp.raised('gt:refresh_token'), 'PC004', 'is raised');
SELECT ok(pg_temp.alive('a'), 'none of it ended the session');

-- On the host of an App, its own switch counts as well.
SELECT pg_temp.sql($$UPDATE postern.client SET enabled = true, permissions = '{gt:authorization_code,gt:refresh_token,gt:urn:cocoar:otp}'
                      WHERE client_id = 'app'; SELECT 1$$) \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.realm SET enabled = true, native_grants_enabled = true, hosted_enabled = true; SELECT 1$$) \g /dev/null
SELECT pg_temp.sql($$INSERT INTO postern.app (realm_id, slug, display_name) VALUES (pg_temp.realm(), 'shop', 'Shop'); SELECT 1$$) \g /dev/null
CREATE FUNCTION pg_temp.on_host(app text, permission text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.fault(permission, app => app) $$;
SELECT is(pg_temp.on_host('shop', 'gt:urn:cocoar:otp'), 'none', 'an App that serves');
SELECT pg_temp.sql($$UPDATE postern.app SET native_grants_enabled = false; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.on_host('shop', 'gt:urn:cocoar:otp'), 'switch', 'one whose native grants are off');
SELECT is(pg_temp.on_host('shop', 'gt:authorization_code'), 'none', 'which is not the switch of its pages');
SELECT is(pg_temp.on_host('shop', 'gt:refresh_token'), 'none', 'nor of refreshing');
SELECT is(pg_temp.on_host(NULL, 'gt:urn:cocoar:otp'), 'none', 'on the realm''s own host it does not count');
SELECT pg_temp.sql($$UPDATE postern.app SET native_grants_enabled = true, hosted_enabled = false; SELECT 1$$) \g /dev/null
SELECT is(pg_temp.on_host('shop', 'gt:authorization_code'), 'switch', 'one whose pages are off');
SELECT is(pg_temp.on_host('gone', 'gt:urn:cocoar:otp'), 'switch', 'one that is gone');
SELECT * FROM finish();
ROLLBACK;
