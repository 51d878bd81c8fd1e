-- Wrong codes: the realm's limit of them, and what ends the row of an address or a known device.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('token', 'wrong-codes', 3000, interval '60 minutes', 1000, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- A row that counts nothing goes at once. Every try by an address writes one, so that its time does not tell whether
-- there was a code: strangers decide how many there are.
INSERT INTO postern.sweep_rule (table_name, condition) VALUES
    ('code_guard', 't.failures_tat < now() AND coalesce(t.locked_until < now(), true)'
                   ' AND (t.consecutive = 0 OR t.updated_at < now() - interval ''24 hours'')'),
    ('device_guard', 'coalesce(t.locked_until < now(), true)'
                     ' AND (t.consecutive = 0 OR t.updated_at < now() - interval ''24 hours'')')
    ON CONFLICT (table_name) DO UPDATE SET condition = excluded.condition;

-- A try that redeems nothing: the reason for the log, the work of three comparisons however many codes there were, and
-- the count: of the handle's tries, or in the address's failure budget, and of wrong codes in a row (a right code ends
-- both counts). p_because: why nothing was compared, so that nothing is counted; NULL: something was. compared: for the
-- realm's limit, the wrong codes that were those of accounts. A code to register with belongs to no account: guessing
-- it reaches none, and a stranger can cause one for each address that he invents.
CREATE OR REPLACE FUNCTION postern.refuse_code(
    p_caller postern.caller, p_address_key text, p_handle bytea, p_codes uuid[], p_keyed bytea[], p_salt bytea,
    p_device uuid, p_consecutive integer, p_step interval, p_because text, OUT because text, OUT compared integer)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_realm uuid := p_caller.realm;
    v_client uuid := p_caller.client;
    v_dummy bytea;
    v_wrong integer;
    v_seen bigint;
    v_live bigint;
    v_compared bigint;
    v_equal bigint;
    v_of_accounts bigint;
    v_bound bigint;
    -- Of the address's failure budget. A handle has tries of its own, and with no code there was nothing to guess.
    v_step interval := CASE WHEN p_handle IS NULL AND cardinality(p_codes) > 0 THEN p_step END;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE x.is_live), count(*) FILTER (WHERE x.is_compared),
           count(*) FILTER (WHERE x.is_compared AND x.is_right), count(*) FILTER (WHERE NOT x.is_ours),
           count(*) FILTER (WHERE x.is_compared AND NOT x.is_right AND x.user_id IS NOT NULL)
      INTO v_seen, v_live, v_compared, v_equal, v_bound, v_of_accounts
      FROM (SELECT c.user_id, c.expires_at > now() AS is_live,
                   p_codes @> ARRAY[c.id] AND c.expires_at > now() AND m.is_ours AS is_compared, m.is_ours,
                   EXISTS (SELECT FROM unnest(p_keyed) AS k (keyed) WHERE c.mac = sha256(c.salt || k.keyed)) AS is_right
              FROM postern.login_code AS c,
                   LATERAL postern.is_for_client(c.client, c.page_browser, v_client) AS m (is_ours)
             WHERE c.realm_id = v_realm AND c.address_key = p_address_key
               AND (p_handle IS NULL OR p_codes @> ARRAY[c.id])) AS x;
    FOR i IN v_compared + 1 .. 3 LOOP
        v_dummy := sha256(p_salt || p_keyed[1]);
    END LOOP;
    compared := 0;
    because := p_because;
    IF because IS NOT NULL THEN
        RETURN;
    END IF;
    -- Each code that was compared and wrong adds one to the consecutive wrong codes. The hundredth locks codes for a
    -- day; then the count starts again.
    compared := v_of_accounts;
    v_wrong := p_consecutive + v_compared - v_equal;
    IF p_handle IS NOT NULL THEN
        UPDATE postern.sign_in_request AS a SET attempts = a.attempts + 1
         WHERE a.realm_id = v_realm AND a.id = p_handle;
    END IF;
    IF p_device IS NOT NULL THEN
        INSERT INTO postern.device_guard AS g (realm_id, user_id, device, consecutive)
        SELECT v_realm, i.user_id, p_device, v_wrong - p_consecutive
          FROM postern.user_identifier AS i WHERE i.realm_id = v_realm AND i.proven_key = p_address_key
            ON CONFLICT (realm_id, user_id, device) DO UPDATE
           SET consecutive = v_wrong, locked_until = CASE WHEN v_wrong >= 100 THEN now() + interval '24 hours' END,
               updated_at = now();
    ELSE
        INSERT INTO postern.code_guard AS g (realm_id, address_key, failures_tat, consecutive)
        VALUES (v_realm, p_address_key, coalesce(now() + v_step, '-infinity'), v_wrong - p_consecutive)
            ON CONFLICT (realm_id, address_key) DO UPDATE
           SET failures_tat = coalesce(greatest(g.failures_tat, now()) + v_step, g.failures_tat), consecutive = v_wrong,
               locked_until = CASE WHEN v_wrong >= 100 THEN now() + interval '24 hours' END, updated_at = now();
    END IF;
    IF v_wrong >= 100 THEN
        INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
        VALUES (v_realm, 'code_lockout', v_client,
                postern.find_user(v_realm, p_address_key), p_caller.source,
                jsonb_build_object('wrong', v_wrong, 'known_device', p_device IS NOT NULL));
    END IF;
    because := CASE WHEN v_wrong >= 100 THEN 'lockout'
                    WHEN v_seen = 0 THEN 'unknown'
                   WHEN v_live = 0 THEN 'expired'
                   WHEN v_equal > 0 THEN 'disabled'
                   WHEN v_compared = 0 AND v_bound > 0 THEN 'client'
                   ELSE 'wrong' END;
