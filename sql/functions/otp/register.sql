-- Registration by a code: the moment at which a mailbox is proven and an account comes into being.
SET LOCAL ROLE postern_owner;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('native-otp', 'registrations', 120, interval '60 minutes', 30, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- Limit registrations: mails to unknown addresses that one source may cause. The caller holds the lock of the source.
CREATE OR REPLACE FUNCTION postern.admit_registration(p_realm uuid, p_source text) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_limit record;
    v_refused integer;
    -- A provider gives a customer a /64 or a /48: the /48 counts as well, with sixteen times the permits.
    v_wide text := substring(p_source FROM '^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):.*/64$') || ':0:0:0:0:0/48';
    v_factors integer[] := CASE WHEN v_wide IS NULL THEN ARRAY[1] ELSE ARRAY[1, 16] END;
BEGIN
    SELECT l.permits, extract(epoch FROM l.per)::float8 AS per, l.burst, CASE WHEN l.mode = 'enforce' THEN 1
        ELSE -1 END AS wanted INTO v_limit
      FROM postern.effective_rate_limits(p_realm) AS l WHERE l.policy = 'native-otp' AND l.dimension = 'registrations';
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    SELECT t.limit_ord INTO v_refused
      FROM postern.take_realm_permits(
               p_realm,
               ROW(ARRAY(SELECT 'native-otp|registrations|' || source FROM unnest(ARRAY[p_source, v_wide]) AS source
                          WHERE source IS NOT NULL),
                   array_fill(v_limit.wanted, ARRAY[cardinality(v_factors)]),
                   ARRAY(SELECT least(v_limit.permits::bigint * factor, 2147483647)::integer
                           FROM unnest(v_factors) AS factor),
                   array_fill(v_limit.per, ARRAY[cardinality(v_factors)]),
                   ARRAY(SELECT least(v_limit.burst::bigint * factor, 2147483647)::integer
                           FROM unnest(v_factors) AS factor))::postern.permits) AS t;
    RETURN v_refused IS NULL;
END
$$;
COMMENT ON FUNCTION postern.admit_registration IS 'Whether a source may cause one more mail to an unknown address';
GRANT EXECUTE ON FUNCTION postern.admit_registration TO postern_app;

-- Turns the presented registration code (one of p_codes) into the code of a user. The user is created, or confirmed, or
-- used unchanged if an administrator created and confirmed it meanwhile. Not registered when no such code exists or
-- when it may no longer register; then nothing is written, and page_outcome says to the person whose code was right,
-- and to no other, what a page shows instead. Called with the lock of the address held and only for tries that matched
-- no sign-in code, so ordinary redemptions never reach it. An existing confirmed user is not changed, because a
-- stranger may have typed the names. The names are those of the request that made the code. A name that cannot be
-- stored is dropped.
CREATE OR REPLACE FUNCTION postern.register_by_code(
    p_caller postern.caller, p_page postern.page_sign_in, p_address_key text, p_codes uuid[], p_keyed bytea[],
    OUT registered boolean, OUT page_outcome text)
LANGUAGE plpgsql
AS $$
DECLARE
    v_realm uuid := p_caller.realm;
    v_code record;
    v_user uuid;
BEGIN
    registered := false;
    IF postern.asks_second_proof(p_caller, p_page.number_handle, p_address_key, p_codes, p_keyed) THEN
        page_outcome := 'second-proof';
        RETURN;
    END IF;
    SELECT c.id, c.email, c.app, c.locale, postern.person_name(c.first_name) AS first_name,
           postern.person_name(c.last_name) AS last_name,
           (coalesce(a.registration <> 'Off', false) OR postern.speaks_cotter(k))
               AND NOT postern.is_contested(v_realm, p_address_key) AS is_open
      INTO v_code
      FROM postern.login_code AS c
      LEFT JOIN postern.app AS a ON a.realm_id = v_realm AND a.slug = c.app
      JOIN postern.client AS k ON k.realm_id = v_realm AND k.id = p_caller.client AND k.enabled
          AND p_caller.permission = ANY (k.permissions)
      JOIN postern.realm AS r ON r.id = v_realm AND r.enabled
          AND postern.is_switched_on(r, p_caller.permission, p_caller.app)
          AND (c.app IS NULL OR postern.app_serves(v_realm, c.app, p_caller.permission))
     WHERE c.realm_id = v_realm AND c.address_key = p_address_key AND c.email IS NOT NULL AND c.user_id IS NULL
       AND c.id = ANY (p_codes) AND c.expires_at > now()
       AND postern.is_for_client(c.client, c.page_browser, p_caller.client)
       AND EXISTS (SELECT FROM unnest(p_keyed) AS o (keyed) WHERE c.mac = sha256(c.salt || o.keyed))
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    ELSIF NOT v_code.is_open THEN
        page_outcome := CASE WHEN p_page.host IS NOT NULL THEN 'registration-closed' END;
        RETURN;
    ELSIF postern.asks_profile(v_realm, p_page.profile_handle, p_address_key, v_code.id) THEN
        page_outcome := 'profile';
        RETURN;
    END IF;
    v_user := postern.register_user(v_realm, p_caller.client, v_code.email, v_code.first_name, v_code.last_name,
                                    v_code.app, v_code.locale, p_caller.source);
    IF v_user IS NULL THEN
        RETURN;
    END IF;
    UPDATE postern.login_code AS c SET user_id = v_user
     WHERE c.realm_id = v_realm AND c.address_key = p_address_key AND c.id = v_code.id;
    registered := true;
END
$$;
COMMENT ON FUNCTION postern.register_by_code IS
    'Makes a presented registration code that of a user, created or confirmed by it, where there is one';
GRANT EXECUTE ON FUNCTION postern.register_by_code TO postern_app;

-- The user of an address or phone number that was proven just now: created, or confirmed, or an enabled one as it is.
-- p_is_new: the proof is older, so an account that has proven the address meanwhile is not opened. NULL: that, a
-- disabled one, or an address that an account can still take back.
CREATE OR REPLACE FUNCTION postern.register_user(
    p_realm uuid, p_client uuid, p_email text, p_first text, p_last text, p_app text, p_locale text, p_source text,
    p_is_new boolean DEFAULT false)
RETURNS uuid
LANGUAGE plpgsql
AS $$
DECLARE
    v_kind text := CASE WHEN postern.is_phone(p_email) THEN 'phone' ELSE 'email' END;
    v_account record;
    v_user uuid;
    v_is_new boolean := false;
BEGIN
    LOOP
        SELECT a.user_id, a.proven, u.enabled,
               a.kind = 'phone' AND a.proved_at < postern.stale_before(p_realm) AS stale INTO v_account
          FROM postern.account_of(p_realm, postern.address_key(p_email)) AS a
          JOIN postern.user_account AS u ON u.realm_id = p_realm AND u.id = a.user_id;
        v_user := v_account.user_id;
        IF postern.is_contested(p_realm, postern.address_key(p_email), v_user) THEN
            RETURN NULL;
        END IF;
        EXIT WHEN v_user IS NOT NULL AND NOT coalesce(v_account.stale, false);
        BEGIN
            -- The number has passed to another person, whose account this becomes.
            IF v_user IS NOT NULL THEN
                PERFORM postern.release_number(p_realm, v_user, p_email);
            END IF;
            v_user := postern.create_user(p_realm, v_kind, p_email, p_first, p_last, p_locale);
            v_is_new := true;
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- An administrator has put the address at this moment: it is found now.
            CONTINUE;
        END;
    END LOOP;
    IF NOT v_is_new AND (v_account.proven OR NOT v_account.enabled) THEN
        RETURN CASE WHEN v_account.enabled AND NOT p_is_new THEN v_user END;
    END IF;
    IF NOT v_is_new THEN
        PERFORM postern.prove_identifier(p_realm, v_user, v_kind, p_email);
        UPDATE postern.user_account AS u
           SET first_name = coalesce(u.first_name, p_first), last_name = coalesce(u.last_name, p_last)
         WHERE u.realm_id = p_realm AND u.id = v_user;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, user_id, source, detail)
    VALUES (p_realm, CASE WHEN v_is_new THEN 'user_registered' ELSE 'user_confirmed' END, p_client, v_user, p_source,
            jsonb_build_object('app', p_app));
    RETURN v_user;
END
$$;
COMMENT ON FUNCTION postern.register_user IS
    'Creates or confirms the user of a proven address or phone number; NULL for one who may not sign in by it';
GRANT EXECUTE ON FUNCTION postern.register_user TO postern_app;

RESET ROLE;
