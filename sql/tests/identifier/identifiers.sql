\ir ../helpers/fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.who(address text DEFAULT 'ada@example.com') RETURNS uuid LANGUAGE sql STABLE
    SECURITY DEFINER AS $$ SELECT postern.find_user(pg_temp.realm(), address) $$;
-- kind:value, + for the primary one, ? for an unproven one.
CREATE FUNCTION pg_temp.has(who uuid DEFAULT pg_temp.who()) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(CASE WHEN is_primary THEN '*' ELSE '' END || value
                      || CASE WHEN proved_at IS NULL THEN '?' ELSE '' END, ' ' ORDER BY kind, added_at, value)
      FROM postern.user_identifier WHERE user_id = who $$;
CREATE FUNCTION pg_temp.mails(which text DEFAULT '%') RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT string_agg(template || ' ' || recipient, ', ' ORDER BY template, recipient)
      FROM postern.message_outbox WHERE template LIKE which $$;
CREATE FUNCTION pg_temp.stamp(who uuid DEFAULT pg_temp.who()) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
    SELECT security_stamp FROM postern.user_account WHERE id = who $$;
CREATE FUNCTION pg_temp.put(value text, who uuid DEFAULT pg_temp.who(), verified boolean DEFAULT NULL,
                            is_primary boolean DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT admin.put_identifier(''a'', %L, %L, %L, %L, %L)', who,
        CASE WHEN value LIKE '%@%' THEN 'email' ELSE 'phone' END, value, verified, is_primary)) $$;
CREATE FUNCTION pg_temp.drop(value text, who uuid DEFAULT pg_temp.who()) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT admin.delete_identifier(''a'', %L, %L, %L)', who,
        CASE WHEN value LIKE '%@%' THEN 'email' ELSE 'phone' END, value)) $$;

-- The primary address has its row, whatever wrote it.
SELECT is(pg_temp.has(), '*Ada@example.com', 'a user has the address that was put');
SELECT is(admin.put_user('a', 'ada@example.com', email_verified => false), pg_temp.who(), 'when it is doubted');
SELECT is(pg_temp.has(), '*Ada@example.com?', 'it is unproven');
SELECT is(admin.put_user('a', 'ada@example.com', email_verified => true), pg_temp.who(), 'when it is verified');
SELECT is(pg_temp.has(), '*Ada@example.com', 'it is proven');
SELECT is_empty($$SELECT u.id FROM postern.user_account AS u WHERE u.email IS NOT NULL AND NOT EXISTS (
    SELECT FROM postern.user_identifier AS i WHERE i.user_id = u.id AND i.is_primary AND i.value = u.email
       AND (i.proved_at IS NOT NULL) = u.email_verified)$$, 'account and identifiers agree');

-- Further identifiers.
SELECT pg_temp.sign_in('s') \g /dev/null
SELECT set_config('test.stamp', pg_temp.stamp()::text, true) \g /dev/null
SELECT is(pg_temp.put('+4366412345678'), 'accepted', 'a number is added');
SELECT is(pg_temp.put('ada@second.example'), 'accepted', 'an address is added');
SELECT is(pg_temp.has(), '*Ada@example.com ada@second.example *+4366412345678', 'the first of a kind is the primary one');
SELECT results_eq($$SELECT email, phone FROM admin.users WHERE id = pg_temp.who()$$,
    $$VALUES ('Ada@example.com', '+4366412345678')$$, 'the view shows the primary ones');
SELECT is(pg_temp.mails('identifier%'),
    'identifier-added Ada@example.com, identifier-added Ada@example.com', 'the other addresses are told, not itself');
SELECT is(pg_temp.put('ada@second.example', is_primary => true), 'accepted', 'another one becomes the primary one');
SELECT is(pg_temp.has(), 'Ada@example.com *ada@second.example *+4366412345678', 'and the former one stays');
SELECT results_eq($$SELECT email, email_verified FROM postern.user_account WHERE id = pg_temp.who()$$,
    $$VALUES ('ada@second.example', true)$$, 'the account has a copy');
