-- Wrong codes: the realm's limit of them, and what ends the row of an address or a known device.
SET LOCAL ROLE postern_owner;

-- Whether the realm's limit wrong-codes is used up. Read by every try without locking a row.
CREATE OR REPLACE FUNCTION postern.is_braked(p_tat timestamptz, p_permits integer, p_per double precision,
                                             p_burst integer) RETURNS boolean
LANGUAGE sql STABLE
RETURN p_tat > now() + (p_burst - 1) * make_interval(secs => p_per / p_permits)
   -- A value above the maximum was counted under another limit.
   AND p_tat <= now() + p_burst * make_interval(secs => p_per / p_permits) + interval '1 second';
COMMENT ON FUNCTION postern.is_braked IS
    'Whether a limit of wrong codes is used up: not a whole permit is left; NULL for no limit';
GRANT EXECUTE ON FUNCTION postern.is_braked TO postern_app;

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
-- strangers.
CREATE OR REPLACE FUNCTION postern.forget_wrong_codes(p_realm uuid, p_email_key text, p_user uuid, p_device uuid)
    RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF p_device IS NULL THEN
        UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
         WHERE g.realm_id = p_realm AND g.email_key = p_email_key AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
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

-- For admin.unlock_codes: resets the counts of strangers and of all devices, and the failure budget of the address.
-- True when something was locked.
CREATE OR REPLACE FUNCTION postern.unlock_codes(p_realm uuid, p_email_key text) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_closed boolean;
BEGIN
    SELECT EXISTS (SELECT FROM postern.code_guard AS g
                    WHERE g.realm_id = p_realm AND g.email_key = p_email_key AND g.locked_until > now())
        OR EXISTS (SELECT FROM postern.device_guard AS g JOIN postern.user_account AS u ON u.realm_id = p_realm
                   AND u.id = g.user_id
                    WHERE g.realm_id = p_realm AND u.email_key = p_email_key AND g.locked_until > now())
      INTO v_closed;
    UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL, failures_tat = '-infinity'
     WHERE g.realm_id = p_realm AND g.email_key = p_email_key;
    UPDATE postern.device_guard AS g SET consecutive = 0, locked_until = NULL
      FROM postern.user_account AS u
     WHERE g.realm_id = p_realm AND u.realm_id = p_realm AND u.email_key = p_email_key AND g.user_id = u.id;
    RETURN v_closed;
END
$$;
COMMENT ON FUNCTION postern.unlock_codes IS
    'Unlocks the codes of an address, for strangers and known devices; true when they were locked';

CREATE OR REPLACE FUNCTION admin.unlock_codes(realm text, email text)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    v_realm uuid := postern.admin_realm(realm);
    v_key text := lower(email COLLATE "C") COLLATE "default";
    v_user uuid;
    v_closed boolean;
BEGIN
    SELECT u.id INTO v_user FROM postern.user_account AS u WHERE u.realm_id = v_realm AND u.email_key = v_key;
    -- Codes of an address without a user can be locked too.
    IF v_user IS NULL AND NOT EXISTS (SELECT FROM postern.code_guard AS g WHERE g.realm_id = v_realm
                                      AND g.email_key = v_key) THEN
        PERFORM postern.refuse(format('email %s is not a user of this realm', postern.shown(email)),
            'SELECT email FROM admin.users WHERE realm = … AND codes_locked_until IS NOT NULL lists whose codes are '
            'closed.');
    END IF;
    v_closed := postern.unlock_codes(v_realm, v_key);
    PERFORM postern.admin_audit(v_realm, 'codes_unlocked', user_id => v_user,
                                detail => jsonb_build_object('locked', v_closed));
    RETURN v_closed;
END
$$;
COMMENT ON FUNCTION admin.unlock_codes IS
'Opens the codes of an address again that too many wrong ones had closed, for strangers and for known devices, and
forgets
the wrong tries. True when they were closed.
Example: SELECT admin.unlock_codes(''acme'', ''ada@example.com'');';

RESET ROLE;
