-- Provisioning: where a realm sends messages to phones, and what that may cost.
SET LOCAL ROLE postern_owner;

-- One policy for every endpoint that sends to phones. prefix: the number without its last four digits. country: its
-- region. spend: cost units of the day, which set_phone_policy sets. What is redeemed comes back (give_back), but for
-- what it has cost.
INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('phone-otp', 'target', 5, interval '60 minutes', 5, 'enforce'),
    ('phone-otp', 'target-total', 10, interval '60 minutes', 10, 'enforce'),
    ('phone-otp', 'source', 300, interval '60 minutes', 100, 'enforce'),
    ('phone-otp', 'client', 3000, interval '60 minutes', 3000, 'enforce'),
    ('phone-otp', 'app', 15000, interval '60 minutes', 15000, 'enforce'),
    ('phone-otp', 'prefix', 25, interval '60 minutes', 25, 'enforce'),
    ('phone-otp', 'country', 300, interval '60 minutes', 300, 'enforce'),
    ('phone-otp', 'spend', 10000, interval '1 day', 10000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

CREATE OR REPLACE FUNCTION admin.set_phone_policy(
    realm text, regions text[] DEFAULT NULL, default_region text DEFAULT NULL, sends integer DEFAULT NULL,
    daily_budget integer DEFAULT NULL, stale_after interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_stale interval := postern.checked_interval('stale_after', stale_after, '1 day', '3650 days');
    v_region text;
    v_policy postern.phone_policy;
    -- The countries that libphonenumber knows numbers of.
    v_known text[] := string_to_array(
        'AC AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT '
        'BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER '
        'ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE '
        'IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV '
        'LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP '
        'NR NU NZ OM PA PE PF PG PH PK PL PM PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK '
        'SL SM SN SO SR SS ST SV SX SY SZ TA TC TD TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA '
        'VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW', ' ');
BEGIN
    FOREACH v_region IN ARRAY coalesce(regions, '{}') LOOP
        IF v_region IS NULL OR v_region <> ALL (v_known) THEN
            PERFORM postern.refuse(format('regions: %s is not a country', postern.shown(v_region)),
                'Allowed are ISO 3166 codes in upper case, such as AT, DE, GB, US.');
        END IF;
    END LOOP;
    IF default_region <> ALL (v_known) THEN
        PERFORM postern.refuse(format('default_region %s is not a country', postern.shown(default_region)),
            'Allowed is an ISO 3166 code in upper case, such as AT, DE, GB, US.');
    END IF;
    IF sends NOT BETWEEN 1 AND 5 THEN
        PERFORM postern.refuse(format('sends "%s" is out of range', sends), 'Allowed is 1 to 5 messages per request.');
    END IF;
    IF daily_budget NOT BETWEEN 1 AND 1000000 THEN
        PERFORM postern.refuse(format('daily_budget "%s" is out of range', daily_budget),
            'Allowed is 1 to 1,000,000 cost units.');
    END IF;
    INSERT INTO postern.phone_policy AS p (realm_id, regions, default_region, sends, stale_after)
    VALUES (v_realm, coalesce(regions, '{}'), default_region, coalesce(sends, 3), coalesce(v_stale, interval '90 days'))
        ON CONFLICT (realm_id) DO UPDATE
       SET regions = coalesce(set_phone_policy.regions, p.regions),
           default_region = coalesce(set_phone_policy.default_region, p.default_region),
           sends = coalesce(set_phone_policy.sends, p.sends), stale_after = coalesce(v_stale, p.stale_after)
    RETURNING p.* INTO v_policy;
    IF cardinality(v_policy.regions) > 0 AND v_policy.default_region <> ALL (v_policy.regions) THEN
        PERFORM postern.refuse(
            format('default_region %s is not one of regions', postern.shown(v_policy.default_region)),
            format('No message goes there. Regions are: %s.', array_to_string(v_policy.regions, ', ')));
    END IF;
    IF daily_budget IS NOT NULL THEN
        PERFORM admin.set_rate_limit(realm, 'phone-otp', 'spend', daily_budget, '1 day', daily_budget);
    END IF;
    INSERT INTO postern.scope (realm_id, name, description)
    VALUES (v_realm, 'phone', 'Your phone number')
        ON CONFLICT DO NOTHING;
    PERFORM postern.admin_audit(v_realm, 'phone_policy_set',
                                detail => jsonb_build_object('regions', regions, 'default_region', default_region,
        'sends', sends, 'daily_budget', daily_budget, 'stale_after', v_stale));
END
$$;
COMMENT ON FUNCTION admin.set_phone_policy IS
'Says where a realm sends messages to phones. NULL leaves a setting as it is. No message goes to a phone before regions
names a country and admin.put_channel names who carries it. The realm gets the scope phone.
regions: ISO 3166 codes. default_region: of numbers that people type without a country code.
sends: messages per request, resends and other channels included, 1 to 5 (default 3).
daily_budget: cost units per day over all phones (default 10,000; admin.put_phone_prefix says what a message costs).
stale_after: 1 to 3650 days (default 90). A number whose last proof is older may have passed to another person: it no
longer signs in by itself, and a person who proves it and may register gets it.
Example: SELECT admin.set_phone_policy(''acme'', ''{AT,DE}'', ''AT'', daily_budget => 2000);';

CREATE OR REPLACE FUNCTION admin.put_phone_prefix(
    realm text, prefix text, action text DEFAULT NULL, cost integer DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    IF prefix IS NULL OR prefix COLLATE "C" !~ '\A\+[1-9][0-9]{0,13}\Z' THEN
        PERFORM postern.refuse(format('prefix %s is not the beginning of a phone number', postern.shown(prefix)),
            'Allowed is + and 1 to 14 digits, such as +43 or +437.');
    END IF;
    PERFORM postern.check_choice('action', action, 'allow', 'deny');
    IF cost NOT BETWEEN 1 AND 1000 THEN
        PERFORM postern.refuse(format('cost "%s" is out of range', cost), 'Allowed is 1 to 1000 units per message.');
    END IF;
    INSERT INTO postern.phone_prefix AS p (realm_id, prefix, action, cost)
    VALUES (v_realm, prefix, coalesce(action, 'allow'), coalesce(cost, 1))
        ON CONFLICT ON CONSTRAINT phone_prefix_pkey DO UPDATE
       SET action = coalesce(put_phone_prefix.action, p.action), cost = coalesce(put_phone_prefix.cost, p.cost);
    PERFORM postern.admin_audit(v_realm, 'phone_prefix_put',
                                detail => jsonb_build_object('prefix', prefix, 'action', action, 'cost', cost));
END
$$;
COMMENT ON FUNCTION admin.put_phone_prefix IS
'Refuses the phone numbers that begin with a prefix, or says what a message to them costs. The longest prefix decides;
the regions of admin.set_phone_policy hold besides. NULL leaves a setting as it is.
action: allow (default) or deny. cost: units of the daily budget per message, 1 to 1000 (default 1).
Example: SELECT admin.put_phone_prefix(''acme'', ''+437'', ''deny'');';

CREATE OR REPLACE FUNCTION admin.delete_phone_prefix(realm text, prefix text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
BEGIN
    DELETE FROM postern.phone_prefix AS p WHERE p.realm_id = v_realm AND p.prefix = prefix;
    PERFORM postern.admin_removed(v_realm, FOUND, 'phone_prefix_deleted',
        detail => jsonb_build_object('prefix', prefix),
        p_missing => format('prefix %s has no rule in this realm', postern.shown(prefix)),
        p_hint => 'SELECT prefix FROM admin.phone_prefixes WHERE realm = … lists them.');
END
$$;
COMMENT ON FUNCTION admin.delete_phone_prefix IS
'Takes the rule of a prefix back.
Example: SELECT admin.delete_phone_prefix(''acme'', ''+437'');';

CREATE OR REPLACE VIEW admin.phone_policies AS
SELECT r.slug AS realm, p.regions, p.default_region, p.sends, coalesce(l.permits, d.permits) AS daily_budget,
       p.stale_after
  FROM postern.phone_policy AS p JOIN postern.realm AS r ON r.id = p.realm_id
  JOIN postern.default_rate_limits() AS d ON d.policy = 'phone-otp' AND d.dimension = 'spend'
  LEFT JOIN postern.rate_limit AS l ON l.realm_id = r.id AND l.policy = d.policy AND l.dimension = d.dimension;
COMMENT ON VIEW admin.phone_policies IS 'Where realms send messages to phones, and the budget of a day';

CREATE OR REPLACE VIEW admin.phone_prefixes AS
SELECT r.slug AS realm, p.prefix, p.action, p.cost
  FROM postern.phone_prefix AS p JOIN postern.realm AS r ON r.id = p.realm_id;
COMMENT ON VIEW admin.phone_prefixes IS 'Prefixes of phone numbers that are refused or cost more than one unit';

RESET ROLE;