SELECT ok(pg_temp.alive('s') AND pg_temp.stamp()::text = current_setting('test.stamp'), 'sessions go on');
SELECT matches(pg_temp.put('Ada@example.com', is_primary => false), 'accepted', 'what is so already is accepted');
SELECT matches(pg_temp.put('ada@second.example', is_primary => false), 'primary identifier of its kind',
    'a primary one is replaced, not unset');
SELECT matches(pg_temp.put('third@example.com', verified => false, is_primary => true), 'is not verified',
    'an unverified one is never the primary one');
SELECT is(pg_temp.who('ADA@second.example'), pg_temp.who('+4366412345678'), 'each of them finds the user');
SELECT matches(pg_temp.put('0664 12345678'), 'not a phone number', 'numbers are E.164');
SELECT matches(pg_temp.put('+0012345678'), 'not a phone number', 'without a leading zero');
SELECT matches(pg_temp.put('+123456'), 'not a phone number', 'of seven digits at least');
SELECT matches(pg_temp.put('+1234567890123456'), 'not a phone number', 'and fifteen at most');
SELECT matches(pg_temp.put('bob@example.com'), 'belongs to another user', 'what another user has is refused');
SELECT matches(pg_temp.put('x@example.com', gen_random_uuid()), 'not a user of this realm', 'so is an unknown user');
SELECT matches(pg_temp.refusal($$SELECT admin.put_identifier('a', pg_temp.who(), 'fax', '1')$$), 'email, phone',
    'and an unknown kind');
SELECT is(pg_temp.put('p' || n || '@example.com'), 'accepted', 'up to five') FROM generate_series(3, 5) AS n;
SELECT matches(pg_temp.put('p6@example.com'), 'has five identifiers', 'of a kind');

-- A code goes to any proven identifier, and one user is behind all of them.
SELECT is(pg_temp.ask('h1', 'ada@example.com', '111111'), 'sent', 'a code to the further address');
SELECT is(pg_temp.redeem('ada@example.com', 'h1', '111111'), 'ok', 'signs in');
SELECT is(pg_temp.ask('h2', 'ada@second.example', '222222'), 'sent', 'a code to the primary one');
SELECT is(pg_temp.drop('ada@second.example'), 'accepted', 'whose address is removed meanwhile');
SELECT is(pg_temp.redeem('ada@second.example', 'h2', '222222'), 'refused attempts', 'is dead');
SELECT is(pg_temp.has(), '*Ada@example.com p3@example.com p4@example.com p5@example.com *+4366412345678',
    'the oldest proven one takes its place');
SELECT ok(pg_temp.alive('s'), 'sessions go on');
SELECT matches(pg_temp.mails('identifier-removed'), 'identifier-removed ada@second.example',
    'the removed address is told too');
SELECT matches(pg_temp.drop('ada@second.example'), 'not an identifier of this user', 'once');

-- All access ends at all addresses.
SELECT is(pg_temp.ask('h3', 'p3@example.com', '333333'), 'sent', 'a code is out');
SELECT is(admin.sign_out_everywhere('a', '+4366412345678') > 0, true, 'the number names the user');
SELECT is(pg_temp.redeem('p3@example.com', 'h3', '333333'), 'refused unknown', 'codes at every address are gone');
SELECT is(pg_temp.drop('p' || n || '@example.com'), 'accepted', 'removed') FROM generate_series(3, 5) AS n;

