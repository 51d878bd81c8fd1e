-- Possession of a phone number: a backend starts a transaction and asks how it stands (docs/decisions/0043).
SET LOCAL ROLE postern_owner;

INSERT INTO postern.known_permission (permission, purpose) VALUES
    ('gt:urn:postern:possession', 'Sign in by a phone number that was just proven'),
    ('ept:possession', 'Prove phone numbers for a backend (beside gt:client_credentials)'),
    ('cap:assert-possession', 'Say that a phone number is proven (beside ept:possession)')
    ON CONFLICT (permission) DO UPDATE SET purpose = excluded.purpose;

INSERT INTO postern.rate_limit_policy (policy, dimension, permits, per, burst, mode) VALUES
    ('possession', 'client', 6000, interval '60 minutes', 6000, 'enforce'),
    ('possession', 'target', 120, interval '1 minute', 120, 'enforce')
    ON CONFLICT (policy, dimension) DO UPDATE
   SET permits = excluded.permits, per = excluded.per, burst = excluded.burst, mode = excluded.mode;

-- For realm_config.
CREATE OR REPLACE FUNCTION postern.possession_config(p_realm uuid) RETURNS jsonb
LANGUAGE sql STABLE
RETURN (SELECT jsonb_build_object(
                   'enabled', r.possession_enabled, 'otp_lifetime', postern.seconds(r.possession_otp_lifetime),
                   'link_lifetime', postern.seconds(r.possession_link_lifetime),
                   'otp_digits', r.possession_otp_digits,
                   'providers', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                            'kind', p.kind, 'url', p.url, 'required', p.mode = 'require')), '[]')
                                   FROM postern.signal_provider AS p WHERE p.realm_id = r.id AND p.enabled))
          FROM postern.realm AS r WHERE r.id = p_realm);
COMMENT ON FUNCTION postern.possession_config IS 'How a realm proves phone numbers, for realm_config';
GRANT EXECUTE ON FUNCTION postern.possession_config TO postern_app;

-- What the test number of a client does; NULL: it is a number like any other.
CREATE OR REPLACE FUNCTION postern.test_number_of(p_realm uuid, p_client uuid, p_phone text)
RETURNS postern.test_number
LANGUAGE sql STABLE
AS $$
    SELECT n FROM postern.test_number AS n
     WHERE n.realm_id = p_realm AND n.phone = p_phone AND n.client = p_client AND n.expires_at > now()
$$;
COMMENT ON FUNCTION postern.test_number_of IS 'The test number of a client, if this is one';

-- p_keyed, p_test_keyed: as check_possession takes them.
CREATE OR REPLACE FUNCTION postern.is_code_of(t postern.device_request, p_keyed bytea[], p_test_keyed bytea[])
RETURNS boolean
LANGUAGE sql STABLE
RETURN CASE WHEN (t).is_test
            THEN EXISTS (SELECT FROM unnest(p_test_keyed) AS k (keyed),
                                     postern.test_number_of((t).realm_id, (t).client, (t).phone) AS n
                          WHERE n.code_mac = sha256(n.code_salt || k.keyed))
            ELSE (t).code_hash IN (SELECT sha256((t).code_salt || k.keyed) FROM unnest(p_keyed) AS k (keyed)) END;
COMMENT ON FUNCTION postern.is_code_of IS 'Whether a code is that of a transaction';

-- What a backend has begun waits while it may not begin anew.
CREATE OR REPLACE FUNCTION postern.may_prove_numbers(p_realm uuid, p_client uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM postern.client AS k
                    WHERE k.realm_id = p_realm AND k.id = p_client AND k.enabled
                      AND 'ept:possession' = ANY (k.permissions))
$$;
COMMENT ON FUNCTION postern.may_prove_numbers IS 'Whether a client is enabled and may prove phone numbers';

-- A failed one begins with 9100, whatever its reason.
CREATE OR REPLACE FUNCTION postern.possession_reasons(t postern.device_request)
RETURNS postern.possession_reason[]
LANGUAGE sql STABLE
RETURN CASE WHEN postern.state_of(t) = 'failed'
            THEN ARRAY['9100']::postern.possession_reason[]
                 || array_remove(string_to_array(t.reason, ' ')::postern.possession_reason[], '9100')
                 || CASE WHEN t.detail ? 'send_refused' THEN '{9211}'::postern.possession_reason[] END
            ELSE coalesce(string_to_array(t.reason, ' ')::postern.possession_reason[], '{}') END;
COMMENT ON FUNCTION postern.possession_reasons IS 'What decided a transaction, as evaluations name it';

-- The one judge of whether a message may be sent now. A server asks before it asks operators, which may bill each call;
-- send_possession asks again under the lock of the row. What waited for the lock began before the message that it
-- finds, so the age of that message is told by the clock.
CREATE OR REPLACE FUNCTION postern.send_refusal(t postern.device_request, p_phone text)
RETURNS postern.possession_refusal
LANGUAGE plpgsql
AS $$
DECLARE
    v_changes boolean := t.phone IS DISTINCT FROM p_phone;
    v_settings record;