END
$$;
COMMENT ON FUNCTION postern.refuse_code IS 'Counts the wrong codes of a try and says, for the log, why it was refused';
GRANT EXECUTE ON FUNCTION postern.refuse_code TO postern_app;

-- Whether the realm's limit wrong-codes is used up. Read by every try without locking a row.
CREATE OR REPLACE FUNCTION postern.is_braked(
    p_tat timestamptz, p_permits integer, p_per double precision, p_burst integer) RETURNS boolean
LANGUAGE sql STABLE
RETURN p_tat > now() + (p_burst - 1) * make_interval(secs => p_per / p_permits)
   -- A value above the maximum was counted under another limit.
   AND p_tat <= now() + p_burst * make_interval(secs => p_per / p_permits) + interval '1 second';
COMMENT ON FUNCTION postern.is_braked IS
    'Whether a limit of wrong codes is used up: not a whole permit is left; NULL for no limit';
GRANT EXECUTE ON FUNCTION postern.is_braked TO postern_app;

CREATE OR REPLACE FUNCTION postern.realm_is_braked(p_realm uuid, p_brake postern.budget) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM postern.rate_bucket AS b
                    WHERE b.realm_id = p_realm AND b.key = 'token|wrong-codes'
                      AND postern.is_braked(b.tat, p_brake.permits, p_brake.per, p_brake.burst));
END
$$;
COMMENT ON FUNCTION postern.realm_is_braked IS 'Whether a realm''s limit of wrong codes is used up';
GRANT EXECUTE ON FUNCTION postern.realm_is_braked TO postern_app;

-- Adds wrong codes to the realm's limit. Each server reports at most a few times a second, for all wrong codes since
-- its last report, so that the realm's one row is written seldom, however many codes are tried. Returns whether the
-- limit is used up now.
CREATE OR REPLACE FUNCTION postern.report_wrong_codes(
    p_realm uuid, p_wrong integer, p_permits integer, p_per double precision, p_burst integer, p_enforced boolean)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_step interval := make_interval(secs => p_per / p_permits);
    v_full interval := p_burst * make_interval(secs => p_per / p_permits);
    v_tat timestamptz;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)
    VALUES (p_realm, 'token|wrong-codes', now() + least(p_wrong * v_step, v_full))
        ON CONFLICT (realm_id, key) DO UPDATE
       SET tat = least(CASE WHEN b.tat > now() + v_full + interval '1 second' THEN now()
                       ELSE greatest(b.tat, now()) END + p_wrong * v_step,
                       now() + v_full)
    RETURNING b.tat INTO v_tat;
    IF NOT postern.is_braked(v_tat, p_permits, p_per, p_burst) THEN
        RETURN false;
    END IF;
    -- One audit event in ten minutes is enough.
    INSERT INTO postern.rate_bucket AS b (realm_id, key, tat)
    VALUES (p_realm, 'token|wrong-codes|audited', now() + interval '10 minutes')
        ON CONFLICT (realm_id, key) DO UPDATE SET tat = excluded.tat WHERE b.tat <= now();
    IF FOUND THEN
        INSERT INTO postern.audit_event (realm_id, event, detail)
        VALUES (p_realm, 'code_brake', jsonb_build_object('permits', p_permits, 'seconds', p_per, 'burst', p_burst,
                                                          'enforced', p_enforced));
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.report_wrong_codes IS
    'Counts compared and wrong codes of a realm; true while its limit is used up';
