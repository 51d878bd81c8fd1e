\ir ../helpers/fixture.psql
-- What a call reads does not grow with the transactions that are remembered, also by plans that are kept for any
-- arguments.
SELECT no_plan();
\ir ../helpers/possession.psql
\ir ../helpers/growth.psql
SET test.of_phones = true;
SELECT admin.put_client('a', 'srv', client_type => 'confidential'), admin.put_user('a', phone => '+4366412345678')
    \g /dev/null
SELECT admin.put_service_account('a', 'srv', 'srv') \g /dev/null
SELECT admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession', 'cap:assert-possession'),
       admin.grant_permission('a', 'app', 'gt:urn:postern:possession'),
       admin.put_possession_client('a', 'srv', login_client => 'app'),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'),
       admin.set_phone_policy('a', regions => '{AT}') \g /dev/null
INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, phone, phone_at, phone_by, phone_client)
SELECT pg_temp.realm(), pg_temp.uu('k'), pg_temp.h('k'), pg_temp.h('k') || pg_temp.h('k'), '+4366400000001', now(),
       'code', pg_temp.client('srv');
SET LOCAL ROLE app_login;
-- One transaction in each state that a call looks for.
SELECT pg_temp.starts('none', kind => 'none') \g /dev/null
SELECT pg_temp.starts(t, '+4366412345678')
  FROM unnest('{fresh,open,code,link,linked,passed}'::text[]) AS t \g /dev/null
SELECT pg_temp.opens(t, t) FROM unnest('{open,code,link,linked,passed,none}'::text[]) AS t \g /dev/null
SELECT pg_temp.sends(t, '+4366412345678', t, CASE WHEN t IN ('code', 'passed') THEN 'otp' ELSE 'link' END, t)
  FROM unnest('{code,link,linked,passed}'::text[]) AS t \g /dev/null
SELECT pg_temp.answers('linked'), pg_temp.checks('passed', 'passed', 'passed') \g /dev/null
RESET ROLE;
CREATE FUNCTION pg_temp.redeems(id text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', r.outcome, r.reason) FROM postern.redeem_possession(
        pg_temp.caller('gt:urn:postern:possession', proof => pg_temp.key(id)), NULL,
        pg_temp.opens(gen_random_uuid(), refresh_hash => NULL), pg_temp.uu('auth ' || id), 'code', NULL) AS r $$;
INSERT INTO step (name, answer, call) VALUES
    ('start_possession', 'started', $$pg_temp.starts('more', '+4366412345678')$$),
    ('possession_status', 'sent%', $$pg_temp.status('code')$$),
    ('enter_possession', 'ok',
        $$(postern.enter_possession(pg_temp.realm(), pg_temp.key('code'), pg_temp.uu('auth code'), '+4366412345678')).outcome$$),
    ('possession_state', 'sent', $$postern.possession_state(pg_temp.realm(), pg_temp.uu('code'))$$),
    ('open_possession', 'ok failed 9100 9101', $$pg_temp.opens('fresh', 'k')$$),
    ('send_possession', 'sent%', $$pg_temp.sends('open', '+4366412345678', key => 'open')$$),
    ('check_possession', 'passed%', $$pg_temp.checks('code', 'code', 'code')$$),
    ('check_possession', 'failed%', $$pg_temp.checks('code', 'other', 'code')$$),
    ('finish_possession', 'passed', $$pg_temp.finishes('linked', 'linked', 'linked')$$),
    ('cancel_possession', 'true',
        $$postern.cancel_possession(pg_temp.realm(), pg_temp.uu('code'), pg_temp.h('code'))$$),
    ('finish_possession_by_proof', 'passed',
        $$(postern.finish_possession_by_proof(pg_temp.realm(), pg_temp.key('linked'),
                                              pg_temp.uu('auth linked'), pg_temp.h('pc linked'))).outcome$$),
    ('cancel_possession_by_proof', 'cancelled',
        $$(postern.cancel_possession_by_proof(pg_temp.realm(), pg_temp.key('code'), pg_temp.uu('auth code'))).outcome$$),
    ('answer_possession_link', 'linked%', $$pg_temp.answers('link')$$),
    ('bind_possession', 'bound', $$pg_temp.binds('none', '+4366412345678')$$),
    ('revoke_phone_key', 'true',
        $$postern.revoke_phone_key(pg_temp.realm(), pg_temp.client('srv'), pg_temp.uu('k'))$$),
    ('possession_passed_by', 'code',
        $$postern.possession_passed_by(pg_temp.realm(), pg_temp.uu('auth passed'))$$),
    ('redeem_possession', 'ok', $$pg_temp.redeems('passed')$$);
\ir ../helpers/growth_measured.psql
SELECT * FROM finish();
ROLLBACK;