BEGIN
    IF t.id IS NULL OR t.opened_at IS NULL OR t.kind = 'none'
       OR postern.state_of(t) NOT IN ('open', 'sent', 'linked') THEN
        RETURN 'step';
    END IF;
    SELECT coalesce(k.possession_phone_change, false) AS may_change, coalesce(p.sends, 3) AS sends,
           r.possession_resend_cooldown
      INTO v_settings
      FROM postern.realm AS r LEFT JOIN postern.client AS k ON k.realm_id = r.id AND k.id = t.client
      LEFT JOIN postern.phone_policy AS p ON p.realm_id = r.id
     WHERE r.id = t.realm_id;
    RETURN CASE
        WHEN v_changes AND t.phone IS NOT NULL AND NOT v_settings.may_change THEN 'no_change'
        WHEN v_changes AND t.numbers >= 3 THEN 'phone_limit'
        WHEN t.sent_at + v_settings.possession_resend_cooldown > clock_timestamp() THEN 'too_soon'
        WHEN t.sends >= v_settings.sends THEN 'send_limit' END;
END
$$;
COMMENT ON FUNCTION postern.send_refusal IS 'Why a message to a number would be refused now; NULL: it would be sent';

-- p_key: who asks, if an app does. p_phone: a number that the app names.
CREATE OR REPLACE FUNCTION postern.possession_facts(t postern.device_request, p_key bytea, p_phone text)
RETURNS postern.possession_facts
LANGUAGE plpgsql
AS $$
DECLARE
    v_test postern.test_number := postern.test_number_of(t.realm_id, t.client, coalesce(p_phone, t.phone));
    v_key postern.device_key;
    v_settings record;
    f postern.possession_facts;
BEGIN
    IF t.id IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT k.* INTO v_key FROM postern.device_key AS k
     WHERE k.realm_id = t.realm_id AND k.thumbprint = coalesce(p_key, t.key);
    SELECT k.possession_link_match, k.client_id, coalesce(p.sends, 3) AS sends,
           postern.seconds(r.possession_resend_cooldown) AS cooldown
      INTO v_settings
      FROM postern.realm AS r LEFT JOIN postern.client AS k ON k.realm_id = r.id AND k.id = t.client
      LEFT JOIN postern.phone_policy AS p ON p.realm_id = r.id
     WHERE r.id = t.realm_id;
    f.id := t.id;
    f.auth_id := t.auth_id;
    f.kind := t.kind;
    f.state := postern.state_of(t);
    f.reasons := postern.possession_reasons(t);
    f.phone := t.phone;
    f.client_id := v_settings.client_id;
    f.is_opened := t.opened_at IS NOT NULL;
    f.expires_in := greatest(date_part('epoch', t.expires_at - now()), 0);
    f.sends_left := greatest(v_settings.sends - t.sends, 0);
    f.cooldown := greatest(date_part('epoch', t.sent_at - now()) + v_settings.cooldown, 0);
    f.tries_left := greatest(CASE WHEN t.detail ? 'retries' THEN 3 ELSE 1 END - t.tries, 0);
    f.send_refusal := postern.send_refusal(t, coalesce(p_phone, t.phone));
    f.link_match := v_settings.possession_link_match;
    f.is_test := t.is_test OR v_test.phone IS NOT NULL;
    f.test_code := v_test.pending_code;
    IF v_test.data_key IS NOT NULL AND v_test.pending_code IS NULL THEN
        SELECT d.id, d.sealed INTO f.test_key, f.test_key_sealed FROM postern.data_key AS d
         WHERE d.realm_id = t.realm_id AND d.id = v_test.data_key;
    END IF;
    f.knows_key := CASE WHEN v_key.phone IS NULL THEN false
                        ELSE postern.bound_phone(v_key, t.client) IS NOT NULL AND NOT t.detail ? 'rebind'
                             AND coalesce((t.detail ->> 'device_id')::uuid = v_key.id, true) END;
    f.device_id := t.device_id;
    IF t.state IN ('passed', 'redeemed') THEN
        f.prove_id := (SELECT i.id FROM postern.phone_identity AS i
                        WHERE i.realm_id = t.realm_id AND i.phone = t.phone);
    END IF;
    f.family := t.detail ->> 'family';
    f.target := t.detail ->> 'target';
    f.check_reputation := t.detail ? 'check_reputation';
    f.sms_message := t.detail ->> 'sms_message';
    f.request_id := t.detail ->> 'request_id';
    f.human_id := t.detail ->> 'human_id';
    f.ip := t.detail ->> 'ip';
    f.email := t.detail ->> 'email';
    f.risk := t.detail ->> 'risk';
    RETURN f;
