\ir ../helpers/fixture.psql
-- What a call reads does not grow with the transactions that are remembered, also by plans that are kept for any
-- arguments.
SELECT no_plan();
\ir ../helpers/approvals.psql
\ir ../helpers/growth.psql
SET test.of_phones = false;
SELECT admin.grant_permission('a', 'app', 'gt:urn:postern:device'), admin.put_client('a', 'srv') \g /dev/null
SELECT pg_temp.device('t1'), pg_temp.device('t2'), pg_temp.sign_in('ada'),
       postern.begin_proof_store('-infinity') \g /dev/null
SELECT pg_sleep(0.01) \g /dev/null
SET LOCAL ROLE app_login;
SELECT pg_temp.asks('shown', is_event => true), pg_temp.asks('given', 'ADA@example.com', source => '192.0.2.2'),
       pg_temp.answers('t1', 'given'), pg_temp.asks('new', source => '192.0.2.3', resolve => false) \g /dev/null
SELECT set_config('test.event', pg_temp.sql(format($$SELECT event_id FROM postern.device_request WHERE id = %L$$,
                                                   pg_temp.rid('shown'))), true) \g /dev/null
RESET ROLE;
CREATE FUNCTION pg_temp.number() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT current_setting('test.event')::integer $$;
-- A packed proof that is used here alone.
CREATE FUNCTION pg_temp.nonce() RETURNS bytea LANGUAGE sql AS $$
    SELECT pg_temp.h('t1') || pg_temp.h(gen_random_uuid()::text)
           || int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) || '\x010203040506070803' $$;
CREATE FUNCTION pg_temp.signs() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', r.outcome, r.reason) FROM postern.redeem_device(
        pg_temp.caller('gt:urn:postern:device', proof => pg_temp.key('t1')), NULL,
        pg_temp.opens(refresh_hash => NULL, amr => '{pop}'), pg_temp.nonce(), NULL) AS r $$;
CREATE FUNCTION pg_temp.calls(device text, remove boolean) RETURNS text LANGUAGE sql AS $$
    SELECT c.outcome FROM postern.call_of_device(pg_temp.realm(), pg_temp.key('t1'), NULL, pg_temp.uu(device), 'Phone',
                                                 NULL, false, remove, '192.0.2.1') AS c $$;
CREATE FUNCTION pg_temp.erases(address text) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$
    SELECT postern.erase_traces(pg_temp.realm(), 'email', address);
    SELECT true $$;
INSERT INTO step (name, answer, call) VALUES
    ('erase_traces', 'true', $$pg_temp.erases('user8@example.com')$$),
    ('ask_approval', 'asked%',
        $$(postern.ask_approval(pg_temp.realm(), NULL, NULL, gen_random_uuid(), pg_temp.client(), 'user7@example.com', 'LOGIN',
        NULL, '42', pg_temp.h('c'), true, false, NULL, '192.0.2.1', 120, NULL)).outcome$$),
    ('resolve_approvals', '1', $$(postern.resolve_approvals(32, NULL)).resolved$$),
    ('approval_inbox', 'shown', $$pg_temp.inbox('t1', 'shown')$$),
    ('answer_approval', 'decided approve', $$pg_temp.answers('t1', 'shown')$$),
    ('answer_approval', 'decided report', $$pg_temp.answers('t1', 'shown', 'report')$$),
    ('poll_authentication', 'pending',
        $$(postern.poll_authentication(pg_temp.caller(NULL), pg_temp.rid('shown'), 0)).outcome$$),
    ('use_authentication', 'true', $$postern.use_authentication(pg_temp.realm(), pg_temp.rid('given'))$$),
    ('redeem_authentication', 'ok', $$pg_temp.polls('given')$$),
    ('approval_event', 'LOGIN',
        $$(postern.approval_event(pg_temp.realm(), pg_temp.client(), pg_temp.number(), NULL)).event$$),
    ('approval_event', 'LOGIN',
        $$(postern.approval_event(pg_temp.realm(), pg_temp.client(), NULL, 'ADA@example.com')).event$$),
    ('approval_event', '',
        $$(SELECT event FROM postern.approval_event(pg_temp.realm(), pg_temp.client(), NULL, 'user7@example.com'))$$),
    ('redeem_device', 'ok', $$pg_temp.signs()$$),
    ('enter_device', 'found', $$(postern.enter_device(pg_temp.realm(), pg_temp.key('t1'), NULL)).outcome$$),
    ('call_of_device', 'done', $$pg_temp.calls('t1', false)$$),
    ('call_of_device', 'done', $$pg_temp.calls('t1', true)$$),
    ('change_own_device', '%',
        $$(postern.change_own_device(pg_temp.realm(), pg_temp.uu('ada'), pg_temp.uu('t1'), 'Phone', NULL, false)).id$$),
    ('list_devices', '2',
        $$(SELECT count(*) FROM postern.list_devices(pg_temp.realm(), pg_temp.sub('ada@example.com'), NULL))$$),
    ('remove_own_device', 'true',
        $$postern.remove_own_device(pg_temp.realm(), pg_temp.uu('ada'), pg_temp.uu('t1'), '192.0.2.1')$$),
    ('has_factor', 'true',
        $$postern.has_factor(pg_temp.realm(), pg_temp.sub('ada@example.com'), 'device', pg_temp.uu('t1'))$$),
    ('queue_figures', '1',
        $$(SELECT queued FROM postern.queue_figures(10) WHERE queue = 'approvals' AND realm = 'a')$$);
\ir ../helpers/growth_measured.psql
SELECT * FROM finish();
ROLLBACK;
