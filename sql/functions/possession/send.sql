-- Possession of a phone number: the message to it, the code, and what the app says about its link.
SET LOCAL ROLE postern_owner;

-- p_risk, p_swapped: what providers said of this number; p_swapped NULL: nothing is known against it. Everything is
-- looked at again under the row's lock, permits last, and the message is counted before it is queued. Outcomes: sent,
-- failed (a provider refuses), settled (a test number with a certain end), refused (refusal says why), rate_limited.
CREATE OR REPLACE FUNCTION postern.send_possession(
    p_realm uuid, p_id uuid, p_key bytea, p_channel postern.possession_channel, p_phone text, p_region text,
    p_salt bytea, p_keyed bytea, p_code_key bytea, p_link_hash bytea, p_match text,
    p_risk postern.possession_risk, p_swapped postern.possession_sim, p_mail_id uuid, p_payload bytea,
    p_template text, p_app text, p_locale text,
    p_permits postern.permits,
    OUT outcome postern.possession_sent, OUT refusal postern.possession_refusal,
    OUT facts postern.possession_facts, OUT limit_ord integer, OUT retry_after double precision, OUT granted integer[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_before postern.device_request;
    v_settings record;
    v_test postern.test_number;
    v_changes boolean;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT t.* INTO v_before FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key FOR NO KEY UPDATE;
    SELECT r.possession_otp_lifetime, r.possession_link_lifetime INTO v_settings
      FROM postern.realm AS r WHERE r.id = p_realm;
    v_changes := v_before.phone IS DISTINCT FROM p_phone;
    refusal := postern.send_refusal(v_before, p_phone);
    IF refusal = 'send_limit' THEN
        UPDATE postern.device_request AS t SET detail = t.detail || '{"send_refused": true}'
         WHERE t.realm_id = p_realm AND t.id = p_id;
    END IF;
    IF refusal IS NOT NULL THEN
        outcome := 'refused';
        facts := postern.possession_facts(v_before, p_key, NULL);
        RETURN;
    END IF;
    v_test := postern.test_number_of(p_realm, v_before.client, p_phone);
    IF v_test.phone IS NULL THEN
        SELECT t.* INTO outcome, limit_ord, retry_after, granted
          FROM postern.enter_realm(p_realm, p_permits) AS t;
        IF outcome = 'rate_limited' THEN
            RETURN;
        END IF;
    END IF;
    outcome := 'sent';
    UPDATE postern.device_request AS t
       SET phone = p_phone, region = p_region, is_test = v_test.phone IS NOT NULL, test_outcome = v_test.outcome,
           numbers = t.numbers + CASE WHEN v_changes THEN 1 ELSE 0 END,
           detail = CASE WHEN p_risk IS NULL THEN t.detail
                         ELSE t.detail - 'email' || jsonb_build_object('risk', p_risk) END
     WHERE t.realm_id = p_realm AND t.id = p_id
    RETURNING t.* INTO v_before;
    IF v_test.outcome IN ('pass', 'fail') THEN
        PERFORM postern.settle_test_number(v_before);
        outcome := 'settled';
    ELSIF p_risk IN ('deny', 'unavailable') OR p_swapped IN ('swapped', 'unavailable') THEN
        PERFORM postern.fail_possession(
            p_realm, p_id, '{open,sent,linked}', ARRAY['9100', CASE
                WHEN p_risk = 'deny' THEN '9200' WHEN p_swapped = 'swapped' THEN '9202'
                ELSE '9201' END]::postern.possession_reason[]);
        outcome := 'failed';
    ELSE
        PERFORM postern.move_device_request(p_realm, p_id, '{open,sent,linked}', 'sent');
        UPDATE postern.device_request AS t
           SET sends = t.sends + 1, sent_at = now(), code_salt = p_salt,
               code_hash = CASE WHEN p_channel = 'otp' THEN sha256(p_salt || p_keyed) END,
               code_key = CASE WHEN p_channel = 'otp' THEN p_code_key END,
               code_expires_at = now() + v_settings.possession_otp_lifetime,
               link_hash = CASE WHEN p_channel = 'link' THEN p_link_hash END,
               link_expires_at = now() + v_settings.possession_link_lifetime, match_number = p_match,
               return_hash = NULL, return_expires_at = NULL, message = p_mail_id
         WHERE t.realm_id = p_realm AND t.id = p_id;
        -- What it says is good for nothing any more.
        PERFORM postern.supersede_message(p_realm, v_before.message);
        -- Nothing is sent to a test number; a link to one is seen in the outbox of postern dev.
        IF v_test.phone IS NULL
           OR p_channel = 'link' AND NOT EXISTS (SELECT FROM postern.channel AS c
                                                  WHERE c.realm_id = p_realm AND c.channel = 'sms' AND c.enabled
                                                    AND c.provider <> 'outbox') THEN
            PERFORM postern.queue_message(
                p_realm, p_mail_id, 'sms', p_phone, p_template, 'possession', p_payload,
                p_expires_at => now() + CASE p_channel WHEN 'otp' THEN v_settings.possession_otp_lifetime
                                        ELSE v_settings.possession_link_lifetime END,
                p_client => v_before.client, p_app => p_app, p_locale => p_locale, p_region => p_region);
        END IF;
        INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
        VALUES (p_realm, 'possession_sent', v_before.client, v_before.source,
                jsonb_build_object('correlation_id', p_id, 'channel', p_channel));
    END IF;
    facts := (SELECT postern.possession_facts(t, p_key, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.send_possession IS 'Counts and queues a code or link to the number that is to be proven';
GRANT EXECUTE ON FUNCTION postern.send_possession TO postern_app;

-- The try is counted before the comparison, among the wrong codes of the number too. A number that is closed by a
-- hundred wrong codes answers as a wrong code does. p_test_keyed: the code under the keys of test numbers, of a
-- transaction that is for one: no person has the code that the server made. Outcomes: passed, wrong, failed
-- (the last try), step. The right code again within a minute is passed again: its answer was lost.
CREATE OR REPLACE FUNCTION postern.check_possession(
    p_realm uuid, p_id uuid, p_key bytea, p_keyed bytea[], p_test_keyed bytea[],
    OUT outcome postern.possession_checked, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_tried postern.device_request;
    v_tries integer;
    v_wrong integer;
    v_is_open boolean;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.device_request AS t SET tries = t.tries + 1
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key AND t.state = 'sent' AND t.code_hash IS NOT NULL
       AND t.expires_at > now() AND t.tries < CASE WHEN t.detail ? 'retries' THEN 3 ELSE 1 END
    RETURNING t.* INTO v_tried;
    outcome := 'step';
    IF FOUND THEN
        v_tries := CASE WHEN v_tried.detail ? 'retries' THEN 3 ELSE 1 END;
        INSERT INTO postern.code_guard AS g (realm_id, address_key, consecutive) VALUES (p_realm, v_tried.phone, 1)
            ON CONFLICT (realm_id, address_key) DO UPDATE
           SET consecutive = CASE WHEN g.locked_until IS NULL THEN g.consecutive ELSE 0 END + 1, locked_until = NULL,
               updated_at = now()
         WHERE coalesce(g.locked_until <= now(), true)
        RETURNING g.consecutive INTO v_wrong;
        v_is_open := FOUND;
        IF v_is_open AND v_tried.code_expires_at > now()
           AND postern.is_code_of(v_tried, p_keyed, p_test_keyed) THEN
            PERFORM postern.pass_possession(p_realm, p_id, '{sent}', 'code');
            outcome := 'passed';
        ELSE
            IF v_wrong >= 100 THEN
                UPDATE postern.code_guard AS g SET locked_until = now() + interval '24 hours'
                 WHERE g.realm_id = p_realm AND g.address_key = v_tried.phone;
                INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
                VALUES (p_realm, 'code_lockout', v_tried.client, v_tried.source,
                        jsonb_build_object('wrong', v_wrong, 'known_device', false));
            END IF;
            outcome := 'wrong';
            IF v_tried.tries >= v_tries THEN
                PERFORM postern.fail_possession(p_realm, p_id, '{sent}', '{9100,9210}');
                outcome := 'failed';
            END IF;
        END IF;
    ELSIF EXISTS (SELECT FROM postern.device_request AS t
                   WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key AND t.state IN ('passed', 'redeemed')
                     AND t.detail ->> 'by' = 'code' AND t.ended_at > now() - interval '60 seconds'
                     AND postern.is_code_of(t, p_keyed, p_test_keyed)) THEN
        outcome := 'passed';
    END IF;
    facts := (SELECT postern.possession_facts(t, p_key, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.check_possession IS 'Counts a try at the code of a transaction, and compares it';
GRANT EXECUTE ON FUNCTION postern.check_possession TO postern_app;

-- The app brings back what the link gave it. Outcomes: passed, unknown (wrong, used or old), step.
CREATE OR REPLACE FUNCTION postern.finish_possession(
    p_realm uuid, p_id uuid, p_key bytea, p_return_hash bytea,
    OUT outcome postern.possession_finished, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_returned boolean;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    UPDATE postern.device_request AS t SET return_hash = NULL
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key AND t.state = 'linked' AND t.expires_at > now()
       AND t.return_hash = p_return_hash AND t.return_expires_at > now();
    v_returned := FOUND;
    outcome := CASE
        WHEN v_returned AND postern.pass_possession(p_realm, p_id, '{linked}', 'link') THEN 'passed'
        ELSE 'unknown' END;
    facts := (SELECT postern.possession_facts(t, p_key, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.finish_possession IS 'Passes a transaction by what its link gave to the app on the phone';
GRANT EXECUTE ON FUNCTION postern.finish_possession TO postern_app;

CREATE OR REPLACE FUNCTION postern.cancel_possession(p_realm uuid, p_id uuid, p_key bytea)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN EXISTS (SELECT FROM postern.device_request AS t
                    WHERE t.realm_id = p_realm AND t.id = p_id AND t.key = p_key)
        AND postern.fail_possession(p_realm, p_id, '{open,sent,linked,required}', '{9100}');
END
$$;
COMMENT ON FUNCTION postern.cancel_possession IS 'The person gives up; false when the transaction is over';
GRANT EXECUTE ON FUNCTION postern.cancel_possession TO postern_app;

-- A step that needs nothing of the transaction before is one statement: enter_possession and the step.

-- Outcomes: gone (no such transaction), wrong_key, and those of finish_possession.
CREATE OR REPLACE FUNCTION postern.finish_possession_by_proof(
    p_realm uuid, p_proof postern.proof_use, p_auth_id uuid, p_return_hash bytea,
    OUT outcome postern.possession_finished, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_entered record;
    v_finished record;
BEGIN
    v_entered := postern.enter_possession(p_realm, p_proof, p_auth_id, NULL);
    outcome := CASE v_entered.outcome WHEN 'unknown' THEN 'gone' WHEN 'wrong_key' THEN 'wrong_key' END;
    IF outcome IS NULL THEN
        v_finished := postern.finish_possession(p_realm, (v_entered.facts).id, p_proof.key, p_return_hash);
        outcome := v_finished.outcome;
        facts := v_finished.facts;
    END IF;
END
$$;
COMMENT ON FUNCTION postern.finish_possession_by_proof IS
    'Admits an app by the proof of its key, and passes its transaction by what its link gave to it';
GRANT EXECUTE ON FUNCTION postern.finish_possession_by_proof TO postern_app;

-- Outcomes: gone, wrong_key, step (never opened), cancelled, over.
CREATE OR REPLACE FUNCTION postern.cancel_possession_by_proof(
    p_realm uuid, p_proof postern.proof_use, p_auth_id uuid,
    OUT outcome postern.possession_cancelled, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_entered record;
    v_id uuid;
BEGIN
    v_entered := postern.enter_possession(p_realm, p_proof, p_auth_id, NULL);
    IF v_entered.outcome <> 'ok' THEN
        outcome := CASE v_entered.outcome WHEN 'unknown' THEN 'gone' ELSE 'wrong_key' END;
        RETURN;
    END IF;
    v_id := (v_entered.facts).id;
    outcome := CASE
        WHEN NOT (v_entered.facts).is_opened THEN 'step'
        WHEN postern.cancel_possession(p_realm, v_id, p_proof.key) THEN 'cancelled'
        ELSE 'over' END;
    facts := (SELECT postern.possession_facts(t, p_proof.key, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = v_id);
END
$$;
COMMENT ON FUNCTION postern.cancel_possession_by_proof IS
    'Admits an app by the proof of its key; the person gives up';
GRANT EXECUTE ON FUNCTION postern.cancel_possession_by_proof TO postern_app;

RESET ROLE;