END
$$;
COMMENT ON FUNCTION postern.possession_facts IS 'What a server needs to know about a transaction now';

-- p_prove_id: names the number where p_phone does not.
CREATE OR REPLACE FUNCTION postern.start_possession(
    p_realm uuid, p_client uuid, p_id uuid, p_auth_id uuid, p_kind postern.possession_kind, p_phone text,
    p_prove_id uuid, p_detail postern.possession_detail, p_lifetime integer,
    p_permits postern.permits,
    OUT outcome postern.possession_started, OUT limit_ord integer, OUT retry_after double precision,
    OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_phone text := p_phone;
    v_test postern.test_number;
    v_started postern.device_request;
BEGIN
    SELECT t.* INTO outcome, limit_ord, retry_after, granted
      FROM postern.enter_realm(p_realm, p_permits) AS t;
    IF outcome = 'rate_limited' THEN
        RETURN;
    END IF;
    IF v_phone IS NULL AND p_prove_id IS NOT NULL THEN
        SELECT i.phone INTO v_phone FROM postern.phone_identity AS i
         WHERE i.realm_id = p_realm AND i.id = p_prove_id;
    END IF;
    v_test := postern.test_number_of(p_realm, p_client, v_phone);
    INSERT INTO postern.device_request (realm_id, id, auth_id, kind, client, phone, numbers, detail, expires_at,
                                        is_test, test_outcome)
    VALUES (p_realm, p_id, p_auth_id, p_kind::text, p_client, v_phone, CASE WHEN v_phone IS NULL THEN 0 ELSE 1 END,
            jsonb_strip_nulls(to_jsonb(p_detail)), now() + make_interval(secs => p_lifetime),
            v_test.phone IS NOT NULL, v_test.outcome)
    RETURNING * INTO v_started;
    INSERT INTO postern.audit_event (realm_id, event, client, detail)
    VALUES (p_realm, 'possession_started', p_client,
            jsonb_strip_nulls(jsonb_build_object('correlation_id', p_id, 'kind', p_kind,
                                                 'ip', v_started.detail ->> 'ip',
                                                 'test_number', NULLIF(v_started.is_test, false))));
    IF v_test.outcome IN ('pass', 'fail') THEN
        PERFORM postern.settle_test_number(v_started);
    END IF;
    outcome := 'started';
END
$$;
COMMENT ON FUNCTION postern.start_possession IS 'Starts a proof of a phone number for a backend';
GRANT EXECUTE ON FUNCTION postern.start_possession TO postern_app;

-- A day after its end a transaction is gone, also while the sweeper has not come to it. is_known stands beside facts so
-- that these stay one column: a function with one result of a composite type returns its attributes.
CREATE OR REPLACE FUNCTION postern.possession_status(p_realm uuid, p_client uuid, p_id uuid,
    OUT is_known boolean, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    facts := (SELECT postern.possession_facts(t, NULL, NULL) FROM postern.device_request AS t
               WHERE t.realm_id = p_realm AND t.id = p_id AND t.client = p_client AND t.kind <> 'approval'
                 AND t.expires_at > now() - interval '24 hours');
    is_known := facts.id IS NOT NULL;
END
$$;
COMMENT ON FUNCTION postern.possession_status IS 'How a transaction stands, for the client that started it';
GRANT EXECUTE ON FUNCTION postern.possession_status TO postern_app;

-- Begins each call of the app: uses the proof up. Outcomes: ok, unknown (no such transaction, or its backend may start
-- none now), wrong_key.
CREATE OR REPLACE FUNCTION postern.enter_possession(
    p_realm uuid, p_proof postern.proof_use, p_auth_id uuid, p_phone text,
    OUT outcome postern.possession_entered, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_transaction postern.device_request;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true), postern.use_proof(p_realm, p_proof);
    SELECT t.* INTO v_transaction FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.auth_id = p_auth_id AND t.kind <> 'approval'
       AND postern.may_prove_numbers(p_realm, t.client);
    outcome := CASE WHEN v_transaction.id IS NULL THEN 'unknown'
                    WHEN v_transaction.key <> p_proof.key THEN 'wrong_key' ELSE 'ok' END;
    IF outcome = 'ok' THEN
        facts := postern.possession_facts(v_transaction, p_proof.key, p_phone);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.enter_possession IS 'Admits an app to its transaction by the proof of its key';
GRANT EXECUTE ON FUNCTION postern.enter_possession TO postern_app;

-- After a long wait, without a proof: enter_possession has used it up.
CREATE OR REPLACE FUNCTION postern.possession_state(p_realm uuid, p_id uuid)
RETURNS postern.device_request_state
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN (SELECT postern.state_of(t) FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.possession_state IS 'The state of a transaction';
GRANT EXECUTE ON FUNCTION postern.possession_state TO postern_app;

RESET ROLE;
