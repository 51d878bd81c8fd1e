-- What ends a proof of a phone number, for every way of proving it.
SET LOCAL ROLE postern_owner;

-- For one caller of any number at once; the others get false. p_by: code, link, key, operator, bind, test.
CREATE OR REPLACE FUNCTION postern.pass_possession(
    p_realm uuid, p_id uuid, p_from postern.device_request_state[], p_by text,
    p_reasons postern.possession_reason[] DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_passed postern.device_request;
    v_device uuid;
    v_stamp uuid;
BEGIN
    SELECT t.* INTO v_passed
      FROM postern.move_device_request(p_realm, p_id, p_from, 'passed', array_to_string(p_reasons, ' ')) AS t;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_device := CASE
        WHEN v_passed.kind = 'desktop' THEN NULL
        WHEN p_by = 'key' THEN (SELECT k.id FROM postern.device_key AS k
                                 WHERE k.realm_id = p_realm AND k.thumbprint = v_passed.key)
        ELSE postern.bind_phone(v_passed, CASE WHEN v_passed.is_test THEN 'test' WHEN p_by = 'bind' THEN 'asserted'
                                               ELSE p_by END) END;
    -- The account that has the number now is the one that it can sign in to, until that account signs out everywhere.
    SELECT u.security_stamp INTO v_stamp
      FROM postern.user_identifier AS i JOIN postern.user_account AS u ON u.realm_id = i.realm_id AND u.id = i.user_id
     WHERE i.realm_id = p_realm AND i.proven_key = v_passed.phone AND i.kind = 'phone';
    UPDATE postern.device_request AS t
       SET device_id = v_device, link_hash = NULL, return_hash = NULL,
           -- The app that sent the code asks with it again when the answer was lost.
           code_hash = CASE WHEN p_by = 'code' THEN t.code_hash END,
           code_salt = CASE WHEN p_by = 'code' THEN t.code_salt END,
           code_key = CASE WHEN p_by = 'code' THEN t.code_key END, match_number = NULL, security_stamp = v_stamp,
           detail = (t.detail - 'sms_message' - 'email') || jsonb_build_object('by', p_by)
     WHERE t.realm_id = p_realm AND t.id = p_id;
    IF v_passed.phone IS NOT NULL THEN
        INSERT INTO postern.phone_identity (realm_id, phone) VALUES (p_realm, v_passed.phone)
            ON CONFLICT (realm_id, phone) DO NOTHING;
        -- What was proven comes back, and wrong codes are forgotten unless a backend or a test number alone says so.
        IF p_by <> 'bind' AND NOT v_passed.is_test
           AND NOT (p_by = 'key' AND EXISTS (SELECT FROM postern.device_key AS k
                                              WHERE k.realm_id = p_realm AND k.id = v_device
                                                AND k.phone_by IN ('asserted', 'test'))) THEN
            UPDATE postern.code_guard AS g SET consecutive = 0, locked_until = NULL
             WHERE g.realm_id = p_realm AND g.address_key = v_passed.phone
               AND (g.consecutive > 0 OR g.locked_until IS NOT NULL);
        END IF;
        IF p_by IN ('code', 'link') AND v_passed.region IS NOT NULL AND NOT v_passed.is_test THEN
            PERFORM postern.give_back(p_realm, v_passed.phone, v_passed.region, v_passed.source);
        END IF;
    END IF;
    IF v_passed.key IS NOT NULL AND v_passed.kind <> 'desktop' THEN
        UPDATE postern.device_key AS k SET used_at = now() WHERE k.realm_id = p_realm AND k.thumbprint = v_passed.key;
    END IF;
    INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
    VALUES (p_realm, 'possession_passed', v_passed.client, v_passed.source,
            jsonb_strip_nulls(jsonb_build_object('correlation_id', p_id, 'by', p_by, 'codes', p_reasons)));
    PERFORM postern.wake(p_realm, 'transaction', p_id);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.pass_possession IS 'A number is proven: binds the key, and says so to who waits';

CREATE OR REPLACE FUNCTION postern.fail_possession(
    p_realm uuid, p_id uuid, p_from postern.device_request_state[], p_reasons postern.possession_reason[])
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_failed postern.device_request;
BEGIN
    SELECT t.* INTO v_failed
      FROM postern.move_device_request(p_realm, p_id, p_from, 'failed', array_to_string(p_reasons, ' ')) AS t;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE postern.device_request AS t
       SET code_hash = NULL, code_salt = NULL, code_key = NULL, link_hash = NULL, return_hash = NULL,
           match_number = NULL, detail = t.detail - 'sms_message' - 'email'
     WHERE t.realm_id = p_realm AND t.id = p_id;
    PERFORM postern.supersede_message(p_realm, v_failed.message);
    INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
    VALUES (p_realm, 'possession_failed', v_failed.client, v_failed.source,
            jsonb_build_object('correlation_id', p_id, 'codes', p_reasons));
    PERFORM postern.wake(p_realm, 'transaction', p_id);
    RETURN true;
END
$$;
COMMENT ON FUNCTION postern.fail_possession IS 'A number is not proven: the transaction is over';

-- Of a test number whose outcome is certain, at once: of kind none without a key.
CREATE OR REPLACE FUNCTION postern.settle_test_number(t postern.device_request) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF t.test_outcome = 'fail' THEN
        PERFORM postern.fail_possession(t.realm_id, t.id, '{open,sent,linked}', '{9100}');
    ELSIF t.kind = 'none' THEN
        PERFORM postern.move_device_request(t.realm_id, t.id, '{open}', 'required');
    ELSE
        PERFORM postern.pass_possession(t.realm_id, t.id, '{open,sent,linked}', 'test');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.settle_test_number IS 'Passes or fails the transaction of a test number';

-- What the key that opens a transaction proves by itself. The first key pins it: another one gets wrong_key.
-- p_risk: deny, unavailable (and required), allow, or unknown; NULL: not asked yet. p_verified: the operator
-- knows that the number is this phone's. Outcomes: ok, wrong_key.
CREATE OR REPLACE FUNCTION postern.open_possession(
    p_realm uuid, p_id uuid, p_key bytea, p_public_key bytea, p_device_id uuid, p_source text,
    p_risk postern.possession_risk, p_verified boolean,
    OUT outcome postern.possession_opened, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_before postern.device_request;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    -- A repeated call writes nothing: repeated calls of one app do not wait for each other at the row.
    SELECT t.* INTO v_before FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key
       AND (t.opened_at IS NOT NULL OR postern.state_of(t) <> 'open');
    IF FOUND THEN
        outcome := 'ok';
        facts := postern.possession_facts(v_before, p_key, NULL);
        RETURN;
    END IF;
    outcome := 'wrong_key';
    UPDATE postern.device_request AS t
       SET key = p_key, public_key = p_public_key, source = coalesce(t.source, p_source),
           detail = CASE WHEN t.opened_at IS NOT NULL OR p_device_id IS NULL THEN t.detail
                         ELSE t.detail || jsonb_build_object('device_id', p_device_id) END
     WHERE t.realm_id = p_realm AND t.id = p_id AND (t.key IS NULL OR t.key = p_key)
    RETURNING t.* INTO v_before;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    outcome := 'ok';
    IF v_before.opened_at IS NULL AND postern.state_of(v_before) = 'open' THEN
        UPDATE postern.device_request AS t
           SET opened_at = now(),
               detail = CASE WHEN p_risk IS NULL THEN t.detail
                             ELSE (t.detail - 'email') || jsonb_build_object('risk', p_risk) END
         WHERE t.realm_id = p_realm AND t.id = p_id;
        PERFORM postern.decide_opened(v_before, p_risk, p_verified);
    END IF;
    facts := (SELECT postern.possession_facts(t, p_key, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.open_possession IS 'Pins the key of the app, which may prove the number by itself';
GRANT EXECUTE ON FUNCTION postern.open_possession TO postern_app;

CREATE OR REPLACE FUNCTION postern.decide_opened(
    t postern.device_request, p_risk postern.possession_risk, p_verified boolean) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_key postern.device_key;
    v_phone text;
BEGIN
    IF p_risk IN ('deny', 'unavailable') THEN
        PERFORM postern.fail_possession(
            t.realm_id, t.id, '{open}',
            (CASE p_risk WHEN 'deny' THEN '{9100,9200}' ELSE '{9100,9201}' END)::postern.possession_reason[]);
        RETURN;
    ELSIF t.kind = 'desktop' THEN
        RETURN;
    END IF;
    SELECT k.* INTO v_key FROM postern.device_key AS k
     WHERE k.realm_id = t.realm_id AND k.thumbprint = t.key AND k.phone IS NOT NULL AND NOT t.detail ? 'rebind'
       AND coalesce((t.detail ->> 'device_id')::uuid = k.id, true);
    v_phone := postern.bound_phone(v_key, t.client);
    IF v_phone = coalesce(t.phone, v_phone) THEN
        UPDATE postern.device_request AS x SET phone = v_phone WHERE x.realm_id = t.realm_id AND x.id = t.id;
        PERFORM postern.pass_possession(t.realm_id, t.id, '{open}', 'key');
    ELSIF v_phone IS NOT NULL AND t.kind = 'mobile' THEN
        PERFORM postern.fail_possession(t.realm_id, t.id, '{open}', '{9100,9101}');
    ELSIF t.kind = 'none' THEN
        PERFORM postern.move_device_request(t.realm_id, t.id, '{open}', 'required',
                                         CASE WHEN v_phone IS NOT NULL THEN '9101' END),
                postern.wake(t.realm_id, 'transaction', t.id);
    ELSIF p_verified AND t.phone IS NOT NULL THEN
        PERFORM postern.pass_possession(t.realm_id, t.id, '{open}', 'operator');
    END IF;
END
$$;
COMMENT ON FUNCTION postern.decide_opened IS 'The table of key, phone and rebind';

RESET ROLE;
