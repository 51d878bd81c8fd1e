-- Possession of a phone number: the page behind a link, what a backend asserts, and the end of a binding.
SET LOCAL ROLE postern_owner;

-- p_number: two digits, of a link that asks for them. p_return_hash: of what the app on the phone gets. Outcomes:
-- passed, linked, failed (wrong number, or denied), number_due (nothing changed), gone (dead or unknown).
CREATE OR REPLACE FUNCTION postern.answer_possession_link(
    p_realm uuid, p_link_hash bytea, p_denies boolean, p_number text, p_return_hash bytea,
    OUT outcome postern.possession_answered, OUT target text, OUT auth_id uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_asked postern.device_request;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT t.* INTO v_asked FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.link_hash = p_link_hash AND t.state = 'sent' AND t.link_expires_at > now()
       AND postern.may_prove_numbers(p_realm, t.client)
       AND t.expires_at > now() FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 'gone';
        RETURN;
    END IF;
    target := v_asked.detail ->> 'target';
    auth_id := v_asked.auth_id;
    IF p_denies OR v_asked.match_number IS NOT NULL AND p_number <> v_asked.match_number THEN
        PERFORM postern.fail_possession(p_realm, v_asked.id, '{sent}', '{9100,9212}');
        outcome := 'failed';
    ELSIF v_asked.kind = 'desktop' AND v_asked.match_number IS NOT NULL AND p_number IS NULL THEN
        outcome := 'number_due';
    ELSIF v_asked.kind = 'desktop' THEN
        PERFORM postern.pass_possession(p_realm, v_asked.id, '{sent}', 'link',
                                        CASE WHEN v_asked.match_number IS NULL
                                             THEN '{9203}'::postern.possession_reason[] END);
        outcome := 'passed';
    ELSE
        PERFORM postern.move_device_request(p_realm, v_asked.id, '{sent}', 'linked');
        UPDATE postern.device_request AS t
           SET link_hash = NULL, return_hash = p_return_hash, return_expires_at = now() + interval '120 seconds'
         WHERE t.realm_id = p_realm AND t.id = v_asked.id;
        PERFORM postern.wake(p_realm, 'transaction', v_asked.id);
        outcome := 'linked';
    END IF;
END
$$;
COMMENT ON FUNCTION postern.answer_possession_link IS 'What the person on the phone says on the page of a link';
GRANT EXECUTE ON FUNCTION postern.answer_possession_link TO postern_app;

-- A backend says which number the key belongs to, which may be another one than it started with. Outcomes: bound (also
-- said again), unknown, step.
CREATE OR REPLACE FUNCTION postern.bind_possession(
    p_realm uuid, p_client uuid, p_id uuid, p_phone text,
    OUT outcome postern.possession_bound, OUT facts postern.possession_facts)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
DECLARE
    v_before postern.device_request;
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    SELECT t.* INTO v_before FROM postern.device_request AS t
     WHERE t.realm_id = p_realm AND t.id = p_id AND t.client = p_client AND t.kind <> 'approval' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    ELSIF postern.state_of(v_before) = 'required' THEN
        UPDATE postern.device_request AS t
           SET phone = p_phone, detail = t.detail || '{"asserted": true}', reason = NULL
         WHERE t.realm_id = p_realm AND t.id = p_id;
        PERFORM postern.pass_possession(p_realm, p_id, '{required}', 'bind');
        INSERT INTO postern.audit_event (realm_id, event, client, source, detail)
        VALUES (p_realm, 'possession_asserted', p_client, v_before.source,
                jsonb_build_object('correlation_id', p_id, 'other_number',
                                   v_before.phone IS NOT NULL AND v_before.phone <> p_phone));
        outcome := 'bound';
    ELSIF v_before.state IN ('passed', 'redeemed') AND v_before.detail ? 'asserted' AND v_before.phone = p_phone THEN
        outcome := 'bound';
    ELSE
        outcome := 'step';
    END IF;
    facts := (SELECT postern.possession_facts(t, NULL, NULL)
                FROM postern.device_request AS t WHERE t.realm_id = p_realm AND t.id = p_id);
END
$$;
COMMENT ON FUNCTION postern.bind_possession IS
    'Binds the key of a transaction to a number that the backend vouches for';
GRANT EXECUTE ON FUNCTION postern.bind_possession TO postern_app;

-- Of the client that bound it last. The phone goes; a trusted device stays one.
CREATE OR REPLACE FUNCTION postern.revoke_phone_key(p_realm uuid, p_client uuid, p_device uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, postern, pg_temp
AS $$
BEGIN
    PERFORM set_config('postern.realm', p_realm::text, true);
    RETURN postern.unbind_phone(p_realm, p_device, 'client', p_client);
END
$$;
COMMENT ON FUNCTION postern.revoke_phone_key IS 'Takes the phone number from a key; false: not this client''s';
GRANT EXECUTE ON FUNCTION postern.revoke_phone_key TO postern_app;

RESET ROLE;