-- An unproven identifier signs nobody in, and gives way to who proves it.
SELECT admin.put_app('a', 'shop', 'Shop', 'shop.a.example', 'JitOnOtp', '{app}', true) \g /dev/null
SELECT is(pg_temp.put('victim@example.com', verified => false), 'accepted', 'an administrator is told an address');
SELECT is(pg_temp.has(), '*Ada@example.com victim@example.com? *+4366412345678', 'which nobody has proven');
SELECT is(pg_temp.ask('v1', 'victim@example.com', '444444'), 'ignored', 'no code goes there');
SELECT is(pg_temp.ask('v2', 'victim@example.com', '555555', app => 'shop'), 'sent', 'its owner registers');
SELECT is(pg_temp.redeem('victim@example.com', 'v2', '555555'), 'ok', 'and signs in');
SELECT isnt(pg_temp.who('victim@example.com'), pg_temp.who(), 'to an account of their own');
SELECT is(pg_temp.has(), '*Ada@example.com *+4366412345678', 'the claim has gone');
SELECT is(pg_temp.has(pg_temp.who('victim@example.com')), '*victim@example.com', 'the proof counts');
-- An account that has nothing proven yet is its first prover's.
SELECT admin.put_user('a', 'new@example.com', email_verified => false) \g /dev/null
SELECT set_config('test.new', pg_temp.who('new@example.com')::text, true) \g /dev/null
SELECT is(pg_temp.ask('v3', 'new@example.com', '666666', app => 'shop'), 'sent', 'an account that was put');
SELECT is(pg_temp.redeem('new@example.com', 'v3', '666666'), 'ok', 'is confirmed');
SELECT is(pg_temp.who('new@example.com')::text, current_setting('test.new'), 'and is the same');
-- Its primary address too gives way when the account has another proven identifier.
SELECT admin.put_user('a', 'trojan@example.com', email_verified => false, phone => '+491701234567') \g /dev/null
SELECT set_config('test.new', pg_temp.who('+491701234567')::text, true) \g /dev/null
SELECT is(pg_temp.ask('v4', 'trojan@example.com', '777777', app => 'shop'), 'sent', 'the owner of the address');
SELECT is(pg_temp.redeem('trojan@example.com', 'v4', '777777'), 'ok', 'signs in');
SELECT isnt(pg_temp.who('trojan@example.com')::text, current_setting('test.new'), 'elsewhere');
SELECT is(pg_temp.has(current_setting('test.new')::uuid), '*+491701234567', 'the other account keeps its number');

-- A user with a phone number only.
SELECT set_config('test.new', admin.put_user('a', phone => '+12025550123', first_name => 'Eve')::text, true) \g /dev/null
SELECT results_eq($$SELECT email, phone, first_name, email_verified FROM admin.users
                     WHERE id::text = current_setting('test.new')$$,
    $$VALUES (NULL::text, '+12025550123', 'Eve', false)$$, 'needs no address');
SELECT is(admin.put_user('a', '+12025550123', last_name => 'Adams')::text, current_setting('test.new'),
    'the number identifies');
SELECT is(admin.put_user('a', current_setting('test.new'), last_name => 'Adams')::text, current_setting('test.new'),
    'so does the id');
SELECT is(pg_temp.refusal($$SELECT admin.set_user_enabled('a', '+12025550123', false)$$), 'accepted', 'switched off');
SELECT is(pg_temp.refusal(format($$SELECT admin.set_user_enabled('a', %L, true)$$, current_setting('test.new'))),
    'accepted', 'and on by id');
SELECT is(admin.unlock_codes('a', '+12025550123'), false, 'unlocked');
SELECT is(admin.unlock_codes('a', current_setting('test.new')), false, 'by id');
SELECT is(admin.reset_totp('a', '+12025550123'), false, 'without a second factor');
SELECT matches(pg_temp.drop('+12025550123', current_setting('test.new')::uuid), 'only identifier', 'the last one stays');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a', 'zoe@example.com', phone => '+12025550123')$$),
    'belongs to another user', 'a number belongs to one user');
SELECT matches(pg_temp.refusal($$SELECT admin.put_user('a')$$), 'not an address', 'a user needs an identifier');
SELECT is(pg_temp.refusal($$SELECT admin.delete_user('a', '+12025550123')$$), 'accepted', 'deleted by number');
SELECT is_empty($$SELECT FROM postern.user_identifier WHERE value = '+12025550123'$$, 'with it');

-- Owners see their own realm.
SELECT is(pg_temp.sql($$SELECT count(*)::text FROM postern.user_identifier WHERE realm_id = pg_temp.other()$$), '1',
    'another realm has its own');
SELECT is(admin.put_user('b', phone => '+4366412345678') IS NOT NULL, true, 'and may have the same number');
SET LOCAL ROLE app_login;
SELECT set_config('postern.realm', pg_temp.other()::text, true) \g /dev/null
SELECT is_empty($$SELECT FROM postern.user_identifier WHERE realm_id = pg_temp.realm()$$, 'row security keeps them apart');
SELECT throws_ok($$UPDATE postern.user_identifier SET proved_at = now()$$, '42501', NULL, 'the server writes by functions only');
SELECT * FROM finish();
ROLLBACK;