GRANT EXECUTE ON FUNCTION postern.report_wrong_codes TO postern_app;

-- A sign-in by other means than a code resets the count of wrong codes: that of the known device p_device, else that of
-- strangers at all addresses and phone numbers of the user.
CREATE OR REPLACE FUNCTION postern.forget_wrong_codes(p_realm uuid, p_address_key text, p_user uuid, p_device uuid)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_device IS NULL THEN
        UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
          FROM postern.user_identifier AS i
         WHERE i.realm_id = p_realm AND i.user_id = p_user AND g.realm_id = p_realm AND g.address_key = i.key
           AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
    ELSE
        UPDATE postern.device_guard AS g SET consecutive = 0, locked_until = NULL
         WHERE g.realm_id = p_realm AND g.user_id = p_user AND g.device = p_device
           AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.forget_wrong_codes IS
    'After a success: resets the wrong codes of that device, or of strangers, and their lock';
GRANT EXECUTE ON FUNCTION postern.forget_wrong_codes TO postern_app;

-- For admin.unlock_codes: resets the counts of strangers and the failure budget at some addresses, and the counts of
-- all devices of a user. True when something was locked.
CREATE OR REPLACE FUNCTION postern.unlock_codes(p_realm uuid, p_user uuid, p_keys text[]) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_closed boolean;
BEGIN
    SELECT EXISTS (SELECT FROM postern.code_guard AS g
                    WHERE g.realm_id = p_realm AND g.address_key = ANY (p_keys) AND g.locked_until > now())
        OR EXISTS (SELECT FROM postern.device_guard AS g
                    WHERE g.realm_id = p_realm AND g.user_id = p_user AND g.locked_until > now())
      INTO v_closed;
    UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL, failures_tat = '-infinity'
     WHERE g.realm_id = p_realm AND g.address_key = ANY (p_keys);
    UPDATE postern.device_guard AS g SET consecutive = 0, locked_until = NULL
     WHERE g.realm_id = p_realm AND g.user_id = p_user;
    RETURN v_closed;
END
$$;
COMMENT ON FUNCTION postern.unlock_codes(uuid, uuid, text[]) IS
    'Unlocks codes at some addresses for strangers, and of a user''s known devices; true when they were locked';

CREATE OR REPLACE FUNCTION admin.unlock_codes(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_key text := postern.address_key(email);
    v_user uuid := coalesce(postern.user_by_id(v_realm, email), postern.find_user(v_realm, email));
    v_closed boolean;
BEGIN
    -- Codes of an address without a user can be locked too.
    IF v_user IS NULL AND NOT EXISTS (SELECT FROM postern.code_guard AS g WHERE g.realm_id = v_realm
                                      AND g.address_key = v_key) THEN
        PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(email)),
            'SELECT id, email, phone FROM admin.users WHERE realm = … AND codes_locked_until IS NOT NULL lists whose '
            'codes are closed.');
    END IF;
    v_closed := postern.unlock_codes(v_realm, v_user,
                                     v_key || ARRAY(SELECT postern.identifier_keys(v_realm, v_user)));
    PERFORM postern.admin_audit(v_realm, 'codes_unlocked', user_id => v_user,
                                detail => jsonb_build_object('locked', v_closed));
    RETURN v_closed;
END
$$;
COMMENT ON FUNCTION admin.unlock_codes IS
'Opens the codes of a user again that too many wrong ones had closed, for strangers and for known devices, and forgets
the wrong tries. True when they were closed.
email: any e-mail address, the phone number in E.164 form or the id of the user; or an address without a user.
Example: SELECT admin.unlock_codes(''acme'', ''ada@example.com'');';

RESET ROLE;
