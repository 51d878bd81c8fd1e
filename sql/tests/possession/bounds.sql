\ir ../helpers/fixture.psql
\ir ../helpers/possession.psql
-- What the database refuses by itself, whatever a server looked at before: steps out of order, out of time, out of number.
SELECT no_plan();
SELECT admin.put_client('a', 'srv', client_type => 'confidential') \g /dev/null
SELECT admin.put_service_account('a', 'srv', 'srv') \g /dev/null
SELECT admin.grant_permission('a', 'srv', 'gt:client_credentials', 'ept:possession', 'cap:assert-possession'),
       admin.set_possession('a', true, resend_cooldown => '0 seconds'),
       admin.put_possession_client('a', 'srv', phone_change => true),
       admin.set_phone_policy('a', regions => '{AT}', sends => 5) \g /dev/null
SET LOCAL ROLE app_login;
-- An app with a message on the phone; p_change: what is changed of the row then.
CREATE FUNCTION pg_temp.stands(id text, channel text, change text DEFAULT NULL, kind text DEFAULT 'mobile',
                               match text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.starts(id, '+4366412345678', kind), pg_temp.opens(id, id);
    PERFORM pg_temp.sends(id, '+4366412345678', id, channel, id, match);
    IF change IS NOT NULL THEN
        PERFORM pg_temp.sql(format('UPDATE postern.device_request SET %s WHERE id = %L RETURNING 1', change,
                                   pg_temp.uu(id)));
    END IF;
END
$$;

SELECT pg_temp.starts('none', kind => 'none'), pg_temp.opens('none', 'none') \g /dev/null
SELECT alike(pg_temp.sends('none', '+4366412345678', key => 'none'), 'step%', 'no message where the backend asserts');
SELECT pg_temp.starts('again'), pg_temp.opens('again', 'again') \g /dev/null
SELECT pg_temp.sql($$SELECT ctid::text FROM postern.device_request WHERE id = pg_temp.uu('again')$$) AS row \gset
SELECT is(pg_temp.opens('again', 'again'), 'ok open', 'opened once more');
SELECT is(pg_temp.sql($$SELECT ctid::text FROM postern.device_request WHERE id = pg_temp.uu('again')$$), :'row',
          'writes nothing');
SELECT is(pg_temp.opens('again', 'other'), 'wrong_key', 'another key');
SELECT pg_temp.starts('many', '+4366412345678'), pg_temp.opens('many', 'many') \g /dev/null
SELECT alike(pg_temp.sends('many', '+436641234567' || n, key => 'many'),
             CASE WHEN n < 3 THEN 'sent%' ELSE 'phone_limit%' END, 'number ' || n) FROM generate_series(1, 3) AS n;
SELECT pg_temp.stands('lock', 'otp', 'sent_at = clock_timestamp()') \g /dev/null
SELECT is(pg_temp.sends('lock', '+4366412345678', key => 'lock'), 'sent 3',
    'without a cooldown also after a message that is newer than the statement');
RESET ROLE;
SELECT admin.set_possession('a', resend_cooldown => '60 seconds') \g /dev/null
SET LOCAL ROLE app_login;
SELECT pg_temp.stands('soon', 'otp') \g /dev/null
SELECT is(pg_temp.sends('soon', '+4366412345678', key => 'soon'), 'too_soon 4', 'a second message within the cooldown');
SELECT pg_temp.sql($$UPDATE postern.device_request SET sent_at = now() - interval '61 seconds'
    WHERE id = pg_temp.uu('soon') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.sends('soon', '+4366412345678', key => 'soon'), 'sent 3', 'after it');

SELECT pg_temp.stands('late', 'otp', 'expires_at = now()') \g /dev/null
SELECT is(pg_temp.checks('late', 'late', 'late'), 'step 1 failed', 'no code after the end of the transaction');
SELECT pg_temp.stands('link-old', 'link', 'link_expires_at = now()'),
       pg_temp.stands('link-late', 'link', 'expires_at = now()'),
       pg_temp.stands('link-ends', 'link', kind => 'desktop', match => '42'),
       pg_temp.stands('link-live', 'link') \g /dev/null
SELECT is(pg_temp.answers(l), 'gone', l) FROM unnest('{link-old,link-late}'::text[]) AS l;
SELECT alike(pg_temp.answers('link-ends', '42', true), 'failed%', 'who denies is heard before the number is looked at');
SELECT is(pg_temp.answers('link-ends', '42'), 'gone', 'and it is over');
SELECT alike(pg_temp.answers('link-live'), 'linked%', 'a live one');
SELECT pg_temp.sql($$UPDATE postern.device_request SET return_expires_at = now() WHERE id = pg_temp.uu('link-live')
    RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.finishes('link-live', 'link-live', 'link-live'), 'unknown', 'what the link gave has a time');
SELECT pg_temp.sql($$UPDATE postern.device_request SET return_expires_at = now() + interval '1 minute', expires_at = now()
    WHERE id = pg_temp.uu('link-live') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.finishes('link-live', 'link-live', 'link-live'), 'unknown', 'and ends with its transaction');
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() + interval '1 minute'
    WHERE id = pg_temp.uu('link-live') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.finishes('link-live', 'link-live', 'link-live'), 'passed', 'in time it passes');

SELECT pg_temp.starts('bind', kind => 'none'), pg_temp.opens('bind', 'bind') \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() WHERE id = pg_temp.uu('bind') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.binds('bind', '+4366412345678'), 'step', 'no assertion after the end');
SELECT is(pg_temp.key_phone('bind'), NULL, 'and no key of it');

-- A day after its end.
SELECT pg_temp.starts('day') \g /dev/null
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() - interval '24 hours' + interval '1 second'
    WHERE id = pg_temp.uu('day') RETURNING 1$$) \g /dev/null
SELECT alike(pg_temp.status('day'), 'failed%', 'for a day the backend is told how it ended');
SELECT pg_temp.sql($$UPDATE postern.device_request SET expires_at = now() - interval '24 hours'
    WHERE id = pg_temp.uu('day') RETURNING 1$$) \g /dev/null
SELECT is(pg_temp.status('day'), '', 'then it is gone, swept or not');

-- A number that is taken from a key leaves the trusted device; without a user the key goes.
SELECT pg_temp.stands(k, 'otp'), pg_temp.checks(k, k, k) FROM unnest('{plain,trusted}'::text[]) AS k \g /dev/null
RESET ROLE;
UPDATE postern.device_key SET user_id = postern.find_user(pg_temp.realm(), 'ada@example.com'), added_at = now(),
       client = phone_client WHERE thumbprint = pg_temp.h('trusted');
SET LOCAL ROLE app_login;
SELECT is(postern.revoke_phone_key(pg_temp.realm(), pg_temp.client('srv'), pg_temp.device(k)), true, 'revoked: ' || k)
  FROM unnest('{plain,trusted}'::text[]) AS k;
SELECT is(pg_temp.device('plain'), NULL, 'a key without a user is gone');
SELECT isnt(pg_temp.device('trusted'), NULL, 'a trusted device stays');
SELECT is(pg_temp.key_phone('trusted'), NULL, 'without a number');
SELECT * FROM finish();
ROLLBACK;
