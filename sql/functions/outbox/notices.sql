-- Notices: what the addresses of an account are told about changes to the account.
SET LOCAL ROLE postern_owner;

-- Queues a notice in the caller's transaction. Its text is made when it is sent, from the template, p_detail and the
-- realm's name.
-- p_detail, all optional: aaguid of the passkey (the text names the product); identifier, an address or masked number;
-- app, the slug of the App to name in place of the realm. p_recipient: for what goes to another mailbox than the
-- account's present ones (a removed address; a deleted account). NULL: every proven e-mail address of the account,
-- but for the address p_detail ->> 'identifier', which needs no notice of itself; without any other, the primary phone.
-- The language is the account's own, never that of a request: a stranger may have made it. p_locale: that of an account
-- which is gone.
-- offer: as postern.offer_undo makes it; each address gets a link of its own to undo the change.
-- Nothing is sent to a test identity, nor to an unconfirmed address of the account, except the notice that it became
-- the address.
CREATE OR REPLACE FUNCTION postern.queue_notice(
    p_realm uuid, p_user uuid, p_template text, p_detail jsonb DEFAULT NULL, p_recipient text DEFAULT NULL,
    p_locale text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_locale text;
BEGIN
    IF p_template NOT IN ('passkey-added', 'passkey-removed', 'totp-added', 'totp-removed', 'recovery-codes-used-up',
                          'address-changed', 'account-deleted', 'identifier-added', 'identifier-removed',
                          'identifier-moved', 'device-added', 'device-removed', 'phone-key-added',
                          'approval-reported', 'account-secured') THEN
        RAISE EXCEPTION 'there is no notice %', p_template;
    END IF;
    PERFORM set_config('postern.realm', p_realm::text, true);
    IF postern.is_test_identity(p_user) THEN
        RETURN;
    END IF;
    SELECT u.locale INTO v_locale FROM postern.user_account AS u WHERE u.realm_id = p_realm AND u.id = p_user;
    v_locale := coalesce(v_locale, p_locale);
    INSERT INTO postern.message_outbox (realm_id, id, recipient, template, purpose, detail, locale)
    SELECT p_realm, gen_random_uuid(), t.recipient, p_template, 'notice',
           coalesce(p_detail, '{}') - 'offer'
               || postern.undo_link_for(p_realm, p_user, p_detail -> 'offer', t.recipient), v_locale
      FROM (SELECT p_recipient AS recipient
             WHERE p_template = 'address-changed'
                OR NOT EXISTS (SELECT FROM postern.user_identifier AS i
                                WHERE i.realm_id = p_realm AND i.user_id = p_user
                                  AND i.key = postern.address_key(p_recipient) AND i.proven_key IS NULL)
             UNION ALL
            SELECT i.value FROM postern.user_identifier AS i
             WHERE p_recipient IS NULL AND i.realm_id = p_realm AND i.user_id = p_user AND i.kind = 'email'
               AND i.proven_key IS NOT NULL
               AND i.key IS DISTINCT FROM postern.address_key(p_detail ->> 'identifier')) AS t
     WHERE t.recipient IS NOT NULL;
    IF p_recipient IS NULL AND NOT EXISTS (SELECT FROM postern.user_identifier AS i
                                            WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.kind = 'email'
                                              AND i.proven_key IS NOT NULL
                                              AND i.key IS DISTINCT FROM postern.address_key(p_detail ->> 'identifier'))
        THEN
        PERFORM postern.queue_notice_by_sms(p_realm, p_user, i.value, p_template, p_detail, v_locale)
           FROM postern.user_identifier AS i
          WHERE i.realm_id = p_realm AND i.user_id = p_user AND i.primary_kind = 'phone' AND i.proven_key IS NOT NULL
            -- An identifier that was just added gets no notice of itself.
            AND p_detail ->> 'identifier' IS DISTINCT FROM postern.masked_identifier(i.value);
    END IF;
END
$$;
COMMENT ON FUNCTION postern.queue_notice IS
    'Queues a notice to every proven address of an account (or to p_recipient) about a change of the account';
GRANT EXECUTE ON FUNCTION postern.queue_notice TO postern_app;

-- A notice that finds the day's budget used up has a reserve of its own, which no request of strangers takes from:
-- else they would choose whose notices are not sent. It is a twentieth of the budget, on top, ten units at least. One
-- number takes three messages of it in a day, so that a few accounts cannot use it up for all.
CREATE OR REPLACE FUNCTION postern.take_notice_permits(p_realm uuid, p_phone text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce((
        SELECT bool_and(t.retry_after IS NULL)
          FROM postern.effective_rate_limits(p_realm) AS l,
               LATERAL postern.take_permits(
                   ROW(ARRAY['phone-otp|target-total|notice|' || p_phone, 'phone-otp|spend|notice|all'],
                       ARRAY[1, postern.message_cost(p_realm, p_phone)], ARRAY[3, greatest(l.permits / 20, 10)],
                       ARRAY[86400, extract(epoch FROM l.per)::float8],
                       ARRAY[3, greatest(l.burst / 20, 10)])::postern.permits) AS t
         WHERE l.policy = 'phone-otp' AND l.dimension = 'spend'), false);
END
$$;
COMMENT ON FUNCTION postern.take_notice_permits IS
    'Takes the permits of a notice to a phone for which the day''s budget has none; false when there are none';
GRANT EXECUTE ON FUNCTION postern.take_notice_permits TO postern_app;

-- For a user without an address. It takes of the day's budget, of no other limit. One that is not sent is audited.
CREATE OR REPLACE FUNCTION postern.queue_notice_by_sms(
    p_realm uuid, p_user uuid, p_phone text, p_template text, p_detail jsonb, p_locale text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT postern.channels_config(p_realm) ? 'sms' THEN
        RETURN;
    END IF;
    IF NOT postern.queue_message(p_realm, gen_random_uuid(), 'sms', p_phone, p_template, 'notice', NULL,
                                 p_detail => coalesce(p_detail, '{}') - 'offer'
                                     || postern.undo_link_for(p_realm, p_user, p_detail -> 'offer', p_phone),
                                 p_locale => p_locale) THEN
        INSERT INTO postern.audit_event (realm_id, event, user_id, detail)
        VALUES (p_realm, 'notice_unsent', p_user, jsonb_build_object('template', p_template));
    END IF;
END
$$;
COMMENT ON FUNCTION postern.queue_notice_by_sms IS
    'Queues a notice to a phone, where the realm has SMS and budget is left';
GRANT EXECUTE ON FUNCTION postern.queue_notice_by_sms TO postern_app;

-- For p_detail: the App that a client belongs to, if it is one App only.
CREATE OR REPLACE FUNCTION postern.app_named(p_realm uuid, p_client uuid)
RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('app', CASE WHEN count(*) = 1 THEN min(k.app) END))
      FROM postern.app_client AS k WHERE k.realm_id = p_realm AND k.client = p_client
$$;
COMMENT ON FUNCTION postern.app_named IS 'Detail of a notice that names the only App of a client';
GRANT EXECUTE ON FUNCTION postern.app_named TO postern_app;

RESET ROLE;
