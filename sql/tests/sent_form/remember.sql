\ir ../helpers/fixture.psql
\ir ../helpers/browsers.psql
-- The same form sent twice is done once, and both requests get one answer.
SELECT no_plan();
-- A request by its name for a form of a requester; waited: it found the form under way before.
CREATE FUNCTION pg_temp.begin(form text, request text, waited boolean DEFAULT false, requester text DEFAULT 'ada',
                              r uuid DEFAULT pg_temp.realm()) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', outcome, convert_from(sealed, 'UTF8')) FROM postern.begin_form(
        r, pg_temp.h(requester), pg_temp.h(form), pg_temp.uu(request), 'a.example', waited) $$;
CREATE FUNCTION pg_temp.finish_form(request text, answer text, keeps boolean DEFAULT true, cookie text DEFAULT NULL,
                                    code text DEFAULT NULL, requester text DEFAULT 'ada') RETURNS void LANGUAGE sql AS $$
    SELECT postern.end_form(pg_temp.realm(), pg_temp.h(requester), pg_temp.uu(request), keeps, pg_temp.h(cookie),
                            pg_temp.h(code), convert_to(answer, 'UTF8')) $$;
CREATE FUNCTION pg_temp.later(seconds integer) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.sql(format('UPDATE postern.sent_form SET begun_at = begun_at - %1$L::interval,
                               answered_at = answered_at - %1$L::interval RETURNING ''later''', seconds || ' seconds')) $$;
SET LOCAL ROLE app_login;
SELECT pg_temp.finish_form('none', NULL) \g /dev/null
SELECT is(pg_temp.begin('code', 'r1'), 'begun', 'the first request does what the form asks for');
SELECT is(pg_temp.begin('code', 'r2'), 'under_way', 'the second waits for it');
SELECT is(pg_temp.begin('code', 'r1'), 'begun', 'the first may say so again, because its answer was lost');
SELECT pg_temp.finish_form('r2', 'not mine') \g /dev/null
SELECT is(pg_temp.begin('code', 'r2', true), 'under_way', 'only the request that does it answers it');
SELECT pg_temp.finish_form('r1', 'page') \g /dev/null
SELECT is(pg_temp.begin('code', 'r2', true), 'answered page', 'the second gets the answer of the first');
SELECT is(pg_temp.begin('code', 'r3'), 'answered page', 'and a third that comes after it');
SELECT is(pg_temp.begin('code', 'r4', requester => 'eve'), 'begun', 'another requester gets nothing of it');
SELECT is(pg_temp.begin('code', 'r4', r => pg_temp.other()), 'begun', 'another realm neither');
SELECT pg_temp.later(59) \g /dev/null
SELECT is(pg_temp.begin('code', 'r5'), 'answered page', 'for a minute');
SELECT pg_temp.later(2) \g /dev/null
SELECT is(pg_temp.begin('code', 'r5'), 'begun', 'then it is a new form');
SELECT is(pg_temp.begin('other', 'r6'), 'begun', 'another form of the requester takes its place');
SELECT pg_temp.finish_form('r5', 'late') \g /dev/null
SELECT is(pg_temp.begin('other', 'r7'), 'under_way', 'and is not answered by what the former led to');

-- A refusal.
SELECT pg_temp.finish_form('r6', 'wrong code', keeps => false) \g /dev/null
SELECT is(pg_temp.begin('other', 'r7', true), 'answered wrong code', 'a refusal answers who waited for it');
SELECT is(pg_temp.begin('other', 'r8'), 'begun', 'who comes after it is heard anew');
SELECT pg_temp.finish_form('r8', NULL) \g /dev/null
SELECT is(pg_temp.begin('other', 'r9', true), 'begun', 'what was not done is done by who waited');
SELECT pg_temp.later(21) \g /dev/null
SELECT is(pg_temp.begin('other', 'r10'), 'begun', 'a request whose node is gone is not waited for');
SELECT pg_temp.finish_form('r9', 'too late') \g /dev/null
SELECT is(pg_temp.begin('other', 'r11'), 'under_way', 'and says nothing any more');

-- What a form opened must live.
RESET ROLE;
SELECT pg_temp.browse('jar', request => pg_temp.wanted('pac')) \g /dev/null
SET LOCAL ROLE app_login;
SELECT is(pg_temp.begin('sign in', 's1'), 'begun', 'a form that signs in');
SELECT pg_temp.finish_form('s1', 'code', cookie => 'jar', code => 'pac') \g /dev/null
SELECT is(pg_temp.begin('sign in', 's2'), 'answered code', 'leads on with its code');
SELECT is(pg_temp.exchange('pac', 'session'), 'ok', 'until the client has redeemed it');
SELECT is(pg_temp.begin('sign in', 's2'), 'spent code', 'then not with that code');
SELECT pg_temp.sql($$UPDATE postern.browser_session SET ended_at = now() RETURNING 'ended'$$) \g /dev/null
SELECT is(pg_temp.begin('sign in', 's3'), 'begun', 'and not at all when its browser session has ended');
SELECT pg_temp.later(121), postern.sweep(1000) \g /dev/null
SELECT is(pg_temp.sql('SELECT count(*)::text FROM postern.sent_form'), '0', 'nothing is left of a form after two minutes');
SELECT * FROM finish();
ROLLBACK;
